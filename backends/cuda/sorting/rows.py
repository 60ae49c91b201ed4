"""Sorting of rows: short ones by a network, long ones by digits.

In: an equation of `SORT`, which `programs` puts in the place of sorts. Out: the routine that computes it, as
`__global__` functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.sorting import network
from jitcore.backends.cuda.sorting.keys import Encoding
from jitcore.backends.cuda.sorting.programs import SORT
from jitcore.backends.cuda.sorting.radix import add_passes, list_tables
from jitcore.backends.gpu.mapping import Function, Mapping
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.function import Contraction
from jitcore.backends.llvm.options import RenderOptions
from jitcore.core.jaxpr import DropVar, Equation
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Call

_MAPPING = Mapping("sort", (), [], 1, 1)


def find_sort(eqn: Equation, tuning: Tuning) -> RowSort | None:
    """The routine for an equation."""
    if eqn.primitive is not SORT:
        return None
    (x,), wanted = eqn.invars, [not isinstance(var, DropVar) for var in eqn.outvars]
    *outer, n = map(int, x.aval.shape)
    return RowSort(Encoding(x.aval.dtype, tuning, eqn.params["is_top"]), math.prod(outer), n, *wanted)


class RowSort:
    """Sorts rows of n elements. has_keys, has_order: whether the elements, and their places, are wanted."""

    def __init__(self, kind: Encoding, rows: int, n: int, has_keys: bool = True, has_order: bool = True):
        self.kind, self.rows, self.n, self.has_keys, self.has_order = kind, rows, n, has_keys, has_order

    def __str__(self) -> str:
        wanted = ["elements"] * self.has_keys + ["places"] * self.has_order
        return f"sort {'from the largest on ' * self.kind.is_top}for {' and '.join(wanted)}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        """By digits: elements once more, places once more, and tables."""
        if self.n <= network.LONGEST:
            return []
        count, raw = (self.rows * self.n,), np.dtype(f"i{self.kind.raw_bits // 8}")
        return [(count, raw), *[(count, dtypes.int32)] * self.has_order,
                *list_tables(self.kind, self.rows, self.n)]

    def render(self, module: ir.Module, name: str, call: Call, options: RenderOptions) -> list[Function]:
        return self.add(module, name, options, call.inputs[0], call.outputs, call.scratch)

    def add(self, module: ir.Module, name: str, options: RenderOptions, source: Buffer,
            written: list[Buffer], scratch: list[Buffer]) -> list[Function]:
        """written: for elements and for places."""
        functions: list[Function] = []

        def add(suffix: str, buffers: list[Buffer], sizes: list[int], grid: int,
                emit: Callable[[KernelEmitter], None], block: int) -> None:
            """Defines a function, once, and notes how it is launched."""
            own = f"{name}_{suffix}"
            if own not in module.globals:
                e = KernelEmitter(module, own, buffers, sizes, options, Contraction())
                e.limit_registers(block)
                emit(e)
                e.finish()
            functions.append(Function(own, buffers, sizes, _MAPPING._replace(block=block), grid))

        keys, order = written
        if 0 in (self.rows, self.n):
            return []
        if self.n <= network.LONGEST:
            network.add_network(add, self.kind, source, self.rows, self.n, keys if self.has_keys else None,
                                order if self.has_order else None)
        else:
            orders = [order, scratch[1]] if self.has_order else []
            add_passes(add, self.kind, source, self.rows, self.n, [keys, scratch[0]], orders, scratch[-1:])
        return functions


def sort_integers(renderer, source: Buffer, limit: int) -> tuple[Buffer, Buffer]:
    """Adds functions to a renderer that sort integers from 0 to a limit. Returns: buffers in which the sorted
    ones, and the places where they were, will be."""
    (count,) = map(int, source.shape)
    sort = RowSort(Encoding(source.dtype, renderer.tuning, limit=limit), 1, count)
    shapes = [((count,), source.dtype), ((count,), dtypes.int32), *sort.scratch()]
    keys, order, *scratch = made = [Buffer(f"{renderer.name}_sort{number}", shape, dtype, "temp")
                                    for number, (shape, dtype) in enumerate(shapes)]
    renderer.scratch += made
    renderer.functions += sort.add(renderer.module, renderer.name, renderer.options, source, [keys, order],
                                   scratch)
    return keys, order
