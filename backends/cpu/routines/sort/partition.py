"""Partition of keys in place: those below a threshold first.

In: the type of keys. Out: LLVM text of a function. Stage: rendering of the sorting engine (`quicksort`).

The outermost keys are put aside, so that there is room at both ends; then groups of vectors are read from
the end that has less of it, their lows are stored behind the lows on the left, their highs before the highs
on the right. What was put aside comes last. The order of keys on a side is not that before.

Source: the vectorised in-place partition of S. Gueron and V. Krasnov, Fast quicksort implementation using AVX
instructions (2016), and of M. Blacher et al., Vectorized and performance-portable quicksort (2022).
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.sort.keys import KeyType, compress, count_true


def write_split(w: TextWriter, key: KeyType) -> None:
    """`void split(ptr keys, i64 n, KEY threshold, ptr count)`: the keys below the threshold come first;
    `count` says how many they are. There have to be two groups of keys or more."""
    arguments = f"ptr %keys, i64 %n, {key.scalar} %threshold, ptr %count"
    with w.function(f"internal fastcc void @split({arguments})"):
        _Partition(w, key).write()


class _Partition:
    """Writes the body of the function. low, high: where the lows end and the highs begin."""

    def __init__(self, w: TextWriter, key: KeyType):
        self.w, self.key, self.group = w, key, w.tuning.group_vectors * key.lanes
        self.low, self.high, self.left, self.right = (w.let("alloca i64") for _ in range(4))
        self.aside = w.let(f"alloca {key.vector}, i64 {3 * w.tuning.group_vectors}")
        self.thresholds = w.splat("%threshold", key.scalar, key.lanes)

    def write(self) -> None:
        w, group, lanes = self.w, self.group, self.key.lanes
        rest = w.rem(w.sub("%n", 2 * group), group)
        left, right = w.add(rest, group), w.sub("%n", group)
        for k in range(2 * self.w.tuning.group_vectors):  # the rest and more, which the right end overwrites
            self._store(self._load("%keys", k * lanes), self.aside, k * lanes)
        for k in range(self.w.tuning.group_vectors):
            vector = self._load("%keys", w.add(right, k * lanes))
            self._store(vector, self.aside, w.add(left, k * lanes))
        for slot, start in ((self.low, 0), (self.high, "%n"), (self.left, left), (self.right, right)):
            w.store(start, slot)
        self._write_groups()
        count = w.add(left, group)
        with w.loop(0, count, lanes) as i:
            self._put(self._load(self.aside, i), w.first_lanes(w.sub(count, i), lanes))
        w.store(w.load(self.low), "%count")

    def _write_groups(self) -> None:
        """Which end is read is a branch: chosen addresses would wait for the vectors before."""
        w, lanes = self.w, self.key.lanes
        head, choose, at_left, at_right, done = map(w.label, ("head", "choose", "left", "right", "done"))
        w.do(f"br label %{head}")
        w.start_block(head)
        left, right = w.load(self.left), w.load(self.right)
        w.do(f"br i1 {w.compare('slt', left, right)}, label %{choose}, label %{done}")
        w.start_block(choose)
        room = w.sub(left, w.load(self.low)), w.sub(w.load(self.high), right)
        w.do(f"br i1 {w.compare('sle', *room)}, label %{at_left}, label %{at_right}")
        w.start_block(at_left)
        with w.loop(0, self.group, lanes) as i:
            self._put(self._load("%keys", w.add(left, i)))
        w.store(w.add(left, self.group), self.left)
        w.do(f"br label %{head}")
        w.start_block(at_right)
        with w.loop(0, self.group, lanes) as i:
            self._put(self._load("%keys", w.sub(w.sub(right, lanes), i)))
        w.store(w.sub(right, self.group), self.right)
        w.do(f"br label %{head}")
        w.start_block(done)

    def _put(self, vector: str, places: str | None = None) -> None:
        """Stores the keys of a vector on their sides; places: a mask of those that there are. Behind the
        lows there is room for a whole vector, unless it is one of the last."""
        w, key = self.w, self.key
        is_low = w.let(f"icmp slt {key.vector} {vector}, {self.thresholds}")
        is_high = w.let(f"xor {key.mask} {is_low}, splat (i1 true)")
        if places is not None:
            is_low, is_high = (w.let(f"and {key.mask} {side}, {places}") for side in (is_low, is_high))
        lows = count_true(w, key, is_low)
        highs = w.sub(key.lanes, lows) if places is None else count_true(w, key, is_high)
        low, high = w.load(self.low), w.sub(w.load(self.high), highs)
        mask = None if places is None else self._mask_first(lows)
        self._store(compress(w, key, vector, is_low), "%keys", low, mask)
        self._store(compress(w, key, vector, is_high), "%keys", high, self._mask_first(highs))
        w.store(w.add(low, lows), self.low)
        w.store(high, self.high)

    # -- vectors ------------------------------------------------------------------------------------------
    def _load(self, pointer: str, index: str | int) -> str:
        size = self.key.bits // 8
        return self.w.load(self.w.at(pointer, self.w.mul(index, size)), self.key.vector, size)

    def _store(self, vector: str, pointer: str, index: str | int, mask: str | None = None) -> None:
        w, key, size = self.w, self.key, self.key.bits // 8
        address = w.at(pointer, w.mul(index, size))
        if mask is None:
            w.store(vector, address, key.vector, size)
        else:
            w.store_masked(vector, address, key.vector, mask)

    def _mask_first(self, count: str) -> str:
        w, lanes = self.w, self.key.lanes
        bits = w.let(f"lshr i64 {(1 << lanes) - 1}, {w.sub(lanes, count)}")
        return w.let(f"bitcast i{lanes} {w.let(f'trunc i64 {bits} to i{lanes}')} to {self.key.mask}")
