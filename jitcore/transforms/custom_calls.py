"""Calls of functions that have derivative rules of their own, as every trace sees them.

In: a `CustomCall`, a function of leaves together with its rules, and operands. Out: results. A trace handles
the call as a whole (`Trace.process_custom_call`): evaluation runs the function, `jvp` applies the rule,
`vmap` hands on a call whose function and rules are batched, and a trace that records appends one equation
that keeps the rules. Before scheduling, that equation gives way to those of its function.

A `JvpCall` has the rule of `custom_jvp`, a `VjpCall` those of `custom_vjp`. The tangents of the latter come
from the linear primitive `custom_lin`, which nothing can apply, and whose transpose is the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, aval_of, eval_jaxpr
from jitcore.core.primitive import Primitive, registry
from jitcore.core.trace import close_over_consts, context, trace_to_jaxpr
from jitcore.transforms.batching import BatchAxis, BatchTrace, Flags, add_axis, batch_values
from jitcore.transforms.call_rules import call_traits
from jitcore.transforms.tangents import Zero, has_tangent, instantiate, is_zero, tangent_aval, zero_like
from jitcore.transforms.transpose import is_linear, transpose


class Labels(NamedTuple):
    """How a call prints in a jaxpr. names: of the user's rules; symbolic_zeros: how they see zeros."""

    names: tuple[str, ...]
    symbolic_zeros: bool = False


class CustomCall:
    """A function with derivative rules of its own.

    Attributes:
        fun: `fun(*operands) -> list of results`, arrays all.
        info: of the user's function, for names in messages and in the jaxpr.
        num_consts: so many leading operands are values that the function closes over; rules do not see them.
        closed: the jaxpr of `fun`, once there is one.
        out_batched: of a call that `batch` made, which results have a batch axis; known when it has run."""

    primitive: Primitive

    def __init__(self, fun: Callable[..., list], info: DebugInfo, labels: Labels, num_consts: int = 0,
                 closed: ClosedJaxpr | None = None, out_batched: list[bool] | None = None):
        self.fun, self.info, self.labels = fun, info, labels
        self.num_consts, self.closed = num_consts, closed
        self.out_batched = [] if out_batched is None else out_batched

    def bind(self, *args) -> list:
        """The results, under the current trace."""
        return context.trace.process_custom_call(self, args)

    def run(self, *args) -> list:
        return self.fun(*args)

    def differentiate(self, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
        """Results and their tangents, by the rule. At least one tangent is no `Zero`."""
        raise NotImplementedError

    def record(self, args: Sequence) -> list:
        """One equation in the current trace. Values that the function closes over become operands."""
        if self.closed is None:
            jaxpr, consts = trace_to_jaxpr(self.fun, list(map(aval_of, args)), self.info)
            closed, consts = close_over_consts(jaxpr, consts)
        else:
            closed, consts = self.closed, []
        params = {"name": self.info.fun_name, "call_jaxpr": closed, **self.rules(),
                  "num_consts": self.num_consts + len(consts) or None,
                  "symbolic_zeros": self.labels.symbolic_zeros}
        return context.trace.process_primitive(self.primitive, [*consts, *args], params)

    def rules(self) -> dict[str, NamedRule]:
        """The rules as parameters of an equation."""
        raise NotImplementedError

    def batch(self, trace: BatchTrace, batched: Flags) -> CustomCall:
        """The call of all elements at once. It is applied right after, under the parent of the trace."""
        raise NotImplementedError

    def _batch_fun(self, trace: BatchTrace, batched: Flags, out_batched: list[bool]) -> Callable[..., list]:
        """`fun` on all elements, telling which results have a batch axis: all, when an operand has one."""

        def run(*values):
            outs, found = trace.run_again(self.fun, values, batched)
            out_batched[:] = [any(batched) or flag for flag in found]
            return batch_values(trace.axis, outs, found, out_batched)

        return run


class NamedRule:
    """A rule among the parameters of an equation, which prints as its name."""

    def __init__(self, function: Callable | None, name: str):
        self.function, self.__name__ = function, name

    def __call__(self, *args):
        return self.function(*args)


class CustomCallPrimitive(Primitive):
    """The primitive of recorded calls: applied again, it is a call again, so that all traces treat it alike.

    rebuild: makes the call from the parameters."""

    def __init__(self, name: str, rebuild: Callable[..., CustomCall], transpose: Callable):
        super().__init__(
            name, jvp=_differentiate_recorded, transpose=transpose, batch=_batch_recorded,
            inline=lambda params, operands: (params["call_jaxpr"], operands), **call_traits("call_jaxpr"))
        self.rebuild = rebuild

    def bind(self, *args, **params) -> list:
        return context.trace.process_custom_call(self.rebuild(**params), args)


def _differentiate_recorded(primitive, primals, tangents, **params):
    return primitive.rebuild(**params).differentiate(primals, tangents)


def _batch_recorded(primitive, axis, values, batched, **params):
    trace = BatchTrace(axis, context.trace)
    with_elements = trace.process_custom_call(primitive.rebuild(**params), trace.lift(values, batched))
    outs, found = trace.lower(with_elements)
    return batch_values(axis, outs, found)


def _evaluate(closed: ClosedJaxpr) -> Callable[..., list]:
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, args)


