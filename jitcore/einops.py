"""Makes einops know Arrays and traced values: `import jitcore.einops`, once.

In: einops, which finds its backends among the classes that are derived from its own. Out: one for jitcore.
"""

from __future__ import annotations

import numpy as np
from einops._backends import JaxBackend

from jitcore import numpy as jnp
from jitcore.array import Array


class JitcoreBackend(JaxBackend):
    framework_name = "jitcore"

    def __init__(self):
        self.onp, self.np = np, jnp  # what NumPy's backend names, in place of JAX's

    def is_appropriate_type(self, tensor: object) -> bool:
        return isinstance(tensor, Array)
