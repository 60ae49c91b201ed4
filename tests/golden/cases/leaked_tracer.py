"""An intermediate value kept in a list and used later."""

import jitcore.numpy as jnp
from jitcore import jit

seen = []


@jit
def f(x):
    y = x + 1
    seen.append(y)
    return y * 2


f(1.0)
print(jnp.sin(seen[0]))
