"""pow, cbrt, hypot: lane values in, one out. Stage: rendering.

Method: pow = exp(y log|x|) with the logarithm in twice the precision: float32 uses float64 lanes, float64
a sum of two floats; signs and C99's special values by selects. With AVX-512 the tables of `logarithmic` and
one of sixteenths of powers of two keep the polynomials short; zero and infinity take care of themselves.
cbrt: Halley's iteration on M**(-1/3), no division, then one correction of the root with the residual's
rounding error; with AVX-512 roots from tables and a short polynomial. hypot: exact scaling by a
power of two, then one fused square.
"""
from jitcore.backends.llvm.mathlib import avx512
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import add_words, fast_two_sum, multiply_words, two_product
from jitcore.backends.llvm.mathlib.emitter import LN2, LOG2_E, Constant
from jitcore.backends.llvm.mathlib.exponential import clamp_exponent, scale, split_exp
from jitcore.backends.llvm.mathlib.logarithmic import find_entry, find_place, split_normal, split_positive
from jitcore.backends.llvm.mathlib.tables import CUBE_ROOTS, FOLDED_ROOTS, LOGARITHMS, ROOT_RESTS, ROOTS

TWO_THIRDS = Constant("2/3")


def power_single(e, magnitude, y):
    """magnitude**y for positive finite float32: log2 to 37 and exp2 to 28 bits in float64, rounded once."""
    base = e.widen(magnitude)
    wide = base.emitter
    k, f = split_normal(wide, base)
    ratio = f / (f + 2.0)
    log2 = wide.fma(ratio, wide.poly(ratio * ratio, COEFFICIENTS["log2_ratio", 64]), wide.convert_int(k))
    power = e.widen(y) * log2
    power = wide.at_most(wide.at_least(power, -151.0), 129.0)
    shifted = power + (wide.magic + wide.bias)
    r = power - (shifted - (wide.magic + wide.bias))
    scale = wide.to_float(wide.to_bits(shifted) << wide.mantissa)
    return e.narrow(wide.poly(r, COEFFICIENTS["exp2_single", 64]) * scale)


def split_log(e, x):
    """(high, low): log(x) of positive finite float64 to 2**-64 of its size."""
    k, f, *_ = split_positive(e, x)
    denominator, denominator_low = fast_two_sum(e.const(2.0), f)
    inverse = 1.0 / denominator
    s = f * inverse
    s_low = (e.fma(-s, denominator, f) - s * denominator_low) * inverse
    s, s_low = fast_two_sum(s, s_low)
    square, square_low = multiply_words(e, s, s_low, s, s_low)
    major, minor = TWO_THIRDS.split(64, 2)
    slope = square * e.poly(square, COEFFICIENTS["log_ratio_rest", 64])
    factor, factor_low = fast_two_sum(e.const(major), slope)
    cube = multiply_words(e, s, s_low, square, square_low)
    rest = multiply_words(e, *cube, factor, factor_low + minor)
    log = add_words(s + s, s_low + s_low, *rest)
    # k times the first 41 bits of ln2 is exact
    head = float(int(LN2.value * 2.0**41)) / 2.0**41
    return add_words(k * head, k * float(LN2.exact - Constant(head).exact), *log)


def look_up_power_single(e, magnitude, y):
    """magnitude**y for float32 >= 0 by tables, rounded once from float64. AVX-512."""
    m = avx512.get_significand(e, magnitude, avx512.AROUND_ONE)
    k = avx512.get_exponent(e, magnitude) - avx512.get_exponent(e, m)
    m, k, y = e.widen(m), e.widen(k), e.widen(y)
    wide, table = m.emitter, LOGARITHMS["log2", 64]
    place = find_place(wide, m, table)
    f = wide.fma(m, avx512.lookup(wide, table.inverses, place), -1.0)
    start = k + avx512.lookup(wide, table.logs, place)
    log2 = wide.fma(f, wide.poly(f, COEFFICIENTS["log2_near_single", 64]), start)
    power = y * log2
    power = wide.at_most(wide.at_least(power, -151.0), 129.0)
    # the low bits are those of the power in sixteenths
    shifted = power + wide.magic / 16.0
    r, bits = power - (shifted - wide.magic / 16.0), wide.to_bits(shifted)
    factor = wide.to_float(wide.to_bits(avx512.lookup(wide, FOLDED_ROOTS, bits)) + (bits << 48))
    return e.narrow(wide.poly(r, COEFFICIENTS["exp2_near_single", 64]) * factor)


