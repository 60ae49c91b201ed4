"""Jaxprs run with checks: values, and beside them which check failed first.

In: a jaxpr, its operands, which checks to make. Out: its results and a `State`. A *site* is a check in the
program; the state holds whether one has failed, the number of the first, and for each site what its message
shows. Loops carry the state, branches return it; what they run is traced once to see which sites it has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.core.jaxpr import ClosedJaxpr, Equation, ShapedArray, aval_of, eval_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.loops import Loop, keep_stopped
from jitcore.lax.indexing.dimension_numbers import GatherScatterMode
from jitcore.tree_util import PyTreeDef

#: Elementwise operations that only hand on what is NaN already, besides those that compute.
_MOVES = frozenset(("select_n", "convert_element_type", "cast", "bitcast_convert_type", "max", "min",
                    "clamp", "real", "imag", "complex", "conj", "copysign"))
#: Operations on whole arrays that compute.
_COMPUTES = frozenset(("reduce_sum", "reduce_prod", "dot_general", "two_sided_dot", "conv_general_dilated",
                       "fft", "reduce_window_sum", "cumsum", "cumprod", "cumlogsumexp", "cholesky", "lu",
                       "qr", "eigh", "eig", "svd", "schur", "triangular_solve", "scatter-add",
                       "scatter-mul", "psum"))


class Site(NamedTuple):
    """A check in a program.

    category: of `checkify`'s sets. message: with fields of `str.format` where there is a tree. count: of
    values that the message shows. tree: structure of `(args, kwargs)` for the fields. shape: of the array
    that is indexed."""

    category: str
    message: str
    count: int = 0
    tree: PyTreeDef | None = None
    shape: tuple = ()

    def describe(self, payload: Sequence) -> str:
        """The message with the values of a failure."""
        values = [np.asarray(value)[()] for value in payload]
        if self.tree is not None:
            args, kwargs = self.tree.unflatten(values)
            return f"{self.message.format(*args, **kwargs)} (`check` failed)"
        if self.category == "index":
            index, axis = values
            return (f"out-of-bounds indexing for array of shape {self.shape}: index {index} is out of bounds "
                    f"for axis {axis} with size {self.shape[axis]}.")
        return self.message


class State(NamedTuple):
    """failed: bool scalar. code: int32 scalar, the number of the site that failed first. payload: by the
    number of a site, the values that its message shows, of its first failure."""

    failed: Any
    code: Any
    payload: dict[int, list]


class _Checked(NamedTuple):
    """A jaxpr with checks: `(failed, code, *inputs) -> (failed, code, *payload, *outputs)`.

    payload: the avals of the payload of each of its sites."""

    jaxpr: ClosedJaxpr
    payload: dict[int, list[ShapedArray]]

    def run(self, state: State, operands: Sequence) -> tuple[State, list]:
        """The payload of a site stays where something has failed before."""
        jaxpr = self.jaxpr
        failed, code, *values = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, [state.failed, state.code, *operands])
        payload, given = dict(state.payload), iter(values)
        for number, avals in self.payload.items():
            new = [next(given) for _ in avals]
            old = payload.get(number)
            payload[number] = (new if old is None
                               else [jnp.where(state.failed, a, b) for a, b in zip(old, new)])
        return State(failed, code, payload), list(given)

    def make_payload(self) -> dict[int, list]:
        return {number: [jnp.zeros(aval.shape, aval.dtype) for aval in avals]
                for number, avals in self.payload.items()}


class CheckedRun:
    """Runs jaxprs with checks.

    Args:
        categories: of checks to make.
        check: the primitive of users' checks; its operands are whether it failed, the number of the site,
            payloads.

    Attributes:
        sites: by their numbers."""

    def __init__(self, categories: frozenset[str], check: Primitive):
        self.categories, self.check, self.sites = categories, check, list[Site]()

    def evaluate(self, closed: ClosedJaxpr, operands: Sequence, state: State) -> tuple[list, State]:
        """The results, and the state behind them."""
        def apply(eqn: Equation, args: list) -> list:
            nonlocal state
            outs, state = self._apply(eqn, args, state)
            return outs

        return eval_jaxpr(closed.jaxpr, closed.consts, operands, apply), state

    def _apply(self, eqn: Equation, args: list, state: State) -> tuple[list, State]:
        primitive, params = eqn.primitive, eqn.params
        if primitive is self.check:
            return [], self._check(state, *args, **params)
        if primitive.name in _CALLS:
            return _CALLS[primitive.name](self, primitive, args, state, **params)
        inline = primitive.traits.get("inline")
        if inline and primitive.multiple_results and primitive.name not in ("shard_map", "raise_if"):
            # The call stays, for its own derivatives; its checks are made beside it.
            outs = primitive.bind(*args, **params)
            checked = self._trace(*inline(params, [])[:1])
            if checked.payload:
                state, _ = checked.run(state, list(map(lax.stop_gradient, args)))
            return outs, state
        if "index" in self.categories and primitive.name in _INDEXED:
            state = self._check_index(state, *_INDEXED[primitive.name](*args, **params))
            if params.get("mode") is GatherScatterMode.CHECK:
                is_gather = primitive.name == "gather"
                mode = GatherScatterMode.CLIP if is_gather else GatherScatterMode.FILL_OR_DROP
                params = params | {"mode": mode}
        if "division" in self.categories and primitive.name == "div":
            failed = jnp.any(jnp.equal(args[1], 0))
            state = self._fail(state, failed, Site("division", "division by zero"), [])
        outs = primitive.bind_all(*args, **params)
        return outs, self._check_nan(state, primitive, outs) if "nan" in self.categories else state

    # -- checks
    def _fail(self, state: State, failed, site: Site, payload: list) -> State:
        number = len(self.sites)
        self.sites.append(site)
        code = jnp.where(failed & ~jnp.asarray(state.failed), np.int32(number), state.code)
        return State(state.failed | failed, code, {**state.payload, number: payload})

    def _check(self, state: State, failed, code, *payload, sites: tuple[Site, ...], debug: bool) -> State:
        """Of a batch, the first that failed."""
        shape = aval_of(failed).shape
        if shape:
            first = jnp.argmax(jnp.ravel(failed))
            code, *payload = [jnp.reshape(x, (-1, *aval_of(x).shape[len(shape) :]))[first]
                              for x in (code, *payload)]
            failed = jnp.any(failed)
        values = iter(payload)
        for number, site in enumerate(sites):
            own = [next(values) for _ in range(site.count)]
            if site.category in self.categories:
                state = self._fail(state, failed & (jnp.equal(code, number)), site, own)
        return state

    def _check_nan(self, state: State, primitive: Primitive, outs: list) -> State:
        is_elementwise = primitive.traits.get("family") == "elementwise" and primitive.name not in _MOVES
        if not is_elementwise and primitive.name not in _COMPUTES:
            return state
        found = [jnp.any(jnp.isnan(out)) for out in outs if dtypes.is_inexact(aval_of(out).dtype)]
        if not found:
            return state
        site = Site("nan", f"nan generated by primitive: {primitive.name}.")
        return self._fail(state, functools.reduce(jnp.logical_or, found), site, [])

    def _check_index(self, state: State, shape: tuple, axes: Sequence[int], starts,
                     limits: Sequence[int]) -> State:
        """starts: along the last axis, the places along some axes of an array of this shape; limits: the last
        one that each may have."""
        if 0 in aval_of(starts).shape:
            return state
        # As wide as an axis may be long, where the dtype of indices is not.
        wide = jnp.asarray(starts).astype(jnp.int64) if aval_of(starts).dtype.kind == "i" else starts
        limits = np.asarray(limits, aval_of(wide).dtype)
        outside = jnp.ravel((wide < 0) | (wide > limits))
        first = jnp.argmax(outside)
        payload = [jnp.ravel(starts)[first], jnp.asarray(np.asarray(axes, np.int32))[first % len(axes)]]
        return self._fail(state, jnp.any(outside), Site("index", "", 2, shape=shape), payload)

    # -- jaxprs inside
    def _trace(self, closed: ClosedJaxpr) -> _Checked:
        found: dict[int, list[ShapedArray]] = {}

        def run(failed, code, *operands):
            outs, state = self.evaluate(closed, operands, State(failed, code, {}))
            found.update((number, list(map(aval_of, values))) for number, values in state.payload.items())
            payload = [value for values in state.payload.values() for value in values]
            return [state.failed, state.code, *payload, *outs]

        avals = [ShapedArray((), dtypes.bool_), ShapedArray((), dtypes.int32), *closed.in_avals]
        jaxpr, consts = trace_to_jaxpr(run, avals, closed.jaxpr.debug_info)
        return _Checked(ClosedJaxpr(jaxpr, consts), found)

    def _jit(self, primitive, args, state, *, jaxpr: ClosedJaxpr, **_):
        return self.evaluate(jaxpr, args, state)

    def _cond(self, primitive, args, state, *, branches):
        checked = list(map(self._trace, branches))
        if not any(branch.payload for branch in checked):
            return primitive.bind(*args, branches=branches), state
        index, *operands = args

        def make(branch: _Checked) -> Callable:
            def run(failed, code, *values):
                payload = {number: each for other in checked for number, each in other.make_payload().items()}
                after, outs = branch.run(State(failed, code, {}), values)
                return after.failed, after.code, payload | after.payload, outs

            return run

        failed, code, payload, outs = lax.switch(index, list(map(make, checked)), state.failed, state.code,
                                                 *operands)
        return list(outs), State(failed, code, state.payload | payload)

    def _scan(self, primitive, args, state, *, jaxpr, length, reverse, num_consts, num_carry, unroll):
        body = self._trace(jaxpr)
        if not body.payload:
            return primitive.bind(*args, jaxpr=jaxpr, length=length, reverse=reverse, num_consts=num_consts,
                                  num_carry=num_carry, unroll=unroll), state
        consts, init, xs = control.split_operands(args, num_consts, num_carry)

        def step(carry, elements):
            before, values = carry
            after, outs = body.run(before, [*consts, *values, *elements])
            return (after, outs[:num_carry]), outs[num_carry:]

        start = State(jnp.asarray(state.failed), jnp.asarray(state.code), body.make_payload())
        (after, last), ys = lax.scan(step, (start, list(init)), list(xs), length=length, reverse=reverse,
                                     unroll=unroll)
        return [*last, *ys], after._replace(payload=state.payload | after.payload)

    def _while(self, primitive, args, state, **params):
        """The condition is checked too: it is computed behind the body. Of a batch, elements that have
        stopped keep their values."""
        loop = Loop(**params)
        cond, body = self._trace(loop.cond_jaxpr), self._trace(loop.body_jaxpr)
        if not (cond.payload or body.payload):
            return primitive.bind(*args, **params), state
        cond_consts, body_consts, init = loop.split(args)

        def step(carry):
            before, active, values = carry
            after, stepped = body.run(before, [*body_consts, *values])
            stepped = keep_stopped(active, stepped, values)
            after, (holds,) = cond.run(after, [*cond_consts, *stepped])
            return after, active & holds, stepped

        start = State(jnp.asarray(state.failed), jnp.asarray(state.code),
                      cond.make_payload() | body.make_payload())
        start, (active,) = cond.run(start, [*cond_consts, *init])
        after, _, outs = lax.while_loop(lambda carry: jnp.any(carry[1]), step, (start, active, list(init)))
        return list(outs), after._replace(payload=state.payload | after.payload)


_CALLS = {"jit": CheckedRun._jit, "cond": CheckedRun._cond, "scan": CheckedRun._scan,
          "while": CheckedRun._while}


# -- indexed operations: shape, axes, starts, last places ---------------------------------------------------
def _read_gather(x, indices, *, dimension_numbers, slice_sizes, **_) -> tuple:
    shape, axes = aval_of(x).shape, dimension_numbers.start_index_map
    return shape, axes, indices, [shape[axis] - slice_sizes[axis] for axis in axes]


def _read_scatter(x, indices, updates, *, dimension_numbers, **_) -> tuple:
    shape, axes = aval_of(x).shape, dimension_numbers.scatter_dims_to_operand_dims
    sizes = dimension_numbers.slice_sizes(len(shape), aval_of(updates).shape)
    return shape, axes, indices, [shape[axis] - sizes[axis] for axis in axes]


def _read_window(x, sizes: Sequence[int], starts: Sequence) -> tuple:
    shape = aval_of(x).shape
    starts = jnp.stack([jnp.asarray(start) for start in starts]) if starts else jnp.zeros(0, jnp.int32)
    return shape, range(len(shape)), starts, [extent - size for extent, size in zip(shape, sizes)]


_INDEXED: dict[str, Callable[..., tuple]] = {
    "gather": _read_gather,
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
                    _read_scatter),
    "dynamic_slice": lambda x, *starts, slice_sizes, **_: _read_window(x, slice_sizes, starts),
    "dynamic_update_slice": lambda x, update, *starts, **_: _read_window(x, aval_of(update).shape, starts),
}
