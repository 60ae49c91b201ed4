# ruff: noqa: F403, I001
from jitcore.scipy.cluster import *
from jitcore.jax.scipy.cluster import vq as vq
