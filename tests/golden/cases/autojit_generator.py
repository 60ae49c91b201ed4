"""A generator."""

from jitcore import autojit


@autojit(strict=True)
def count(n):
    for i in range(n):
        yield i
