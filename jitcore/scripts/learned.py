"""What earlier runs of a script learned about its loops, on disk.

In: the script's text. Out: for each loop that was hot its program, or why there is none. Programs refer to
functions and modules of the script by their names, and to these functions' code by its digest.
"""

from __future__ import annotations

import marshal
import os
import sys
import types
from collections import namedtuple

import jitcore
from jitcore.dispatch import disk_cache
from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitcore.scripts.environment import Described, Restore

hashlib, pickle = LazyModule("hashlib"), LazyModule("pickle")

__all__ = ["Lesson", "Names", "load_lessons", "store_lessons"]


class Names(namedtuple("Names", "functions modules")):
    """How what `environment.describe` has numbered is found in another process.

    functions: (module, name, digest of the code and the defaults) of each, or None; modules: names.
    """

    __slots__ = ()

    def find(self, restore: Restore, kind: str, number: int) -> Any:
        """Raises: LookupError where there is none, or another one."""
        if kind == "module":
            return sys.modules[self.modules[number]].__dict__
        if kind in ("function", "code") and self.functions[number] is not None:
            module, name, digest = self.functions[number]
            function = sys.modules[module].__dict__[name]
            if type(function) is types.FunctionType and digest_function(function, restore) == digest:
                return function if kind == "function" else function.__code__
        raise LookupError(f"{kind} {number} of the script")


class Lesson(namedtuple("Lesson", "program names reason")):
    """About one loop. program: a `FromDisk`, or None; names: of what it refers to; reason: why there is
    none."""

    __slots__ = ()


def digest_function(function: types.FunctionType, restore: Restore) -> bytes | None:
    """None where it is made of more than code and plain defaults."""
    if function.__closure__:
        return None
    defaults = repr((function.__defaults__, function.__kwdefaults__)) if _are_plain(function) else None
    if defaults is None:
        return None
    return hashlib.sha256(marshal.dumps(restore(function.__code__), 2) + defaults.encode()).digest()


def _are_plain(function: types.FunctionType) -> bool:
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return all(type(value) in (int, float, bool, str, types.NoneType) for value in values)


def name_all(described: Described, restore: Restore) -> Names:
    """The names of what was described."""
    functions = []
    for function in described.functions:
        names, digest = function.__globals__, digest_function(function, restore)
        is_named = names.get(function.__name__) is function and digest is not None
        is_there = is_named and getattr(sys.modules.get(names.get("__name__")), "__dict__", None) is names
        functions.append((names["__name__"], function.__name__, digest) if is_there else None)
    return Names(tuple(functions), tuple(names.get("__name__", "") for names in described.modules))


def _stamp_folders() -> list[tuple[str, int]]:
    """The folders of what made the programs, and when they changed: a module that was edited and imported has
    another compiled file."""
    root = os.path.dirname(jitcore.__file__)
    return [(folder, os.stat(folder).st_mtime_ns) for folder, _, _ in os.walk(root, followlinks=True)]


def load_lessons(key: bytes) -> dict[tuple[int, int], Lesson]:
    """By the number of the code object in the text, and the offset of the loop's head."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return {}
    folders, reasons, programs = marshal.loads(stored)
    try:
        if any(os.stat(folder).st_mtime_ns != then for folder, then in folders):
            return {}
    except OSError:
        return {}
    lessons = {key: Lesson(None, None, reason) for key, reason in reasons.items()}
    return {**lessons, **pickle.loads(programs)} if programs else lessons


def store_lessons(key: bytes, lessons: dict[tuple[int, int], Lesson]) -> None:
    cache = disk_cache.open_cache()
    if cache is None:
        return
    reasons = {key: lesson.reason for key, lesson in lessons.items() if lesson.program is None}
    programs = {key: lesson for key, lesson in lessons.items() if lesson.program is not None}
    data = pickle.dumps(programs, 5) if programs else b""  # what has none is read without pickle
    cache.add(key, marshal.dumps((_stamp_folders(), reasons, data)))
