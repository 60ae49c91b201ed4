"""The primitive `jit`: a jitted function called while another function is traced.

In: a traced function and the operands of the call. Out: one equation holding the inner jaxpr, or, with
`inline=True`, the inner equations themselves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, eval_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.dispatch.program import Program
from jitcore.dispatch.signature import read_value
from jitcore.dispatch.tracing import SINGLE, TracedFunction
from jitcore.transforms.batching import Unmapped, batch_jaxpr
from jitcore.transforms.jaxpr_parts import lift_consts
from jitcore.transforms.jvp import jvp_jaxpr, split_outputs
from jitcore.transforms.partial_eval import split_jaxpr
from jitcore.transforms.tangents import Masked, is_zero, split_masks, unmask
from jitcore.transforms.transpose import is_elementwise, is_linear, leaves_out, transpose_jaxpr


def _run(*values, jaxpr, name):
    return run_jaxpr_numpy(jaxpr, values)


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


def _infer_avals(*avals, jaxpr, name):
    return jaxpr.out_avals


def _find_effects(*, jaxpr, name):
    return jaxpr.effects


def _bind(primitive, operands, jaxpr, name) -> list:
    """Applies a jaxpr that a transformation made. Its constants become operands: who calls it may be inlined
    into a program, which takes all of its constants as arguments."""
    jaxpr, consts = lift_consts(jaxpr)
    return primitive.bind(*consts, *operands, jaxpr=jaxpr, name=name)


def _batch(primitive, axis, values, batched, *, jaxpr, name):
    jaxpr, out_batched = batch_jaxpr(jaxpr, axis, batched)
    outs = _bind(primitive, values, jaxpr, name)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, out_batched)]


def _jvp(primitive, primals, tangents, *, jaxpr, name):
    nonzero = [not is_zero(t) for t in tangents]
    derivative, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    given = [t for t in tangents if not is_zero(t)]
    outs = _bind(primitive, [*primals, *given], derivative, name)
    return split_outputs(outs, out_nonzero)


def _split(trace, primitive, args, *, jaxpr, name):
    split = split_jaxpr(jaxpr, list(map(trace.is_unknown, args)))
    known = [x for x in args if not trace.is_unknown(x)]
    known_outs = _bind(primitive, known, split.known, name)
    residuals = split.join_residuals(known, known_outs)
    rest, consts = lift_consts(split.unknown)
    operands = [*consts, *residuals, *(x for x in args if trace.is_unknown(x))]
    outs = trace.record_unknown(primitive, operands, {"jaxpr": rest, "name": name})
    return split.merge_outputs(known_outs, outs)


def _transpose(primitive, cotangents, operands, *, jaxpr, name):
    in_linear = list(map(is_linear, operands))
    masks: tuple = ()
    if is_elementwise(jaxpr.jaxpr, in_linear):
        cotangents, masks = split_masks(cotangents)
    is_sparse = leaves_out(jaxpr.jaxpr)
    cotangents = list(map(unmask, cotangents))
    transposed, nonzero = transpose_jaxpr(jaxpr, in_linear, [not is_zero(ct) for ct in cotangents])
    values = [x for x in operands if not is_linear(x)]
    given = [ct for ct in cotangents if not is_zero(ct)]
    outs = iter(_bind(primitive, [*values, *given], transposed, name))
    found = iter([next(outs) if flag else None for flag in nonzero])
    if masks or is_sparse:
        found = (ct if ct is None else Masked(ct, masks, is_sparse) for ct in found)
    return [next(found) if flag else None for flag in in_linear]


jit_primitive = Primitive("jit", impl=_run, eager=_run_compiled, aval=_infer_avals, jvp=_jvp,
                          transpose=_transpose, partial=_split, batch=_batch, multiple_results=True,
                          effects=_find_effects, takes_masks=True,
                          inline=lambda params, operands: (params["jaxpr"], operands))


def bind_inner(traced: TracedFunction, operands: Sequence[Any], *, inline: bool) -> list[Any]:
    """The leaves of the result of calling `traced` on operands that belong to the current trace.

    Captured values become leading operands, since they may be tracers of the current trace."""
    if inline:
        return eval_jaxpr(traced.jaxpr, traced.consts, operands)
    return jit_primitive.bind(*traced.consts, *operands, name=traced.fun_name, jaxpr=traced.closed)
