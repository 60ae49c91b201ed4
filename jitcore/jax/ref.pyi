# ruff: noqa: F403, I001
from jitcore.ref import *
