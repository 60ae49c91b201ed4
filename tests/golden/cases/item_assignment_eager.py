"""An item of an Array assigned in place, outside any traced function."""

import jitcore.numpy as jnp

x = jnp.zeros(3)
x[0] = 1
