"""The same leak with the check for leaks on."""

from jitcore import checking_leaks, jit

seen = []


@jit
def f(x):
    y = x + 1
    seen.append(y)
    return y * 2


with checking_leaks():
    f(1.0)
