"""Checkpointing of derivatives: the names of `jax.ad_checkpoint`."""

import sys

from jitcore.docstrings import document
from jitcore.transforms import checkpoint_policies as checkpoint_policies
from jitcore.transforms.checkpoint import (checkpoint as checkpoint, checkpoint_name as checkpoint_name,
                                           print_saved_residuals as print_saved_residuals, remat as remat,
                                           saved_residuals as saved_residuals)

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat",
           "saved_residuals"]

document(sys.modules[__name__], __all__)