# -- rules of elements, for all elements --------------------------------------------------------------------
def _strip_axis(derivative, flag: bool):
    """A derivative as the rule of one element takes it: a `Zero` without batch axis."""
    if flag and is_zero(derivative):
        return Zero(derivative.aval.update(shape=derivative.aval.shape[1:]))
    return derivative


def _run_on_elements(trace: BatchTrace, rule: Callable[..., list], values: Sequence, batched: Flags):
    """`rule(values)` for one element, run for all. Values and results may be `Zero`, and stay so.

    Returns: (results, which of them have a batch axis; a `Zero` has none)."""
    places = [place for place, value in enumerate(values) if not is_zero(value)]
    results: list = []

    def run(*elements):
        given = [_strip_axis(value, flag) for value, flag in zip(values, batched)]
        for place, element in zip(places, elements):
            given[place] = element
        results.extend(rule(given))
        return [x for x in results if not is_zero(x)]

    outs, flags = trace.run_again(run, [values[p] for p in places], [batched[p] for p in places])
    outs, flags = iter(outs), iter(flags)
    pairs = [(x, False) if is_zero(x) else (next(outs), next(flags)) for x in results]
    return [x for x, _ in pairs], [flag for _, flag in pairs]


def _give_axis(axis: BatchAxis, x, has_axis: bool, wanted: bool):
    """A result with a batch axis where it is wanted; one that has it in any case stays."""
    if has_axis or not wanted:
        return x
    if is_zero(x):
        return Zero(x.aval.update(shape=(axis.size, *x.aval.shape)))
    return add_axis(x, axis.size)


def _sum_cotangent(axis: BatchAxis, ct, has_axis: bool, wanted: bool):
    """The cotangent of an operand that has a batch axis, or is the same for all elements."""
    if has_axis and not wanted:
        return registry["reduce_sum"].bind(ct, axes=(0,))
    return _give_axis(axis, ct, has_axis, wanted)


# -- custom_jvp ---------------------------------------------------------------------------------------------
class JvpCall(CustomCall):
    """A function with a rule of its jvp.

    Attributes:
        rule: `rule(primals, tangents) -> (results, tangents)`; tangents may be `Zero` on both sides.
        transposed: where the function is linear in some operands, `transposed(cotangents, operands) ->
            cotangents` in the form of a transposition rule; None transposes the function's own equations."""

    def __init__(self, fun, rule: Callable, transposed: Callable | None, *facts, **more_facts):
        super().__init__(fun, *facts, **more_facts)
        self.rule, self.transposed = rule, transposed

    def differentiate(self, primals, tangents):
        primals, tangents = primals[self.num_consts :], tangents[self.num_consts :]
        return self.rule(primals, tangents)

    def rules(self):
        rules = {"jvp": NamedRule(self.rule, self.labels.names[0])}
        if self.transposed is not None:
            rules["transpose"] = NamedRule(self.transposed, self.labels.names[1])
        return rules

    def batch(self, trace, batched):
        n = self.num_consts
        out_batched: list[bool] = []

        def rule(primals, tangents):
            count = len(primals)
            flat, found = _run_on_elements(
                trace, lambda given: _join(self.rule(given[:count], given[count:])), [*primals, *tangents],
                [*batched[n:]] * 2)
            num_outs = len(flat) // 2
            out_batched[:] = [any(batched) or a or b for a, b in zip(found[:num_outs], found[num_outs:])]
            outs = [_give_axis(trace.axis, *each) for each in zip(flat, found, out_batched * 2)]
            return outs[:num_outs], outs[num_outs:]

        def transposed(cotangents, operands):
            return _transpose_elements(trace, self.transposed, cotangents, operands, batched[n:], out_batched)

        return JvpCall(self._batch_fun(trace, batched, out_batched), rule,
                       None if self.transposed is None else transposed, self.info, self.labels, n,
                       out_batched=out_batched)


