"""Fusion groups: reductions and stores that share their outer loops become one kernel.

In: values to store and reductions to compute, in program order. Out: `Kernel`s. A group has a layout (the
shape its members run over) and the kept dimensions that are its outer loops; its passes over the
remaining, inner dimensions follow each other within one outer iteration, so softmax over rows is one
kernel of three passes.
"""

from __future__ import annotations

import numpy as np

from jitcore.loopir.expr import ZERO, Axis, Buffer, Expr, Index, Result, linearize, walk
from jitcore.loopir.program import Kernel, Reduce, Scan, Store
from jitcore.loopir.traversal import list_features, nest
from jitcore.loopir.values import Packed, Reduction, Running, Value
from jitcore.schedule.index_set_splitting import split_kernels
from jitcore.schedule.nest import Loops, collapse_axes, find_features, shape_kernel, split_sweep
from jitcore.schedule.two_stage_reductions import goes_in_blocks, scans_in_blocks

# Values that are a sweep of some of their operand's axes inside of the others.
_SWEEPS = (Reduction, Packed)


class HazardError(Exception):
    """The member reads what the group writes at another index: the group has to end first."""


class _NewPassError(Exception):
    """The member needs a reduction of the current pass: it belongs to the next pass."""


class _Pass:
    """One sweep over the inner axes (or none of them): reductions and stores of one iteration."""

    __slots__ = ("has_inner", "parts", "stores", "after")

    def __init__(self, has_inner: bool):
        self.has_inner, self.parts, self.stores, self.after = has_inner, [], [], []


class _Written:
    """Where and as what a member's buffer is written."""

    __slots__ = ("index", "expr", "sweep", "is_result")

    def __init__(self, index, expr, sweep: _Pass, is_result: bool):
        self.index, self.expr, self.sweep, self.is_result = index, expr, sweep, is_result


