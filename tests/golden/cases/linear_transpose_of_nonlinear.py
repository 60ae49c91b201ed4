"""The transpose of a function that is not linear."""

import jitcore.numpy as jnp
from jitcore import linear_transpose


def wave(x):
    return 2 * jnp.sin(x)


linear_transpose(wave, 1.0)(1.0)
