"""Scheduling: which values are stored, which loops fuse, where buffers lie.

In: an optimised jaxpr. Out: a `loopir.Program`.
"""

from jitcore.schedule.lower import lower_program

__all__ = ["lower_program"]