def look_up_log_words(e, x):
    """(high, low): log(x) of float64 >= 0 to 2**-64 of its size; infinite at zero and inf. AVX-512."""
    k, m, inverse, start = find_entry(e, x)
    upper, lower = LOGARITHMS["log", 64].unit
    # f + f_low = m * inverse - 1, exactly
    product = m * inverse
    f, f_low = product - 1.0, e.fma(m, inverse, -product)
    half = f * -0.5
    square = f * half
    total, rest = fast_two_sum(e.fma(k, upper, start), f)
    total, square_rest = fast_two_sum(total, square)
    small = (rest + square_rest) + e.fma(f, half, -square)
    # f_low / (1 + f)
    small = e.fma(k, lower, small + e.fma(-f, e.fma(-f, f_low, f_low), f_low))
    slope = e.poly(f, [-2.0 * c for c in COEFFICIENTS["log_near_rest", 64]])
    finite = e.abs(k) < e.inf
    small = e.select(finite, e.fma(f * square, slope, small), 0.0)
    high = total + small
    return high, e.select(finite, small - (high - total), 0.0)


def raise_log(e, high, low, y):
    """exp(y * (high + low)) for float64, given the logarithm of a number as two floats."""
    if not e.has_avx512:
        y = e.at_most(e.at_least(y, -2.0**66), 2.0**66)
    power, rest = two_product(e, y, high)
    clamped = clamp_exponent(e, power)
    rest = e.select(clamped == power, e.fma(y, low, rest), 0.0)
    if not e.has_avx512:
        rise, factor = split_exp(e, clamped, rest)
        return scale(e, rise + 1.0, factor)
    # power = n ln2 / 16 + r
    major, minor = LN2.split(64, 2)
    shifted = e.fma(clamped, LOG2_E.value * 16.0, e.magic)
    n, bits = shifted - e.magic, e.to_bits(shifted)
    r = e.fma(n, minor * -0.0625, e.fma(n, major * -0.0625, clamped)) + rest
    rise = e.fma(r * r, e.poly(r, COEFFICIENTS["exp_near", 64]), r)
    root = avx512.lookup(e, ROOTS, bits)
    return avx512.scale(e, root + e.fma(root, rise, avx512.lookup(e, ROOT_RESTS, bits)), n * 0.0625)


def power_double(e, magnitude, y):
    """magnitude**y for positive finite float64; with AVX-512 for zero and inf too, by tables."""
    return raise_log(e, *(look_up_log_words if e.has_avx512 else split_log)(e, magnitude), y)


def evaluate_power(e, magnitude, y):
    """magnitude**y for magnitude >= 0, but for y = 0 and magnitude = 1."""
    if e.has_avx512:
        return (look_up_power_single if e.bits == 32 else power_double)(e, magnitude, y)
    zero, infinite = magnitude == 0.0, magnitude == e.inf
    result = (power_single if e.bits == 32 else power_double)(e, magnitude, y)
    grows = zero ^ (y > 0.0)
    result = e.select((zero | infinite) & (y == y), e.select(grows, e.inf, 0.0), result)
    return e.select(e.is_nan(magnitude), magnitude, result)


