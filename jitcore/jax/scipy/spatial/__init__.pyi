# ruff: noqa: F403, I001
from jitcore.scipy.spatial import *
from jitcore.jax.scipy.spatial import transform as transform
