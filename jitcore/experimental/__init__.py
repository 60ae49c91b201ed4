"""What JAX's programs import from `jax.experimental`: sparse arrays, checks, Taylor series, equations.

In: what JAX's functions take. Out: what they give. `io_callback` is defined in
`jitcore.lax.control_flow.callback`.

Modules:
    checked_jaxpr  Jaxprs run with checks: values, and beside them which check failed first.
    checkify       Checks whose failure is a value: `checkify` makes a function return an error beside its
                   result.
    jet            Taylor mode: `jet`, all derivatives along a path up to some order at once.
    mesh_utils     Grids of devices for meshes, where JAX's scripts import them from.
    ode            Ordinary differential equations: `odeint`, whose derivatives are those of the adjoint.
    shard_map      `shard_map`, where older scripts of JAX's import it from.
    sparse/        Sparse arrays: `BCOO`, its operations, and `sparsify` for functions of dense arrays.
    xla_metadata   Notes to XLA's compiler, where JAX's scripts import them from.
"""

import sys

from jitcore.docstrings import document
from jitcore.lax.control_flow.callback import io_callback

__all__ = ["io_callback"]

document(sys.modules[__name__], __all__)
