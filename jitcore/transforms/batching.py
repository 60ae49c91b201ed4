"""The trace of `vmap`, and batching of jaxprs.

In: functions or jaxprs on elements, operands with or without a batch axis. Out: the same computation on all
elements at once, in primitives of the enclosing trace. A batched value always has its batch axis first:
`vmap` moves axes where values come in and go out, and rules know no other place.

The rule of a primitive is `rule(primitive, axis, values, batched, **params)`:

    axis      the `BatchAxis`
    values    the operands as the enclosing trace sees them
    batched   for each operand, whether its first axis is the batch axis

It runs under the enclosing trace and returns the result (a list for several), batch axis first. A result that
is the same for all elements is returned as `Unmapped(value)`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from jitcore import errors
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, aval_of, eval_jaxpr, keep_with_jaxpr, sub_jaxprs
from jitcore.core.primitive import Primitive, registry
from jitcore.core.trace import Trace, Tracer, context, run_transformed, set_current_trace, trace_to_jaxpr

Flags = Sequence[bool]


class BatchAxis(NamedTuple):
    """A mapped axis. size: int or symbolic dimension; name: for collectives, or None."""

    size: Any
    name: Hashable | None = None


class MeshAxis(NamedTuple):
    """An axis of a mesh, inside of `shard_map`. is_tracked: whether values know whether they vary along
    it."""

    size: int
    name: Hashable
    is_tracked: bool


class Unmapped(NamedTuple):
    """A result of a rule that is the same for all elements and has no batch axis."""

    value: Any


class BatchTracer(Tracer):
    """One element of a batch, as the mapped function sees it. `value` has the batch axis first."""

    __slots__ = ("value",)

    def __init__(self, trace: BatchTrace, value):
        aval = aval_of(value)
        super().__init__(trace, aval.update(shape=aval.shape[1:]), None, source.capture_source())
        self.value = value

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={aval_of(self.value)})"


class BatchTrace(Trace):
    """Applies primitives to whole batches, by their rules, under the enclosing trace.

    Args:
        axis: that is mapped.
        parent: the enclosing trace.
        debug_info: of the mapped function, for error messages.
        tag: common to the traces of one `vmap`, whose elements go together; by default, of this one alone."""

    def __init__(self, axis: BatchAxis, parent: Trace, debug_info: DebugInfo | None = None,
                 tag: object = None):
        self.axis, self.parent, self.debug_info = axis, parent, debug_info
        self.tag = object() if tag is None else tag

    def __repr__(self) -> str:
        return "BatchTrace"

    def lift(self, values: Sequence, batched: Flags) -> list:
        """What the mapped function is called with: tracers for values with a batch axis, others unchanged."""
        return [BatchTracer(self, value) if flag else value for value, flag in zip(values, batched)]

    def lower(self, outs: Sequence) -> tuple[list, list[bool]]:
        """The values behind what was computed here, and which of them have a batch axis."""
        batched = [isinstance(out, BatchTracer) and out.owner.tag is self.tag for out in outs]
        return [out.value if flag else out for out, flag in zip(outs, batched)], batched

    def process_primitive(self, primitive: Primitive, args, params):
        if not self.is_open:
            raise errors.UnexpectedTracerError("an operation was applied under a vmap that has ended")
        values, batched = self.lower(args)
        with set_current_trace(self.parent):
            if not any(batched) and not self._is_named_in(primitive, params):
                return primitive.bind(*values, **params)
            if primitive.batch is None:
                raise NotImplementedError(f"Batching rule for '{primitive}' not implemented")
            outs = primitive.batch(primitive, self.axis, values, batched, **params)
        return list(map(self._wrap, outs)) if primitive.multiple_results else self._wrap(outs)

    def process_custom_call(self, call, args) -> list:
        values, batched = self.lower(args)
        with set_current_trace(self.parent):
            whole = call.batch(self, batched)
            outs = self.parent.process_custom_call(whole, values)
        return [BatchTracer(self, out) if flag else out for out, flag in zip(outs, whole.out_batched)]

    def run_again(self, fun: Callable[..., Sequence], values: Sequence, batched: Flags):
        """`run_batched` inside the current trace, for a function that may close over elements of this one."""
        trace = BatchTrace(self.axis, context.trace, self.debug_info, self.tag)
        with set_current_trace(trace):
            return trace.lower(fun(*trace.lift(values, batched)))

    def _is_named_in(self, primitive: Primitive, params: dict) -> bool:
        return self.axis.name is not None and mentions_axis(primitive, params, self.axis.name)

    def _wrap(self, out):
        return out.value if isinstance(out, Unmapped) else BatchTracer(self, out)


def run_batched(fun: Callable[..., Sequence], axis: BatchAxis, values: Sequence, batched: Flags,
                debug_info: DebugInfo | None = None) -> tuple[list, list[bool]]:
    """Calls `fun(*elements) -> outputs` once for all elements; returns the outputs and which are batched.

    values: of the current trace, with the batch axis first where `batched` says so."""
    return run_transformed(BatchTrace(axis, context.trace, debug_info), fun, values, batched)


# -- axes ---------------------------------------------------------------------------------------------------
def move_axis(x, origin: int, target: int):
    """x with one axis moved, the others in their order; x itself when nothing moves."""
    if origin == target:
        return x
    order = [dim for dim in range(aval_of(x).ndim) if dim != origin]
    order.insert(target, origin)
    return registry["transpose"].bind(x, permutation=tuple(order))


def add_axis(x, size):
    """x repeated along a new first axis."""
    shape = aval_of(x).shape
    return registry["broadcast_in_dim"].bind(x, shape=(size, *shape),
                                             broadcast_dimensions=tuple(range(1, len(shape) + 1)))


def batch_values(axis: BatchAxis, values: Sequence, batched: Flags, wanted: Flags | None = None) -> list:
    """The values with a batch axis wherever it is wanted; by default all of them."""
    wanted = [True] * len(values) if wanted is None else wanted
    return [add_axis(value, axis.size) if want and not has else value
            for value, has, want in zip(values, batched, wanted)]


# -- named axes ---------------------------------------------------------------------------------------------
def mentions_axis(primitive: Primitive, params: dict, name: Hashable) -> bool:
    """Whether an application is a collective over this axis, or contains one."""
    if primitive.traits.get("collective"):
        return name in params["axes"]
    return any(mentions_axis(eqn.primitive, eqn.params, name)
               for closed in sub_jaxprs(params) for eqn in closed.eqns)


class NamingTrace(Trace):
    """Gives names to the axes of a mesh, and hands on what is applied."""

    def __init__(self, axes: Sequence[MeshAxis], parent: Trace):
        self.axes, self.parent = tuple(axes), parent

    def process_primitive(self, primitive: Primitive, args, params):
        with set_current_trace(self.parent):
            return self.parent.process_primitive(primitive, args, params)

    def process_custom_call(self, call, args) -> list:
        with set_current_trace(self.parent):
            return self.parent.process_custom_call(call, args)


@contextlib.contextmanager
def name_axes(axes: Sequence[MeshAxis]) -> Iterator[None]:
    """Inside, code is the body of a `shard_map` over these axes."""
    before = context.tracks_varying
    with set_current_trace(NamingTrace(axes, context.trace)):
        context.tracks_varying = before or any(axis.is_tracked for axis in axes)
        try:
            yield
        finally:
            context.tracks_varying = before


def list_named_axes() -> tuple[BatchAxis | MeshAxis, ...]:
    """The named axes that enclose the current code, innermost first."""
    axes: list[BatchAxis | MeshAxis] = []
    trace = context.trace
    while trace is not None:
        if isinstance(trace, BatchTrace) and trace.axis.name is not None:
            axes.append(trace.axis)
        elif isinstance(trace, NamingTrace):
            axes += trace.axes
        trace = trace.parent
    return tuple(axes)


# -- jaxprs -------------------------------------------------------------------------------------------------
def batch_jaxpr(closed: ClosedJaxpr, axis: BatchAxis, in_batched: Flags,
                out_wanted: Flags | None = None) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of all elements at once.

    Args:
        in_batched: which inputs have a batch axis, their first.
        out_wanted: outputs that shall have one even if they are the same for all elements.

    Returns: (jaxpr, which outputs have a batch axis, their first)."""
    wanted = (False,) * len(closed.out_avals) if out_wanted is None else tuple(out_wanted)
    jaxpr, out_batched = _trace_batch(closed, axis, tuple(in_batched), wanted)
    return jaxpr, list(out_batched)


@keep_with_jaxpr
def _trace_batch(closed: ClosedJaxpr, axis: BatchAxis, in_batched: Flags, wanted: Flags):
    out_batched: list[bool] = []

    def run(*values):
        outs, found = run_batched(lambda *elements: eval_jaxpr(closed.jaxpr, closed.consts, elements), axis,
                                  values, in_batched)
        out_batched.extend(has or want for has, want in zip(found, wanted))
        return batch_values(axis, outs, found, out_batched)

    avals = [aval.update(shape=(axis.size, *aval.shape)) if flag else aval
             for aval, flag in zip(closed.in_avals, in_batched)]
    jaxpr, consts = trace_to_jaxpr(run, avals, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(out_batched)
