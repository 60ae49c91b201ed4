"""The primitive `jit`: a jitted function called while another function is traced.

In: a traced function and the operands of the call. Out: one equation holding the inner jaxpr, or, with
`inline=True`, the inner equations themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import eval_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.core.trace import close_over_consts
from jitcore.dispatch.tracing import TracedFunction


def _run(*values, jaxpr, name):
    return run_jaxpr_numpy(jaxpr, values)


def _infer_avals(*avals, jaxpr, name):
    return jaxpr.out_avals


def _find_effects(*, jaxpr, name):
    return jaxpr.effects


jit_primitive = Primitive("jit", impl=_run, aval=_infer_avals, multiple_results=True, effects=_find_effects)


def bind_inner(traced: TracedFunction, operands: Sequence[Any], *, inline: bool) -> list[Any]:
    """The leaves of the result of calling `traced` on operands that belong to the current trace.

    Captured values become leading operands, since they may be tracers of the current trace."""
    if inline:
        return eval_jaxpr(traced.jaxpr, traced.consts, operands)
    closed, consts = close_over_consts(traced.jaxpr, traced.consts)
    return jit_primitive.bind(*consts, *operands, name=traced.fun_name, jaxpr=closed)
