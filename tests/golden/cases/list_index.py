"""A Python list indexed by a traced integer."""

from jitcore import jit

steps = [10, 20, 30]


@jit
def choose(i):
    return steps[i]


choose(1)
