"""Stopping a running frame at the head of a loop, exactly.

In: a frame, and the offset of a loop's head in its code. Out: `Leave` is raised in the frame the next time
that it stands there. 3.11: by line events of that one frame; later: by instruction events of its code object,
each place of which is seen once. Nothing is armed where a debugger or profiler traces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from jitcore.scripts.gates import Leave
from jitcore.scripts.tracers import TOOL, TOOL_NAME, change, expect, ignore, is_traced

__all__ = ["PATIENCE", "SHARE", "Arming", "arm"]


class Arming:
    """A frame that is to be stopped."""

    def __init__(self, frame: FrameType, head: int):
        self.frame, self.code, self.head = frame, frame.f_code, head

    def disarm(self) -> None:
        """Gives up; also called when the frame was stopped."""


if sys.version_info >= (3, 12):
    PATIENCE, SHARE = 100, 0.5
    _MONITORING = sys.monitoring

    class _Arming(Arming):
        def __init__(self, frame: FrameType, head: int):
            super().__init__(frame, head)
            events = _MONITORING.events
            _MONITORING.use_tool_id(TOOL, TOOL_NAME)
            change(_MONITORING.register_callback, TOOL, events.INSTRUCTION, self._see)
            _MONITORING.set_local_events(TOOL, self.code, events.INSTRUCTION)
            _MONITORING.restart_events()

        def _see(self, code: Any, offset: int) -> Any:
            if offset != self.head or code is not self.code:
                return _MONITORING.DISABLE
            if sys._getframe(1) is not self.frame:
                return None
            self.disarm()
            raise Leave

        def disarm(self) -> None:
            if self.frame is None:
                return
            _MONITORING.set_local_events(TOOL, self.code, 0)
            change(_MONITORING.register_callback, TOOL, _MONITORING.events.INSTRUCTION, None)
            _MONITORING.free_tool_id(TOOL)
            self.frame = None

else:
    #: Ticks in which frames may be watched, and the part of all others.
    PATIENCE, SHARE = 3, 0.03

    class _Arming(Arming):
        def __init__(self, frame: FrameType, head: int):
            super().__init__(frame, head)
            frame.f_trace = self._see
            change(sys.settrace, ignore)

        def _see(self, frame: FrameType, event: str, argument: Any) -> Callable | None:
            if event == "line" and frame.f_lasti == self.head and frame is self.frame:
                self.disarm()
                expect()
                raise Leave
            return self._see

        def disarm(self) -> None:
            if self.frame is not None and self.frame.f_trace == self._see:
                self.frame.f_trace = None
            if sys.gettrace() is ignore:
                change(sys.settrace, None)
            self.frame = None


def arm(frame: FrameType, head: int) -> Arming | None:
    """None where somebody else traces."""
    return None if is_traced() else _Arming(frame, head)
