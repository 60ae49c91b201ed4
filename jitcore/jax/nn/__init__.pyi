# ruff: noqa: F403, I001
from jitcore.jax.nn import initializers as initializers
from jitcore.nn import *
