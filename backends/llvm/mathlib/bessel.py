"""bessel_i0e, bessel_i1e: exp(-|x|) times the modified Bessel functions; one lane value in, one out. Stage:
rendering.

Method: up to a split the exponential times a polynomial in x**2; beyond it a polynomial in 1 / x over
sqrt(x), where 1 / x is the square of the inverse root.
"""
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.double_word import two_product
from jitcore.backends.llvm.mathlib.exponential import scale, split_exp
from jitcore.backends.llvm.mathlib.roots import build_rsqrt


def pick_split(e):
    return e.pick(6.0, 9.0)


def evaluate_near(e, name, start, a):
    """The function of a in [0, split], less a factor of a for order 1; `start` is its value at zero."""
    square, low = two_product(e, a, a)
    growth = e.fma(square, e.poly(square, COEFFICIENTS[name, e.bits]), start)
    # what the square's rounding error adds to the logarithm of the growth: its derivative there, roughly
    rise, power = split_exp(e, -a, low * e.fma(a, -0.0092, 0.135))
    return scale(e, e.fma(growth, rise, growth), power)


def evaluate_far(e, name, a):
    """The function of a >= split, which may be infinite."""
    inverse_root = build_rsqrt(e, a)
    inverse = inverse_root * inverse_root
    constant, *rest = COEFFICIENTS[f"{name}_tail", e.bits]
    return e.fma(inverse_root, constant, inverse_root * (inverse * e.poly(inverse, rest)))


def build_bessel_i0e(e, x):
    a, split = e.abs(x), pick_split(e)
    near = evaluate_near(e, "bessel_i0", 1.0, e.at_most(a, split))
    return e.select(a < split, near, evaluate_far(e, "bessel_i0", e.at_least(a, split)))


def build_bessel_i1e(e, x):
    a, split = e.abs(x), pick_split(e)
    near = a * evaluate_near(e, "bessel_i1", 0.5, e.at_most(a, split))
    return e.copysign(e.select(a < split, near, evaluate_far(e, "bessel_i1", e.at_least(a, split))), x)
