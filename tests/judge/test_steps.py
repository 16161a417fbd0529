"""Advice that fits the place: in a container, as root, at the hard limit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.collect import examine
from preflight.judge.load import load
from preflight.judge.steps import fitting, of_what_was_found
from preflight.model import Raw, Status
from tests.system_text import LIMITS

STEPS = ("ulimit -n $(ulimit -Hn)", "printf x | sudo tee y", "docker run --ulimit nofile=9 ...")
CHECKS = [one for one in load(("system",)).checks if one.id == "system.limits.nofile"]


@pytest.mark.parametrize(
    ("container", "at_top", "order"),
    [("none", False, (0, 1, 2)), (None, False, (0, 1, 2)), ("docker", False, (2, 0, 1)),
     ("docker", True, (2, 1)), ("none", True, (1, 2))],
)  # fmt: skip
def test_what_fits_comes_first(container: object, at_top: bool, order: tuple[int, ...]) -> None:
    assert fitting(STEPS, container, at_top=at_top) == tuple(STEPS[at] for at in order)


@pytest.mark.parametrize(
    ("told", "kept"),
    [("ended by signal 9 after step 3", ("free -h", "again")), ("signal 15", ("who", "again")),
     ("signal 1 before", ("who", "again")), ("signal 19", ("again",)), ("", ("again",))],
)  # fmt: skip
def test_a_step_for_what_was_found_comes_first_and_those_for_else_are_left_out(
    told: str, kept: tuple[str, ...]
) -> None:
    steps = ("again", "if signal 9: free -h", "if signal 15 or signal 1: who")
    assert of_what_was_found(steps, told) == kept


@pytest.mark.parametrize(("hard", "raises"), [("1048576", True), ("1024", False)])
@pytest.mark.parametrize("mark", ["", "container_file /.dockerenv\n"])
def test_a_soft_limit_at_its_top_is_not_raised(hard: str, raises: bool, mark: str) -> None:
    limits = LIMITS.replace("files            1048576              1048576",
                            f"files            1024                 {hard}")  # fmt: skip
    assert limits != LIMITS
    raws = [
        Raw("n", "limits", ("sh",), 0, limits),
        Raw("n", "identity", ("sh",), 0, f"hostname n\n{mark}uid 0\n"),
    ]
    (one,) = examine("n", raws, CHECKS).results
    assert any("ulimit -Hn" in step for step in one.fix) == raises
    assert one.fix[0].startswith("docker run") == bool(mark)
    (line,) = [step for step in one.fix if "limits.d" in step]
    assert "root" in line  # `*` is everybody but root


def test_of_many_limits_each_is_held_against_its_own_hard_one() -> None:
    """As a check of a site may ask for them."""
    limits = LIMITS.replace("files            1048576              1048576",
                            "files            1024                 1024")  # fmt: skip
    check = replace(CHECKS[0], fact="limits[*].soft", warn_unless={"min": 1 << 62})
    raws = [Raw("n", "limits", ("sh",), 0, limits)]
    raised = {
        one.subject: any("ulimit -Hn" in step for step in one.fix)
        for one in examine("n", raws, [check]).results
        if one.status is Status.WARN
    }
    assert raised["nofile (shell)"] is False
    assert raised["stack (shell)"] is True
