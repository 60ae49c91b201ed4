from jitcore.jax.nn import initializers as initializers
from jitcore.nn import *
