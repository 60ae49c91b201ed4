# ruff: noqa: F403, I001
from jitcore.experimental import *
from jitcore.jax.experimental import checkify as checkify
from jitcore.jax.experimental import jet as jet
from jitcore.jax.experimental import ode as ode
from jitcore.jax.experimental import sparse as sparse
