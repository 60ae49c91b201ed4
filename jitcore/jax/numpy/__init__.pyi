# ruff: noqa: F403, I001
from jitcore.numpy import *
from jitcore.jax.numpy import fft as fft
from jitcore.jax.numpy import linalg as linalg
