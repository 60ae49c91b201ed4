"""A list that grows in a loop of traced length."""

from jitcore import jit


def collect(n):
    found = []
    while n > 0:
        found.append(n)
        n -= 1
    return sum(found)


jit(collect, rewrite=True)(3)
