"""Which files are jitcore's own. A clone may lie in a folder of any name, so that names alone do not tell."""

from __future__ import annotations

import os
from pathlib import Path

import jitcore
import jitcore.backends

_FOLDERS = {os.path.dirname(package.__file__) + os.sep for package in (jitcore, jitcore.backends)}
_FOLDERS |= {os.path.realpath(folder) + os.sep for folder in _FOLDERS}
_FOLDERS |= {folder.replace(str(Path.home()) + os.sep, "~/") for folder in _FOLDERS}  # as notebooks show it


def is_own_file(name: str) -> bool:
    """Whether a file, or code that was made, is jitcore's."""
    return name.startswith(("<jitcore", *_FOLDERS))


def shows_own_file(text: str) -> bool:
    """Whether a text names such a file."""
    return any(folder in text for folder in _FOLDERS)
