# ruff: noqa: F403, I001
from jitcore.jax.scipy.cluster import vq as vq
from jitcore.scipy.cluster import *
