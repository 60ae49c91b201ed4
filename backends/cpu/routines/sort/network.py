"""Sorting networks: code that sorts a few vectors of keys in registers.

In: the type of keys and how many vectors. Out: LLVM text of a function that sorts up to that many vectors'
worth of keys in memory. Stage: rendering of the sorting engine (`quicksort`).

The vectors are the rows of a matrix. Its columns are sorted first, by a network whose comparators work on
whole vectors; then neighbouring groups of columns are merged, 1 + 1, 2 + 2, ... until the matrix is sorted
row by row. A group of `width` columns holds its elements in row order. Merging two of them is bitonic: the
elements of the second group in reverse lie in the opposite row, in lanes reversed over both groups, so that
every step of the merge is a comparator of one row with the reversed lanes of another, until rows remain,
which end with comparators within the vector.

Source: K. E. Batcher, Sorting networks and their applications (1968); M. Blacher et al., Vectorized and
performance-portable quicksort (2022), for the merging of columns.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.sort.keys import KeyType

# What one instruction makes of three bits: whether one of them is set or all are.
_EXCLUSIVE_OR = 0b10010110


class Network:
    """Writes the instructions that sort vectors of keys."""

    def __init__(self, w: TextWriter, key: KeyType):
        self.w, self.key = w, key

    def shuffle(self, vector: str, order: list[int]) -> str:
        return self.w.pick(self.key.vector, vector, "poison", order)

    def order(self, x: str, y: str) -> list[str]:
        """The smaller and the larger keys, lane by lane. Processors make more exclusive ors than maxima at a
        time: the larger key is what the smaller one is not."""
        w, v = self.w, self.key.vector
        small = w.intrinsic("smin", v, x, y)
        if not self.key.has_ternary_logic:
            return [small, w.intrinsic("smax", v, x, y)]
        name = f"llvm.x86.avx512.pternlog.{'d' if self.key.bits == 32 else 'q'}.512"
        return [small, w.call(name, x, y, small, _EXCLUSIVE_OR, type=f"{v} ({v}, {v}, {v}, i32)")]

    def order_within(self, x: str, partners: list[int]) -> str:
        """Each lane ordered with its partner: the one of the lower number keeps the smaller key."""
        choice = (lane + self.key.lanes * (partner < lane) for lane, partner in enumerate(partners))
        return self.w.pick(self.key.vector, *self.order(x, self.shuffle(x, partners)), choice)

    def sort_rows(self, rows: list[str]) -> list[str]:
        """The rows of a sorted matrix; a power of two of them."""
        rows = list(rows)
        for low, high in list_comparators(len(rows)):
            rows[low], rows[high] = self.order(rows[low], rows[high])
        width = 2
        while width <= self.key.lanes:
            rows = self._merge_columns(rows, width)
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


def write_sort_rows(w: TextWriter, key: KeyType, rows: int) -> None:
    """`void sort_rows_<rows>(ptr keys, i64 n)`: sorts up to rows * lanes keys in place."""
    network = Network(w, key)
    v = key.vector
    with w.function(f"internal fastcc void @sort_rows_{rows}(ptr %keys, i64 %n)"):
        count = w.let(f"trunc i64 %n to {key.scalar}") if key.bits < 64 else "%n"
        counts = w.splat(count, key.scalar, key.lanes)
        places = [w.at("%keys", row * key.lanes * key.bits // 8) for row in range(rows)]
        masks = [w.let(f"icmp slt {v} {key.lane_numbers(row * key.lanes)}, {counts}") for row in range(rows)]
        beyond = f"splat ({key.scalar} {key.largest})"
        loaded = [w.load_masked(place, v, mask, beyond) for place, mask in zip(places, masks)]
        for row, place, mask in zip(network.sort_rows(loaded), places, masks):
            w.store_masked(row, place, v, mask)