def _join(pair) -> list:
    return [*pair[0], *pair[1]]


def _transpose_elements(trace: BatchTrace, transposed: Callable, cotangents: Sequence, operands: Sequence,
                        batched: Flags, out_batched: Flags) -> list:
    """The cotangents of all elements, for operands and results of which some have a batch axis."""
    known = [place for place, x in enumerate(operands) if not is_linear(x)]
    linear = [place for place, x in enumerate(operands) if is_linear(x)]

    def rule(given):
        elements = [type(x)(x.aval.update(shape=x.aval.shape[1:])) if is_linear(x) and flag else x
                    for x, flag in zip(operands, batched)]
        for place, value in zip(known, given):
            elements[place] = value
        found = transposed(given[len(known) :], elements)
        return [found[place] for place in linear]

    values = [*(operands[place] for place in known), *cotangents]
    flags = [*(batched[place] for place in known), *out_batched]
    found, has_axis = _run_on_elements(trace, rule, values, flags)
    result: list[Any] = [None] * len(operands)
    for place, ct, flag in zip(linear, found, has_axis):
        result[place] = _sum_cotangent(trace.axis, ct, flag, batched[place])
    return result


def _rebuild_jvp(*, name, call_jaxpr, jvp, num_consts, symbolic_zeros, transpose=None) -> JvpCall:
    rules = [rule for rule in (jvp, transpose) if rule is not None]
    labels = Labels(tuple(rule.__name__ for rule in rules), symbolic_zeros)
    return JvpCall(_evaluate(call_jaxpr), jvp.function, None if transpose is None else transpose.function,
                   call_jaxpr.jaxpr.debug_info, labels, num_consts or 0, call_jaxpr)


def _transpose_jvp_call(primitive, cotangents, operands, *, call_jaxpr, num_consts, transpose=None, **_):
    if transpose is None:
        return _transpose_equations(call_jaxpr, operands, cotangents)
    count = num_consts or 0
    return [*[None] * count, *transpose(cotangents, operands[count:])]


def _transpose_equations(closed: ClosedJaxpr, operands, cotangents) -> list:
    return transpose(closed.jaxpr, closed.consts, operands, cotangents)


JvpCall.primitive = CustomCallPrimitive("custom_jvp_call", _rebuild_jvp, _transpose_jvp_call)


# -- custom_vjp ---------------------------------------------------------------------------------------------
class CustomVJPException(Exception):
    """A value that a custom_vjp function closes over was differentiated."""

    def __init__(self):
        super().__init__(
            "Detected differentiation of a custom_vjp function with respect to a closed-over value. That "
            "isn't supported because the custom VJP rule only specifies how to differentiate the custom_vjp "
            "function with respect to explicit input parameters.\n"
            "To fix: pass the value as an argument, and give fwd and bwd one for it.")


