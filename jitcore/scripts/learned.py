"""What earlier runs of a script learned about its loops, on disk.

In: the script's text. Out: for each loop that was hot its program, or why there is none. Programs refer to
functions and modules of the script by their names, and to these functions' code by its digest.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
import types
from collections import namedtuple
from importlib.util import source_hash

import jitcore
from jitcore.dispatch import disk_cache
from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jitcore.scripts.environment import Described, Restore

pickle, streams = LazyModule("pickle"), LazyModule("jitcore.process.streams")

__all__ = ["Lesson", "Names", "Note", "add_lesson", "digest", "load_lessons", "marshal_code",
           "store_lessons"]


class Names(namedtuple("Names", "functions modules classes")):
    """How what `environment.describe` has numbered is found in another process.

    functions, classes: (module, qualified name, digest of what they are) of each, or None; modules: names.
    """

    __slots__ = ()

    def find(self, restore: Restore, kind: str, number: int) -> Any:
        """Raises: LookupError where there is none, or another one."""
        if kind == "stream":
            return streams.share(number)
        if kind == "module":
            return sys.modules[self.modules[number]].__dict__
        if kind == "module object":
            return sys.modules[self.modules[number]]
        if kind == "member":
            place, value = number
            return self.find(restore, "class", place)(value)
        known = {"function": self.functions, "code": self.functions, "class": self.classes}.get(kind, ())
        if number < len(known) and known[number] is not None:
            module, name, digest = known[number]
            found = find_by_name(sys.modules[module].__dict__, name)
            if digest_value(found, restore) == digest:
                return found.__code__ if kind == "code" else found
        raise LookupError(f"{kind} {number} of the script")

    def knows(self, kind: str, number: Any) -> bool:
        """Whether another process finds it."""
        kind, number = ("class", number[0]) if kind == "member" else (kind, number)
        known = {"function": self.functions, "code": self.functions, "class": self.classes}.get(kind)
        return kind in ("module", "module object", "stream") if known is None else known[number] is not None


#: Functions of a property, which have its name.
_OF_PROPERTY = ("fget", "fset", "fdel")


def find_by_name(names: dict[str, Any], name: str) -> Any:
    """What a qualified name stands for; None for what is local to a function, too."""
    first, *rest = name.split(".")
    value = names.get(first)
    for part in rest:
        if type(value) is property and part in _OF_PROPERTY:
            value = getattr(value, part)
        else:
            value = vars(value).get(part) if isinstance(value, type) else None
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return value


class Lesson(namedtuple("Lesson", "program names reason is_checked pace seconds late maker others until",
                        defaults=(True, 0.0, 0.0, 0, None, (), 0))):
    """About one loop. program: the pickle of a `FromDisk`, or None; names: of what it refers to; others:
    pairs of these for values of other kinds; reason: why there is none, "" where it was not tried; late:
    ticks in which it did not come to its head.
    is_checked: whether what it does was compared with what Python does; pace: seconds of an iteration in
    Python, or 0; seconds: that Python took for all of it, or would have. maker: (number of the process that
    compiles it still, when that has ended at the latest), or None. until: ticks from which on it is tried
    again all the same, or 0."""

    __slots__ = ()

    @property
    def is_being_made(self) -> bool:
        if self.maker is None or time.time() > self.maker[1]:
            return False
        try:
            os.kill(self.maker[0], 0)
        except OSError:
            return False
        return not has_ended(self.maker[0])


def has_ended(process: int) -> bool:
    """Whether it is one that has ended, and that nobody has asked for its exit code: in many a container
    nobody does."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:  # another system
        return False


class Note(namedtuple("Note", "key unit names seconds")):
    """What a process that compiles is left with when its script has ended.

    Attributes:
        key: of the text's lessons; unit: of the loop or function that it compiles; names, seconds: see
            `Lesson`.
    """

    __slots__ = ()


def digest(data: bytes) -> bytes:
    """Tells what is another: made of Python's own hash of sources, where `hashlib` takes long to load."""
    return b"".join(source_hash(bytes([k]) + data) for k in range(4))


def marshal_code(code: types.CodeType) -> bytes:
    """Bytes that are the same for equal code, by a version of the format without references."""
    return marshal.dumps(_spell_slices(code), 2)


