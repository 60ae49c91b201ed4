# ruff: noqa: F403, I001
from jitcore.custom_batching import *
