"""What stands at the head of loops and the beginning of functions: gates, and what is known of their code.

In: nothing. Out: objects that prepared code has among its constants (see `entries`), and descriptions of it.
A script whose prepared code is on disk needs only this.
"""

from __future__ import annotations

import bisect
from collections import namedtuple
from collections.abc import Callable

__all__ = ["DECLINED", "HEAD", "OVER", "RAISED", "WATCH", "Gate", "Leave", "Loop", "Prepared", "Slot"]

#: What is no exit: the loop goes on at its head; at its head an exception is raised, which comes with it; it
#: does one iteration in Python, and comes back.
HEAD, RAISED, WATCH = -1, -2, -3
#: Told by a run of statements that Python has come to its end.
OVER = True


class Leave(BaseException):
    """Raised in a frame that stands at the head of a loop: the loop is left there, and gone on with
    elsewhere."""


class Gate(list):
    """What is asked whenever a loop is begun: empty while it is closed. Code is hashed with its constants."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def open(self) -> None:
        self[:] = (True,)

    def close(self) -> None:
        self.clear()


class Declined:
    """What a call answers that is left to Python."""

    def __reduce__(self):
        return "DECLINED"


DECLINED = Declined()


class Slot:
    """What calls of a function ask first, while its gate is open: `call`, with the values of its
    parameters."""

    __slots__ = ("gate", "call")

    def __init__(self):
        self.gate = Gate()
        self.call: Callable | None = None


class Loop(namedtuple("Loop", "head is_for body exits end sides stop is_run span depth level line lists")):
    """A loop of a code object, or a run of statements in one, between two that are opaque.

    Attributes:
        head: offset of its head, to which its iterations go back, or where it begins; is_for: whether an
            iterator of its own lies on the stack there.
        body: offsets of its instructions.
        exits: offsets behind it, where control may go on; end: of a `for` the one of them behind its last
            iteration.
        sides: parts of it that not every iteration comes to and that call something, as offsets of their
            instructions by that of the first: control may leave the loop there too and come back to its head.
        stop: the one of them that is opaque and that each iteration comes to, with all behind it, or -1.
        is_run: whether it is a run of statements; all its exits are its end.
        span: offsets at which ticks are its own: its body, as far as its program may go, and the opaque
            statements behind that, since a signal waits for the next call.
        depth: of the stack at its head. level: number of loops around it.
        line: of its `for` or `while`. lists: places of the stack where lists lie that it appends to, those of
            comprehensions.
    """

    __slots__ = ()


class Prepared(namedtuple("Prepared", "original code loops heads new old")):
    """Code with entries.

    Attributes:
        original, code: before and after; loops: that have an entry, outer ones first.
        heads: where each head is in the new code, by its old offset. new, old: offsets of each instruction.
    """

    __slots__ = ()

    def locate(self, offset: int) -> int:
        """The old offset of what stands at an offset of the new code; -1 for what was added."""
        return self.old[bisect.bisect_right(self.new, offset) - 1]
