# ruff: noqa: F403, I001
from jitcore.jax.scipy.sparse import linalg as linalg
from jitcore.scipy.sparse import *
