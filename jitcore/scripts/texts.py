"""Texts of the script: its file, its own modules, cells of a notebook, with entries in their code.

In: the code of a text. Out: a `Text`: the same code with entries, and its units. What that takes is written
once, as a record of bytes, and kept on disk as Python keeps compiled modules: rewriting code needs a part of
the compiler, reading a record needs nothing.
"""

from __future__ import annotations

import functools
import itertools
import marshal
import os
import sys
from types import CodeType

import jitcore
from jitcore.dispatch import disk_cache
from jitcore.process.lazy import LazyModule
from jitcore.scripts.gates import DECLINED, Gate, Leave, Loop, Prepared, Slot
from jitcore.scripts.learned import digest
from jitcore.scripts.tracers import names_tracers
from jitcore.scripts.units import Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcore.scripts.sampling import Sampler

entries = LazyModule("jitcore.scripts.entries")  # which loads the rewriter

__all__ = ["Text", "make_key", "open_record"]

#: Constants of code in a record that stand for others: (this, which, number of the unit).
_MARK = "\0 jitcore"
#: Whether what goes wrong in here is raised in the script.
DEBUG = bool(os.environ.get("JITCORE_SCRIPTS_DEBUG"))


class Text:
    """Args: the sampler that its units tell; a record.

    Attributes:
        key: of what earlier runs learned; code: of the module, with entries; units: in the order of the
            record. names_tracers: see `tracers`.
        codes: code objects with entries, by their number in the text.
    """

    def __init__(self, sampler: Sampler, record: bytes):
        self.key, code, self.names_tracers, units, self._tables = marshal.loads(record)
        self.units = [Unit(sampler, self, *one) for one in units]
        self.codes: dict[int, CodeType] = {}
        self._numbers = itertools.count()
        self.code = self._open(code)

    def _open(self, code: CodeType) -> CodeType:
        number = next(self._numbers)
        consts = tuple([self._find(one) for one in code.co_consts])
        if any(one is not other for one, other in zip(consts, code.co_consts)):
            code = code.replace(co_consts=consts)
        if any(unit.key[0] == number for unit in self.units):
            self.codes[number] = code
        return code

    def _find(self, const: object) -> object:
        if type(const) is CodeType:
            return self._open(const)
        if type(const) is not tuple or const[:1] != (_MARK,):
            return const
        _, which, number = const
        if which == "leave":
            return Leave
        if which == "declined":
            return DECLINED
        return getattr(self.units[number], which)

    @functools.cached_property
    def _known(self) -> dict[int, Prepared]:
        return {number: Prepared(original, self.codes[number], tuple(Loop(*one) for one in loops), *places)
                for number, (original, loops, *places) in marshal.loads(self._tables).items()}

    def find(self, number: int) -> Prepared:
        """What is known of a code object with entries."""
        return self._known[number]


def make_key(*parts: object) -> bytes:
    """A key of the cache on disk: what these parts, this Python and this jitcore give is kept under it."""
    text = "\0".join(map(str, (jitcore.__version__, sys.version, *parts))).encode(errors="surrogatepass")
    return digest(text)


@functools.cache
def _stamp_writers() -> tuple[int, ...]:
    """When the modules changed that write records."""
    root = os.path.dirname(jitcore.__file__)
    writers = ("scripts/texts", "scripts/gates", "scripts/entries", "scripts/watching", "scripts/tracers",
               "rewriter/bytecode/assembler", "rewriter/bytecode/instructions", "rewriter/bytecode/versions")
    return tuple([os.stat(disk_cache.find_on_disk(f"{root}/{name}.py")).st_mtime_ns for name in writers])


def open_record(make: Callable[[], tuple[CodeType, bytes]], *parts: object) -> bytes:
    """The record of a text that these parts name. make: gives its code and its source, where there is no
    record yet."""
    key = make_key("record", *_stamp_writers(), *parts)
    return disk_cache.find_or_make(key, lambda: write_record(*make()))


def write_record(code: CodeType, source: bytes) -> bytes:
    """The record of a text."""
    writer = _Writer(has_arrays(code))
    try:
        prepared = writer.write(code)
    except Exception:  # of code that this was not made for
        if DEBUG:
            raise
        prepared, writer = code, _Writer(False)
    key, tables = make_key("lessons", source), marshal.dumps(writer.tables)
    return marshal.dumps((key, prepared, names_tracers(code), writer.units, tables))


#: What scripts import whose functions may take long without a loop of theirs.
_LIBRARIES = frozenset(("numpy", "scipy"))


def has_arrays(code: CodeType) -> bool:
    """Whether a module, or a function in it, imports what works on arrays, or calls functions with them."""
    return any(name.partition(".")[0] in _LIBRARIES for name in code.co_names) or any(
        has_arrays(const) for const in code.co_consts if isinstance(const, CodeType))


class _Writer:
    """Args: whether functions get entries, too.

    Attributes:
        units: arguments of `Unit`; tables: parts of `Prepared` by the number of the code object.
    """

    def __init__(self, has_arrays: bool):
        self.has_arrays = has_arrays
        self.units: list[tuple[int, int, int]] = []
        self.tables: dict[int, tuple] = {}
        self._numbers = itertools.count()
        self._marks: dict[int, tuple] = {id(Leave): (_MARK, "leave", 0), id(DECLINED): (_MARK, "declined", 0)}
        self._kept: list[object] = []

    def write(self, code: CodeType) -> CodeType:
        """The code with entries, and with marks in the place of what cannot be written."""
        number, original = next(self._numbers), code
        consts = tuple([self.write(one) if isinstance(one, CodeType) else one for one in code.co_consts])
        if any(one is not other for one, other in zip(consts, code.co_consts)):
            code = code.replace(co_consts=consts)
        slot = Slot() if self.has_arrays and entries.may_take_long(code) else None
        made: list[tuple[int, int, int]] = []

        def make(loop: Loop) -> tuple[Gate, object]:
            gate, resume = Gate(), object()
            self._mark(len(self.units) + len(made), gate=gate, resume=resume)
            made.append((number, loop.head, loop.line))
            return gate, resume

        prepared = entries.add_entries(code, make, slot)
        if prepared is None:
            return code
        if slot is not None:
            self._mark(len(self.units) + len(made), slot=slot, gate=slot.gate)
            made.append((number, -1, code.co_firstlineno))
        self.units += made
        loops = [tuple(loop) for loop in prepared.loops]
        self.tables[number] = original, loops, prepared.heads, prepared.new, prepared.old
        return prepared.code.replace(
            co_consts=tuple([self._marks.get(id(one), one) for one in prepared.code.co_consts]))

    def _mark(self, number: int, **values: object) -> None:
        self._kept += values.values()
        self._marks |= {id(value): (_MARK, which, number) for which, value in values.items()}
