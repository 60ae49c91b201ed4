from jitcore.jax.scipy.spatial import transform as transform
from jitcore.scipy.spatial import *
