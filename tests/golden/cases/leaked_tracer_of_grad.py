"""An intermediate value of a differentiated function, used later."""

import jitcore.numpy as jnp
from jitcore import grad

seen = []


def f(x):
    y = x * x
    seen.append(y)
    return y * 2


grad(f)(1.0)
print(jnp.sin(seen[0]))
