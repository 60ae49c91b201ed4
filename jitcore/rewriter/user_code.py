"""Which code is the user's, so that it is rewritten, and what it raises is its own.

In: a file, a code object, a class, a function. Out: whether it lies outside of jitcore, the standard library
and installed packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from jitcore.core.source import SourcePosition, format_snippet

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FOLDERS = {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
#: Where transformations are, and what keeps our frames out of tracebacks.
_WRAPPERS = (_PACKAGE + "transforms" + os.sep, _PACKAGE + os.path.join("core", "source.py"))
_OF_OTHERS = (_PACKAGE, *_FOLDERS, "<frozen", "<jitcore")
_HEAP_TYPE = 1 << 9


def is_library_file(path: str | None) -> bool:
    """Whether a file belongs to Python, to jitcore or to an installed package; so do builtins."""
    return not path or path.startswith(_OF_OTHERS)


def is_wrapper(function: FunctionType) -> bool:
    """Whether this is what a transformation of ours made of a function, which is in its closure."""
    return bool(function.__closure__) and function.__code__.co_filename.startswith(_WRAPPERS)


def is_user_code(code: CodeType) -> bool:
    return not code.co_filename.startswith(_OF_OTHERS)


def is_user_function(value: Any) -> bool:
    """Whether it is a Python function of the user's. Asks its type: `__class__` may be the code of a user."""
    return issubclass(type(value), FunctionType) and is_user_code(value.__code__)


#: Classes of libraries that somebody asked about.
LIBRARY_CLASSES: set[type] = set()


def is_user_class(kind: type) -> bool:
    """Whether a class was made by code of the user."""
    if kind in LIBRARY_CLASSES:
        return False
    if kind.__flags__ & _HEAP_TYPE and kind.__module__ != "builtins":
        path = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if path is None or kind.__module__ == "__main__" or not is_library_file(path):
            return True
    LIBRARY_CLASSES.add(kind)
    return False


def find_in_class(kind: type, name: str) -> tuple[type | None, Any]:
    """(the class that has a variable, what is there), as Python looks for it; (None, None) if none has it."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base, base.__dict__[name]
    return None, None


def is_compiled_by_numba(callee: Any) -> bool:
    """Whether Numba made this of a Python function: with `njit`, or for kernels."""
    return (type(callee).__module__.startswith("numba.")
            and isinstance(getattr(callee, "py_func", None), FunctionType))


def find_owner(callee: Any) -> tuple[Any, str]:
    """The object whose method a function is, or None; and the module of that object's class, or its own."""
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        owner, module = None, getattr(callee, "__module__", None)
    else:
        module = type(owner).__module__
    return owner, module if isinstance(module, str) else type(callee).__module__


def find_special(value: Any, name: str) -> Callable | None:
    """The special method of an object if it is code of the user's, bound to it; else None."""
    kind = type(value)
    if kind in LIBRARY_CLASSES or not is_user_class(kind):
        return None
    found = find_in_class(kind, name)[1]
    return MethodType(found, value) if is_user_function(found) else None


def is_changeable(kind: type) -> bool:
    """Whether a class was made by a class statement."""
    return bool(kind.__flags__ & _HEAP_TYPE)


class Place:
    """A line of the user's where a traced value decides.

    columns: (last line, first column, column behind the last) of the expression that decides, where known."""

    def __init__(self, code: CodeType, line: int, columns: tuple[int | None, ...] = (None, None, None)):
        self.position = SourcePosition(code.co_filename, line, *columns, code.co_qualname)

    def resolve(self) -> SourcePosition:
        return self.position

    @property
    def lines(self) -> list[str]:
        return format_snippet(self)

    def __str__(self) -> str:
        text = self.lines[1].strip() if len(self.lines) > 1 else ""
        place = f"{self.position.file}:{self.position.line} in {self.position.function}()"
        return f"{place}: `{text}`" if text else place
