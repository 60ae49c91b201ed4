"""Products of matrices, by tiles in shared memory.

In: a nest over rows and columns. Out: one `__global__` function, in which a block of threads has a tile.

What it takes: a sum of products, of which one factor does not depend on the loop over columns and the other
one not on that over rows. Blocks make tiles of the result from tiles of both factors. The factors may be
computed, not only read, and what follows the sum is done with each element of a tile: nothing is in memory in
between.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cuda.render.emitter import KernelEmitter, join_lanes
from jitcore.backends.gpu.mapping import ACCESS_BYTES, WARP, is_aligned
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64, call_intrinsic, element_constant, element_type
from jitcore.loopir.expr import Axis, Expr, walk
from jitcore.loopir.program import Kernel, Loop, Reduce, Store
from jitcore.loopir.traversal import peel

#: Rows and columns of the threads of a warp, and columns of those of a block.
WARP_ROWS, WARP_COLUMNS, BLOCK_COLUMNS = 4, 8, 16
#: Elements behind each row of a tile of a factor, so that writing along the sum meets other banks.
PAD = 4
#: Bytes of the sums of a thread from which on registers for anything else are scarce.
LARGE_SUMS = 256
#: Tiles count places in 32 bits: extents at most, with room for a tile behind them.
MOST_PLACES = 2**31 - 2**10


class Tiling(NamedTuple):
    """outer: the loops around those over rows and columns. height, width: rows and columns of a tile."""

    outer: list[Loop]
    rows: Axis
    columns: Axis
    height: int
    width: int

    @property
    def around(self) -> int:
        """The iterations of the outer loops."""
        return math.prod(int(loop.axis.extent) for loop in self.outer)

    @property
    def grid(self) -> int:
        counts = [-(-int(axis.extent) // side) for axis, side in self._sides()]
        return self.around * math.prod(counts)

    def place(self, e: KernelEmitter) -> tuple[ir.Value, ir.Value]:
        """The first row and column of this block's tile, as i32; sets the outer axes."""
        b, places = e.b, []
        rest = b.trunc(e.read_register("ctaid.x"), I32)
        for axis, side in self._sides()[::-1]:
            count = b.trunc(e.divide_up(e.size(axis.extent), side), I32)
            places.append(b.mul(b.urem(rest, count), I32(side)))
            rest = b.udiv(rest, count)
        e.place_axes([loop.axis for loop in self.outer], b.zext(rest, I64), self.around)
        return places[1], places[0]

    def go_to(self, e: KernelEmitter, row: ir.Value, column: ir.Value) -> ir.Value:
        """Sets the axes of rows and columns, from i32. Returns: whether that is inside."""
        b, is_inside = e.b, []
        for axis, place in ((self.rows, row), (self.columns, column)):
            e.axis_values[axis] = b.zext(place, I64)
            is_inside.append(b.icmp_unsigned("<", place, b.trunc(e.size(axis.extent), I32)))
        return b.and_(*is_inside)

    def _sides(self) -> list[tuple[Axis, int]]:
        return [(self.rows, self.height), (self.columns, self.width)]


# -- products -----------------------------------------------------------------------------------------------
class Product(NamedTuple):
    """A sum of products, in loops over rows and columns and others around them. left, right: the factors."""

    outer: list[Loop]
    rows: Axis
    columns: Axis
    reduce: Reduce
    left: Expr
    right: Expr
    stores: list[Store]


class Tiles(NamedTuple):
    """Tiles of a product. threads: of a block. depth: how far tiles of factors go along the sum."""

    tiling: Tiling
    threads: int
    depth: int


