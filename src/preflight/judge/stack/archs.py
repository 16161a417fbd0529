"""Which GPUs a torch has code for, where that is told or published."""

from __future__ import annotations

from preflight.facts.stack_pieces import Stack
from preflight.judge.stack.answer import text
from preflight.judge.stack.tables import is_between_releases, torch_release
from preflight.judge.versions import release
from preflight.model import Missing

_ASK = 'python -c "import torch; print(torch.cuda.get_arch_list())" tells it'


def archs_of(stack: Stack) -> tuple[str, ...] | Missing:
    """Told by a report; that of the image where torch is the image's own build; published for the
    wheels of pytorch.org."""
    if not isinstance(stack.torch_archs, Missing):
        return stack.torch_archs
    torch, cuda = text(stack, "torch"), text(stack, "torch_cuda")
    if of_image := _of_image(stack, torch):
        return of_image
    row = torch_release(torch)
    key = ".".join(map(str, release(cuda)[:2]))
    if row is None or key not in row.archs:
        own = is_between_releases(torch)
        where = "is no release" if own else "has no row in checks/data/torch_releases.yaml"
        return Missing("not-applicable", f"torch {torch} with CUDA {key} {where}; {_ASK}")
    return tuple(row.archs[key].split())


def built_elsewhere(stack: Stack) -> Missing | None:
    """Why the published list may leave out what this torch has: the wheels of pytorch.org name
    their CUDA in the version (2.7.0+cu128), the builds of conda-forge and of sites do not."""
    torch = text(stack, "torch")
    if not isinstance(stack.torch_archs, Missing) or _of_image(stack, torch) or "+cu" in torch:
        return None
    why = f"torch {torch} names no CUDA as the wheels of pytorch.org do: their list is not its own"
    return Missing("not-applicable", f"{why}; {_ASK}")


def _of_image(stack: Stack, torch: str) -> tuple[str, ...]:
    told = {one.name: one.value for one in stack.environment}
    built = told.get("PYTORCH_VERSION", "")
    if not built or built.partition("+")[0] != torch.partition("+")[0]:
        return ()
    return tuple(told.get("TORCH_CUDA_ARCH_LIST", "").replace(";", " ").split())
