"""The mathematical functions of the CPU backend, as LLVM IR for scalars and explicit vectors alike.

In: a formula by name, and values of type float, double or a vector of them. Out: the result, from a call to
an internal `alwaysinline` function that the module gets on first use (`emitter.emit_call`). Stage: rendering.
The same formulas serve all widths, so the scalar rest of a loop gives the same bits as its vector body.

The fast path of a function has no branches on lanes. What is rare and costly (sin of 1e22, erf_inv at the
edge, gamma functions left of zero, fmod of far quotients) is a cold function behind one branch for the
whole vector. Fused multiply-add is taken for granted: LLVM calls a library function per lane where the
processor has none.

Each module says its method. Polynomials are minimax fits: `tests/backends/llvm/fitting` reproduces
`coefficients.py`, `pieces.py` and `tables.py`.

Modules:
    angle                  The part of sin, cos and tan that is common to all sizes of argument: the reduced
                           angle in, the function out.
    avx512                 Instructions of AVX-512 that formulas ask for: tables in registers, exponent and
                           significand, scaling.
    bessel                 bessel_i0e, bessel_i1e: exp(-|x|) times the modified Bessel functions; one lane
                           value in, one out.
    coefficients           Coefficients of the minimax polynomials, lowest power first; made by `fit.py`, not
                           edited by hand.
    double_word            Sums of two floats ("double words"): in, floats; out, a rounded result and its
                           exact or nearly exact rounding error.
    emitter                The emission layer of the mathematical functions: Python operators on lanes become
                           LLVM instructions.
    error                  erf, erfc: one lane value in, one out.
    exponential            exp, exp2, expm1, logistic: one lane value in, one out.
    gamma                  lgamma, digamma: one lane value in, one out.
    huge_angle             sin, cos, tan of scalar arguments of any size: the cold path of `trigonometric`.
    hyperbolic             sinh, cosh, tanh, asinh, acosh, atanh: one lane value in, one out.
    inverse_trigonometric  asin, acos, atan, atan2: lane values in, angles in radians out.
    logarithmic            log, log2, log10, log1p, logaddexp: lane values in, one out.
    normal                 log_ndtr, ndtri: the logarithm of the normal distribution function and its inverse;
                           one lane value in, one out.
    pieces                 Functions in pieces: the polynomial of each interval; made by `fit_pieces.py`, not
                           edited by hand.
    piecewise              Functions as one polynomial for each interval, its coefficients looked up in
                           registers.
    power                  pow, cbrt, hypot: lane values in, one out.
    quotient               Quotients of many numbers by one whose inverse is known: x / y, rounded correctly.
    roots                  Square roots: sqrt, rounded correctly, and its inverse rsqrt.
    rounding               Exact functions: rounding to integers, sign, copysign, nextafter, fmod.
    tables                 What formulas look up in registers of AVX-512; made by `fit_tables.py`, not edited
                           by hand.
    trigonometric          sin, cos, tan: one lane value in, one out.
    zeta                   zeta, polygamma: Hurwitz's zeta function and derivatives of digamma; lane values
                           in, one out.
"""
from typing import NamedTuple

__all__ = ["FUNCTIONS", "Function", "names"]


class Function(NamedTuple):
    """A row of the table: number of arguments, module and name of the formula, and what the tests hold it to.

    `single`, `double`: largest error for float32 and float64 in units in the last place of the exact
    result. `absolute`: an error that is also allowed, in units in the last place of one, near zeros that
    the formula does not resolve."""
    arity: int
    formula: str
    single: float
    double: float
    absolute: float = 0.0


