"""`shard_map`, where older scripts of JAX's import it from."""

from jitcore.lax.parallel.sharded import shard_map

__all__ = ["shard_map"]
