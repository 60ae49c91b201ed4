from jitcore.jax.scipy.sparse import linalg as linalg
from jitcore.scipy.sparse import *
