"""Forward-mode differentiation: the trace of `jvp`, and derivatives of jaxprs.

In: functions or jaxprs, primal operands and their tangents. Out: the results and their tangents, in
primitives of the enclosing trace.

The rule of a primitive is `rule(primitive, primals, tangents, **params)`. A tangent is a value of the type of
its primal, or a `Zero`; at least one is none. The rule runs under the enclosing trace and returns
`(result, tangent)`, two lists for several results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from jitcore import errors
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, aval_of, eval_jaxpr, keep_with_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.core.trace import (Trace, Tracer, context, run_transformed, set_current_trace, trace_to_jaxpr,
                                user_snippet)
from jitcore.errors import derivatives
from jitcore.transforms.tangents import instantiate, is_zero, zero_like

Flags = Sequence[bool]


class JvpTracer(Tracer):
    """A value and its tangent. Python control flow may read the value where it is known."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JvpTrace, primal, tangent):
        super().__init__(trace, aval_of(primal), None, source.capture_source())
        self.primal, self.tangent = primal, tangent

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __int__(self) -> int:
        return int(self.primal)

    def __float__(self) -> float:
        return float(self.primal)

    def __complex__(self) -> complex:
        return complex(self.primal)

    def __index__(self) -> int:
        return operator.index(self.primal)

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal!r}, tangent={self.tangent!r})"


class JvpTrace(Trace):
    """Applies primitives to values with tangents, by their rules, under the enclosing trace."""

    def __init__(self, parent: Trace, debug_info: DebugInfo | None = None):
        self.parent, self.debug_info = parent, debug_info

    def __repr__(self) -> str:
        return "JVPTrace"

    def lift(self, primals: Sequence, tangents: Sequence) -> list:
        """What the differentiated function is called with."""
        return [self._wrap(primal, tangent) for primal, tangent in zip(primals, tangents)]

    def lower(self, values: Sequence) -> tuple[list, list]:
        """The primals and tangents behind what was computed here."""
        primals, tangents = [], []
        for value in values:
            if isinstance(value, JvpTracer) and value.owner is self:
                primals.append(value.primal)
                tangents.append(value.tangent)
            else:
                primals.append(value)
                tangents.append(zero_like(value))
        return primals, tangents

    def process_primitive(self, primitive: Primitive, args, params):
        if not self.is_open:
            raise errors.UnexpectedTracerError("an operation was applied under a jvp that has ended")
        primals, tangents = self.lower(args)
        with set_current_trace(self.parent):
            if all(map(is_zero, tangents)):
                return primitive.bind(*primals, **params)
            if primitive.jvp is None:
                raise derivatives.missing_jvp_error(str(primitive), where=user_snippet())
            outs, out_tangents = primitive.jvp(primitive, primals, tangents, **params)
        if primitive.multiple_results:
            return self.lift(outs, out_tangents)
        return self._wrap(outs, out_tangents)

    def process_custom_call(self, call, args) -> list:
        primals, tangents = self.lower(args)
        with set_current_trace(self.parent):
            if all(map(is_zero, tangents)):
                return self.parent.process_custom_call(call, primals)
            outs, out_tangents = call.differentiate(primals, tangents)
        return self.lift(outs, out_tangents)

    def _wrap(self, primal, tangent):
        return primal if is_zero(tangent) else JvpTracer(self, primal, tangent)


def run_jvp(fun: Callable[..., Sequence], primals: Sequence, tangents: Sequence,
            debug_info: DebugInfo | None = None) -> tuple[list, list]:
    """Calls `fun(*values) -> outputs` once; returns the outputs and their tangents, which may be `Zero`s."""
    return run_transformed(JvpTrace(context.trace, debug_info), fun, primals, tangents)


# -- jaxprs -------------------------------------------------------------------------------------------------
def jvp_jaxpr(closed: ClosedJaxpr, in_nonzero: Flags,
              out_wanted: Flags | None = None) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of a function and its derivative.

    Args:
        in_nonzero: which inputs have a tangent.
        out_wanted: outputs that shall have one even if it is zero.

    Returns: (jaxpr, which outputs have a tangent). Inputs are the primals, then the tangents that there are;
        so are the outputs."""
    wanted = (False,) * len(closed.out_avals) if out_wanted is None else tuple(out_wanted)
    jaxpr, out_nonzero = _trace_jvp(closed, tuple(in_nonzero), wanted)
    return jaxpr, list(out_nonzero)


@keep_with_jaxpr
def _trace_jvp(closed: ClosedJaxpr, in_nonzero: Flags, wanted: Flags):
    out_nonzero: list[bool] = []
    count = len(closed.in_avals)

    def run(*values):
        primals, given = values[:count], iter(values[count:])
        tangents = [next(given) if flag else zero_like(x) for x, flag in zip(primals, in_nonzero)]
        outs, found = run_jvp(lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, args), primals, tangents)
        out_nonzero.extend(want or not is_zero(t) for t, want in zip(found, wanted))
        return [*outs, *(instantiate(t) for t, flag in zip(found, out_nonzero) if flag)]

    tangent_avals = [aval for aval, flag in zip(closed.in_avals, in_nonzero) if flag]
    jaxpr, consts = trace_to_jaxpr(run, [*closed.in_avals, *tangent_avals], closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(out_nonzero)


def split_outputs(outs: Sequence, nonzero: Flags) -> tuple[list, list]:
    """The primals and tangents among the outputs of a jaxpr of `jvp_jaxpr`."""
    primals, given = list(outs[: len(nonzero)]), iter(outs[len(nonzero) :])
    return primals, [next(given) if flag else zero_like(x) for x, flag in zip(primals, nonzero)]

