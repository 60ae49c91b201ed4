"""A str that grows in a loop of traced length."""

from jitcore import jit


def underline(n):
    text = ""
    while n > 0:
        text = text + "-"
        n = n - 1
    return len(text)


jit(underline, rewrite=True)(3)
