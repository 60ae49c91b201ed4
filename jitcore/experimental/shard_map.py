"""`shard_map`, where older scripts of JAX's import it from."""

from jitcore.lax.sharded import shard_map

__all__ = ["shard_map"]
