"""Sorting networks: code that sorts a few vectors of keys in registers.

In: the type of keys and how many vectors. Out: LLVM text of a function that sorts up to that many vectors' worth
of keys in memory. Stage: rendering of the sorting engine (`sort_engine.py`). Keys are signed integers.

The vectors are the rows of a matrix. Its columns are sorted first, by a network whose comparators work on
whole vectors; then neighbouring groups of columns are merged, 1 + 1, 2 + 2, ... until the matrix is sorted row
by row. A group of `width` columns holds its elements in row order. Merging two of them is bitonic: the elements
of the second group in reverse lie in the opposite row, in lanes reversed over both groups, so that every step of
the merge is a comparator of one row with the reversed lanes of another, until rows remain, which end with
comparators within the vector.

Source: K. E. Batcher, Sorting networks and their applications (1968); M. Blacher et al., Vectorized and
performance-portable quicksort (2022), for the merging of columns.
"""

from __future__ import annotations

from typing import NamedTuple

from jitcore.backends.cpu import cpuinfo


class KeyType(NamedTuple):
    """Signed integer keys: their bits, and how many of them a vector holds."""

    bits: int
    lanes: int

    @property
    def scalar(self) -> str:
        return f"i{self.bits}"

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x i{self.bits}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """The vector type in names of intrinsics."""
        return f"v{self.lanes}i{self.bits}"

    @property
    def largest(self) -> int:
        return (1 << (self.bits - 1)) - 1

    def splat(self, value: int) -> str:
        """A vector constant."""
        return f"splat (i{self.bits} {value})"

    def lane_numbers(self, first: int = 0) -> str:
        return "<" + ", ".join(f"i{self.bits} {first + lane}" for lane in range(self.lanes)) + ">"


def key_type(bits: int) -> KeyType:
    return KeyType(bits, cpuinfo.native_vector_bytes() * 8 // bits)


class Writer:
    """Instructions of one function, with names made up for their results."""

    def __init__(self, key: KeyType):
        self.key = key
        self.lines: list[str] = []

    def op(self, instruction: str) -> str:
        name = f"%r{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def shuffle(self, vector: str, order: list[int]) -> str:
        key = self.key
        mask = ", ".join(f"i32 {lane}" for lane in order)
        return self.op(f"shufflevector {key.vector} {vector}, {key.vector} poison, <{len(order)} x i32> <{mask}>")

    def order(self, x: str, y: str) -> tuple[str, str]:
        """(the smaller keys, the larger keys), lane by lane."""
        v, suffix = self.key.vector, self.key.suffix
        return tuple(self.op(f"call {v} @llvm.{which}.{suffix}({v} {x}, {v} {y})") for which in ("smin", "smax"))

    def order_within(self, x: str, partners: list[int]) -> str:
        """Each lane ordered with its partner: the one of the lower number keeps the smaller key."""
        key = self.key
        small, large = self.order(x, self.shuffle(x, partners))
        choice = ", ".join(f"i32 {lane + key.lanes * (partner < lane)}" for lane, partner in enumerate(partners))
        return self.op(
            f"shufflevector {key.vector} {small}, {key.vector} {large}, <{key.lanes} x i32> <{choice}>"
        )

    def sort_rows(self, rows: list[str]) -> list[str]:
        """The rows of a sorted matrix; a power of two of them."""
        rows = list(rows)
        for low, high in list_comparators(len(rows)):
            rows[low], rows[high] = self.order(rows[low], rows[high])
        width = 1
        while width < self.key.lanes:
            rows = self._merge_columns(rows, 2 * width)
            width *= 2
        return rows

    def _merge_columns(self, rows: list[str], width: int) -> list[str]:
        """Rows sorted in groups of `width` columns, of rows sorted in groups of half of that."""
        reverse = [lane ^ (width - 1) for lane in range(self.key.lanes)]
        block = len(rows)
        while block > 1:
            for start in range(0, len(rows), block):
                for k in range(block // 2):
                    low, high = start + k, start + block - 1 - k
                    rows[low], rows[high] = self.order(rows[low], self.shuffle(rows[high], reverse))
            block //= 2
        rows = [self.order_within(row, reverse) for row in rows]
        distance = width // 4
        while distance:
            partners = [lane ^ distance for lane in range(self.key.lanes)]
            rows = [self.order_within(row, partners) for row in rows]
            distance //= 2
        return rows


def list_comparators(count: int):
    """Pairs of positions that, ordered one after the other, sort a power of two of elements: Batcher's
    odd-even mergesort."""
    half = 1
    while half < count:
        distance = half
        while distance:
            for start in range(distance % half, count - distance, 2 * distance):
                for low in range(start, min(start + distance, count - distance)):
                    if low // (2 * half) == (low + distance) // (2 * half):
                        yield low, low + distance
            distance //= 2
        half *= 2


def render_sort_small(key: KeyType, rows: int) -> str:
    """`void sort_rows_<rows>(ptr keys, i64 n)`: sorts up to rows * lanes keys in place."""
    writer, v, suffix = Writer(key), key.vector, key.suffix
    count = writer.op(f"trunc i64 %n to {key.scalar}") if key.bits < 64 else "%n"
    single = writer.op(f"insertelement {v} poison, {key.scalar} {count}, i32 0")
    counts = writer.shuffle(single, [0] * key.lanes)
    places, masks, loaded = [], [], []
    for row in range(rows):
        places.append(writer.op(f"getelementptr {key.scalar}, ptr %keys, i64 {row * key.lanes}"))
        masks.append(writer.op(f"icmp slt {v} {key.lane_numbers(row * key.lanes)}, {counts}"))
        loaded.append(writer.op(
            f"call {v} @llvm.masked.load.{suffix}.p0(ptr {places[row]}, i32 {key.bits // 8}, "
            f"{key.mask} {masks[row]}, {v} {key.splat(key.largest)})"))  # fmt: skip
    for row, result in enumerate(writer.sort_rows(loaded)):
        writer.lines.append(
            f"  call void @llvm.masked.store.{suffix}.p0({v} {result}, ptr {places[row]}, i32 {key.bits // 8}, "
            f"{key.mask} {masks[row]})"
        )
    body = "\n".join(writer.lines)
    return f"define internal fastcc void @sort_rows_{rows}(ptr %keys, i64 %n) {{\n{body}\n  ret void\n}}\n"
