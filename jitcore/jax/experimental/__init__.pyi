# ruff: noqa: F403, I001
from jitcore.experimental import *
from jitcore.jax.experimental import checkify as checkify, jet as jet, ode as ode, sparse as sparse