FUNCTIONS = {
    "exp": Function(1, "exponential.build_exp", 1.1, 1.1),
    "exp2": Function(1, "exponential.build_exp2", 1.2, 1.3),
    "expm1": Function(1, "exponential.build_expm1", 1.3, 1.5),
    "logistic": Function(1, "exponential.build_logistic", 2.0, 2.0),
    "log": Function(1, "logarithmic.build_log", 1.0, 1.0),
    "log2": Function(1, "logarithmic.build_log2", 1.1, 1.1),
    "log10": Function(1, "logarithmic.build_log10", 1.1, 1.0),
    "log1p": Function(1, "logarithmic.build_log1p", 1.2, 1.1),
    "logaddexp": Function(2, "logarithmic.build_logaddexp", 1.5, 1.5, absolute=1.5),
    "sin": Function(1, "trigonometric.build_sin", 1.3, 1.5),
    "cos": Function(1, "trigonometric.build_cos", 1.3, 1.5),
    "tan": Function(1, "trigonometric.build_tan", 1.7, 2.0),
    "asin": Function(1, "inverse_trigonometric.build_asin", 2.0, 2.0),
    "acos": Function(1, "inverse_trigonometric.build_acos", 1.3, 1.3),
    "atan": Function(1, "inverse_trigonometric.build_atan", 1.4, 1.5),
    "atan2": Function(2, "inverse_trigonometric.build_atan2", 1.9, 1.9),
    "sinh": Function(1, "hyperbolic.build_sinh", 1.3, 1.6),
    "cosh": Function(1, "hyperbolic.build_cosh", 1.9, 1.8),
    "tanh": Function(1, "hyperbolic.build_tanh", 1.6, 1.6),
    "asinh": Function(1, "hyperbolic.build_asinh", 1.5, 1.5),
    "acosh": Function(1, "hyperbolic.build_acosh", 1.9, 1.9),
    "atanh": Function(1, "hyperbolic.build_atanh", 1.5, 1.4),
    "erf": Function(1, "error.build_erf", 1.3, 1.3),
    "erfc": Function(1, "error.build_erfc", 1.8, 1.8),
    "erfcx": Function(1, "error.build_erfcx", 2.0, 2.0),
    "erf_inv": Function(1, "error.build_erf_inv", 4.0, 4.0),
    "lgamma": Function(1, "gamma.build_lgamma", 0.51, 3.0, absolute=8.0),
    "digamma": Function(1, "gamma.build_digamma", 0.51, 4.0, absolute=8.0),
    "bessel_i0e": Function(1, "bessel.build_bessel_i0e", 3.0, 3.0),
    "bessel_i1e": Function(1, "bessel.build_bessel_i1e", 3.0, 3.0),
    "ndtri": Function(1, "normal.build_ndtri", 4.0, 3.6),
    "log_ndtr": Function(1, "normal.build_log_ndtr", 3.5, 3.2),
    "zeta": Function(2, "zeta.build_zeta", 0.51, 2.6),
    "polygamma": Function(2, "zeta.build_polygamma", 0.51, 3.2),
    "pow": Function(2, "power.build_pow", 0.6, 1.3),
    "cbrt": Function(1, "power.build_cbrt", 0.7, 0.6),
    "hypot": Function(2, "power.build_hypot", 1.3, 1.3),
    "shared_sqrt": Function(1, "roots.build_shared_sqrt", 0.5, 0.5),
    "multiplied_sqrt": Function(1, "roots.build_multiplied_sqrt", 0.5, 0.5),
    "rsqrt": Function(1, "roots.build_rsqrt", 1.5, 1.5),
    "floor": Function(1, "rounding.build_floor", 0.0, 0.0),
    "ceil": Function(1, "rounding.build_ceil", 0.0, 0.0),
    "trunc": Function(1, "rounding.build_trunc", 0.0, 0.0),
    "round_half_even": Function(1, "rounding.build_round_half_even", 0.0, 0.0),
    "round_half_away": Function(1, "rounding.build_round_half_away", 0.0, 0.0),
    "sign": Function(1, "rounding.build_sign", 0.0, 0.0),
    "copysign": Function(2, "rounding.build_copysign", 0.0, 0.0),
    "nextafter": Function(2, "rounding.build_nextafter", 0.0, 0.0),
    "fmod": Function(2, "rounding.build_fmod", 0.0, 0.0),
}


def names():
    """The names of all functions, in the order of the table."""
    return tuple(FUNCTIONS)