class FusionGroup:
    """Collects members while they fit. `layout`: extents other than 1; `kept`: dimensions of it in outer
    loops."""

    def __init__(self, lowering, layout: tuple, kept: tuple[int, ...]):
        self.lowering, self.graph, self.layout = lowering, lowering.graph, layout
        self.members: list[tuple[Value, Buffer]] = []
        self.reads: set[Buffer] = set()
        self._start(kept)

    def _start(self, kept: tuple[int, ...]) -> None:
        self.graph.epoch += 1
        self.kept = kept
        self.axes = [Axis(extent) for extent in self.layout]
        self.passes: list[_Pass] = []
        self.written: dict[Buffer, _Written] = {}

    @property
    def outer(self) -> list[Axis]:
        return [self.axes[d] for d in self.kept]

    @property
    def in_blocks(self) -> bool:
        """Whether threads share the sweeps themselves."""
        return not self.kept or goes_in_blocks(self.layout, self.kept, self.lowering.tuning)

    @property
    def inner(self) -> list[Axis]:
        return [axis for d, axis in enumerate(self.axes) if d not in self.kept]

    # -- joining ----------------------------------------------------------------------------------------
    def try_add(self, value: Value, buffer: Buffer) -> bool:
        """Adds a member if it fits; leaves the group as it was if not."""
        if len(self.members) >= self.lowering.tuning.max_members or self._mixes_loops(value):
            return False
        kept = self._kept_with(value)
        if kept is None:
            return False
        members = [*self.members, (value, buffer)]
        try:
            if kept != self.kept:
                saved = (self.kept, self.axes, self.passes, self.written)
                self._start(kept)
                try:
                    for member in members:
                        self._place(*member)
                except (HazardError, _NewPassError):
                    self.kept, self.axes, self.passes, self.written = saved
                    self.graph.epoch += 1
                    return False
            else:
                self._place(value, buffer)
        except (HazardError, _NewPassError):
            return False
        self.members = members
        self.reads |= _buffers_of(value)
        return True

    def precedes(self, value: Value, buffer: Buffer) -> bool:
        """Whether a value has to be stored after this group: it reads what the group writes, or overwrites
        what the group reads."""
        return not _buffers_of(value).isdisjoint(self.written) or buffer in self.reads or (
            buffer in self.written)

    def _mixes_loops(self, value: Value) -> bool:
        """Whether there would be reductions beside stores that are split into ranges."""
        values = [value, *(member for member, _ in self.members)]
        return len(values) > 1 and any(isinstance(v, _SWEEPS) for v in values) and (
            any(_source_of(v).is_joined for v in values))

    def _kept_with(self, value: Value) -> tuple[int, ...] | None:
        """The kept dimensions that hold the group and the value, or None."""
        if isinstance(value, _SWEEPS):
            shape = squeeze(value.operand.shape)
            kept = kept_dimensions(value)
            if shape != self.layout:
                return None
            if kept == self.kept:
                return kept
            only_stores = len(self.kept) == len(self.layout)
            is_short = isinstance(value, Packed) and self._work() <= self.lowering.tuning.max_ordered_work
            return kept if only_stores and (kept or is_short) else None
        shape = squeeze(value.shape)
        if shape == self.layout and (self.kept or not shape):
            return self.kept
        return self.kept if shape == tuple(self.layout[d] for d in self.kept) else None

    def _work(self) -> int:
        """Operations of one element of all members."""
        return sum(_source_of(value).work for value, _ in self.members)

    def _place(self, value: Value, buffer: Buffer) -> None:
        reduced = isinstance(value, _SWEEPS)
        source = _source_of(value)
        has_inner = reduced or (squeeze(source.shape) == self.layout and len(self.kept) < len(self.layout))
        index = index_over(source.shape, self.axes if has_inner else self.outer)
        sweep = self.passes[-1] if self.passes and self.passes[-1].has_inner == has_inner else None
        if sweep is not None:
            try:
                return self._evaluate_into(sweep, value, source, index, buffer)
            except _NewPassError:
                if self.in_blocks:  # one sweep per kernel, so that each can be split over threads
                    raise
        elif has_inner and self.in_blocks and any(sweep.has_inner for sweep in self.passes):
            raise _NewPassError
        sweep = _Pass(has_inner)
        self.passes.append(sweep)
        try:
            self._evaluate_into(sweep, value, source, index, buffer)
        except (HazardError, _NewPassError):
            self.passes.pop()
            raise

    def _evaluate_into(self, sweep: _Pass, value, source, index, buffer) -> None:
        self.current = sweep
        expr = source.at(index)
        if isinstance(value, Reduction):
            result = Result(value.dtype, frozenset(self.outer), len(self.written))
            kept_index = index_over(buffer.shape, self.outer)
            sweep.parts.append((result, value.op, expr))
            node = self.graph.result(result)
            sweep.after.append(Store(buffer, linearize(kept_index, buffer.shape), node))
            self.written[buffer] = _Written(kept_index, node, sweep, True)
        elif isinstance(value, Packed):
            self._pack_into(sweep, value, expr, index, buffer)
        else:
            place = linearize(index, buffer.shape)
            self._check_overwritten(buffer, place)
            sweep.stores = [s for s in sweep.stores if s.buffer is not buffer or s.offset != place]
            sweep.stores.append(Store(buffer, place, expr))
            self.written[buffer] = _Written(index, expr, sweep, False)

    def _pack_into(self, sweep: _Pass, value: Packed, expr: Expr, index: tuple, buffer: Buffer) -> None:
        """A store of elements side by side. What the sweep stored there before, at their own places, goes."""
        mask, own = value.mask.at(index), linearize(index, buffer.shape)
        self._check_overwritten(buffer, own)
        sweep.stores = [store for store in sweep.stores if store.buffer is not buffer]
        start = linearize((*index[:-1], ZERO), buffer.shape)
        sweep.stores.append(Store(buffer, start, expr, mask, packed=True))
        elsewhere = (*index[:-1], Index.of(Axis(buffer.shape[-1])))  # no reader knows where an element went
        self.written[buffer] = _Written(elsewhere, expr, sweep, False)

    def _check_overwritten(self, buffer: Buffer, offset: Index) -> None:
        """Raises: HazardError where members before read the buffer at other places than it is written now."""
        if buffer not in self.reads:
            return
        roots = [store.value for sweep in self.passes for store in sweep.stores]
        roots += [expr for sweep in self.passes for _, _, expr in sweep.parts]
        loads = (node.attr for node in walk(roots) if node.op == "load")
        if any(read is buffer and place != offset for read, place in loads):
            raise HazardError

    def read(self, buffer: Buffer, index: tuple[Index, ...]) -> Expr | None:
        """The element of a buffer that the group writes, or None when it does not write it.

        Raises: HazardError, _NewPassError."""
        written = self.written.get(buffer)
        if written is None:
            return None
        if written.is_result:
            if index != written.index:
                raise HazardError
            if written.sweep is self.current:
                raise _NewPassError
            return written.expr
        if index == written.index and (written.sweep is self.current or not written.sweep.has_inner):
            return written.expr
        if written.sweep is self.current or not written.sweep.has_inner or not self.kept:
            raise HazardError
        outer = set(self.outer)
        for mine, theirs in zip(index, written.index):  # a finished row of this outer iteration may be read
            if theirs.axes() & outer and mine != theirs:
                raise HazardError
        return self.graph.load(buffer, linearize(index, buffer.shape))

    def list_stores(self) -> list[Store]:
        """The group's stores, if these are all there is to it."""
        if any(sweep.has_inner for sweep in self.passes) or any(value.is_joined for value, _ in self.members):
            return []
        return [store for sweep in self.passes for store in sweep.stores]

    # -- ending -----------------------------------------------------------------------------------------
    def to_kernels(self) -> list[Kernel]:
        lowering = self.lowering
        if any(value.is_joined for value, _ in self.members):
            stores = [store for sweep in self.passes for store in sweep.stores]
            return split_kernels(lowering, self.outer, stores)
        if self.outer and len(stores := self.list_stores()) > 1:
            runs = [stores]
            for stage in lowering.choose("stores", list_features(stores)):
                runs = stage.run(lowering, stores)
            return [shape_kernel(lowering, self.outer, [], run) for run in runs]
        loops = collapse_axes(lowering, Loops(self.outer, self.inner, self._list_statements()))
        parts = (stage.run(lowering, self, loops) for stage in lowering.choose("loops", find_features(loops)))
        return [shape_kernel(lowering, *part) for part in next(filter(None, parts), [loops])]

    def _list_statements(self) -> list:
        body: list = []
        for sweep in self.passes:
            if not sweep.has_inner:
                body += sweep.stores
            elif sweep.parts or any(store.packed for store in sweep.stores):
                body.append(Reduce(tuple(self.inner), sweep.parts, sweep.stores))
            else:
                body += nest(self.inner, sweep.stores)
            body += sweep.after
        return body


