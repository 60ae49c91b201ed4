"""What a program has printed when it gives up: plain Python, which runs the call then, leaves it out.

In: the run of a program that prints. Out: how often it has written to each stream; and streams that leave out
so much of what plain Python prints first. A program prints nothing once it has failed, so that this is what
plain Python prints up to there.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jitcore.rewriter.operations.printing import written


class _Last(threading.local):
    """What the thread's last program that prints has written."""

    counts: Mapping[str, int] = {}


_last = _Last()


def count_writes(run: Callable[..., Any]) -> Callable[..., Any]:
    """A program that notes what it prints."""

    def count_and_run(*values: Any) -> Any:
        before, written.counts = written.counts, Counter()
        try:
            return run(*values)
        finally:
            _last.counts, written.counts = written.counts, before

    return count_and_run


@contextlib.contextmanager
def without_repetition(*, is_limited: bool) -> Iterator[None]:
    """What the thread's last program has printed is left out of what is printed next.

    is_limited: only within; else until so much was printed."""
    skippers = [Skipper(name, count) for name, count in _last.counts.items() if count]
    _last.counts = {}
    try:
        yield
    finally:
        for skipper in skippers if is_limited else ():
            skipper.remove()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Within, this thread prints nothing."""
    skippers = [Skipper(name, math.inf) for name in ("stdout", "stderr")]
    try:
        yield
    finally:
        for skipper in skippers:
            skipper.remove()


@contextlib.contextmanager
def refuse_output(refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Within, what this thread prints in another way than as a part of the program raises: it would print
    while tracing only. refuse: of a reason, the exception."""
    guard = _Refuser(refuse)
    try:
        yield
    finally:
        guard.remove()


class Skipper:
    """Takes the place of `sys.stdout` or `sys.stderr` until a number of writes of this thread have been left
    out."""

    def __init__(self, name: str, count: float):
        self._name, self._left, self._stream = name, count, getattr(sys, name)
        self._thread = threading.get_ident()
        if self._stream is not None:
            setattr(sys, name, self)

    def write(self, text: str) -> int:
        if not self._left or threading.get_ident() != self._thread:
            return self._stream.write(text)
        self._left -= 1
        if not self._left:
            self.remove()
        return len(text)

    def remove(self) -> None:
        self._left = 0
        stream = getattr(sys, self._name)
        while isinstance(stream, Skipper) and not stream._left:  # another thread's may lie above
            stream = stream._stream
        setattr(sys, self._name, stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Refuser(Skipper):
    """Raises where a Skipper leaves out."""

    def __init__(self, refuse: Callable[[str], Exception]):
        super().__init__("stdout", math.inf)
        self._refuse = refuse

    def write(self, text: str) -> int:
        if self._left and threading.get_ident() == self._thread:
            raise self._refuse("code that is not a part of the program writes to sys.stdout")
        return self._stream.write(text)
