"""sin, cos, tan: one lane value in, one out. Stage: rendering.

Method: |x| less a multiple of pi/2 held in three floats (fused multiply-add makes the first step exact),
then two short polynomials to an eighth of a turn. Arguments beyond the reach of that reduction take the
cold path: Payne and Hanek's exact reduction with 2/pi to 1216 bits (`huge_angle`).
"""
from jitcore.backends.llvm.mathlib.angle import choose_cos, choose_sin, choose_tan
from jitcore.backends.llvm.mathlib.emitter import HALF_PI, TWO_OVER_PI
from jitcore.backends.llvm.mathlib.huge_angle import build_cos_huge, build_sin_huge, build_tan_huge


def reduce_angle(e, magnitude):
    """(quadrant in the low bits of an integer, r, low) of an |x| up to 2**16 (float32) or 2**30 (float64)."""
    k, quadrant = e.round_magic(magnitude, TWO_OVER_PI.split(e.bits, 1)[0])
    p1, p2, p3 = HALF_PI.split(e.bits, 3)
    first = e.fma(k, -p1, magnitude)
    second = k * p2
    r = first - second
    return quadrant, r, e.fma(k, -p3, ((first - r) - second) - e.fma(k, p2, -second))


def evaluate_angle(e, x, choose, huge):
    magnitude = e.abs(x)
    result = choose(e, *reduce_angle(e, magnitude), x)
    return e.patch(magnitude > e.pick(2.0 ** 16, 2.0 ** 30), result, huge, x)


def build_sin(e, x):
    return evaluate_angle(e, x, choose_sin, build_sin_huge)


def build_cos(e, x):
    return evaluate_angle(e, x, choose_cos, build_cos_huge)


def build_tan(e, x):
    return evaluate_angle(e, x, choose_tan, build_tan_huge)
