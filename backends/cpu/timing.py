"""Programs kernel by kernel, timed, while a timeline is on.

In: bound programs, and whether somebody wants their kernels timed. Out: an event for each statement of a
program that has run: what it is, from which line of the user's, how long it took, and its bytes, operations
and threads.

The function of a bound program finds its launcher among its globals. While a timeline is on another one
stands there, which calls the same statements one by one, compiled as entry points of their own when they are
first asked for; so calls cost nothing more while there is none. A program that calls Python between its
native steps is timed step by step.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from jitcore.backends.cpu.compiler import find_line
from jitcore.backends.cpu.runtime import threads
from jitcore.events import publishing as events
from jitcore.loopir.program import Call, Kernel, Loop, Program, Statement, While
from jitcore.loopir.traversal import list_reads, list_writes
from jitcore.schedule.cost import count_flops_of

_ALIGNMENT = 64
#: By the functions of bound programs.
_launchers: weakref.WeakKeyDictionary[Callable, TimedLauncher] = weakref.WeakKeyDictionary()


def switch(bound: Mapping[Callable, Any], is_wanted: bool) -> None:
    """bound: functions of programs, and what these are made of."""
    for run, prepared in list(bound.items()):
        launcher = _launchers.get(run)
        if launcher is None:
            launcher = _launchers[run] = TimedLauncher(run.__globals__["launch"], prepared)
        run.__globals__["launch"] = launcher if is_wanted else launcher.launch


class TimedLauncher:
    """A launcher, see `runtime.launch`, for one program; without a timeline `launch` stands in its place."""

    def __init__(self, launch: Callable[..., int], prepared: Any):
        self.launch, self.prepared = launch, prepared

    @functools.cached_property
    def parts(self) -> list[tuple[int, Callable[[], dict[str, Any]]]]:
        """(entry point, what tells the facts) of each statement; none where the program cannot be split."""
        found = self.prepared.split()
        if found is None:
            return []
        entries, program, self.plan, self._keep = found
        self.dims = np.array(self.plan.dims, np.int64)
        self.count = self.plan.num_inputs + sum(output.source < 0 for output in self.plan.outputs)
        return [(address, functools.cache(functools.partial(describe, statement, program)))
                for address, statement in entries]

    def __call__(self, address: int, dims: int, *arrays: np.ndarray) -> int:
        name, place = self.prepared.origin
        if not self.parts:
            start = perf_counter()
            status = self.launch(address, dims, *arrays)
            events.publish("kernel", name, place, start, perf_counter() - start, what="native step")
            return status
        given, status = list(arrays[: self.count]), 0
        if self.plan.arena_bytes:
            given.append(_make_arena(self.plan.arena_bytes))
        for entry, facts in self.parts:
            start = perf_counter()
            status = self.launch(entry, self.dims.ctypes.data, *given)
            events.publish("kernel", name, place, start, perf_counter() - start, **facts())
        return status


def _make_arena(size: int) -> np.ndarray:
    block = np.empty(size + _ALIGNMENT, np.uint8)
    start = -block.ctypes.data % _ALIGNMENT
    return block[start : start + size]


def describe(statement: Statement, program: Program) -> dict[str, Any]:
    """Facts of a statement: what it is, its line, bytes that it reads and writes, operations, threads. How
    many rounds a loop takes is not known before it has run."""
    touched = [*list_reads([statement]), *list_writes([statement])]
    each = " of a round" if isinstance(statement, While) else ""
    return {"what": name_statement(statement), "line": find_line(program, statement),
            f"bytes{each}": sum(buffer.nbytes for buffer in touched),
            f"flops{each}": count_flops_of([statement], program.origins), "threads": count_threads(statement)}


def name_statement(statement: Statement) -> str:
    """In words."""
    if isinstance(statement, Call):
        return str(statement.routine).partition("(")[0]
    return type(statement).__name__.lower()


def count_threads(statement: Statement) -> int | None:
    """That a kernel is shared between; None where the statement decides while it runs."""
    if not isinstance(statement, Kernel):
        return None
    first = statement.body[0]
    if not statement.parallel or not isinstance(first, Loop):
        return 1
    return max(1, min(threads.describe()["threads"], int(first.axis.extent) // max(int(statement.grain), 1)))