def build_pow(e, x, y):
    magnitude = e.abs(x)
    result = evaluate_power(e, magnitude, y)
    result = e.select((y == 0.0) | (magnitude == 1.0), 1.0, result)
    half = y * 0.5
    whole = e.intrinsic("trunc", y) == y
    odd = whole & (e.intrinsic("trunc", half) != half)
    result = e.xor_sign(result, e.select_int(odd, e.sign_bits(x), 0))
    return e.select((x < 0.0) & ~whole & (magnitude < e.inf), e.nan, result)


def split_cube(e, magnitude):
    """(m, scale): magnitude = m * scale**3 with m in [1, 8), scale a power of two."""
    shift = e.pick(24, 54)
    tiny = magnitude < e.smallest_normal
    bits = e.to_bits(e.select(tiny, magnitude * 2.0 ** shift, magnitude))
    # made divisible by three, the bias divides into quotients with the exponent
    padding = -e.bias % 3
    exponent = (bits >> e.mantissa) + padding
    third = (exponent * 21846) >> 16
    remainder = exponent - third * 3
    m = e.to_float((bits & ((1 << e.mantissa) - 1)) | ((remainder + e.bias) << e.mantissa))
    offset = e.bias - (e.bias + padding) // 3
    offset = e.select_int(tiny, offset - shift // 3, offset)
    return m, e.to_float((third + offset) << e.mantissa)


def look_up_cbrt(e, x):
    """2**q times cbrt(m) times cbrt(2**i), x = 2**(3 q + i) m, by tables. AVX-512."""
    table = CUBE_ROOTS[e.bits]
    m, k = avx512.get_significand(e, x, sign=avx512.WITHOUT_SIGN), avx512.get_exponent(e, x)
    q = e.fma(k, 1.0 / 3.0, e.magic) - e.magic
    i = e.to_bits(e.fma(q, -3.0, k) + e.magic)
    j = e.logical_shift(e.to_bits(m), e.mantissa - e.pick(5, 4))
    d = e.fma(m, avx512.lookup(e, table.inverses, j), -1.0)
    # this product is exact
    root = avx512.lookup(e, table.roots, j) * avx512.lookup(e, table.factors, i)
    rise, rest = d * e.poly(d, COEFFICIENTS["cbrt_near", e.bits]), avx512.lookup(e, table.rests, i)
    rise = rise + e.fma(rise, rest, rest)
    return e.copysign(avx512.scale(e, e.fma(root, rise, root), q), x)


def build_cbrt(e, x):
    if e.has_avx512:
        return look_up_cbrt(e, x)
    magnitude = e.abs(x)
    m, scale = split_cube(e, magnitude)
    inverse = e.poly(m, COEFFICIENTS["inverse_cbrt", 32])
    for _ in range(e.pick(1, 2)):
        h = e.fma(-(m * inverse), inverse * inverse, 1.0)
        inverse = e.fma(inverse * h, e.fma(h, 2.0 / 9.0, 1.0 / 3.0), inverse)
    square = inverse * inverse
    root = m * square
    product, product_low = two_product(e, root, root)
    residual = e.fma(product, root, -m) + product_low * root
    root = e.fma(residual, square * (-1.0 / 3.0), root)
    result = e.copysign(root * scale, x)
    return e.select((x == 0.0) | ~(magnitude < e.inf), x, result)


def build_hypot(e, x, y):
    """inf where either is infinite, even beside NaN."""
    x, y = e.abs(x), e.abs(y)
    largest = e.select(x > y, x, y)
    exponent = e.to_bits(largest) & (((1 << (e.bits - 1 - e.mantissa)) - 1) << e.mantissa)
    exponent = e.intrinsic("smax", exponent, e.int_const(1 << e.mantissa))
    exponent = e.intrinsic("smin", exponent, e.int_const((2 * e.bias - 1) << e.mantissa))
    shrink = e.to_float(e.int_const(2 * e.bias << e.mantissa) - exponent)
    a, b = x * shrink, y * shrink
    result = e.sqrt(e.fma(a, a, b * b)) * e.to_float(exponent)
    return e.select((x == e.inf) | (y == e.inf), e.inf, result)
