"""A tangent that does not fit the point of linearization."""

import jitcore.numpy as jnp
from jitcore import linearize

value, f_jvp = linearize(jnp.sin, 1.0)
f_jvp(1)
