"""Sums of two floats ("double words"): in, floats; out, a rounded result and its exact or nearly exact
rounding error.

Stage: rendering. Source: Dekker 1971, Knuth 1969 for the sums; products and quotients use fused
multiply-add.
"""
from jitcore.backends.llvm.mathlib.avx512 import approximate_inverse


def fast_two_sum(a, b):
    """(s, t): s + t = a + b exactly, for |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def two_sum(a, b):
    """(s, t): s + t = a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(e, a, b):
    """(p, q): p + q = a * b exactly where nothing underflows."""
    product = a * b
    return product, e.fma(a, b, -product)


def multiply_words(e, a, a_low, b, b_low):
    """(p, q): p + q = (a + a_low) * (b + b_low) to about twice the precision; |q| may be a few units of p."""
    product, rest = two_product(e, a, b)
    return (product, e.fma(a, b_low, e.fma(a_low, b, rest)))


def add_words(a, a_low, b, b_low):
    """(s, t) = (a + a_low) + (b + b_low) to about twice the precision, for |a| >= |b|."""
    total, rest = fast_two_sum(a, b)
    return fast_two_sum(total, rest + (a_low + b_low))


def half_inverse(e, x):
    """1 / x to more than half the precision, for x whose inverse is a normal number.

    Of float32 an approximation takes a fourth of a division's time; that of float64 would need a step of
    Newton's method."""
    return approximate_inverse(e, x) if e.bits == 32 and e.has_avx512 else 1.0 / x


def split_quotient(e, a, a_low, b, b_low):
    """(q, r): q + r = (a + a_low) / (b + b_low) to one and a half times the precision."""
    inverse = half_inverse(e, b)
    quotient = a * inverse
    rest = e.fma(-quotient, b, a) + e.fma(-quotient, b_low, a_low)
    return quotient, rest * inverse


def divide_words(e, a, a_low, b, b_low):
    """(a + a_low) / (b + b_low), rounded once but for a small fraction of a unit."""
    quotient, rest = split_quotient(e, a, a_low, b, b_low)
    return quotient + rest


def divide_by_sum(e, a, b, b_low):
    """a / (b + b_low) for b in [1, 2]; a line stands for 1 / b in the correction, where crude will do."""
    quotient = a / b
    return e.fma(-quotient, b_low * e.fma(b, -0.5, 1.5), quotient)
