"""A misspelt compiler option."""

from jitcore import jit


@jit(compiler_options={"fast_math": True})
def f(x):
    return x + 1
