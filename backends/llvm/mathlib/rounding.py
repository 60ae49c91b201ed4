"""Exact functions: rounding to integers, sign, copysign, nextafter, fmod.

In: lane values; out: one. Stage: rendering. Method: LLVM's own instruction where there is one. fmod: one
fused multiply-add of the truncated quotient where that quotient fits the mantissa, else long division in
integers (cold).
"""
import llvmlite.ir as ir

from jitcore.backends.llvm.mathlib.emitter import I64, Lanes


def build_floor(e, x):
    return e.intrinsic("floor", x)


def build_ceil(e, x):
    return e.intrinsic("ceil", x)


def build_trunc(e, x):
    return e.intrinsic("trunc", x)


def build_round_half_even(e, x):
    return e.intrinsic("roundeven", x)


def build_round_half_away(e, x):
    return e.intrinsic("round", x)


def build_sign(e, x):
    """-1, 0, 1; both zeros give 0.0 and NaN stays, as in NumPy."""
    return e.select(x == 0.0, 0.0, e.select(e.is_nan(x), x, e.copysign(1.0, x)))


def build_copysign(e, x, y):
    return e.copysign(x, y)


def build_nextafter(e, x, y):
    """The neighbour of x towards y: one step of the integer that its bits are, away from or towards zero."""
    away = (y > x) ^ (x < 0.0)
    stepped = e.to_float(e.to_bits(x) + e.select_int(away, 1, -1))
    from_zero = e.copysign(e.to_float(e.int_const(1)), y)
    result = e.select(x == y, y, e.select(x == 0.0, from_zero, stepped))
    return e.select(e.is_nan(x) | e.is_nan(y), x + y, result)


def build_fmod(e, x, y):
    """C's fmod: x - n y for the truncated quotient n, exact, with the sign of x."""
    magnitude, modulus = e.abs(x), e.abs(y)
    quotient = magnitude / modulus
    rest = e.fma(-e.intrinsic("trunc", quotient), modulus, magnitude)
    # a quotient rounded up to an integer gives a rest below zero, still exact
    rest = e.select(rest < 0.0, rest + modulus, rest)
    rest = e.copysign(e.select(magnitude < modulus, magnitude, rest), x)
    return e.patch(~(quotient < 2.0 ** e.mantissa), rest, build_fmod_far, x, y)


def split_integer(e, x):
    """(m, exponent) as i64 of a finite scalar: |x| = m * 2**(exponent - bias - mantissa), exponent >= 1."""
    b = e.builder
    bits = e.to_bits(x).value if e.bits == 64 else b.zext(e.to_bits(x).value, I64)
    exponent = b.and_(b.lshr(bits, I64(e.mantissa)), I64(2 * e.bias + 1))
    fraction = b.and_(bits, I64((1 << e.mantissa) - 1))
    normal = b.icmp_unsigned("!=", exponent, I64(0))
    mantissa = b.select(normal, b.or_(fraction, I64(1 << e.mantissa)), fraction)
    return mantissa, b.select(normal, exponent, I64(1))


def build_fmod_far(e, x, y):
    """fmod of one pair by long division, 11 (float64) or 40 (float32) bits of the quotient a step."""
    b = e.builder
    valid = (e.abs(x) < e.inf) & (y == y) & (y != 0.0)
    rest, exponent = split_integer(e, x)
    modulus, unit = split_integer(e, e.select(valid, y, 1.0))
    first, distance, start = b.urem(rest, modulus), b.sub(exponent, unit), b.block
    loop, done = b.append_basic_block("loop"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    left, part = b.phi(I64), b.phi(I64)
    left.add_incoming(distance, start)
    part.add_incoming(first, start)
    step = I64(63 - e.mantissa - 1)
    more = b.icmp_signed(">", left, I64(0))
    step = b.select(b.icmp_signed("<", left, step), left, step)
    step = b.select(more, step, I64(0))
    following = b.urem(b.shl(part, step), modulus)
    rest_left = b.sub(left, step)
    left.add_incoming(rest_left, loop)
    part.add_incoming(following, loop)
    b.cbranch(b.icmp_signed(">", rest_left, I64(0)), loop, done)
    b.position_at_end(done)
    whole = Lanes(e, b.uitofp(following, e.type)) * 2.0 ** -e.mantissa
    exponent = unit if e.bits == 64 else b.trunc(unit, ir.IntType(32))
    result = whole * e.to_float(Lanes(e, exponent) << e.mantissa)
    return e.select(valid, e.copysign(result, x), x * e.nan)
