"""Branches of `lax.cond` that return different dtypes."""

from jitcore import jit, lax


@jit
def halve_even(n):
    return lax.cond(n % 2 == 0, lambda n: n / 2, lambda n: n, n)


halve_even(7)