class VjpCall(CustomCall):
    """A function with a rule of its vjp.

    Attributes:
        fwd: `fwd(primals, perturbed) -> (results, residuals, bwd)`, where `bwd(residuals, cotangents) ->
            cotangents` of the primals; cotangents may be `Zero` on both sides. perturbed: which primals have
            a tangent."""

    def __init__(self, fun, fwd: Callable, *facts, **more_facts):
        super().__init__(fun, *facts, **more_facts)
        self.fwd = fwd

    def differentiate(self, primals, tangents):
        n = self.num_consts
        if not all(map(is_zero, tangents[:n])):
            raise CustomVJPException
        perturbed = [not is_zero(t) for t in tangents[n:]]
        outs, residuals, bwd = self.fwd(primals[n:], perturbed)
        given = [t for t in tangents[n:] if not is_zero(t)]
        has = list(map(has_tangent, outs))
        avals = tuple(tangent_aval(aval_of(out)) for out, flag in zip(outs, has) if flag)
        backward = _Backward(bwd, perturbed, list(map(zero_like, outs)), self.labels.names[1])
        found = iter(custom_lin.bind(
            *residuals, *given, bwd=backward, num_res=len(residuals), out_avals=avals))
        return outs, [next(found) if flag else zero_like(out) for out, flag in zip(outs, has)]

    def rules(self):
        names = self.labels.names
        return {"fwd": NamedRule(self.fwd, names[0]), "bwd": NamedRule(None, names[1])}

    def batch(self, trace, batched):
        n, axis = self.num_consts, trace.axis
        out_batched: list[bool] = []

        def fwd(primals, perturbed):
            count = 0
            bwd: Any = None

            def run(*elements):
                nonlocal count, bwd
                outs, residuals, bwd = self.fwd(elements, perturbed)
                count = len(outs)
                return [*outs, *residuals]

            flat, found = trace.run_again(run, primals, batched[n:])
            outs_have_axis = [any(batched) or flag for flag in found[:count]]
            out_batched[:] = outs_have_axis

            def pull_back(residuals, cotangents):
                num_res = len(residuals)
                cts, has_axis = _run_on_elements(trace, lambda given: bwd(given[:num_res], given[num_res:]),
                                                 [*residuals, *cotangents], [*found[count:], *outs_have_axis])
                return [_sum_cotangent(axis, *each) for each in zip(cts, has_axis, batched[n:])]

            outs = [_give_axis(axis, *each) for each in zip(flat, found, outs_have_axis)]
            return outs, flat[count:], pull_back

        return VjpCall(self._batch_fun(trace, batched, out_batched), fwd, self.info, self.labels, n,
                       out_batched=out_batched)


def _rebuild_vjp(*, name, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros) -> VjpCall:
    labels = Labels((fwd.__name__, bwd.__name__), symbolic_zeros)
    return VjpCall(_evaluate(call_jaxpr), fwd.function, call_jaxpr.jaxpr.debug_info, labels,
                   num_consts or 0, call_jaxpr)


def _transpose_vjp_call(primitive, cotangents, operands, *, call_jaxpr, **_):
    return _transpose_equations(call_jaxpr, operands, cotangents)


VjpCall.primitive = CustomCallPrimitive("custom_vjp_call", _rebuild_vjp, _transpose_vjp_call)


class _Backward:
    """The transpose of `custom_lin`. perturbed: which primals are its linear operands; zeros: a `Zero` for
    each result of the user's function, of which those of float0 are no results of `custom_lin`."""

    def __init__(self, bwd: Callable, perturbed: Flags, zeros: Sequence[Zero], name: str):
        self.bwd, self.perturbed, self.zeros, self.__name__ = bwd, perturbed, zeros, name

    def __call__(self, residuals: Sequence, cotangents: Sequence) -> list:
        given = iter(cotangents)
        cts = [next(given) if has_tangent(zero.aval) else zero for zero in self.zeros]
        found = self.bwd(residuals, cts)
        return [ct for ct, flag in zip(found, self.perturbed) if flag]


def _refuse(*args, **params):
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.\n"
        "Its rule gives cotangents, from which tangents cannot be computed.\n"
        "To fix: use grad, vjp or jacrev, or define the derivative with custom_jvp, which serves both modes.")


def _jvp_custom_lin(primitive, primals, tangents, *, num_res, **params):
    """By its linear operands, as a loop whose tangents are transposed step by step asks for it."""
    if not all(map(is_zero, tangents[:num_res])):
        _refuse()
    given = map(instantiate, tangents[num_res:])
    return [primitive.bind(*primals[:num_res], *operands, num_res=num_res, **params)
            for operands in (primals[num_res:], given)]


def _transpose_custom_lin(primitive, cotangents, operands, *, bwd, num_res, out_avals):
    found = bwd(operands[:num_res], cotangents)
    for ct, operand in zip(found, operands[num_res:]):
        if not is_zero(ct) and (extra := aval_of(ct).varying - operand.aval.varying):
            raise ValueError(
                "Custom VJP bwd rule must produce cotangents that vary along the axes of a mesh along "
                f"which the arguments do, but one of type {aval_of(ct).long()} also varies along "
                f"{sorted(map(str, extra))}.\nTo fix: add up what the devices have, by "
                "jitcore.lax.psum, for an argument that is the same on all.")
    return [*[None] * num_res, *found]


custom_lin = Primitive(
    "custom_lin", impl=_refuse, aval=lambda *avals, bwd, num_res, out_avals: list(out_avals),
    jvp=_jvp_custom_lin, transpose=_transpose_custom_lin, batch=_refuse, lower=_refuse,
    multiple_results=True, varying=None)
