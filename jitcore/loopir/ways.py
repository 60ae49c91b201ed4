"""Ways: how a target runs the iterations of a statement, in the words of loop transformations.

In: a finished program, and the rules that a backend brings. Out: the same program with decisions, one after
the other: marks in the `ways` of loops, reductions, scans and kernels, by the names of `KINDS`, each of which
an emitter of the target carries out. They are part of a program's text. A statement without one runs as its
target usually does; what a program computes does not depend on them, but for the order in which floats are
added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitcore.loopir.expr import Axis, Buffer, Index
from jitcore.loopir.program import Kernel, Loop, Native, Program, Reduce, Scan
from jitcore.loopir.traversal import flatten, list_writes


class Vectors(NamedTuple):
    """registers: that an iteration in lanes fills with the widest elements, of so many bytes. lanes: elements
    of an iteration."""

    registers: int
    widest: int
    lanes: int


class Jam(NamedTuple):
    """axis: whose iterations go through a sweep together: first so many, then so many of those left."""

    axis: Axis
    counts: tuple[int, ...]


class Prefetch(NamedTuple):
    """accesses: of this iteration, those that are written apart. axis, distance: of which loop, and how many
    iterations ahead. what: iterations of that loop, in the text."""

    what: str
    accesses: tuple[tuple[Buffer, Index], ...]
    axis: Axis
    distance: int
    written: tuple[tuple[Buffer, Index], ...] = ()


class Kind(NamedTuple):
    """what: the transformation. write: the text of a decision, from its value."""

    what: str
    write: Callable[[Any], str]


def _write_prefetch(ahead: Prefetch) -> str:
    return f"{ahead.what} ahead" if ahead.distance == 1 else f"{ahead.distance} {ahead.what} ahead"


def _write_vectors(vectors: Vectors) -> str:
    return f"{vectors.registers} register{'s' * (vectors.registers > 1)}"


#: Decisions by name; what their values are.
KINDS: dict[str, Kind] = {
    "vectors": Kind("vectorisation: `Vectors` of a loop in lanes", _write_vectors),
    "rest": Kind("a second vector loop, of these `Vectors`, for what whole groups of registers leave",
                 lambda vectors: f"then {_write_vectors(vectors)}"),
    "totals": Kind("`Vectors` of the first phase of a scan in blocks, which finds the totals of these",
                   lambda vectors: f"totals in {_write_vectors(vectors)}"),
    "jam": Kind("unroll-and-jam: a `Jam`", lambda jam: f"jam {', '.join(map(str, jam.counts))}"),
    "strip": Kind("strip-mining: so many times the usual lanes, where running values have registers",
                  lambda multiple: f"strips of {multiple}"),
    "peel": Kind("peeling: whole vectors begin where memory begins a cache line of what this `Store` writes",
                 lambda store: "peeled"),
    "search": Kind("argmax: stretches of vectors are compared, then the one with the extreme is searched",
                   lambda _: "searched"),
    "halves": Kind("both halves of a row are read at a time: two runs of memory", lambda _: "rows in halves"),
    "prefetch": Kind("prefetch distance: a `Prefetch`", _write_prefetch),
    "interchange": Kind("loop interchange: all columns of a row before the next row; running values are an "
                        "array on the stack", lambda _: "row by row"),
    "transpose": Kind("short rows, one in each lane: transposed in registers on the way from memory and back",
                      lambda _: "rows in lanes"),
    "list": Kind("scatter: lanes list places and values, block by block; then updates are made one by one",
                 lambda _: "places listed"),
    "unroll": Kind("updates at computed places without lanes, several written out", lambda _: "unrolled"),
    "alternate": Kind("boustrophedon order: every other run of a kernel goes back from its end, and meets "
                      "first what caches hold", lambda _: "to and fro"),
    "nontemporal": Kind("stores of whole lines of these buffers go past the caches",
                        lambda buffers: f"past caches {', '.join(buffer.name for buffer in buffers)}"),
}


def format_ways(ways: dict[str, Any]) -> str:
    """The decisions of a statement, in the order of `KINDS`."""
    return ", ".join(kind.write(ways[name]) for name, kind in KINDS.items() if name in ways)


# -- rules ------------------------------------------------------------------------------------------------
class Nest:
    """A kernel whose ways are being decided.

    homes: buffers that live in the memory of others. machine: what the target's rules know of it.
    sweeps: its loops, reductions and scans, outer ones first. written: the buffers that it changes."""

    def __init__(self, kernel: Kernel, homes: dict[Buffer, Buffer], machine: Any):
        self.kernel, self.homes, self.machine = kernel, homes, machine
        self.sweeps = [s for s in flatten([kernel]) if isinstance(s, (Loop, Reduce, Scan))]
        self.written = list_writes([kernel])

    @property
    def is_plain(self) -> bool:
        """Whether lanes run along an axis of known extent, without tiles or places that are computed."""
        kernel = self.kernel
        is_known = kernel.vector is not None and isinstance(kernel.vector.extent, int)
        return is_known and not kernel.far and not kernel.tile

    def runs_in_lanes(self, axis: Axis) -> bool:
        return axis is self.kernel.vector or axis in self.kernel.others


#: What a rule decided: statements, each with the value of its way.
Decisions = Sequence[tuple[Any, Any]]


def _mark(name: str, statement, way) -> None:
    statement.ways[name] = way


class Rule(NamedTuple):
    """name: of the way (`KINDS`). applies: the statements that go this way, and how. reason: why
    the rule stands where it does, after those that it asks about. apply: notes a decision."""

    name: str
    applies: Callable[[Nest], Decisions]
    reason: str
    apply: Callable[[str, Any, Any], None] = _mark


def apply_rules(program: Program, rules: Sequence[Rule], machine: Any) -> Program:
    """Decides how each kernel of a program runs."""
    for kernel in _list_kernels(program) if rules else ():
        nest = Nest(kernel, program.aliases, machine)
        for rule in rules:
            for statement, way in rule.applies(nest):
                rule.apply(rule.name, statement, way)
    return program


def _list_kernels(program: Program) -> Iterator[Kernel]:
    for step in program.steps:
        if isinstance(step, Native):
            yield from (s for s in flatten(step.body) if isinstance(s, Kernel))
