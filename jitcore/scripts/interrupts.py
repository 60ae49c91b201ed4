"""Handlers of signals wait while a program runs in the place of a loop: they run between two iterations.

In: whatever handlers the script has installed, Python's for Ctrl-C among them. Out: what they have raised.
"""

from __future__ import annotations

import _signal
from _thread import interrupt_main, start_new_thread
from types import FrameType, TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Waiting", "interrupt", "is_plain_interrupt"]

#: Signals whose handlers may raise: Ctrl-C, timers, what others send. `signal` itself takes longer to ask.
_SIGNALS = tuple([getattr(_signal, name) for name in (
    "SIGINT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(_signal, name)])


class Waiting:
    """The time from its making to `end`, in which handlers wait. A second signal of a kind does not: who
    sends it has waited too long.

    Attributes:
        arrived: numbers of signals.
    """

    def __init__(self):
        self.arrived: list[int] = []
        self._handlers: dict[int, Any] = {}
        try:
            for number in _SIGNALS:
                handler = _signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    _signal.signal(number, self._note)
        except BaseException:
            self._restore()
            raise

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number in self.arrived:
            self.arrived.remove(number)
            self._restore()
            self._handlers[number](number, frame)
        else:
            self.arrived.append(number)

    def _restore(self) -> None:
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) == self._note:
                _signal.signal(number, handler)

    def hand_on(self) -> None:
        """Has the handlers run in the frame that is gone on with, as if signals had arrived there: by another
        thread, which runs when this one is back in it."""
        self._restore()
        for number in self.arrived:
            interrupt(number)

    def end(self, frame: FrameType) -> BaseException | None:
        """Runs the handlers, with the frame in which the loop stands. Returns: what one of them has raised,
        as if it had been called there."""
        try:
            self._restore()
            for number in self.arrived:
                self._handlers[number](number, frame)
        except BaseException as error:
            trace = error.__traceback__
            return error.with_traceback(trace and drop_first(trace, __file__))
        return None


def interrupt(number: int = _signal.SIGINT) -> None:
    """Has the main thread call the handler of a signal, soon."""
    start_new_thread(interrupt_main, (number,))


def is_plain_interrupt() -> bool:
    """Whether Ctrl-C does what Python has it do, and no more."""
    return _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler


def drop_first(trace: TracebackType, file: str) -> TracebackType | None:
    """A traceback without the first frames, which are of this file."""
    inside: TracebackType | None = trace
    while inside is not None and inside.tb_frame.f_code.co_filename == file:
        inside = inside.tb_next
    return inside
