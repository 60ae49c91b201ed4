"""What programs that read jaxprs import: the names of `jax.extend` that are here.

In: what `make_jaxpr` gives. Out: its parts, and functions of it. Primitives are `lax.exp_p`, `lax.add_p` and
so on.

Modules:
    core  The classes that jaxprs consist of, and a jaxpr as a function, by the names of `jax.extend.core`.
"""

from __future__ import annotations

from jitcore.extend import core as core

__all__ = ["core"]
