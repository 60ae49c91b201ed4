# ruff: noqa: F403, I001
from jitcore.scipy import *
from jitcore.jax.scipy import cluster as cluster
from jitcore.jax.scipy import fft as fft
from jitcore.jax.scipy import integrate as integrate
from jitcore.jax.scipy import interpolate as interpolate
from jitcore.jax.scipy import linalg as linalg
from jitcore.jax.scipy import ndimage as ndimage
from jitcore.jax.scipy import optimize as optimize
from jitcore.jax.scipy import signal as signal
from jitcore.jax.scipy import sparse as sparse
from jitcore.jax.scipy import spatial as spatial
from jitcore.jax.scipy import special as special
from jitcore.jax.scipy import stats as stats
