"""Rules: how a target's loops run, decided one after the other on a finished loop program.

In: a finished program, and the rules that a backend brings. Out: the same program with decisions in
the `ways` of its statements (`loopir.ways`): it says all that the backend's emitters do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitcore.loopir.expr import Buffer
from jitcore.loopir.index import Axis
from jitcore.loopir.program import Kernel, Loop, Native, Program, Reduce, Scan
from jitcore.loopir.traversal import flatten, list_writes


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
    """name: of the way (`loopir.ways.KINDS`). applies: the statements that go this way, and how. reason: why
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
