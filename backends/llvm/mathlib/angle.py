"""The part of sin, cos and tan that is common to all sizes of argument: the reduced angle in, the
function out.

Stage: rendering. With |x| = quadrant * pi/2 + r + low, |r| <= pi/4, sine and cosine are kept as a head
and a small rest, sin = r + rest, cos = 1 + rest; the quadrant picks between them and gives the sign.
"""
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import divide_words, fast_two_sum


def evaluate_rests(e, r, low):
    """(sin(r + low) - r, cos(r + low) - 1)."""
    square = r * r
    sine = e.fma(square * r, e.poly(square, COEFFICIENTS["sin_eighth", e.bits]), low)
    cosine = e.fma(square, e.poly(square, (-0.5,) + COEFFICIENTS["cos_eighth", e.bits]), -(r * low))
    return sine, cosine


def choose_sin(e, quadrant, r, low, x):
    sine, cosine = evaluate_rests(e, r, low)
    odd = (quadrant & 1) != 0
    result = e.select(odd, 1.0, r) + e.select(odd, cosine, sine)
    return e.xor_sign(result, ((quadrant & 2) << (e.bits - 2)) ^ e.sign_bits(x))


def choose_cos(e, quadrant, r, low, x):
    sine, cosine = evaluate_rests(e, r, low)
    odd = (quadrant & 1) != 0
    result = e.select(odd, r, 1.0) + e.select(odd, sine, cosine)
    return e.xor_sign(result, ((quadrant + 1) & 2) << (e.bits - 2))


def choose_tan(e, quadrant, r, low, x):
    sine, cosine = evaluate_rests(e, r, low)
    odd = (quadrant & 1) != 0
    upper = fast_two_sum(e.select(odd, 1.0, r), e.select(odd, cosine, sine))
    lower = fast_two_sum(e.select(odd, r, 1.0), e.select(odd, sine, cosine))
    return e.xor_sign(divide_words(e, *upper, *lower), (quadrant << (e.bits - 1)) ^ e.sign_bits(x))
