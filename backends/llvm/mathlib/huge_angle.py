"""sin, cos, tan of scalar arguments of any size: the cold path of `trigonometric`. Stage: rendering.

In: one float or double. Out: the value, inf and NaN giving NaN. Method (Payne and Hanek 1983): the
mantissa times those 192 bits of 2/pi that decide the angle modulo four quarter turns, in integers;
float32 goes through double.
"""
import llvmlite.ir as ir

from jitcore.backends.llvm.mathlib.angle import choose_cos, choose_sin, choose_tan
from jitcore.backends.llvm.mathlib.double_word import fast_two_sum, multiply_words
from jitcore.backends.llvm.mathlib.emitter import HALF_PI, I64, Lanes

I128 = ir.IntType(128)
TABLE_WORDS = 20
# floor(2/pi * 2**1216): the words of the table after its first, which is zero
TWO_OVER_PI_BITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA"
    "09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B"
    "1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F7"
    "8A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB", 16)


def make_table(module):
    """The global array of 64-bit words of 2/pi, most significant first, after one word of zeros."""
    table = module.globals.get("jitcore.two_over_pi")
    if table is None:
        words = [(TWO_OVER_PI_BITS >> (64 * (TABLE_WORDS - 1 - i))) & (2**64 - 1) for i in range(TABLE_WORDS)]
        kind = ir.ArrayType(I64, TABLE_WORDS)
        table = ir.GlobalVariable(module, kind, "jitcore.two_over_pi")
        table.linkage, table.global_constant, table.initializer = "internal", True, ir.Constant(kind, words)
    return table


def load_window(e, bit):
    """Three 64-bit words of the table from bit number `bit` on."""
    b = e.builder
    table, word = make_table(b.module), b.lshr(bit, I64(6))
    words = [b.load(b.gep(table, [I64(0), b.add(word, I64(i))], inbounds=True)) for i in range(4)]
    shift = Lanes(e, b.and_(bit, I64(63)))
    words = [Lanes(e, word) for word in words]
    return [e.intrinsic("fshl", high, low, shift).value for high, low in zip(words, words[1:])]


def reduce_huge(e, magnitude):
    """(quadrant, r, low): magnitude = quadrant * pi/2 + r + low modulo 2 pi, |r| <= pi/4; double, at
    least 2**-8."""
    b = e.builder
    bits = e.to_bits(magnitude).value
    mantissa = b.zext(b.or_(b.and_(bits, I64(2**52 - 1)), I64(2**52)), I128)
    # the unit of the mantissa is 2**(exponent - 1075); bits of 2/pi worth whole turns are skipped
    window = load_window(e, b.sub(b.lshr(bits, I64(52)), I64(1075 - 62)))
    first, second, third = (b.zext(word, I128) for word in window)
    turn = b.add(b.shl(b.mul(mantissa, first), I128(64)), b.mul(mantissa, second))
    turn = b.add(turn, b.lshr(b.mul(mantissa, third), I128(64)))
    quadrant = b.lshr(b.add(turn, I128(1 << 125)), I128(126))
    rest = b.sub(turn, b.shl(quadrant, I128(126)))
    negative = b.icmp_signed("<", rest, I128(0))
    rest = b.select(negative, b.neg(rest), rest)
    # chunks of 42, 43 and 43 bits become doubles without rounding
    chunks = []
    for start, width, unit in ((0, 43, 2.0 ** -126), (43, 43, 2.0 ** -83), (86, 42, 2.0 ** -40)):
        chunk = b.and_(b.trunc(b.lshr(rest, I128(start)), I64), I64(2**width - 1))
        chunks.append(e.convert_int(Lanes(e, chunk)) * unit)
    small, middle, large = chunks
    high, low = fast_two_sum(large, middle)
    high, low = fast_two_sum(high, low + small)
    sign = e.select(Lanes(e, negative), -1.0, 1.0)
    angle = multiply_words(e, high * sign, low * sign, *map(e.const, HALF_PI.split(64, 2)))
    return Lanes(e, b.trunc(quadrant, I64)), *fast_two_sum(*angle)


def evaluate_huge(e, x, choose):
    """choose(emitter, quadrant, r, low, x) on the reduced angle of |x|; inf and NaN give NaN."""
    if e.bits == 32:
        wide = e.widen(x)
        return e.narrow(evaluate_huge(wide.emitter, wide, choose))
    finite = e.abs(x) < e.inf
    magnitude = e.abs(e.select(finite, x, 1.0))
    return e.select(finite, choose(e, *reduce_huge(e, magnitude), x), e.nan)


def build_sin_huge(e, x):
    return evaluate_huge(e, x, choose_sin)


def build_cos_huge(e, x):
    return evaluate_huge(e, x, choose_cos)


def build_tan_huge(e, x):
    return evaluate_huge(e, x, choose_tan)
