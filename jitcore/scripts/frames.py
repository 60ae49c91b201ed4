"""Variables of frames that run, written from outside.

In: a frame, and values by name. Out: the frame's variables have them. Up to 3.12 what `f_locals` gives is a
copy, which a function of CPython's brings back; from 3.13 on it is the variables themselves. None of them can
take a value away.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from jitcore.process.lazy import LazyModule

ctypes = LazyModule("ctypes")

__all__ = ["write_variables"]


def write_variables(frame: FrameType, values: Mapping[str, Any]) -> None:
    variables = frame.f_locals
    variables.update(values)
    if sys.version_info < (3, 13) and variables is not frame.f_globals:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
