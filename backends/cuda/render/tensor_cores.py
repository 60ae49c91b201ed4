"""Products of matrices of 16 bits by tensor cores, which add products of small matrices in float32.

In: a product both of whose factors become float32 from one dtype of 16 bits. Out: a function as in `tiles`.
In shared memory the factors stay what they are, and a warp multiplies fragments: pairs of elements that its
lanes hold as the PTX manual says, "Matrix Fragments for mma.m16n8k16".
"""

from __future__ import annotations

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.cuda.render.emitter import join_lanes
from jitcore.backends.cuda.render.tiles import SIDE, Factor, Product, TileRenderer, runs_along
from jitcore.backends.gpu.mapping import ACCESS_BYTES, WARP
from jitcore.backends.llvm.registers import I1, I32, I64, element_type

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
    """Each warp has some of the products of one instruction that a tile consists of, all in the same rows."""

    units = "tensor cores"
    depth, access_bytes = 2 * TERMS, ACCESS_BYTES

    def place_factors(self) -> tuple[list[Factor], int]:
        """Neighbours in memory stay neighbours, so that one access moves several of them."""
        p, t, factors, start = self.product, self.tiling, [], 0
        for value, side in ((p.left.args[0], t.rows), (p.right.args[0], t.columns)):
            is_along = runs_along(value, self.axis)
            rows, pitch = (t.side, self.depth + PAD) if is_along else (self.depth, t.side + PAD)
            factors.append(Factor(value, side, start, *((1, pitch) if is_along else (pitch, 1))))
            start += rows * pitch
        return factors, start // 2

    def begin(self) -> None:
        b, warps = self.e.b, SIDE * SIDE // WARP
        strips, across = self.tiling.side // ROWS, self.tiling.side // COLUMNS
        sharing = min(warps // strips, across)  # warps that have the same rows
        busy = strips * sharing
        warp, lane = b.udiv(self.thread, I64(WARP)), b.urem(self.thread, I64(WARP))
        self.group, self.pair = b.udiv(lane, I64(4)), b.mul(b.urem(lane, I64(4)), I64(2))
        self.has_part = I1(1) if busy == warps else b.icmp_unsigned("<", warp, I64(busy))
        self.row = b.mul(b.udiv(warp, I64(sharing)), I64(ROWS))
        self.column = b.mul(b.urem(warp, I64(sharing)), I64(across // sharing * COLUMNS))
        self.sums = [[self.start_sum() for _ in range(4)] for _ in range(across // sharing)]

    def multiply(self) -> None:
        with self.e.if_then(self.has_part):
            for k in range(0, self.depth, TERMS):
                self._multiply(k)

    def write_sums(self) -> None:
        b = self.e.b
        with self.e.if_then(self.has_part):
            row, column = b.add(self.row, self.group), b.add(self.column, self.pair)
            for number, slots in enumerate(self.sums):
                for place, slot in enumerate(slots):
                    down, right = place // 2 * (ROWS // 2), number * COLUMNS + place % 2
                    self.write_sum(slot, b.add(row, I64(down)), b.add(column, I64(right)))

    def _multiply(self, first: int) -> None:
        """Products of so many terms from the first one on."""
        e, kind = self.e, ir.LiteralStructType([self.kind] * 4)
        name, _ = _INSTRUCTIONS[self.factors[0].value.dtype]
        places = [(down, first + k) for k in (0, TERMS // 2) for down in (0, ROWS // 2)]
        left = self._read_fragment(0, self.row, places)
        for number, slots in enumerate(self.sums):
            column = e.b.add(self.column, I64(number * COLUMNS))
            right = self._read_fragment(1, column, places[::2])
            sums = map(e.read_slot, slots)
            found = e.call(f"llvm.nvvm.mma.m16n8k16.row.col.{name}", kind, *left, *right, *sums)
            found.attributes.add("convergent")  # which LLVM does not know of it
            for place, slot in enumerate(slots):
                e.write_slot(slot, e.b.extract_value(found, place))

    def _read_fragment(self, number: int, first: ir.Value, places: list[tuple[int, int]]) -> list[ir.Value]:
        """Pairs of neighbours along the sum. places: how far along the side and the sum each is from the
        lane's own."""
        b, factor = self.e.b, self.factors[number]
        side = b.add(first, self.group)
        return [self._read_pair(factor, self.find(factor, b.add(self.pair, I64(k)), b.add(side, I64(down))))
                for down, k in places]

    def _read_pair(self, factor: Factor, place: ir.Value) -> ir.Value:
        b, dtype = self.e.b, factor.value.dtype
        element = element_type(dtype)
        if factor.along == 1:
            pair = b.load(self.at(place, ir.VectorType(element, 2)))
        else:
            places = place, b.add(place, I64(factor.along))
            pair = join_lanes(b, [b.load(self.at(one, element)) for one in places])
        return b.bitcast(pair, _INSTRUCTIONS[dtype][1])
