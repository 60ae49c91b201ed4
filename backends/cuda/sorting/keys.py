"""Keys of sorting: integers that order as elements do.

In: the bits of an element. Out: its key, or a digit of it.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.gpu.tuning import Tuning
from jitcore.backends.llvm.registers import I32, I64

#: Bits of a digit.
DIGIT = 8


class Encoding:
    """How elements become keys. is_top: the largest come first, and -0.0 is below 0.0. limit: what the
    elements are at most, where that is known and none is negative."""

    def __init__(self, dtype: np.dtype, tuning: Tuning, is_top: bool = False, limit: int | None = None):
        self.tuning = tuning
        self.is_float, self.is_top = dtypes.is_floating(dtype), is_top
        self.is_signed = self.is_float or dtype.kind == "i"
        self.raw_bits = 8 * dtype.itemsize
        self.bits = max(32, self.raw_bits)
        self.digits = -(-(self.raw_bits if limit is None else max(limit.bit_length(), 1)) // DIGIT)
        #: Those of one thread, where they are sorted by digits.
        self.items = min(tuning.most_digit_items, 8 * tuning.digit_item_bytes // self.raw_bits)
        self.tile = tuning.digit_block * self.items
        if self.is_float:
            info = ml_dtypes.finfo(dtype)
            self.magnitude = (1 << (info.bits - 1)) - 1
            self.infinity = ((1 << info.nexp) - 1) << info.nmant
            self.nan = self.infinity | 1 << (info.nmant - 1)

    def encode(self, b: ir.IRBuilder, raw: ir.Value, bits: int) -> ir.Value:
        """A signed key of so many bits."""
        kind = ir.IntType(bits)
        if self.raw_bits < bits:
            raw = (b.sext if self.is_signed else b.zext)(raw, kind)
        key = raw
        if self.is_float:
            sign = b.and_(b.ashr(raw, kind(bits - 1)), kind(self.magnitude))
            size = b.and_(raw, kind(self.magnitude))
            key = b.xor(raw, sign)
            if not self.is_top:
                key = b.select(b.icmp_signed("==", size, kind(0)), kind(0), key)
            key = b.select(b.icmp_signed(">", size, kind(self.infinity)), kind(self.nan), key)
        elif not self.is_signed and self.raw_bits == bits:
            key = b.xor(raw, kind(-1 << (bits - 1)))
        return b.not_(key) if self.is_top else key

    def find_digit(self, b: ir.IRBuilder, raw: ir.Value, shift: ir.Value) -> ir.Value:
        """The digit from bit `shift` of the key on, as an i32."""
        kind = raw.type
        key = b.xor(self.encode(b, raw, self.raw_bits), kind(-1 << (self.raw_bits - 1)))
        key = b.lshr(key, shift if kind == I64 else b.trunc(shift, kind))
        key = key if kind == I32 else (b.trunc if self.raw_bits > 32 else b.zext)(key, I32)
        return b.and_(key, I32((1 << DIGIT) - 1))
