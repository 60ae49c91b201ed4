"""Routines of `sort` and `top_k`.

In: an equation. Out: the routine that sorts its operands, or None for rows longer than 32 bits can count.
The code is in `modules`. An axis other than the last is made the last one by a transposed copy, and the
result goes back.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.routines.sort.encoding import Encoding
from jitcore.core.jaxpr import DropVar, Equation
from jitcore.schedule.nest import RunTimeSize


def find_routine(eqn: Equation, tuning: Sort):
    """The routine for an equation `sort` or `top_k`."""
    top = eqn.primitive.name == "top_k"
    shape = eqn.invars[0].aval.shape
    axis = eqn.params["axis" if top else "dimension"]
    if not shape or int(shape[axis]) >= 1 << 31 or (top and not eqn.params["k"]):
        return None
    if top:
        return TopRoutine(eqn, axis, tuning)
    is_values = len(eqn.invars) == 1 and not dtypes.is_complex(eqn.invars[0].aval.dtype)
    return (ValuesRoutine if is_values else OrderRoutine)(eqn, axis, tuning)


class _Rows:
    """An array's elements as [outer, n, inner], n along the axis of sorting.

    is_last: whether the array is rows as it lies, inner being 1.
    pieces: into how many pieces its rows are cut, a number for the code."""

    def __init__(self, shape, axis: int, tuning: Sort):
        self.outer, self.n, self.inner = shape[:axis], shape[axis], shape[axis + 1 :]
        self.is_last = all(isinstance(extent, int) and extent == 1 for extent in self.inner)
        rows = math.prod(map(int, (*self.outer, *self.inner)))
        self.pieces = RunTimeSize(max(1, min(rows, tuning.max_pieces)))

    def scratch(self, dtype, count: int | None = None) -> tuple[tuple, np.dtype]:
        """A buffer with `count` elements (n) for each piece."""
        return (self.pieces, self.n if count is None else RunTimeSize(count)), dtype

    def turned(self, dtype, n=None) -> list[tuple[tuple, np.dtype]]:
        """A buffer for the array with the axis last (of n elements); none where it is the last one."""
        return [] if self.is_last else [((*self.outer, *self.inner, self.n if n is None else n), dtype)]

    def counts(self, renderer) -> list:
        """The numbers with which functions on rows begin."""
        rows = renderer.count((*self.outer, *self.inner))
        return [renderer.count((self.pieces,)), rows, renderer.count((self.n,)), is_shared(renderer)]


def is_shared(renderer) -> int:
    """Whether a program may use several threads, as a number for the code."""
    return int(renderer.options.max_threads != 1)


def _transpose(renderer, size: int, source, target, outer, rows, columns) -> None:
    extents = (renderer.count(extents) for extents in (outer, rows, columns))
    renderer.run(f"jitcore_sort_transpose_{size}", source, target, *extents, is_shared(renderer))


class ValuesRoutine:
    """Sorts one array of real numbers."""

    def __init__(self, eqn: Equation, axis: int, tuning: Sort):
        aval = eqn.invars[0].aval
        self.dtype, self.axis, self.rows = aval.dtype, axis, _Rows(aval.shape, axis, tuning)
        self.sizes, self.is_wider = (self.rows.pieces,), Encoding(self.dtype).is_wider

    def __str__(self) -> str:
        return f"sort axis {self.axis}{'' if self.rows.is_last else ' turned'}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        wide = [self.rows.scratch(dtypes.int32)] if self.is_wider else []
        return [*wide, *2 * self.rows.turned(self.dtype)]

    def emit(self, renderer, call) -> None:
        source, target = map(renderer.address_of, (call.inputs[0], call.outputs[0]))
        rows, size = self.rows, self.dtype.itemsize
        scratch = [*map(renderer.address_of, call.scratch)]
        wide, turned = (scratch[:1], scratch[1:]) if self.is_wider else ([], scratch)
        if turned:
            _transpose(renderer, size, source, turned[0], rows.outer, (rows.n,), rows.inner)
        given = turned or (source, target)
        renderer.run(f"jitcore_sort_values_{self.dtype.name}", *given, *wide, *rows.counts(renderer))
        if turned:
            _transpose(renderer, size, turned[1], target, rows.outer, rows.inner, (rows.n,))


class OrderRoutine:
    """Sorts arrays by the first ones of them: finds the order, then reads every array in it."""

    def __init__(self, eqn: Equation, axis: int, tuning: Sort):
        self.axis, self.rows = axis, _Rows(eqn.invars[0].aval.shape, axis, tuning)
        self.keys = [atom.aval.dtype for atom in eqn.invars[: eqn.params["num_keys"]]]
        self.wanted = [k for k, var in enumerate(eqn.outvars) if not isinstance(var, DropVar)]

    def __str__(self) -> str:
        turned = "" if self.rows.is_last else " turned"
        return f"sort by {len(self.keys)} axis {self.axis}{turned}, results {self.wanted}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        rows = self.rows
        order = (*rows.outer, rows.n, *rows.inner), dtypes.int32
        widest = max(self.keys, key=lambda dtype: dtype.itemsize)
        return [order, rows.scratch(dtypes.int64), *rows.turned(dtypes.int32), *rows.turned(widest)]

    def emit(self, renderer, call) -> None:
        order, packed, *turned = map(renderer.address_of, call.scratch)
        rows = self.rows
        found = turned[0] if turned else order
        verb = "order"
        for dtype, buffer in reversed(list(zip(self.keys, call.inputs))):
            key = renderer.address_of(buffer)
            if turned:
                _transpose(renderer, dtype.itemsize, key, turned[1], rows.outer, (rows.n,), rows.inner)
                key = turned[1]
            name = f"jitcore_sort_{verb}_{dtype.name}"
            renderer.run(name, key, found, packed, *rows.counts(renderer))
            verb = "refine"
        if turned:
            _transpose(renderer, 4, found, order, rows.outer, rows.inner, (rows.n,))
        extents = [renderer.count(extents) for extents in (rows.outer, (rows.n,), rows.inner)]
        for k in self.wanted:
            source, target = map(renderer.address_of, (call.inputs[k], call.outputs[k]))
            size = call.inputs[k].dtype.itemsize
            renderer.run(f"jitcore_sort_take_{size}", source, order, target, *extents, is_shared(renderer))


class TopRoutine:
    """Finds the largest elements and their positions."""

    def __init__(self, eqn: Equation, axis: int, tuning: Sort):
        aval = eqn.invars[0].aval
        self.dtype, self.axis, self.k = aval.dtype, axis, eqn.params["k"]
        self.rows = _Rows(aval.shape, axis, tuning)
        self.capacity = RunTimeSize(min(int(self.rows.n), 2 * int(self.k) + tuning.gathered))

    def __str__(self) -> str:
        return f"top_k axis {self.axis}{'' if self.rows.is_last else ' turned'}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        rows, k = self.rows, int(self.k)
        # the capacity stands in a declaration, so that programs which differ in it alone are told it
        own = [((rows.pieces, self.capacity), dtypes.int64), rows.scratch(dtypes.int64, k + 1),
               rows.scratch(dtypes.int32, 2 * k + 1), rows.scratch(dtypes.int64, k)]
        results = [*rows.turned(self.dtype, self.k), *rows.turned(dtypes.int32, self.k)]
        return [*own, *rows.turned(self.dtype), *results]

    def emit(self, renderer, call) -> None:
        source, targets = renderer.address_of(call.inputs[0]), [*map(renderer.address_of, call.outputs)]
        scratch = [*map(renderer.address_of, call.scratch)]
        own, turned = scratch[:4], scratch[4:]
        rows, results = self.rows, targets
        if turned:
            _transpose(renderer, self.dtype.itemsize, source, turned[0], rows.outer, (rows.n,), rows.inner)
            source, *results = turned
        numbers = [*rows.counts(renderer), renderer.count((self.k,)), renderer.count((self.capacity,))]
        renderer.run(f"jitcore_sort_top_{self.dtype.name}", source, *results, *own, *numbers)
        if turned:
            for size, result, target in zip((self.dtype.itemsize, 4), results, targets):
                _transpose(renderer, size, result, target, rows.outer, rows.inner, (self.k,))
