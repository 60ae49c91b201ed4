"""Conversions from and to narrow dtypes, which are bytes to every backend: their bits in 32-bit arithmetic.

In: an expression of a narrow dtype or of any other, and the dtype it is to have. Out: an expression of
`bitcast`s, shifts and comparisons. Floats are rounded once, from float32, to nearest and halves to even; what
is too large is infinite, NaN or the largest number, as ml_dtypes does it and `lax.elementwise.convert_dtype`
on ndarrays.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from jitcore import dtypes
from jitcore.dtypes import bool_, float32, int8, int32, uint8, uint32

_INFINITY, _MANTISSA = 0x7F800000, 23  # of float32: the bits of the one, the number of those of the other


class _Words:
    """Arithmetic of 32-bit words in a graph; numbers are constants."""

    def __init__(self, graph):
        self.graph = graph

    def op(self, name: str, x, y, dtype=None):
        y = self.graph.const(y, x.dtype) if isinstance(y, (int, float)) else y
        return self.graph.op(name, x, y, dtype=dtype or x.dtype)

    def select(self, condition, x, y):
        x, y = (self.graph.const(one, uint32) if isinstance(one, int) else one for one in (x, y))
        return self.graph.op("select", condition, x, y, dtype=uint32)

    def test(self, name: str, x, y):
        return self.op(name, x, y, bool_)

    def bits(self, x, dtype):
        return self.graph.op("bitcast", x, dtype=dtype)

    def clip(self, x, info):
        return self.op("min", self.op("max", x, int(info.min)), int(info.max))


class _Format:
    """How a float is laid out. bias: of exponents. sign: the bit. most: the bits of the largest number.
    above: those of larger ones. nan: those of NaN."""

    def __init__(self, dtype: np.dtype):
        info, name = ml_dtypes.finfo(dtype), dtype.name
        self.bits, self.mantissa, self.bias = info.bits, info.nmant, 1 - int(info.minexp)
        self.sign = 1 << info.bits - 1
        self.most = int(np.asarray(info.max, dtype).view(np.uint8))
        self.has_signed_zero = not name.endswith("fnuz")
        self.is_finite = info.bits < 8
        self.has_infinity = not self.is_finite and not name.endswith(("fn", "fnuz"))
        if self.is_finite:
            self.above, self.nan = self.most, self.sign
        elif not self.has_signed_zero:
            self.above = self.nan = self.sign
        else:
            self.above = self.most + 1
            self.nan = self.above | self.has_infinity << self.mantissa - 1


def convert_narrow(graph, x, dtype: np.dtype):
    """x, of a narrow dtype or to have one, with this dtype."""
    words = _Words(graph)
    if not dtypes.is_narrow(x.dtype):
        return words.bits(_narrow(words, x, dtype), dtype)
    word = graph.convert(words.bits(x, uint8), uint32)
    if dtypes.is_narrow_float(x.dtype):
        read = _read_exponent if x.dtype.name == "float8_e8m0fnu" else _read_float
        wide = words.bits(read(words, word, x.dtype), float32)
    else:
        wide = _read_integer(words, word, x.dtype)
    return graph.convert(wide, dtype)


def _narrow(words: _Words, x, dtype: np.dtype):
    """The byte of a number."""
    convert = words.graph.convert
    if dtypes.is_narrow_float(dtype):
        bits = words.bits(convert(x, float32), uint32)
        write = _write_exponent if dtype.name == "float8_e8m0fnu" else _write_float
        return convert(write(words, bits, dtype), uint8)
    if dtypes.kind_of(x.dtype) in "fc":
        x = words.clip(convert(x, int32), ml_dtypes.iinfo(dtype))
    return words.op("and", words.bits(convert(x, int8), uint8), (1 << ml_dtypes.iinfo(dtype).bits) - 1)


def _read_integer(words: _Words, word, dtype: np.dtype):
    info = ml_dtypes.iinfo(dtype)
    high = words.op("shift_left", word, 32 - info.bits)
    if info.min < 0:
        return words.op("shift_right_arithmetic", words.bits(high, int32), 32 - info.bits)
    return words.op("shift_right_logical", high, 32 - info.bits)


def _read_float(words: _Words, word, dtype: np.dtype):
    """Exponent and mantissa where float32 has them are the number but for the bias: a factor."""
    form = _Format(dtype)
    size = words.op("and", word, form.sign - 1)
    near = words.bits(words.op("shift_left", size, _MANTISSA - form.mantissa), float32)
    bits = words.bits(words.op("mul", near, 2.0 ** (127 - form.bias)), uint32)
    if form.has_infinity:
        bits = words.select(words.test("gt", size, form.most), _INFINITY, bits)
    if not form.is_finite and form.has_signed_zero:
        bits = words.select(words.test("gt", size, form.most + form.has_infinity), 0x7FC00000, bits)
    sign = words.op("shift_left", words.op("and", word, form.sign), 32 - form.bits)
    bits = words.op("or", bits, sign)
    return bits if form.has_signed_zero else words.select(words.test("eq", word, form.sign), 0xFFC00000, bits)


def _write_float(words: _Words, bits, dtype: np.dtype):
    form = _Format(dtype)
    size = words.op("and", bits, 0x7FFFFFFF)
    # Below the least normal number: a sum is rounded to the last bit of the other term, the least number.
    counter = np.float32(2.0 ** (1 - form.bias - form.mantissa + _MANTISSA))
    counted = words.bits(words.op("add", words.bits(size, float32), float(counter)), uint32)
    small = words.op("sub", counted, int(counter.view(np.uint32)))
    dropped = _MANTISSA - form.mantissa
    moved = words.op("sub", size, 127 - form.bias << _MANTISSA)
    odd = words.op("and", words.op("shift_right_logical", moved, dropped), 1)
    half = words.op("add", moved, (1 << dropped - 1) - 1)
    large = words.op("shift_right_logical", words.op("add", half, odd), dropped)
    code = words.select(words.test("lt", size, 128 - form.bias << _MANTISSA), small, large)
    code = words.select(words.test("gt", code, form.most), form.above, code)
    code = words.select(words.test("gt", size, _INFINITY), form.nan, code)
    sign = words.op("and", words.op("shift_right_logical", bits, 32 - form.bits), form.sign)
    if form.has_signed_zero:
        return words.op("xor", code, sign)
    signed = words.op("or", code, sign)
    return words.select(words.test("eq", code, 0), 0, signed)


def _read_exponent(words: _Words, word, dtype: np.dtype):
    """A power of two: the exponent of float32; the least one is half of the least normal number."""
    bits = words.op("shift_left", word, _MANTISSA)
    bits = words.select(words.test("eq", word, 0), 1 << _MANTISSA - 1, bits)
    return words.select(words.test("eq", word, 255), 0x7FC00000, bits)


def _write_exponent(words: _Words, bits, dtype: np.dtype):
    """The nearest power of two, the larger one of two; NaN for what has none."""
    rounded = words.op("shift_right_logical", words.op("add", bits, 1 << _MANTISSA - 1), _MANTISSA)
    code = words.select(words.test("gt", rounded, 254), 255, rounded)
    code = words.select(words.test("eq", bits, 1 << _MANTISSA - 1), 0, code)
    is_none = words.graph.op("or", words.test("ge", bits, _INFINITY), words.test("eq", bits, 0), dtype=bool_)
    return words.select(is_none, 255, code)
