"""Operands whose shapes do not fit, outside any traced function."""

import jitcore.numpy as jnp

print(jnp.ones((2, 3)) * jnp.ones(4))
