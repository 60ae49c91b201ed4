# ruff: noqa: F403, I001
from jitcore.jax.lax import linalg as linalg
from jitcore.lax import *
