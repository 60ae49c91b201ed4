"""What earlier runs of a script learned about its loops, on disk.

In: the script's text. Out: for each loop that was hot its program, or why there is none. Programs refer to
functions and modules of the script by their names, and to these functions' code by its digest.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import sys
import types
from typing import TYPE_CHECKING, Any, NamedTuple

import jitcore
from jitcore.dispatch import disk_cache
from jitcore.process import streams

if TYPE_CHECKING:
    from jitcore.scripts.environment import Described, Restore

__all__ = ["Lesson", "Names", "load_lessons", "store_lessons"]


class Names(NamedTuple):
    """How what `environment.describe` has numbered is found in another process.

    functions: (module, name, digest of the code and the defaults) of each, or None; modules: names.
    """

    functions: tuple[tuple[str, str, bytes] | None, ...]
    modules: tuple[str, ...]

    def find(self, restore: Restore, kind: str, number: int) -> Any:
        """Raises: LookupError where there is none, or another one."""
        if kind == "stream":
            return streams.share(number)
        if kind == "module":
            return sys.modules[self.modules[number]].__dict__
        if kind in ("function", "code") and self.functions[number] is not None:
            module, name, digest = self.functions[number]
            function = sys.modules[module].__dict__[name]
            if type(function) is types.FunctionType and digest_function(function, restore) == digest:
                return function if kind == "function" else function.__code__
        raise LookupError(f"{kind} {number} of the script")


class Lesson(NamedTuple):
    """About one loop. program: a `FromDisk`, or None; names: of what it refers to; reason: why there is
    none."""

    program: Any
    names: Names | None
    reason: str


def digest_function(function: types.FunctionType, restore: Restore) -> bytes | None:
    """None where it is made of more than code and plain defaults."""
    if function.__closure__:
        return None
    defaults = repr((function.__defaults__, function.__kwdefaults__)) if _are_plain(function) else None
    return defaults and hashlib.sha256(marshal.dumps(restore(function.__code__)) + defaults.encode()).digest()


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


def _make_key(source: bytes) -> bytes:
    return hashlib.sha256(f"lessons {jitcore.__version__} {sys.version}".encode() + source).digest()


def _stamp_folders() -> list[tuple[str, int]]:
    """The folders of what made the programs, and when they changed: a module that was edited and imported has
    another compiled file."""
    root = os.path.dirname(jitcore.__file__)
    return [(folder, os.stat(folder).st_mtime_ns) for folder, _, _ in os.walk(root, followlinks=True)]


def load_lessons(source: bytes) -> dict[tuple[int, int], Lesson]:
    """By the number of the code object in the script, and the offset of the loop's head."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(_make_key(source))
    if stored is None:
        return {}
    folders, lessons = pickle.loads(stored)
    try:
        is_current = all(os.stat(folder).st_mtime_ns == then for folder, then in folders)
    except OSError:
        return {}
    return pickle.loads(lessons) if is_current else {}


def store_lessons(source: bytes, lessons: dict[tuple[int, int], Lesson]) -> None:
    cache = disk_cache.open_cache()
    if cache is not None:
        cache.add(_make_key(source), pickle.dumps((_stamp_folders(), pickle.dumps(lessons, 5)), 5))
