"""A loop whose body changes the dtype of its carry."""

import jitcore.numpy as jnp
from jitcore import jit, lax


@jit
def grow(x):
    return lax.while_loop(lambda x: x < 100, lambda x: x * 1.5, x)


grow(jnp.int32(1))
