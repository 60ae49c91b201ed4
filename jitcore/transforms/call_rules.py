"""Rules of primitives that call a jaxpr, such as `jit` and `remat2`.

In: an equation whose parameter `jaxpr` is what it does with its operands. Out: equations of the same
primitive with a jaxpr that is batched, differentiated or transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.transforms.batching import Unmapped, batch_jaxpr
from jitcore.transforms.jaxpr_parts import lift_consts
from jitcore.transforms.jvp import jvp_jaxpr, split_outputs
from jitcore.transforms.tangents import is_zero
from jitcore.transforms.transpose import is_linear, transpose_jaxpr


def call_traits(name: str = "jaxpr") -> dict[str, Any]:
    """What a primitive does that calls the jaxpr in the parameter of this name."""
    return {"impl": lambda *values, **params: run_jaxpr_numpy(params[name], values),
            "aval": lambda *avals, **params: params[name].out_avals,
            "effects": lambda **params: params[name].effects, "multiple_results": True}


def bind_call(primitive, operands: Sequence, *, jaxpr: ClosedJaxpr, **params) -> list:
    """Applies a jaxpr that a transformation made. Its constants become operands: who calls it may be inlined
    into a program, which takes all of its constants as arguments."""
    jaxpr, consts = lift_consts(jaxpr)
    return primitive.bind(*consts, *operands, jaxpr=jaxpr, **params)


def batch_call(primitive, axis, values, batched, /, *, jaxpr, **params):
    jaxpr, out_batched = batch_jaxpr(jaxpr, axis, batched)
    outs = bind_call(primitive, values, jaxpr=jaxpr, **params)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, out_batched)]


def jvp_call(primitive, primals, tangents, /, *, jaxpr, **params):
    derivative, out_nonzero = jvp_jaxpr(jaxpr, [not is_zero(t) for t in tangents])
    given = [t for t in tangents if not is_zero(t)]
    return split_outputs(bind_call(primitive, [*primals, *given], jaxpr=derivative, **params), out_nonzero)


def transpose_call(primitive, cotangents, operands, /, *, jaxpr, **params):
    in_linear = list(map(is_linear, operands))
    transposed, nonzero = transpose_jaxpr(jaxpr, in_linear, [not is_zero(ct) for ct in cotangents])
    values = [x for x in operands if not is_linear(x)]
    given = [ct for ct in cotangents if not is_zero(ct)]
    outs = iter(bind_call(primitive, [*values, *given], jaxpr=transposed, **params))
    found = iter([next(outs) if flag else None for flag in nonzero])
    return [next(found) if flag else None for flag in in_linear]
