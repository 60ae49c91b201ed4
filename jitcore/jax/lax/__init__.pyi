# ruff: noqa: F403, I001
from jitcore.lax import *
from jitcore.jax.lax import linalg as linalg
