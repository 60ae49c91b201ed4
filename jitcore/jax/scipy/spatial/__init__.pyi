# ruff: noqa: F403, I001
from jitcore.jax.scipy.spatial import transform as transform
from jitcore.scipy.spatial import *
