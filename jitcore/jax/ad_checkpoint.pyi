# ruff: noqa: F403, I001
from jitcore.ad_checkpoint import *
