"""`scan`, `map` and `associative_scan`: loops over the leading axis of arrays.

In: a function, an initial carry and arrays with a common leading axis. Out: the last carry and the stacked
outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.array import ConcreteArray
from jitcore.core.interpret import build_program
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.refs import lend, read_refs, watch_refs, write_refs
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import Tracer, origin_of, run_compiled, to_array, to_numpy, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.scan_derivatives import jvp_scan, split_scan, transpose_scan
from jitcore.lax.define import define
from jitcore.transforms.batching import Unmapped, batch_values, move_axis
from jitcore.tree_util import tree_flatten, treedef_tuple


def _run_scan(*args: np.ndarray, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
              num_carry: int, unroll: int | bool) -> list[np.ndarray]:
    body = build_program(jaxpr)
    consts, carry, xs = control.split_operands(args, num_consts, num_carry)
    stacked = [np.empty((length, *aval.shape), aval.dtype) for aval in jaxpr.out_avals[num_carry:]]
    with np.errstate(all="ignore"):
        for i in range(length - 1, -1, -1) if reverse else range(length):
            outs = body([*consts, *carry, *[np.asarray(x[i]) for x in xs]])
            carry = outs[:num_carry]
            for stack, y in zip(stacked, outs[num_carry:]):
                stack[i] = y
    return [*carry, *stacked]


def _run_scan_at_once(*args: np.ndarray, **params) -> list[np.ndarray]:
    """Outside of every trace: a long loop is compiled."""
    equations = params["length"] * (1 + control.count_equations(params["jaxpr"]))
    if equations > control.MOST_EAGER_EQUATIONS and control.may_compile():
        return run_compiled(scan.primitive, args, params)  # type: ignore[attr-defined]
    return _run_scan(*args, **params)


def _scan_aval(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
               num_carry: int, unroll: int | bool) -> list[ShapedArray]:
    consts, carry, xs = control.split_operands(avals, num_consts, num_carry)
    elements = [ShapedArray(x.shape[1:], x.dtype) for x in xs]
    expected = [(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
    if expected != [(aval.shape, aval.dtype) for aval in (*consts, *carry, *elements)]:
        raise TypeError("scan called with operands of other types than its jaxpr takes")
    if any(x.shape[0] != length for x in xs):
        raise TypeError(f"scan over {length} elements called with arrays of other lengths")
    outs = jaxpr.out_avals
    return outs[:num_carry] + [y.update(shape=(length, *y.shape)) for y in outs[num_carry:]]


def _lower_scan(builder, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
    return builder.scan(jaxpr, length, reverse, *control.split_operands(operands, num_consts, num_carry))


def _hlo_scan(b, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
    """A `while` that counts, reads the elements and writes the outputs of each iteration."""
    consts, init, xs = control.split_operands(operands, num_consts, num_carry)
    outs = [((length, *aval.shape), aval.dtype) for aval in jaxpr.out_avals[num_carry:]]
    if length == 0:
        return [*init, *[b.full(0, *kind) for kind in outs]]

    def at(count, ndim):
        place = b.map("sub", b.constant(length - 1, dtypes.int32), count) if reverse else count
        return [place, *[b.constant(0, dtypes.int32)] * (ndim - 1)]

    def take(x, count):
        sizes = (1, *x.shape[1:])
        row = b.op("dynamic_slice", x, *at(count, x.ndim), shape=sizes, slice_sizes=sizes)
        return b.reshape(row, x.shape[1:])

    def step(count, *state):
        carry, stacks = state[:num_carry], state[num_carry:]
        found = b.inline(jaxpr, [*consts, *carry, *[take(x, count) for x in xs]])
        rows = [b.reshape(y, (1, *y.shape)) for y in found[num_carry:]]
        stacks = [b.op("dynamic_update_slice", stack, row, *at(count, row.ndim))
                  for stack, row in zip(stacks, rows)]
        return [b.map("add", count, b.constant(1, dtypes.int32)), *found[:num_carry], *stacks]

    start = [b.constant(0, dtypes.int32), *init, *[b.full(0, *kind) for kind in outs]]
    return b.loop(lambda count, *_: b.compare("LT", count, b.constant(length, dtypes.int32)), step, start)[1:]


def _batch_scan(primitive, axis, values, batched, *, jaxpr, num_consts, num_carry, **params):
    const_flags, init_flags, x_flags = control.split_operands(batched, num_consts, num_carry)
    jaxpr, carry_flags, y_flags = control.batch_loop_body(jaxpr, axis, const_flags, init_flags, x_flags)
    consts, init, xs = control.split_operands(values, num_consts, num_carry)
    # Behind the axis of the loop, the batch axis is the first one that the body sees.
    xs = [move_axis(x, 0, 1) if flag else x for x, flag in zip(xs, x_flags)]
    init = batch_values(axis, init, init_flags, carry_flags)
    outs = primitive.bind(
        *consts, *init, *xs, jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, **params)
    ys = [move_axis(y, 1, 0) if flag else y for y, flag in zip(outs[num_carry:], y_flags)]
    flags = [*carry_flags, *y_flags]
    return [out if flag else Unmapped(out) for out, flag in zip([*outs[:num_carry], *ys], flags)]


@define("scan", impl=_run_scan, eager=_run_scan_at_once, aval=_scan_aval, jvp=jvp_scan,
        transpose=transpose_scan, partial=split_scan, batch=_batch_scan, lower=_lower_scan, hlo=_hlo_scan,
        multiple_results=True, effects=control.effects_of_jaxprs, stores_result=True, control_flow=True)
def scan(f: Callable, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
         unroll: int | bool = 1):
    """Carries a value through f over the leading axis of xs, and stacks what f returns beside it.

    Same as:
        carry, ys = init, []
        for x in xs:                      # reversed(xs) when reverse
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)        # in the order of xs

    Args:
        f: (carry, x) -> (carry, y).
        init: pytree of arrays. A weakly typed leaf takes the dtype that f returns for it.
        xs: pytree of arrays with one leading extent, or None for `length` calls with x=None.
        length: number of iterations; must agree with xs.
        reverse: from the last element to the first.
        unroll: iterations that a compiled loop does per round; True for all of them. It changes no value.

    Returns: (carry, ys), ys with a leading axis of the length.
    Raises: TypeError naming the component of the carry that f changes; ValueError for lengths that disagree.
    """
    control.check_callable("lax.scan: f argument should be a callable.", f)
    _check_unroll(unroll)
    x_leaves, x_tree, x_avals = control.flatten_operands(xs)
    length = _find_length(x_leaves, x_avals, length)
    carry, carry_tree, carry_avals = control.flatten_operands(init)
    if control.runs_in_python(*carry, *x_leaves):
        carry = carry_tree.unflatten([to_array(leaf) for leaf in carry])
        return _scan_in_python(f, carry, x_leaves, x_tree, length, reverse)
    elements = [aval.update(shape=aval.shape[1:]) for aval in x_avals]
    args_tree = treedef_tuple((carry_tree, x_tree))
    refs: dict = {}
    body = _trace_body(watch_refs(f, refs), args_tree, carry_avals + elements)
    if refs:
        return _scan_with_refs(list(refs), f, init, xs, length, reverse, unroll)
    while tree_flatten(body.out_example[0])[1] == carry_tree:
        promoted = control.promote_carry(carry, carry_avals, body.out_avals[: carry_tree.num_leaves])
        if promoted is None:
            break
        carry, carry_avals = promoted, [aval_of(leaf) for leaf in promoted]
        body = _trace_body(f, args_tree, carry_avals + elements)
    while marked := control.mark_carry(carry, carry_avals, body.out_avals[: carry_tree.num_leaves]):
        carry, carry_avals = marked, [aval_of(leaf) for leaf in marked]
        body = _trace_body(f, args_tree, carry_avals + elements)
    body = control.widen_outputs(body, carry_avals)
    control.check_carry("scan", f, 0, carry_tree, carry_avals, body.out_example[0])
    jaxpr, consts = body.close()
    outs = scan.primitive.bind(*consts, *carry, *x_leaves, jaxpr=jaxpr, length=length, reverse=bool(reverse),
                               num_consts=len(consts), num_carry=len(carry), unroll=unroll)
    return body.out_tree.unflatten(outs)


def _scan_with_refs(refs, f, init, xs, *rest):
    """What references hold is part of the carry."""

    def step(state, x):
        with lend(refs, state[1]):
            carry, y = f(state[0], x)
            return (carry, read_refs(refs)), y

    (carry, values), ys = scan(step, (init, read_refs(refs)), xs, *rest)
    write_refs(refs, values)
    return carry, ys


def _check_unroll(unroll) -> None:
    if not isinstance(unroll, (bool, int)) or unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")


def _trace_body(f: Callable, args_tree, avals) -> control.TracedFunction:
    body = control.trace_function(f, args_tree, avals, "scan")
    if not isinstance(body.out_example, tuple) or len(body.out_example) != 2:
        text = body.out_example if isinstance(body.out_example, ShapedArray) else body.out_tree
        raise TypeError(f"scan body output must be a pair, got {text}.")
    return body


def _find_length(leaves, avals, length):
    """The number of iterations. Raises: ValueError when it is unknown or the arrays disagree about it."""
    for leaf, aval in zip(leaves, avals):
        if not aval.shape:
            raise ValueError(f"scan got value with no leading axis to scan over: {leaf}.")
    extents = list(dict.fromkeys(aval.shape[0] for aval in avals))
    if length is not None:
        length = _as_length(length)
        if any(extent != length for extent in extents):
            sizes = [aval.shape[0] for aval in avals]
            raise ValueError(f"scan got `length` argument of {length} "
                             f"which disagrees with leading axis sizes {sizes}.")
        return length
    if not extents:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(extents) > 1:
        raise ValueError("scan got values with different leading axis sizes: "
                         f"{', '.join(str(aval.shape[0]) for aval in avals)}.")
    return extents[0]


def _as_length(length):
    if isinstance(length, Tracer):
        origin = origin_of(length.owner, length)
        raise argument_errors.argument_value_error("lax.scan", "length", length.aval.long(), origin,
                                                   user_snippet())
    if isinstance(length, DimExpr):
        return length
    try:
        return max(operator.index(length), 0)
    except TypeError:
        raise TypeError(f"scan `length` must be an integer, got {length!r}") from None


def _scan_in_python(f: Callable, carry, x_leaves, x_tree, length: int, reverse: bool):
    rows = [to_numpy(leaf) for leaf in x_leaves]
    collected: list = [None] * length
    y_tree = None
    for i in range(length - 1, -1, -1) if reverse else range(length):
        x = x_tree.unflatten([to_array(row[i]) for row in rows])
        carry, y = f(carry, x)
        collected[i], y_tree = tree_flatten(y)
    if y_tree is None:
        raise ValueError("zero-length scan is not supported in disable_jit() mode "
                         "because the output type is unknown.")
    return carry, y_tree.unflatten([_stack(column) for column in zip(*collected)])


def _stack(column) -> ConcreteArray:
    dtype, weak = dtypes.result_type(*column, return_weak_type_flag=True)
    return ConcreteArray(np.stack([to_numpy(y).astype(dtype) for y in column]), weak)


def map(f: Callable, xs: Any, *, batch_size: int | None = None):
    """f of each element along the leading axis of xs, stacked.

    Same as:
        return np.stack([f(x) for x in xs])

    Args:
        f: x -> pytree of arrays.
        xs: pytree of arrays with one leading extent.
        batch_size: accepted for compatibility; it bounds memory elsewhere and never changes values."""
    if batch_size is not None and operator.index(batch_size) <= 0:
        raise ValueError(f"batch_size must be positive, got {batch_size}")
    return scan(lambda _, x: ((), f(x)), (), xs)[1]
