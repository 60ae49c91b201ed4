"""The length of a range of traced length."""

from jitcore import jit


def count(n):
    return len(range(n))


jit(count, rewrite=True)(3)
