"""Updates of elements at places that are found while they run, in their order, as of `x.at[i].add(v)`.

In: a kernel that is loops around one such update. Out: `__global__` functions: places are noted and sorted,
equal ones in the order of the updates; then one thread makes all updates of an element, one after the other.
So sums of floats have the same bits in each run, and of several values for one element the last one stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import KernelEmitter
from jitcore.backends.cuda.sorting.rows import sort_integers
from jitcore.backends.gpu.mapping import Mapping, find_lone_store
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I1, I64
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Kernel, Loop, Store


class Updates(NamedTuple):
    """loops: around the update. count: of updates. none: the place of one that its mask leaves out, behind
    all others."""

    loops: tuple[Loop, ...]
    store: Store
    count: int
    none: int

    @property
    def key_dtype(self) -> np.dtype:
        return dtypes.int32 if self.none < 2**31 else dtypes.int64


def find_updates(kernel: Kernel, tuning: Tuning) -> Updates | None:
    """The updates that a kernel is, if sorting them pays."""
    loops, store = find_lone_store(kernel) or ((), None)
    if store is None or any(loop.bounds for loop in loops):
        return None
    count = Mapping("flat", tuple(loops), [store]).items
    if not tuning.least_updates <= count < 2**31:
        return None
    return Updates(tuple(loops), store, count, store.buffer.nbytes // store.buffer.dtype.itemsize)


def render_updates(renderer, updates: Updates) -> None:
    """renderer: the `KernelRenderer`, which begins functions, and places items."""
    places = Buffer(f"{renderer.name}_keys", (updates.count,), updates.key_dtype, "temp")
    renderer.scratch.append(places)
    with _begin_item(renderer, "_places", updates, [places]) as (e, item):
        _note_place(e, item, updates, places)
    keys, order = sort_integers(renderer, places, updates.none)
    with _begin_item(renderer, "_updates", updates, [keys, order]) as (e, item):
        _update(e, item, updates, keys, order)


@contextlib.contextmanager
def _begin_item(renderer, suffix: str, updates: Updates,
                buffers: list[Buffer]) -> Iterator[tuple[KernelEmitter, ir.Value]]:
    """A function with a thread for each update. Gives its number."""
    mapping = Mapping("flat", updates.loops, [], block=renderer.tuning.block)
    e = renderer.begin(suffix, mapping, more=buffers)
    item = e.read_item(mapping.block)
    with e.if_then(e.b.icmp_signed("<", item, I64(updates.count))):
        yield e, item
    e.finish()


def _place(e: KernelEmitter, item: ir.Value, updates: Updates) -> None:
    e.place_axes([loop.axis for loop in updates.loops], item, updates.count)


def _note_place(e: KernelEmitter, item: ir.Value, updates: Updates, keys: Buffer) -> None:
    _place(e, item, updates)
    kind, store = ir.IntType(8 * updates.key_dtype.itemsize), updates.store
    held = e.stack_slot(kind(updates.none))
    with contextlib.nullcontext() if store.mask is None else e.if_then(e.expr(store.mask)):
        place = e.index(store.offset)
        e.write_slot(held, e.b.trunc(place, kind) if kind.width < 64 else place)
    e.write_element(keys, item, e.read_slot(held))


def _update(e: KernelEmitter, item: ir.Value, updates: Updates, keys: Buffer, order: Buffer) -> None:
    """All updates of one element: by the thread of the first of them; a value that replaces others by that of
    the last."""
    b, store, own = e.b, updates.store, e.read_element(keys, item)
    step = I64(-1 if store.combine else 1)
    beside = b.add(item, step)
    is_end = b.icmp_signed("==", item, I64(0) if store.combine else I64(updates.count - 1))
    held = e.stack_slot(ir.Constant(own.type, updates.none))
    with e.if_then(b.not_(is_end)):
        e.write_slot(held, e.read_element(keys, beside))
    is_mine = b.or_(is_end, b.icmp_signed("!=", own, e.read_slot(held)))
    is_mine = b.and_(is_mine, b.icmp_signed("!=", own, ir.Constant(own.type, updates.none)))
    place = b.sext(own, I64) if own.type.width < 64 else own

    def read_value(number) -> ir.Value:
        _place(e, b.sext(e.read_element(order, number), I64), updates)
        return e.expr(store.value)

    def combine():
        dtype = store.buffer.dtype
        total, numbers = e.stack_slot(e.read_element(store.buffer, place)), e.stack_slot(item)

        def goes_on():
            number, is_equal = e.read_slot(numbers), e.stack_slot(I1(0))
            with e.if_then(b.icmp_signed("<", number, I64(updates.count))):
                e.write_slot(is_equal, b.icmp_signed("==", e.read_element(keys, number), own))
            return e.read_slot(is_equal)

        def add():
            number = e.read_slot(numbers)
            operands = [e.read_slot(total), read_value(number)]
            e.write_slot(total, emit_operation(b, store.combine, [dtype, dtype], dtype, operands))
            e.write_slot(numbers, b.add(number, I64(1)))

        e.repeat(goes_on, add)
        e.write_element(store.buffer, place, e.read_slot(total))

    with e.if_then(is_mine):
        if store.combine:
            combine()
        else:
            e.write_element(store.buffer, place, read_value(item))
