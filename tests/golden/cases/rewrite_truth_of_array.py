"""A condition on an array of several elements."""

import jitcore.numpy as jnp
from jitcore import jit


def clip(x):
    if x > 0:
        return x
    return -x


jit(clip, rewrite=True)(jnp.arange(3))
