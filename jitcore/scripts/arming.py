"""Stopping a running frame at the head of a loop, exactly.

In: a frame, and the offset of a loop's head in its code. Out: `Leave` is raised in the frame the next time
that it stands there. 3.11: by line events of that one frame; later: by instruction events of its code object,
each place of which is seen once. Nothing is armed where a debugger or profiler traces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import FrameType
from typing import Any

from jitcore.scripts.entries import Leave

__all__ = ["PATIENCE", "SHARE", "Arming", "arm", "measure_event"]

#: How much longer an event takes than the Python function that it calls.
BESIDE = 1.5


class Arming:
    """A frame that is to be stopped, when it has come to the head more than `skipped` times.

    Attributes:
        is_done: whether it was; n_events: what it was watched by until then.
    """

    def __init__(self, frame: FrameType, head: int, skipped: int):
        self.frame, self.code, self.head = frame, frame.f_code, head
        self.skipped, self.is_done, self.n_events = skipped, False, 0

    def is_due(self) -> bool:
        """Asked whenever it stands at the head."""
        self.skipped -= 1
        return self.skipped < 0

    def disarm(self) -> None:
        """Gives up; also called when the frame was stopped."""

    def see_nothing(self, frame: FrameType, event: str, argument: Any) -> None:
        """Takes as long as an event that is none."""
        self.n_events += 1
        if event == "line" and frame.f_lasti == self.head and frame is self.frame:
            raise AssertionError


if sys.version_info >= (3, 12):
    PATIENCE, SHARE = 100, 0.5
    _MONITORING = sys.monitoring
    _TOOL = _MONITORING.OPTIMIZER_ID

    class _Arming(Arming):
        def __init__(self, frame: FrameType, head: int, skipped: int):
            super().__init__(frame, head, skipped)
            events = _MONITORING.events
            if _MONITORING.get_tool(_TOOL) is None:
                _MONITORING.use_tool_id(_TOOL, "jitcore")
            _MONITORING.register_callback(_TOOL, events.INSTRUCTION, self._see)
            _MONITORING.set_local_events(_TOOL, self.code, events.INSTRUCTION)
            _MONITORING.restart_events()

        def _see(self, code: Any, offset: int) -> Any:
            self.n_events += 1
            if offset != self.head or code is not self.code:
                return _MONITORING.DISABLE
            if sys._getframe(1) is not self.frame or not self.is_due():
                return None
            self.is_done = True
            self.disarm()
            raise Leave

        def disarm(self) -> None:
            _MONITORING.set_local_events(_TOOL, self.code, 0)
            _MONITORING.register_callback(_TOOL, _MONITORING.events.INSTRUCTION, None)
            self.frame = None

    def _is_traced() -> bool:
        return sys.gettrace() is not None or _MONITORING.get_tool(_MONITORING.DEBUGGER_ID) is not None

else:
    #: Ticks in which frames may be watched, and the part of all others.
    PATIENCE, SHARE = 10, 0.05

    class _Arming(Arming):
        def __init__(self, frame: FrameType, head: int, skipped: int):
            super().__init__(frame, head, skipped)
            frame.f_trace = self._see
            sys.settrace(_ignore)

        def _see(self, frame: FrameType, event: str, argument: Any) -> Callable | None:
            self.n_events += 1
            if event == "line" and frame.f_lasti == self.head and frame is self.frame and self.is_due():
                self.is_done = True
                self.disarm()
                raise Leave
            return self._see

        def disarm(self) -> None:
            sys.settrace(None)
            if self.frame is not None:
                self.frame.f_trace = None
            self.frame = None

    def _ignore(frame: FrameType, event: str, argument: Any) -> None:
        return None

    def _is_traced() -> bool:
        return sys.gettrace() is not None


def arm(frame: FrameType, head: int, skipped: int = 0) -> Arming | None:
    """None where somebody else traces."""
    return None if _is_traced() else _Arming(frame, head, skipped)


def measure_event() -> float:
    """Seconds that an event takes, about: Python's part of it is measured."""
    watched = Arming(sys._getframe(), -1, 0)
    start = perf_counter()
    for _ in range(100):
        watched.see_nothing(watched.frame, "line", None)
    return (perf_counter() - start) / 100 * BESIDE
