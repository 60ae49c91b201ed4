"""Square roots: sqrt, rounded correctly, and its inverse rsqrt.

In: lane values; out: one. Stage: rendering. Method: LLVM's instruction, which keeps the processor's unit for
divisions busy for long. With AVX-512 an approximate inverse root and Newton's steps, which are
multiplications: for rsqrt always, for sqrt where `balance` says so. The last step adds the exact residual,
after which both ways round alike.
"""
from jitcore.backends.llvm.mathlib import avx512


def build_shared_sqrt(e, x):
    """Every second register by multiplications, so that both units work at a time."""
    if not e.has_avx512:
        return e.sqrt(x)
    registers = avx512.split(e, x)
    return avx512.join(e, [_multiply(part) if number % 2 else part.emitter.sqrt(part)
                           for number, part in enumerate(registers)])


def build_multiplied_sqrt(e, x):
    return avx512.join(e, [*map(_multiply, avx512.split(e, x))]) if e.has_avx512 else e.sqrt(x)


def _multiply(x):
    """The root g and half its inverse h, from 14 bits, corrected by 1/2 - g h; then the residual x - g**2,
    which is exact unless x is so small that it underflows."""
    e = x.emitter
    inverse = avx512.approximate_inverse_root(e, x)
    g, h = x * inverse, inverse * 0.5
    for _ in range(e.bits // 32):
        rest = e.fma(-g, h, 0.5)
        g, h = e.fma(g, rest, g), e.fma(h, rest, h)
    root = e.fma(e.fma(-g, g, x), h, g)
    # zero, numbers that are too small or infinite, NaN and what is below zero, by one comparison of integers
    smallest, infinite = (exponent << e.mantissa for exponent in (e.mantissa + 11, 2 * e.bias + 1))
    past, range_ = e.to_bits(x) - smallest, e.int_const(infinite - smallest)
    hard = e.lanes(e.builder.icmp_unsigned(">=", past.value, range_.value))
    return e.replace(hard, root, lambda: e.sqrt(x))


def build_rsqrt(e, x):
    """A step of the third order from 14 bits, then for float64 one of the second."""
    if not e.has_avx512:
        return 1.0 / e.sqrt(x)
    first = avx512.approximate_inverse_root(e, x)
    rest = e.fma(-(x * first), first, 1.0)
    y = e.fma(first * rest, e.fma(rest, 0.375, 0.5), first)
    if e.bits == 64:
        y = e.fma(y * 0.5, e.fma(-(x * y), y, 1.0), y)
    return e.select((x == 0.0) | (x == e.inf), first, y)
