"""What code is rendered for.

In: what a backend knows of its target, and `CompileOptions`. Out: the options of rendering.
No compiler is loaded.
"""

from __future__ import annotations

from typing import NamedTuple

#: Instructions, as LLVM names their groups, of which formulas have another form.
FORMULA_FEATURES = ("avx512f",)


class RenderOptions(NamedTuple):
    """What the code is rendered for; part of the key of compiled code.

    vector_bytes: of the widest register, or access. max_threads: of one kernel; None for all, 1 for serial
    code. fastmath, contract: see `CompileOptions`. fused_complex: operations on complex numbers whose
    products may stay unrounded all the same. features: those of `FORMULA_FEATURES` that the target has.
    has_tensor_cores: whether it multiplies small matrices of 16 bits.
    """

    vector_bytes: int
    fastmath: bool = False
    max_threads: int | None = None
    contract: bool = True
    fused_complex: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    has_tensor_cores: bool = False