def find_product(kernel: Kernel, tuning: Tuning) -> Product | None:
    """The product that a kernel is, if tiles pay for it."""
    loops, body = peel(kernel.body)
    reduce, *stores = body
    if len(loops) < 2 or not kernel.parallel or any(loop.bounds for loop in loops):
        return None
    if not isinstance(reduce, Reduce) or len(reduce.axes) > 1 or len(reduce.parts) > 1:
        return None
    if reduce.bounds or reduce.stores:
        return None
    _, op, expr = reduce.parts[0]
    if op != "add" or expr.op != "mul" or expr.dtype.kind not in "fiu" or expr.dtype.itemsize < 4:
        return None
    if not all(isinstance(s, Store) and not s.is_update for s in stores):
        return None
    *outer, rows, columns = loops
    extents = [int(axis.extent) for axis in (rows.axis, columns.axis, reduce.axes[0])]
    if min(extents) < tuning.least_product or max(extents) > MOST_PLACES:
        return None
    for left, right in (expr.args, expr.args[::-1]):
        is_left = columns.axis not in left.axes and rows.axis in left.axes
        if is_left and rows.axis not in right.axes and columns.axis in right.axes:
            return Product(outer, rows.axis, columns.axis, reduce, left, right, stores)
    return None


class Factor(NamedTuple):
    """A factor, and its tile in shared memory. side, extent: its axis besides that of the sum, and how far
    the tile goes along it. start: where the tile starts; along, across: how far apart neighbours along the
    sum and along the side are. terms: of the sum, that lie side by side for each place along the side."""

    value: Expr
    side: Axis
    extent: int
    start: int
    along: int
    across: int
    terms: int = 1


class Fetched(NamedTuple):
    """Elements on their way to shared memory. k, place: of the first one along the sum and along the side.
    is_some: whether this thread has them, if not all threads do. slots: a register for each term."""

    k: ir.Value
    place: ir.Value
    is_some: ir.Value | None
    slots: list[ir.Value]


