"""Variables of frames that run, written from outside, and who else has their values.

In: a frame, and values by name. Out: the frame's variables have them. Up to 3.12 what `f_locals` gives is a
copy, which a function of CPython's brings back; from 3.13 on it is the variables themselves. None of them can
take a value away.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from jitcore.process.lazy import LazyModule

ctypes = LazyModule("ctypes")

__all__ = ["are_own", "write_variables"]


def write_variables(frame: FrameType, values: Mapping[str, Any]) -> None:
    variables = frame.f_locals
    variables.update(values)
    if sys.version_info < (3, 13) and variables is not frame.f_globals:
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _count_references(frame: FrameType, name: str) -> int:
    """Of a variable's value."""
    return sys.getrefcount(frame.f_locals[name])


def _count_own() -> int:
    value = object()  # which only this variable has
    frame = sys._getframe()
    return _count_references(frame, "value") if value else 0


#: References to what only a variable of a function's frame has, and one of a module: those that a look takes.
_OF_FUNCTION = _count_own()
_OF_MODULE = sys.getrefcount({"value": object()}["value"]) + 1


def are_own(frame: FrameType, names: Iterable[str], dead: Iterable[str]) -> bool:
    """Whether nobody but these variables has their arrays, or parts of them. dead: variables whose values
    nobody reads any more, and that do not count."""
    variables = frame.f_locals
    alone = _OF_MODULE if variables is frame.f_globals else _OF_FUNCTION

    def is_own(value: Any, name: str) -> bool:
        others = sum(variables.get(other) is value for other in dead)
        found = _count_references(frame, name) - 1  # that of `value` here
        return getattr(value, "base", None) is None and found <= alone + others * (alone - 1)

    return all(name in variables and is_own(variables[name], name) for name in names)
