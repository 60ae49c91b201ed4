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


def _count_of_function() -> int:
    value = object()  # noqa: F841  which only this variable has
    return sys.getrefcount(sys._getframe().f_locals["value"])


def _count_of_module() -> int:
    variables = {"value": object()}
    return sys.getrefcount(variables["value"])


#: References to what only a variable of a function's frame has, or one of a module, and who counts them.
_OF_FUNCTION, _OF_MODULE = _count_of_function(), _count_of_module()


def are_own(frame: FrameType, names: Iterable[str], dead: Iterable[str]) -> bool:
    """Whether nobody but these variables has their arrays, or parts of them. dead: variables whose values
    nobody reads any more, and that do not count."""
    variables = frame.f_locals
    alone = _OF_MODULE if variables is frame.f_globals else _OF_FUNCTION

    def is_own(name: str) -> bool:
        more = sys.getrefcount(variables[name]) - alone
        if more > 0:  # which is rare, and there may be many of the dead
            value = variables[name]
            more -= (alone - 1) * sum(variables.get(other) is value for other in dead)
        return more <= 0 and getattr(variables[name], "base", None) is None

    return all(name in variables and is_own(name) for name in names)
