"""A tuple that grows in a loop of traced length."""

from jitcore import jit


def collect(n):
    found = (0,)
    while n > 0:
        found = found + (n,)
        n = n - 1
    return sum(found)


jit(collect, rewrite=True)(3)
