"""What JAX's scripts import from `jax.experimental`: `io_callback`.

In and out: as in `jitcore.lax.callback`, which defines it.
"""

from jitcore.lax.callback import io_callback

__all__ = ["io_callback"]
