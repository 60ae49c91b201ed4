"""Products of matrices of 16 bits by tensor cores, which add products of small matrices in float32.

In: a product both of whose factors become float32 from one dtype of 16 bits. Out: a function as in `tiles`.
In shared memory the factors stay what they are, and a warp multiplies fragments: pairs of elements that its
lanes hold as the PTX manual says, "Matrix Fragments for mma.m16n8k16".
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import join_lanes
from jitcore.backends.cuda.render.tiles import Factor, Product, TileRenderer, runs_along
from jitcore.backends.gpu.mapping import WARP
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I1, I32, element_type
from jitcore.loopir.expr import Expr

#: Rows, columns and terms of the product of one instruction.
ROWS, COLUMNS, TERMS = 16, 8, 16
#: Elements behind each row of a tile in shared memory: lanes that read a fragment meet different banks.
PAD = 8
#: By dtype: the end of the instruction's name, and what it takes pairs of elements for.
_INSTRUCTIONS = {dtypes.float16: ("f32.f32", ir.VectorType(ir.HalfType(), 2)), dtypes.bfloat16: ("bf16", I32)}


def multiplies_halves(product: Product) -> bool:
    """Whether tensor cores have a product: its terms are exact in float32, in which both add them."""
    factors = product.left, product.right
    halves = {factor.args[0].dtype for factor in factors if factor.op == "convert"}
    is_alike = len(halves) == 1 and all(factor.op == "convert" for factor in factors)
    return is_alike and not halves.isdisjoint(_INSTRUCTIONS) and product.left.dtype == dtypes.float32


class TensorRenderer(TileRenderer):
    """Each warp has a part of the tile: products of one instruction side by side and below each other."""

    units = "tensor cores"
    at_once = 2

    @staticmethod
    def list_shapes(product: Product, tuning: Tuning) -> Sequence[tuple[int, ...]]:
        return tuning.tensor_product_shapes

    @staticmethod
    def list_factors(product: Product) -> tuple[Expr, Expr]:
        return product.left.args[0], product.right.args[0]

    def place_factors(self) -> tuple[list[Factor], int]:
        """Neighbours along the sum lie side by side, as many as one access moves, or else pairs of them."""
        t, factors, start = self.tiling, [], 0
        sides = (t.rows, t.height), (t.columns, t.width)
        for value, (side, extent) in zip(self.list_factors(self.product), sides):
            if runs_along(value, self.axis):
                along, across, terms, size = 1, self.depth + PAD, 1, extent * (self.depth + PAD)
            else:
                along, across, terms, size = extent + PAD, 2, 2, self.depth * (extent + PAD)
            factors.append(Factor(value, side, extent, start, along, across, terms))
            start += size
        return factors, start

    def begin(self) -> None:
        b, strips, across = self.e.b, self.tiling.height // ROWS, self.tiling.width // COLUMNS
        warps = self.threads // WARP
        sharing = min(across, 4, warps)  # warps that have the same rows
        self.groups = min(strips, warps // sharing)
        warp, lane = b.udiv(self.thread, I32(WARP)), b.urem(self.thread, I32(WARP))
        self.lane_row, self.lane_pair = b.udiv(lane, I32(4)), b.mul(b.urem(lane, I32(4)), I32(2))
        busy = self.groups * sharing
        self.has_part = I1(1) if busy == warps else b.icmp_unsigned("<", warp, I32(busy))
        self.group, strips, across = b.udiv(warp, I32(sharing)), strips // self.groups, across // sharing
        self.row = b.mul(self.group, I32(strips * ROWS))
        self.column = b.mul(b.urem(warp, I32(sharing)), I32(across * COLUMNS))
        self.sums = [[[self.start_sum() for _ in range(4)] for _ in range(across)] for _ in range(strips)]

    def multiply(self, pair: ir.Value, ks: range) -> None:
        e, kind = self.e, ir.LiteralStructType([self.kind] * 4)
        name, _ = _INSTRUCTIONS[self.factors[0].value.dtype]
        with e.if_then(self.has_part):
            for first in ks[::TERMS]:
                places = [(down, first + k) for k in (0, TERMS // 2) for down in (0, ROWS // 2)]
                lefts = [self._read_fragment(pair, 0, self.row, number * ROWS, places)
                         for number in range(len(self.sums))]
                for number in range(len(self.sums[0])):
                    right = self._read_fragment(pair, 1, self.column, number * COLUMNS, places[::2])
                    for left, strip in zip(lefts, self.sums):
                        slots = strip[number]
                        found = e.call(f"llvm.nvvm.mma.m16n8k16.row.col.{name}", kind, *left, *right,
                                       *map(e.read_slot, slots))
                        found.attributes.add("convergent")  # which LLVM does not know of it
                        for place, slot in enumerate(slots):
                            e.write_slot(slot, e.b.extract_value(found, place))

    def write_strip(self, strip: int, row: ir.Value) -> None:
        b, width = self.e.b, self.tiling.width
        row, column = b.add(row, self.lane_row), b.add(self.column, self.lane_pair)
        with self.e.if_then(self.has_part):
            for number, slots in enumerate(self.sums[strip]):
                for down, some in ((0, slots[:2]), (ROWS // 2, slots[2:])):
                    sums = join_lanes(b, [self.e.read_slot(slot) for slot in some])
                    place = b.add(b.mul(row, I32(width)), column)
                    b.store(sums, self.at(place, sums.type, down * width + number * COLUMNS))

    def _read_fragment(self, pair: ir.Value, number: int, first: ir.Value, further: int,
                       places: list[tuple[int, int]]) -> list[ir.Value]:
        """Pairs of neighbours along the sum. places: how far along the side and the sum each is from the
        lane's own."""
        b, factor = self.e.b, self.factors[number]
        pairs, kind = ir.VectorType(element_type(factor.value.dtype), 2), _INSTRUCTIONS[factor.value.dtype][1]
        own = b.add(pair, self.find(factor, self.lane_pair, b.add(first, self.lane_row)))
        further = [(further + down) * factor.across + k * factor.along for down, k in places]
        return [b.bitcast(b.load(self.at(own, pairs, one)), kind) for one in further]
