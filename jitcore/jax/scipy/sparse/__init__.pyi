# ruff: noqa: F403, I001
from jitcore.scipy.sparse import *
from jitcore.jax.scipy.sparse import linalg as linalg
