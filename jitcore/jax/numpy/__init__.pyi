# ruff: noqa: F403, I001
from jitcore.jax.numpy import fft as fft, linalg as linalg
from jitcore.numpy import *
