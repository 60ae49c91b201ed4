"""Compiled loops of a script, as the process that runs it sees them: without a compiler.

In: the pickle of a `FromDisk`, which a process that compiles wrote. Out: a `Region`: the function of a loop's
variables.
"""

from __future__ import annotations

import functools
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore.process.lazy import LazyModule
from jitcore.scripts.environment import MAX_ITEMS, load
from jitcore.scripts.gates import DECLINED, HEAD
from jitcore.scripts.units import Uncollected

if TYPE_CHECKING:
    from jitcore.dispatch.call_facts import ArrayFacts, Scalars

running = LazyModule("jitcore.scripts.running")  # which loads the run time of native code

__all__ = ["FromDisk", "Job", "Region"]


class Job(NamedTuple):
    """A loop to compile.

    Attributes:
        data: what `environment.describe` told: the values of variables; function 0 is that of the frame.
        body: offsets of the loop's instructions, the head first; none for a call of the function, whose
            parameters the values are.
        is_module: whether the code is that of a module.
        form: of its elements, see `Ahead`; counts: what one tells that is for a few iterations.
        sides: names that parts of the loop read, by their offsets, see `Loop`; ends: of a run of statements
            offsets of what comes behind it. lists: names of lists that it appends to.
    """

    data: bytes
    body: tuple[int, ...]
    is_module: bool
    form: str
    counts: tuple
    sides: dict[int, frozenset[str]]
    ends: tuple[int, ...]
    lists: frozenset[str]


class FromDisk(NamedTuple):
    """The program of a loop.

    Attributes:
        parameters: names of variables that go in; results: of those that come out.
        exits: by the number that the program gives, offsets of places behind the loop, which do the same, or
            `HEAD`; form: see `Job`. grown: results that are to be appended to lists.
        arguments, lines: source of the function that checks, runs and writes; constants: pickled, what it
            names.
        runtime, stored: the module that opens the program, and what it is told. consts: arrays that come
            first; kept: the inputs that are passed, or None for all. scalars: see `generated_calls`.
        arrays, codes: what native code can check: facts of arrays, and for functions among the constants
            their numbers, and those of their codes.
        packs: whether lists are copied at each call.
        needs_numpy: whether NumPy has to be there for it.
        ignored: parameters whose values do not matter; own: those whose arrays nobody else may have;
            renewed: other variables, whose values nobody reads before they get new ones.
        counter: variable with the number of the iteration, or None.
    """

    parameters: tuple[str, ...]
    results: tuple[str, ...]
    exits: tuple[tuple[int, ...], ...]
    form: str
    grown: tuple[str, ...]
    arguments: str
    lines: tuple[str, ...]
    constants: bytes
    runtime: str
    stored: bytes
    consts: tuple
    kept: tuple[int, ...] | None
    scalars: Scalars | None
    arrays: tuple[ArrayFacts, ...]
    codes: tuple[tuple[int, int], ...]
    packs: bool
    needs_numpy: bool
    ignored: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    renewed: frozenset[str] = frozenset()
    counter: str | None = None

    def pack(self) -> bytes:
        """Its pickle, behind a byte that tells whether it needs NumPy."""
        return bytes([self.needs_numpy]) + pickle.dumps(self, 5)


_HOLDERS, _NUMBERS = (list, tuple), (bool, int, float, complex)


def list_held(value: Any) -> Sequence:
    """What a list or tuple holds; nothing of long ones of numbers, in which there is no memory to share."""
    is_of_numbers = type(value) not in _HOLDERS or len(value) > MAX_ITEMS and type(value[0]) in _NUMBERS
    return () if is_of_numbers else value


def may_share(one: Any, other: Any) -> bool:
    """Whether two values may be the same memory."""
    are_arrays = hasattr(one, "__array_interface__") and hasattr(other, "__array_interface__")
    return one is other or are_arrays and sys.modules["numpy"].may_share_memory(one, other)


#: A variable of a module in the source of a call.
_NAMED = re.compile(r"c\d+(?:\[|\.get\()'(\w+)'")


