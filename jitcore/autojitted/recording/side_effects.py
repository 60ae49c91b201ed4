"""Effects that are no part of the program: code of the user's that runs unseen, and output.

While tracing. In: what traced code hands to code that is not traced: functions, objects with special methods.
Out: NotTraceable before the first instruction of a function of the user's that C code or a library calls
(`EffectGuard`): what it does could not be taken back, and later calls of the program would not do it.
Python's profiling events tell of each call; they cost time, so they are asked for only once something was met
that can be called in this way. The same for what is printed in another way than by the program.

When a program gives up. In: the run of a program that prints. Out: how often it has written to each stream;
and streams that leave out so much of what plain Python, which runs the call then, prints first. A program
prints nothing once it has failed, so that this is what plain Python prints up to there.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.rewriter.control_flow.arms import make_final
from jitcore.rewriter.operations.redirects import written
from jitcore.rewriter.user_code import is_library_file, is_user_class, is_user_code

#: Special methods that do not let C code in: traced code calls them by their traced form.
_ENTERED = frozenset("__init__ __call__ __post_init__".split())


class EffectGuard:
    """Args: whether the global names of a frame are those of code that is traced.

    Attributes:
        error: what was raised; code of a library may have caught it.
    """

    def __init__(self, is_entered):
        self._is_entered = is_entered
        self.error: Exception | None = None
        self._is_armed = False
        self._hook = self._notice  # CPython frees one that it alone knows while it runs

    def meet_class(self, kind: type) -> None:
        """A class whose objects traced code has."""
        if not self._is_armed and can_be_called(kind):
            self.arm()

    def arm(self) -> None:
        """From now on each call is looked at. Raises: NotTraceable where a profiler is active."""
        if self._is_armed:
            return
        if sys.getprofile() is not None:
            raise not_traceable("code that is not traced may call code of yours, and a profiler is active")
        self._is_armed = True
        sys.setprofile(self._hook)

    def _notice(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call" or self._is_entered(frame.f_globals) or not is_user_code(frame.f_code):
            return
        if frame.f_code.co_filename[0] == "<" and _is_made(frame.f_globals):
            return
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
        self.error = not_traceable(f"{name}() is called by code that is not traced")
        make_final(self.error)  # nothing looks any more, so that no other way may be tried
        raise self.error

    def check(self) -> None:
        """Raises: NotTraceable again, where somebody caught it."""
        if self.error is not None:
            raise self.error

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Around a trace. Raises: NotTraceable, where it was raised within and did not come through."""
        try:
            yield
        finally:
            if self._is_armed:
                sys.setprofile(None)
        self.check()

    @contextlib.contextmanager
    def look_away(self) -> Iterator[None]:
        """Within, code of the user may run that has a trace of its own."""
        previous = sys.getprofile() if self._is_armed else None
        if previous is None:
            yield
            return
        sys.setprofile(None)
        try:
            yield
        finally:
            sys.setprofile(previous)


def can_be_called(kind: type) -> bool:
    """Whether C code may call a method of a class: it has special methods of the user's."""
    for base in kind.__mro__:
        if is_user_class(base):
            made = "<string>" if "__dataclass_fields__" in base.__dict__ else None  # of the fields
            for name, value in base.__dict__.items():
                code = find_code(value)
                if code is not None and name[:2] == "__" and name not in _ENTERED:
                    if is_user_code(code) and code.co_filename != made:
                        return True
    return type(kind) is not type and is_user_class(type(kind))


def _is_made(names: dict[str, Any]) -> bool:
    """Whether code without a file was made by a library: the methods of named tuples and dataclasses."""
    path = names.get("__file__")
    return path is not None and is_library_file(path) or names.get("__name__", "").startswith("namedtuple_")


def find_code(value: Any) -> types.CodeType | None:
    """The code of a function, or of one in a static or class method."""
    value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return getattr(value, "__code__", None)


# -- output --------------------------------------------------------------------------------------------------
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
