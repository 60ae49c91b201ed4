# ruff: noqa: F403, I001
from jitcore.nn import *
from jitcore.jax.nn import initializers as initializers
