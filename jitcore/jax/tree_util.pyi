# ruff: noqa: F403, I001
from jitcore.tree_util import *
