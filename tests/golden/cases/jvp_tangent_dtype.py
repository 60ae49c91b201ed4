"""A tangent of integers."""

import numpy as np

import jitcore.numpy as jnp
from jitcore import jvp

x = np.ones(3, np.float32)
jvp(jnp.sin, (x,), (np.arange(3),))
