from jitcore.jax.lax import linalg as linalg
from jitcore.lax import *
