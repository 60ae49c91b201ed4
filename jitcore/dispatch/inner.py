"""The primitive `jit`: a jitted function called while another function is traced.

In: a traced function and the operands of the call. Out: one equation holding the inner jaxpr, or, with
`inline=True`, the inner equations themselves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core.jaxpr import ClosedJaxpr, eval_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.dispatch.program import Program
from jitcore.dispatch.signature import read_value
from jitcore.dispatch.tracing import SINGLE, TracedFunction
from jitcore.transforms.call_rules import batch_call, bind_call, call_traits, jvp_call, transpose_call
from jitcore.transforms.jaxpr_parts import lift_consts
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import Masked, split_masks, unmask
from jitcore.transforms.transpose import is_elementwise, is_linear, leaves_out

# How to call the machine code of an inner jaxpr.
_compiled: weakref.WeakKeyDictionary[ClosedJaxpr, Callable[..., list]] = weakref.WeakKeyDictionary()


def _run_compiled(*values, jaxpr, name):
    """What remains of a jitted function when a transformation outside of every trace has changed it."""
    run = _compiled.get(jaxpr)
    if run is None:
        traced = TracedFunction(jaxpr.jaxpr, jaxpr.consts, SINGLE, name)
        program = Program(traced, (), DEFAULT_OPTIONS, find_backend(DEFAULT_OPTIONS.backend))
        run = _compiled[jaxpr] = program.bind_to_host(jaxpr.in_avals)
    return run(*[read_value(value, aval.dtype) for value, aval in zip(values, jaxpr.in_avals)])


def _split(trace, primitive, args, *, jaxpr, name):
    split = split_jaxpr(jaxpr, list(map(trace.is_unknown, args)))
    known = [x for x in args if not trace.is_unknown(x)]
    known_outs = bind_call(primitive, known, jaxpr=split.known, name=name)
    residuals = split.join_residuals(known, known_outs)
    rest, consts = lift_consts(split.unknown)
    operands = [*consts, *residuals, *(x for x in args if trace.is_unknown(x))]
    outs = trace.record_unknown(primitive, operands, {"jaxpr": rest, "name": name})
    return split.merge_outputs(known_outs, outs)


def _transpose(primitive, cotangents, operands, *, jaxpr, name):
    masks: tuple = ()
    if is_elementwise(jaxpr.jaxpr, list(map(is_linear, operands))):
        cotangents, masks = split_masks(cotangents)
    is_sparse = leaves_out(jaxpr.jaxpr)
    found = transpose_call(primitive, list(map(unmask, cotangents)), operands, jaxpr=jaxpr, name=name)
    if not (masks or is_sparse):
        return found
    return [ct if ct is None else Masked(ct, masks, is_sparse) for ct in found]


jit_primitive = Primitive("jit", eager=_run_compiled, jvp=jvp_call, transpose=_transpose, partial=_split,
                          batch=batch_call, takes_masks=True,
                          inline=lambda params, operands: (params["jaxpr"], operands), **call_traits())


def bind_inner(traced: TracedFunction, operands: Sequence[Any], *, inline: bool) -> list[Any]:
    """The leaves of the result of calling `traced` on operands that belong to the current trace.

    Captured values become leading operands, since they may be tracers of the current trace."""
    if inline:
        return eval_jaxpr(traced.jaxpr, traced.consts, operands)
    return jit_primitive.bind(*traced.consts, *operands, name=traced.fun_name, jaxpr=traced.closed)
