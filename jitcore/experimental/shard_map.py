"""`shard_map`, where older scripts of JAX's import it from."""

from jitcore.lax.shard_map import shard_map

__all__ = ["shard_map"]
