"""Debuggers, profilers and what measures coverage: where one of them watches, the script runs in Python.

In: the state of the interpreter. Out: whether somebody watches; a call when somebody begins to.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

__all__ = ["TOOL", "TOOL_NAME", "change", "expect", "ignore", "is_traced", "names_tracers", "watch"]

#: The tool of `sys.monitoring` that stops frames, and its name.
TOOL, TOOL_NAME = 5, "jitcore"
#: Names by which a script comes to what watches it.
_NAMES = frozenset("settrace setprofile monitoring breakpoint pdb bdb set_trace cProfile runctx coverage "
                   "line_profiler pyinstrument".split())
_EVENTS = frozenset({"sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"})
_stop: Callable[[], None] | None = None
_is_heard = _is_own = False


def ignore(frame: FrameType, event: str, argument: object) -> None:
    """What traces for jitcore itself: it stops a frame."""


def is_traced() -> bool:
    if sys.gettrace() not in (None, ignore) or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(
        monitoring.get_tool(number) not in (None, TOOL_NAME) for number in range(6))


def names_tracers(code: CodeType) -> bool:
    """Whether code, or a function in it, names something that watches."""
    return not _NAMES.isdisjoint(code.co_names) or any(
        names_tracers(const) for const in code.co_consts if isinstance(const, type(code)))


def watch(stop: Callable[[], None] | None) -> None:
    """Has this called when somebody begins to watch, before the first event; None: nothing any more.

    What hears of it stays for good, and takes some time in all events that Python audits: scripts that name
    no tracers go without."""
    global _stop, _is_heard
    _stop = stop
    if stop is not None and not _is_heard:
        _is_heard = True
        sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple) -> None:
    global _is_own
    if event in _EVENTS:
        is_own, _is_own = _is_own, False
        if _stop is not None and not is_own:
            _stop()


def expect() -> None:
    """The interpreter takes back a function that traces and raises: the next change is nobody's."""
    global _is_own
    _is_own = _is_heard


def change(do: Callable, *given: Any) -> None:
    """Calls a function that says who watches; that is heard by nobody."""
    global _stop
    stop, _stop = _stop, None
    try:
        do(*given)
    finally:
        _stop = stop
