"""Keys of sorting: elements of any real dtype as signed integers of the same order, and back.

In: instructions on the bits of elements. Out: instructions. Stage: rendering of the sorting routines.
Floats: their bits, with those of negative numbers inverted but for the sign, order as integers like the
numbers. NaN is the largest whatever its sign; -0.0 equals 0.0 unless the order is total.
"""

from __future__ import annotations

import ml_dtypes

from jitcore import dtypes
from jitcore.backends.cpu.native.text_writer import TextWriter


def type_of(bits: int, lanes: int) -> str:
    """An integer type, a vector's if there are several lanes."""
    return f"<{lanes} x i{bits}>" if lanes > 1 else f"i{bits}"


def constant(bits: int, lanes: int, value: int) -> str:
    return f"splat (i{bits} {value})" if lanes > 1 else str(value)


def is_any(w: TextWriter, mask: str, lanes: int) -> str:
    """Whether a bool is true in any lane."""
    if lanes == 1:
        return mask
    bits = w.let(f"bitcast <{lanes} x i1> {mask} to i{lanes}")
    return w.let(f"icmp ne i{lanes} {bits}, 0")


class Encoding:
    """How elements of a real dtype become keys, of as few bits as they take or of more.

    Attributes:
        raw_bits: bits of an element in memory.
        bits: bits of a key, 32 or 64.
        is_same: whether elements are their keys.
        is_wider: whether keys have more bits than elements."""

    def __init__(self, dtype, least_bits: int = 32):
        self.is_float = dtypes.is_floating(dtype)
        self.is_signed = self.is_float or dtype.kind == "i"
        self.raw_bits = 8 * dtype.itemsize
        self.bits = max(least_bits, self.raw_bits)
        self.is_wider = self.bits > self.raw_bits
        self.is_same = dtype.kind == "i" and self.raw_bits == self.bits
        if self.is_float:
            info = ml_dtypes.finfo(dtype)
            self.magnitude = (1 << (info.bits - 1)) - 1
            self.infinity = ((1 << info.nexp) - 1) << info.nmant
            self.nan = self.infinity | 1 << (info.nmant - 1)

    def load(self, w: TextWriter, pointer: str, lanes: int) -> str:
        """An element's bits, extended to those of a key."""
        raw = w.load(pointer, type_of(self.raw_bits, lanes), self.raw_bits // 8)
        if self.raw_bits == self.bits:
            return raw
        extend = "sext" if self.is_signed else "zext"
        return w.let(f"{extend} {type_of(self.raw_bits, lanes)} {raw} to {type_of(self.bits, lanes)}")

    def encode(self, w: TextWriter, bits: str, lanes: int, is_total: bool = False) -> str:
        """Keys of elements; is_total: -0.0 comes before 0.0."""
        if not self.is_float:
            return self._shift_unsigned(w, bits, lanes)
        key = self._flip_negative(w, bits, lanes)
        if not is_total:
            is_zero = self._compare(w, "eq", self._magnitude_of(w, bits, lanes), 0, lanes)
            key = self._choose(w, is_zero, constant(self.bits, lanes, 0), key, lanes)
        nan = constant(self.bits, lanes, self.nan)
        return self._choose(w, self._is_nan(w, bits, lanes), nan, key, lanes)

    def decode(self, w: TextWriter, key: str, lanes: int) -> str:
        """Bits of elements, in an element's own width, whose keys in the total order these are."""
        undo = self._flip_negative if self.is_float else self._shift_unsigned
        bits = undo(w, key, lanes)
        if self.raw_bits == self.bits:
            return bits
        return w.let(f"trunc {type_of(self.bits, lanes)} {bits} to {type_of(self.raw_bits, lanes)}")

    def find_lost(self, w: TextWriter, bits: str, lanes: int) -> str:
        """Whether an element loses its bits when it becomes a key: -0.0, or any NaN but one."""
        is_other = self._compare(w, "ne", bits, self.nan, lanes)
        mask = f"<{lanes} x i1>" if lanes > 1 else "i1"
        is_other_nan = w.let(f"and {mask} {self._is_nan(w, bits, lanes)}, {is_other}")
        is_negative_zero = self._compare(w, "eq", bits, -self.magnitude - 1, lanes)
        return w.let(f"or {mask} {is_other_nan}, {is_negative_zero}")

    def _shift_unsigned(self, w: TextWriter, bits: str, lanes: int) -> str:
        if self.is_signed or self.raw_bits < self.bits:
            return bits
        sign = constant(self.bits, lanes, -1 << (self.bits - 1))
        return w.let(f"xor {type_of(self.bits, lanes)} {bits}, {sign}")

    def _flip_negative(self, w: TextWriter, bits: str, lanes: int) -> str:
        kind = type_of(self.bits, lanes)
        sign = w.let(f"ashr {kind} {bits}, {constant(self.bits, lanes, self.bits - 1)}")
        flipped = w.let(f"and {kind} {sign}, {constant(self.bits, lanes, self.magnitude)}")
        return w.let(f"xor {kind} {bits}, {flipped}")

    def _magnitude_of(self, w: TextWriter, bits: str, lanes: int) -> str:
        return w.let(f"and {type_of(self.bits, lanes)} {bits}, {constant(self.bits, lanes, self.magnitude)}")

    def _is_nan(self, w: TextWriter, bits: str, lanes: int) -> str:
        return self._compare(w, "sgt", self._magnitude_of(w, bits, lanes), self.infinity, lanes)

    def _compare(self, w: TextWriter, relation: str, x: str, value: int, lanes: int) -> str:
        return w.let(f"icmp {relation} {type_of(self.bits, lanes)} {x}, {constant(self.bits, lanes, value)}")

    def _choose(self, w: TextWriter, condition: str, x: str, y: str, lanes: int) -> str:
        kind, mask = type_of(self.bits, lanes), f"<{lanes} x i1>" if lanes > 1 else "i1"
        return w.let(f"select {mask} {condition}, {kind} {x}, {kind} {y}")