class TileRenderer:
    """Emits the body of the function. Each thread multiplies and adds for some rows and columns of the tile.
    While a pair of tiles is multiplied, the next one is on its way from memory to registers; there is room
    for two pairs, so that threads wait once for each. emit_statements: for what follows the sum.

    Attributes:
        pair_size: elements of a pair of tiles. room: how many sums shared memory has room for.
        at_once: tiles on their way at one time. One takes fewer registers, and has half as long to arrive.
        sums: strips of rows of the tile, as far as this thread has them.
        down, across: rows and columns of a tile that a thread has. piece: of these, columns side by side.
        groups: how many threads or warps have other rows; group: the number of this one."""

    #: What multiplies, where that is not the usual arithmetic.
    units = ""

    @classmethod
    def choose_tiles(cls, product: Product, tuning: Tuning) -> Tiles:
        """Large tiles, which read least, or smaller ones where a GPU would have too few of them, or more than
        half of one would be beyond the result."""
        itemsize, rows, columns = cls.list_factors(product)[0].dtype.itemsize, product.rows, product.columns
        *larger, small = [
            Tiles(Tiling(product.outer, rows, columns, height, width), threads, depth_bytes // itemsize)
            for height, width, threads, depth_bytes in cls.list_shapes(product, tuning)
        ]
        for tiles in larger:
            _, _, _, height, width = tiles.tiling
            is_fit = height <= 2 * int(rows.extent) and width <= 2 * int(columns.extent)
            if is_fit and tiles.tiling.grid >= tuning.many_tiles:
                return tiles
        return small if min(int(rows.extent), int(columns.extent)) <= small.tiling.height else larger[-1]

    def __init__(self, e: KernelEmitter, product: Product, tiles: Tiles, emit_statements: Callable):
        self.e, self.product, self.emit_statements = e, product, emit_statements
        (self.tiling, self.threads, self.depth), self.axis = tiles, product.reduce.axes[0]
        self.dtype, self.thread = product.left.dtype, e.b.trunc(e.read_register("tid.x"), I32)
        self.kind = element_type(self.dtype)
        self.lanes = ACCESS_BYTES // self.dtype.itemsize
        self.factors, self.pair_size = self.place_factors()
        self.room = 2 * self.pair_size * self.factors[0].value.dtype.itemsize // self.dtype.itemsize
        self.shared = e.share(self.kind, self.room)

    def emit(self) -> None:
        e, b, places, depth = self.e, self.e.b, self.tiling.place(self.e), self.depth
        self.begin()
        with e.for_range(I32(-depth), self.extent(self.axis), I32(depth)) as start:
            is_even = b.icmp_unsigned("==", b.and_(start, I32(depth)), I32(0))
            pairs, following = (I32(0), I32(self.pair_size)), b.add(start, I32(depth))
            pair = b.select(is_even, *pairs)
            room = b.sub(pairs[1], pair)
            for first in range(0, 2, self.at_once):
                last = first + self.at_once
                fetched = [(factor, self._fetch(factor, place, following))
                           for factor, place in zip(self.factors[first:last], places[first:last])]
                with e.if_then(b.icmp_signed(">=", start, I32(0))):
                    self.multiply(pair, range(first * depth // 2, last * depth // 2))
                for factor, elements in fetched:
                    self._put(factor, elements, room)
            e.synchronize_block()
        self._finish(*places)

    # -- arithmetic ---------------------------------------------------------------------------------------
    @staticmethod
    def list_shapes(product: Product, tuning: Tuning) -> Sequence[tuple[int, ...]]:
        return tuning.product_shapes if product.left.dtype.itemsize == 4 else tuning.wide_product_shapes

    @staticmethod
    def list_factors(product: Product) -> tuple[Expr, Expr]:
        """What is in shared memory."""
        return product.left, product.right

    def place_factors(self) -> tuple[list[Factor], int]:
        """The tiles of both factors, and how many elements have room for them."""
        p, t = self.product, self.tiling
        left, right = t.height + PAD, t.width + PAD
        factors = [Factor(p.left, t.rows, t.height, 0, left, 1),
                   Factor(p.right, t.columns, t.width, self.depth * left, right, 1)]
        return factors, self.depth * (left + right)

    def begin(self) -> None:
        """Sums that are zero. Columns of a thread are as many as one access reads, and further ones behind
        those of the other threads of its warp. Threads next to each other, or two apart, have the same
        columns or rows: so an access of a warp to shared memory takes two rounds."""
        b, warps = self.e.b, BLOCK_COLUMNS // WARP_COLUMNS
        warp, lane = b.udiv(self.thread, I32(WARP)), b.urem(self.thread, I32(WARP))
        row = b.or_(b.and_(lane, I32(1)), b.shl(b.lshr(lane, I32(4)), I32(1)))
        column = b.and_(b.lshr(lane, I32(1)), I32(WARP_COLUMNS - 1))
        self.groups = self.threads // BLOCK_COLUMNS
        self.group = b.add(b.mul(b.udiv(warp, I32(warps)), I32(WARP_ROWS)), row)
        self.down, self.across = self.tiling.height // self.groups, self.tiling.width // BLOCK_COLUMNS
        self.piece = min(self.lanes, self.across)
        self.column = b.add(b.mul(b.urem(warp, I32(warps)), I32(WARP_COLUMNS * self.across)),
                            b.mul(column, I32(self.piece)))
        self.sums = [[self.start_sum() for _ in range(self.across)] for _ in range(self.down)]
        self.at_once = 1 if self.down * self.across * self.dtype.itemsize >= LARGE_SUMS else 2

    def start_sum(self) -> ir.Value:
        return self.e.stack_slot(element_constant(self.dtype, 0))

    def multiply(self, pair: ir.Value, ks: range) -> None:
        """Adds the products of terms of both tiles to the sums. pair: where these tiles begin."""
        e, (left, right) = self.e, self.factors
        row = e.b.add(pair, e.b.mul(self.group, I32(self.down)))
        column = e.b.add(pair, self.column)
        sums = [[e.read_slot(slot) for slot in slots] for slots in self.sums]
        for k in ks:
            xs = self._read(row, k * left.along, self.down, self.lanes)
            ys = self._read(column, right.start + k * right.along, self.across, WARP_COLUMNS * self.piece)
            sums = [[self._add_product(x, y, total) for y, total in zip(ys, totals)]
                    for x, totals in zip(xs, sums)]
        for slots, totals in zip(self.sums, sums):
            for slot, total in zip(slots, totals):
                e.write_slot(slot, total)

    def write_strip(self, strip: int, row: ir.Value) -> None:
        """Sums go to shared memory. row: the first one of the strip there."""
        b, slots = self.e.b, self.sums[strip]
        for first in range(0, len(slots), self.piece):
            values = [self.e.read_slot(slot) for slot in slots[first : first + self.piece]]
            place = b.add(b.mul(row, I32(self.tiling.width)), self.column)
            value = join_lanes(b, values)
            b.store(value, self.at(place, value.type, first * WARP_COLUMNS))

    def _add_product(self, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        b = self.e.b
        if self.dtype.kind == "f":
            return call_intrinsic(b, "fma", [x, y, total])
        return b.add(b.mul(x, y), total)

    def _read(self, place: ir.Value, further: int, count: int, step: int) -> list[ir.Value]:
        """So many elements, as many as one access reads side by side, then others a step behind."""
        b, lanes, found = self.e.b, min(self.lanes, count), []
        kind = _several(self.kind, lanes)
        for number in range(count // lanes):
            pointer = self.at(place, kind, further + number * step)
            value = b.load(pointer, align=lanes * self.dtype.itemsize)
            found += self.e.split_lanes(value)
        return found

    # -- memory -------------------------------------------------------------------------------------------
    def extent(self, axis: Axis) -> ir.Value:
        return self.e.b.trunc(self.e.size(axis.extent), I32)

    def find(self, factor: Factor, k: ir.Value, place: ir.Value) -> ir.Value:
        """Where an element of a factor is in its pair of tiles."""
        b = self.e.b
        inside = b.add(b.mul(k, I32(factor.along)), b.mul(place, I32(factor.across)))
        return b.add(I32(factor.start), inside)

    def at(self, place: ir.Value, kind: ir.Type | None = None, further: int = 0) -> ir.Value:
        """A pointer into shared memory. kind: what lies there, if not a sum; the place is counted in elements
        of it, and so many further ones."""
        b, kind = self.e.b, kind or self.kind
        element = kind.element if isinstance(kind, ir.VectorType) else kind
        pointer = b.gep(b.bitcast(self.shared, element.as_pointer(addrspace=3)), [place])
        pointer = b.gep(pointer, [I32(further)]) if further else pointer
        return b.bitcast(pointer, kind.as_pointer(addrspace=3))

    def _fetch(self, factor: Factor, first: ir.Value, start: ir.Value) -> list[Fetched]:
        """This thread's part of a tile of a factor: from `start` on along the sum, and from `first` on along
        the side."""
        e, b, axis, value = self.e, self.e.b, self.axis, factor.value
        fast, extent = (axis, self.depth) if runs_along(value, axis) else (factor.side, factor.extent)
        lanes, found = self._find_lanes(value, fast), []
        count = self.depth * factor.extent // (lanes * factor.terms)
        for before in range(0, count, self.threads):
            number = b.add(self.thread, I32(before))
            low, high = (split(number, I32(extent // lanes)) for split in (b.urem, b.udiv))
            low = b.mul(low, I32(lanes))
            k, place = (low, high) if fast is axis else (b.mul(high, I32(factor.terms)), low)
            # beyond the last row or column there is nothing to add: what is read in its place is not stored
            last = b.sub(self.extent(factor.side), I32(1 if fast is axis else lanes))
            e.axis_values[factor.side] = b.zext(e.least(b.add(first, place), last), I64)
            is_some = b.icmp_unsigned("<", number, I32(count)) if before + self.threads > count else None
            slots = [self._fetch_lanes(value, fast, lanes, b.add(b.add(start, k), I32(term)), is_some)
                     for term in range(factor.terms)]
            found.append(Fetched(k, place, is_some, slots))
        return found

    def _fetch_lanes(self, value: Expr, fast: Axis, lanes: int, k: ir.Value,
                     is_some: ir.Value | None) -> ir.Value:
        """Elements side by side, for a term of the sum; zeros behind its end."""
        e, b = self.e, self.e.b
        e.axis_values[self.axis] = b.zext(k, I64)
        is_inside = b.icmp_unsigned("<", k, self.extent(self.axis))
        slot = e.stack_slot(ir.Constant(_several(element_type(value.dtype), lanes), None))
        with e.if_then(is_inside if is_some is None else b.and_(is_some, is_inside)), e.in_lanes(fast, lanes):
            e.write_slot(slot, e.expr_in_lanes(value))
        return slot

    def _put(self, factor: Factor, fetched: list[Fetched], pair: ir.Value) -> None:
        """What was fetched goes to shared memory. pair: where the tiles begin."""
        e, b = self.e, self.e.b
        is_apart = runs_along(factor.value, self.axis) and factor.along > 1
        most, step = (1, factor.along) if is_apart else (ACCESS_BYTES // factor.value.dtype.itemsize, 1)
        for k, place, is_some, slots in fetched:
            target = b.add(pair, self.find(factor, k, place))
            terms = [e.split_lanes(e.read_slot(slot)) for slot in slots]
            values = [one for lane in zip(*terms) for one in lane]
            with contextlib.nullcontext() if is_some is None else e.if_then(is_some):
                for first in range(0, len(values), most):
                    value = join_lanes(b, values[first : first + most])
                    b.store(value, self.at(target, value.type, first * step))

    def _find_lanes(self, factor: Expr, axis: Axis) -> int:
        """How many neighbours along an axis one access reads."""
        lanes = ACCESS_BYTES // factor.dtype.itemsize
        is_fine = all(is_aligned(index, axis, lanes) for index in _indexes(factor) if axis in index.axes())
        return lanes if is_fine and int(axis.extent) % lanes == 0 else 1

    def _finish(self, first_row: ir.Value, first_column: ir.Value) -> None:
        """What follows the sums. Some strips of each group at a time go through shared memory, so that
        neighbouring threads store neighbouring elements."""
        e, b, p, t = self.e, self.e.b, self.product, self.tiling
        whole, count = t.height // self.groups, len(self.sums)  # rows of a group, and its strips
        strips = max(n for n in (1, 2, 4, 8) if n <= count and n * t.height * t.width <= self.room * count)
        part = whole // count * strips
        with e.for_range(I32(0), I32(count // strips), I32(1)) as number:
            for first in range(0, count, strips):
                with e.if_then(b.icmp_unsigned("==", number, I32(first // strips))):
                    for strip in range(strips):
                        row = b.add(b.mul(self.group, I32(part)), I32(strip * whole // count))
                        self.write_strip(first + strip, row)
            e.synchronize_block()
            with e.for_range(self.thread, I32(self.groups * part * t.width), I32(self.threads)) as place:
                row, column = b.udiv(place, I32(t.width)), b.urem(place, I32(t.width))
                in_group = b.add(b.mul(number, I32(part)), b.urem(row, I32(part)))
                row = b.add(b.mul(b.udiv(row, I32(part)), I32(whole)), in_group)
                e.results[p.reduce.parts[0][0]] = b.load(self.at(place))
                with e.if_then(t.go_to(e, b.add(first_row, row), b.add(first_column, column))):
                    self.emit_statements(e, p.stores)
            if strips < count:
                e.synchronize_block()


def _several(kind: ir.Type, count: int) -> ir.Type:
    return kind if count == 1 else ir.VectorType(kind, count)


def _indexes(factor: Expr) -> list:
    return [node.attr[1] for node in walk([factor]) if node.op == "load"]


def runs_along(factor: Expr, axis: Axis) -> bool:
    """Whether neighbours in memory lie along the axis of the sum."""
    return any(index.coefficient(axis) == 1 for index in _indexes(factor))
