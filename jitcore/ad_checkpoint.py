"""Checkpointing of derivatives: the names of `jax.ad_checkpoint`."""

from jitcore.transforms import checkpoint_policies as checkpoint_policies
from jitcore.transforms.checkpoint import checkpoint as checkpoint
from jitcore.transforms.checkpoint import checkpoint_name as checkpoint_name
from jitcore.transforms.checkpoint import print_saved_residuals as print_saved_residuals
from jitcore.transforms.checkpoint import remat as remat
from jitcore.transforms.checkpoint import saved_residuals as saved_residuals

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat",
           "saved_residuals"]