def _spell_slices(value: Any) -> Any:
    """Code without slices among its constants, which Python 3.14 makes, and that version does not know."""
    if isinstance(value, types.CodeType):
        return value.replace(co_consts=tuple(map(_spell_slices, value.co_consts)))
    if isinstance(value, tuple):
        return tuple(map(_spell_slices, value))
    return ("slice", value.start, value.stop, value.step) if isinstance(value, slice) else value


def digest_value(value: Any, restore: Restore) -> bytes | None:
    """Of a function, a property or a class; None where it is made of more than code and plain values."""
    if type(value) is types.FunctionType:
        return digest_function(value, restore)
    if type(value) is property:
        functions = [getattr(value, part) for part in _OF_PROPERTY]
        parts = [digest_value(one, restore) for one in functions if one is not None]
        return None if None in parts else digest(b" ".join(parts))
    if not isinstance(value, type):
        return None
    if hasattr(value, "__members__"):  # an enumeration
        return digest(repr((value.__bases__, [*value.__members__.items()], sorted(vars(value)),
                            getattr(value, "_boundary_", None))).encode())
    parts = []
    for base in value.__mro__[:-1]:
        for name, one in sorted(vars(base).items()):
            if name in _MADE_OF_CLASS:
                continue
            own = one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
            said = repr(own).encode() if _is_plain(own) else digest_value(own, restore)
            if said is None:
                return None
            parts.append(f"{base.__qualname__} {name} {type(one).__name__} ".encode() + said)
    return digest(b"".join(parts))


#: Variables of a class that say nothing of what it does.
_MADE_OF_CLASS = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__static_attributes__", "__firstlineno__"))


def digest_function(function: types.FunctionType, restore: Restore) -> bytes | None:
    """None where it is made of more than code and plain defaults."""
    if function.__closure__:
        return None
    defaults = repr((function.__defaults__, function.__kwdefaults__)) if _are_plain(function) else None
    if defaults is None:
        return None
    return digest(marshal_code(restore(function.__code__)) + defaults.encode())


def _are_plain(function: types.FunctionType) -> bool:
    values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    return type(value) in (int, float, bool, str, types.NoneType)


def name_all(described: Described, restore: Restore) -> Names:
    """The names of what was described."""
    def name_value(value: Any) -> tuple[str, str, bytes] | None:
        names, name = getattr(sys.modules.get(value.__module__), "__dict__", {}), value.__qualname__
        for found in (name, *[f"{name}.{part}" for part in _OF_PROPERTY]):
            if find_by_name(names, found) is value:
                digest = digest_value(value, restore)
                return None if digest is None else (value.__module__, found, digest)
        return None

    modules = tuple(names.get("__name__", "") for names in described.modules)
    functions, classes = (tuple(map(name_value, some)) for some in (described.functions, described.classes))
    return Names(functions, modules, classes)


def _stamp_folders() -> list[tuple[str, int]]:
    """The folders of what made the programs, and when they changed: a module that was edited and imported has
    another compiled file."""
    root = disk_cache.find_on_disk(os.path.dirname(jitcore.__file__))
    folders = [folder for folder, _, _ in os.walk(root, followlinks=True)] or [root]  # it may be an archive
    return [(folder, os.stat(folder).st_mtime_ns) for folder in folders]


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
    lessons = {key: Lesson(None, None, reason, late=late, maker=maker, until=until)
               for key, (reason, late, maker, until) in reasons.items()}
    return {**lessons, **pickle.loads(programs)} if programs else lessons


def store_lessons(key: bytes, lessons: dict[tuple[int, int], Lesson]) -> None:
    cache = disk_cache.open_cache()
    if cache is None:
        return
    reasons = {key: (one.reason, one.late, one.maker, one.until)
               for key, one in lessons.items() if one.program is None}
    programs = {key: lesson for key, lesson in lessons.items() if lesson.program is not None}
    data = pickle.dumps(programs, 5) if programs else b""  # what has none is read without pickle
    cache.add(key, marshal.dumps((_stamp_folders(), reasons, data)))


def add_lesson(note: Note, program: bytes | str) -> None:
    """Keeps the pickle of a program, or the text that says why there is none."""
    lesson = Lesson(program, note.names, "", False, 0.0, note.seconds)
    if isinstance(program, str):
        lesson = Lesson(None, None, program)
    store_lessons(note.key, {**load_lessons(note.key), note.unit: lesson})
