"""Which Python has torch: the user's own modules count, and another one is named where it has."""

from __future__ import annotations

import glob
import os
import site
import sys
from importlib.util import find_spec

#: Where environments lie that people make; each has lib/python3.*/site-packages.
_PLACES = (
    "$VIRTUAL_ENV", "$CONDA_PREFIX", "$HOME/venv", "$HOME/.venv", "$HOME/*/venv", "$HOME/*/.venv",
    "$HOME/miniconda3", "$HOME/miniconda3/envs/*", "$HOME/miniforge3", "$HOME/miniforge3/envs/*",
    "$HOME/anaconda3", "$HOME/anaconda3/envs/*", "/opt/conda", "/opt/conda/envs/*", "/opt/venv",
    "/opt/*", "/usr/local", "/venv",
)  # fmt: skip
_MOST = 3


def add_users_modules() -> None:
    """Isolated mode leaves out what was installed with --user, and PYTHONPATH. A torch that is
    there is the one that trains; last in the path, it covers no module of ours."""
    if sys.flags.isolated:
        site.addsitedir(site.getusersitepackages())
        more = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path += [path for path in more if os.path.isabs(path)]  # noqa: PTH117


def no_torch() -> str:
    """That this Python has no torch, and which one has."""
    found = with_torch()
    hint = f"--python {found[0]}" if found else f"{sys.executable} -m pip install torch"
    also = f" (also {', '.join(found[1:])})" if found[1:] else ""
    has = "has a torch that is not whole" if find_spec("torch") else "has no torch"
    return f"{sys.executable} {has}; {hint}{also}"


def with_torch() -> list[str]:
    """Other Pythons of this host with a torch beside them, at most some."""
    return with_module("torch", "version.py")


def with_module(name: str, file: str = "__init__.py") -> list[str]:
    """The same of any module; `file`: one that it is not whole without."""
    found: dict[str, None] = {}
    for place in map(os.path.expandvars, _PLACES):
        if place.startswith("$"):
            continue
        for path in glob.glob(f"{place}/lib/python3.*/site-packages/{name}/{file}"):  # noqa: PTH207
            python = f"{path.split('/lib/python3.')[0]}/bin/python3"
            if os.access(python, os.X_OK) and python != sys.executable:
                found[python] = None
    return list(found)[:_MOST]