def _source_of(value: Value) -> Value:
    """What is evaluated for a member: the operand of a reduction, else the value."""
    return value.operand if isinstance(value, _SWEEPS) else value


def _buffers_of(value: Value) -> frozenset[Buffer]:
    """What evaluating a member reads."""
    buffers = _source_of(value).buffers
    return buffers | value.mask.buffers if isinstance(value, Packed) else buffers


def index_over(shape: tuple, axes: list[Axis]) -> tuple[Index, ...]:
    """The multi-index of an array whose extents other than 1 the axes run over, in order."""
    remaining = iter(axes)
    return tuple(ZERO if _is_one(extent) else Index.of(next(remaining)) for extent in shape)


def scan_kernel(lowering, value: Running, buffer: Buffer) -> Kernel:
    """A running reduction: the scan axis innermost, the others around it."""
    axes = {d: Axis(n) for d, n in enumerate(value.shape) if not _is_one(n) or d == value.axis}
    index = tuple(Index.of(axes[d]) if d in axes else ZERO for d in range(len(value.shape)))
    scan = Scan(axes[value.axis], value.op, value.operand.at(index), buffer, linearize(index, buffer.shape),
                value.reverse)
    outer = [axis for d, axis in axes.items() if d != value.axis]
    kernel = shape_kernel(lowering, outer, [axes[value.axis]], [scan])
    kept = tuple(place for place, d in enumerate(axes) if d != value.axis)
    if scans_in_blocks(tuple(axis.extent for axis in axes.values()), kept, lowering.tuning):
        split_sweep(lowering, kernel)
    return kernel


def squeeze(shape: tuple) -> tuple:
    return tuple(extent for extent in shape if not _is_one(extent))


def kept_dimensions(value: Reduction | Packed) -> tuple[int, ...]:
    """Positions, among the extents other than 1 of the operand, that the reduction keeps."""
    positions = [d for d, extent in enumerate(value.operand.shape) if not _is_one(extent)]
    return tuple(place for place, d in enumerate(positions) if d not in value.reduced)


def is_trivial(value: Reduction) -> bool:
    """Whether every reduced extent is 1: nothing to combine."""
    return all(_is_one(value.operand.shape[d]) for d in value.reduced)


def _is_one(extent) -> bool:
    return isinstance(extent, (int, np.integer)) and extent == 1
