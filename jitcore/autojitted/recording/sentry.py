"""The sentry: notices code of the user that runs while tracing although it was not entered.

In: what traced code hands to code that is not traced: functions, objects with special methods. Out:
NotTraceable before the first instruction of a function of the user that C code or a library calls: what it
does could not be taken back, and later calls of the program would not do it. Python's profiling events tell
of each call; they cost time, so they are asked for only once something was met that can be called in this
way.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.rewriter.control_flow.arms import make_final
from jitcore.rewriter.user_code import is_library_file, is_user_class, is_user_code

#: Special methods that do not let C code in: traced code calls them by their traced form.
_ENTERED = frozenset("__init__ __call__ __post_init__".split())


class Sentry:
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
