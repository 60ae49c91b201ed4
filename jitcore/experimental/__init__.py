"""What JAX's scripts import from `jax.experimental`: `io_callback`.

In: what JAX's functions take. Out: what they give. `jitcore.lax.control_flow.callback` defines it.

Modules:
    mesh_utils  Grids of devices for meshes, where JAX's scripts import them from.
    shard_map   `shard_map`, where older scripts of JAX's import it from.
"""

import sys

from jitcore.docstrings import document
from jitcore.lax.control_flow.callback import io_callback

__all__ = ["io_callback"]

document(sys.modules[__name__], __all__)
