"""A function that calls itself under a traced condition."""

from jitcore import jit


def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


jit(factorial, rewrite=True)(5)