class Region:
    """Args: the program's pickle; offsets of places behind it; what persistent ids in its constants stand
        for; how another process finds these.

    Attributes:
        packed, program: the pickle, and what it is of.
        call: the function of its inputs. pace: seconds of an iteration in Python, or 0.
        is_proven: whether it was compared with Python, and is faster; is_tried: whether that was tried.
        in_python, compiled: seconds of calls that were timed.
    """

    is_proven = is_tried = False
    pace = 0.0

    def __init__(self, packed: bytes, places: Sequence[int], find: Callable[[str, Any], Any], names: Any):
        self.packed, self.find, self.names = packed, find, names
        self.in_python: list[float] = []
        self.compiled: list[float] = []
        self._referred: set[tuple[str, int]] = set()
        with Uncollected():
            self.program = program = pickle.loads(memoryview(packed)[1:])
            numbers = {HEAD: HEAD} | {offset: number for number, offset in enumerate(places)}
            self.exits = [find_first(numbers, offsets) for offsets in program.exits]
            self.call = self.define(self._note)

    def _note(self, kind: str, number: Any) -> Any:
        self._referred.add((kind, number))
        return self.find(kind, number)

    def define(self, find: Callable[[str, Any], Any]) -> Callable:
        """The function of values that `read` gives, which refers to what `find` gives."""
        return running.define(self.program, load_constants(self.program.constants, find))

    @functools.cached_property
    def read_names(self) -> frozenset[str]:
        """Names that the program reads of modules."""
        return frozenset(_NAMED.findall("\n".join(self.program.lines)))

    @property
    def is_named(self) -> bool:
        """Whether another process finds all that the program refers to."""
        return all(self.names.knows(kind, number) for kind, number in self._referred)

    def read(self, variables: Mapping[str, Any], counts: Iterable[Any]) -> list:
        """What the program gets of the variables of a frame. counts: what it is told of its iterations."""
        ignored, absent = self.program.ignored, running.ABSENT
        values = [absent if name in ignored else variables.get(name, absent)
                  for name in self.program.parameters]
        return [*values, *counts]

    def find_lists(self, variables: Mapping[str, Any], values: Sequence, sources: Iterable
                   ) -> dict[str, list] | None:
        """The lists that the program appends to; None where something that it reads may be one of them, or be
        one of the sources of its iterations."""
        found = {name: variables.get(name) for name in self.program.grown}
        own = [*found.values(), *sources]
        if not own:
            return found
        variables = values[:len(self.program.parameters)]
        read = [one for value in variables for one in (value, *list_held(value))]
        is_shared = any(may_share(one, value) for one in read for value in own)
        are_lists = all(type(value) is list for value in found.values())
        return found if are_lists and not is_shared and len({*map(id, own)}) == len(own) else None

    def run(self, values: list, call: Callable | None = None) -> tuple[int, dict[str, Any]] | None:
        """(number of the exit, variables by name); None where the program is not for these values, and
        nothing is done."""
        found, program = (call or self.call)(*values), self.program
        if found is DECLINED:
            return None
        number = found[len(program.results)] if len(program.exits) > 1 else 0
        results, absent = zip(program.results, found), running.ABSENT
        return self.exits[number], {name: value for name, value in results if value is not absent}


def find_first(numbers: Mapping[int, int], offsets: Iterable[int]) -> int:
    """The number of the first offset that has one. Raises: LookupError."""
    for offset in offsets:
        if offset in numbers:
            return numbers[offset]
    raise LookupError("a place behind the loop")


class _Own:
    """Stands for a function that the other process made for itself."""

    def __init__(self, number: int):
        self.__code__ = number


def load_constants(data: bytes, find: Callable[[str, Any], Any]) -> list:
    """What the source names c0, c1, ... find: gives what a kind and a number stand for."""
    own: dict[int, _Own] = {}
    guards: dict[Any, Any] = {}  # by the number of a class of the script, or where else it is found

    def find_constant(what: tuple) -> Any:
        kind, value = what
        if kind == "own function":
            return own.setdefault(value, _Own(value))
        if kind == "own names":
            return {"body": own.setdefault(1, _Own(1))}
        if kind == "code of":
            return value.__code__
        if kind == "own code":
            return value
        if kind == "known":
            __import__(value)
            return sys.modules[value]
        if kind == "names":
            __import__(value)
            return sys.modules[value].__dict__
        if kind in ("check", "version", "known version"):
            guard = guards.get(value)
            if guard is None:
                of = find("class", value) if type(value) is int else find_constant(("attribute", value))
                guard = guards[value] = running.ClassGuard(of)
            return {"check": guard.check, "version": guard.version, "known version": guard.known}[kind]
        if kind == "attribute":
            module, name = value
            __import__(module)
            return getattr(sys.modules[module], name)
        if kind == "absent":
            return running.ABSENT
        return find(kind, value)

    return load(data, find_constant)
