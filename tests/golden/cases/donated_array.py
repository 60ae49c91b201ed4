"""An Array used after its memory was given away."""

import jitcore.numpy as jnp
from jitcore import jit


def step(x):
    return x + 1


x = jnp.zeros(3)
y = jit(step, donate_argnums=0)(x)
print(x + y)
