# ruff: noqa: F403, I001
from jitcore.flatten_util import *
