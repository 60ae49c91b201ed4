"""asin, acos, atan, atan2: lane values in, angles in radians out. Stage: rendering.

Method: every result is base + head + head * z * P(z), base a multiple of pi/2 held in two floats, head
exact or rounded once, P minimax. asin and acos beyond 1/2 take head from sqrt((1 - |x|) / 2); atan beyond
1 takes head = -1 / |x|.
"""
from jitcore.backends.llvm.mathlib.coefficients import COEFFICIENTS
from jitcore.backends.llvm.mathlib.emitter import HALF_PI, PI


def add_base(e, bases, head, rest):
    """base + head + rest; base is the constant of the last pair (mask, constant) whose mask is set, or 0."""
    major, minor = e.const(0.0), e.const(0.0)
    for mask, constant in bases:
        high, low = constant.split(e.bits, 2)
        major, minor = e.select(mask, high, major), e.select(mask, low, minor)
    return (major + head) + (rest + minor)


def reduce_arc(e, x):
    """(far, |x|, z, s): beyond 1/2 ("far") z = (1 - |x|) / 2 and s = 2 sqrt(z), else z = x**2."""
    magnitude = e.abs(x)
    far = magnitude > 0.5
    z = e.select(far, e.fma(magnitude, -0.5, 0.5), x * x)
    root = e.sqrt(z)
    return far, magnitude, z, root + root


def build_asin(e, x):
    far, magnitude, z, root = reduce_arc(e, x)
    head = e.select(far, -root, magnitude)
    rest = (head * z) * e.poly(z, COEFFICIENTS["asin", e.bits])
    return e.copysign(add_base(e, ((far, HALF_PI),), head, rest), x)


def build_acos(e, x):
    far, _, z, root = reduce_arc(e, x)
    head = e.select(far, e.copysign(root, x), -x)
    rest = (head * z) * e.poly(z, COEFFICIENTS["asin", e.bits])
    return add_base(e, ((~far, HALF_PI), (far & (x < 0.0), PI)), head, rest)


def evaluate_arc(e, t):
    """atan(t) - t for |t| <= 1. As the signs alternate, chains in z**2 would cancel; Horner's rule for each
    half of many coefficients has half the latency, too."""
    z = t * t
    coefficients = COEFFICIENTS["atan", e.bits]
    if e.bits == 32:
        return (t * z) * e.horner(z, coefficients)
    fourth = (z * z) * (z * z)
    upper = (fourth * fourth) * e.horner(z, coefficients[8:])
    return (t * z) * (e.horner(z, coefficients[:8]) + upper)


def build_atan(e, x):
    magnitude = e.abs(x)
    far = magnitude > 1.0
    head = e.select(far, -1.0, magnitude) / e.select(far, magnitude, 1.0)
    return e.copysign(add_base(e, ((far, HALF_PI),), head, evaluate_arc(e, head)), x)


def build_atan2(e, y, x):
    """Divides the smaller magnitude by the larger; equal ones, with 0/0 and inf/inf, are set by hand."""
    up, across = e.abs(y), e.abs(x)
    steep, left = up > across, e.sign_bits(x) != 0
    head = e.select(steep, -across, up) / e.select(steep, up, across)
    head = e.select(up == across, e.select(up == 0.0, 0.0, 1.0), head)
    head = e.xor_sign(head, e.sign_bits(x))
    result = add_base(e, ((left, PI), (steep, HALF_PI)), head, evaluate_arc(e, head))
    return e.copysign(result, y)
