"""Where the rules and runbooks lie: in an installed wheel, or in the checkout they came from."""

from __future__ import annotations

from pathlib import Path

from preflight.errors import PreflightError

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = ("checks", "runbooks")


def root(package: Path = _PACKAGE) -> Path:
    """The folder that holds checks/ and runbooks/; PreflightError if no place has both.

    A wheel carries them inside the package (see pyproject.toml). In a checkout, and so
    in an editable install, they lie beside src/.
    """
    places = (package / "_data", package.parent.parent)
    for place in places:
        if all((place / folder).is_dir() for folder in _FOLDERS):
            return place
    looked = " and ".join(str(place) for place in places)
    raise PreflightError(
        f"cannot find the folders {' and '.join(_FOLDERS)}: looked in {looked}",
        "install preflight again: pip install --force-reinstall gpu-preflight",
    )
