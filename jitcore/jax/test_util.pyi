# ruff: noqa: F403, I001
from jitcore.test_util import *
