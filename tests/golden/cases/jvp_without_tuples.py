"""A number in place of a tuple of arguments."""

import jitcore.numpy as jnp
from jitcore import jvp

jvp(jnp.sin, 1.0, 1.0)
