"""Removal of a directory of files, which never goes through a link."""

from __future__ import annotations

import os
import shutil
import stat


def is_mine(path: str) -> bool:
    """Whether it is a directory itself, no link to one, and of this user."""
    try:
        told = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(told.st_mode) and told.st_uid == os.geteuid()


def remove(path: str) -> tuple[int, str]:
    """All of it; how many files stay, -1 where nobody knows, and why."""
    try:
        is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return 0, ""
    except OSError as error:
        return -1, f"{path}: {error.strerror}"
    if not is_folder:
        return -1, f"{path} is no directory any more: what it leads to is left alone"
    said: list[str] = []
    # Refuses a link, and goes down by descriptors that follow none.
    shutil.rmtree(path, onerror=lambda _, at, told: said.append(f"{at}: {told[1]}"))
    stays = sum(len(files) for _, _, files in os.walk(path))
    return stays, said[0] if stays and said else ""
