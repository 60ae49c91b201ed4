"""Partial evaluation: what is known is computed, the rest is recorded.

In: functions or jaxprs of which some inputs are known. Out: the known outputs, computed under the enclosing
trace, and a jaxpr of the others, whose constvars are the known values that it reads (its residuals).
Linearization is partial evaluation of a jvp whose primals are known.

A primitive with jaxprs among its parameters may have a rule that splits them:
`rule(trace, primitive, args, **params) -> result(s)`. It runs under the `PartialTrace`, where binding known
operands computes and `trace.record_unknown(primitive, args, params)` records. All others are recorded whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from jitcore import errors
from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, Var, eval_jaxpr, keep_with_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.core.trace import JaxprTrace, Tracer, open_trace, set_current_trace, trace_to_jaxpr

Flags = Sequence[bool]


class PartialTrace(JaxprTrace):
    """Applies primitives to known operands under the enclosing trace, and records the others."""

    def is_unknown(self, value) -> bool:
        return isinstance(value, Tracer) and value.owner is self

    def process_primitive(self, primitive: Primitive, args, params):
        if not self.is_open:
            raise errors.UnexpectedTracerError("an operation was applied under a linearize that has ended")
        if not any(map(self.is_unknown, args)):
            with set_current_trace(self.parent):
                return primitive.bind(*args, **params)
        if primitive.partial is None:
            return self.record_unknown(primitive, args, params)
        return primitive.partial(self, primitive, args, **params)

    def process_custom_call(self, call, args) -> list:
        if any(map(self.is_unknown, args)):
            return call.record(args)
        with set_current_trace(self.parent):
            return self.parent.process_custom_call(call, args)

    def record_unknown(self, primitive: Primitive, args, params):
        """Appends one equation; known operands become constvars."""
        return super().process_primitive(primitive, args, params)


def open_partial_trace(debug_info: DebugInfo | None = None) -> AbstractContextManager[PartialTrace]:
    """A `PartialTrace` inside the current trace, made current. The caller closes it with
    `trace.close(outs)`."""
    return open_trace(debug_info, PartialTrace)


# -- jaxprs -------------------------------------------------------------------------------------------------
class SplitJaxpr(NamedTuple):
    """A jaxpr in two steps.

    known: from the known inputs to the known outputs and the residuals that are not inputs.
    unknown: from the residuals and the unknown inputs to the unknown outputs.
    out_unknown: which outputs of the whole are unknown.
    residuals: for each residual its place among the known inputs, or None for the next additional output of
        `known`."""

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    out_unknown: tuple[bool, ...]
    residuals: tuple[int | None, ...]

    @property
    def num_known_outs(self) -> int:
        return len(self.out_unknown) - sum(self.out_unknown)

    def join_residuals(self, known_ins: Sequence, known_outs: Sequence) -> list:
        """The residuals, of a run of `known`."""
        computed = iter(known_outs[self.num_known_outs :])
        return [next(computed) if place is None else known_ins[place] for place in self.residuals]

    def merge_outputs(self, known: Sequence, unknown: Sequence) -> list:
        """The outputs of the whole. known: outputs of `known`, with or without the residuals behind."""
        known, unknown = iter(known), iter(unknown)
        return [next(unknown) if flag else next(known) for flag in self.out_unknown]


def split_jaxpr(closed: ClosedJaxpr, in_unknown: Flags, out_wanted: Flags | None = None) -> SplitJaxpr:
    """Splits a jaxpr by which inputs are unknown. out_wanted: outputs that count as unknown in any case."""
    wanted = (False,) * len(closed.out_avals) if out_wanted is None else tuple(out_wanted)
    return _trace_split(closed, tuple(in_unknown), wanted)


@keep_with_jaxpr
def _trace_split(closed: ClosedJaxpr, in_unknown: Flags, wanted: Flags) -> SplitJaxpr:
    avals = closed.in_avals
    result: dict = {}

    def run_known(*known):
        given = iter(known)
        with open_partial_trace(closed.jaxpr.debug_info) as trace:
            args = [trace.new_arg(aval) if flag else next(given) for aval, flag in zip(avals, in_unknown)]
            outs = eval_jaxpr(closed.jaxpr, closed.consts, args)
            flags = [want or trace.is_unknown(out) for out, want in zip(outs, wanted)]
            jaxpr, residuals = trace.close([out for out, flag in zip(outs, flags) if flag])
        result["jaxpr"], result["flags"] = jaxpr, tuple(flags)
        place_of = {id(value): place for place, value in enumerate(known)}
        result["places"] = [place_of.get(id(value)) for value in residuals]
        # A constant of the unknown part stays with it; a value of this trace is handed over.
        result["consts"] = [None if isinstance(value, Tracer) else value for value in residuals]
        computed = [value for value, place in zip(residuals, result["places"])
                    if place is None and isinstance(value, Tracer)]
        return [*(out for out, flag in zip(outs, flags) if not flag), *computed]

    known_avals = [aval for aval, flag in zip(avals, in_unknown) if not flag]
    jaxpr, consts = trace_to_jaxpr(run_known, known_avals, closed.jaxpr.debug_info)
    unknown, places = _separate_consts(result["jaxpr"], result["consts"], result["places"])
    return SplitJaxpr(ClosedJaxpr(jaxpr, consts), unknown, result["flags"], places)


def _separate_consts(jaxpr, values: Sequence, places: Sequence[int | None]):
    """The jaxpr with its residuals as leading inputs; constvars that have a value keep it."""
    fixed = [(var, value) for var, value in zip(jaxpr.constvars, values) if value is not None]
    passed: list[tuple[Var, int | None]] = [
        (var, place) for var, value, place in zip(jaxpr.constvars, values, places) if value is None]
    changed = jaxpr.replace(
        constvars=[var for var, _ in fixed], invars=[*(var for var, _ in passed), *jaxpr.invars])
    return ClosedJaxpr(changed, [value for _, value in fixed]), tuple(place for _, place in passed)
