"""`while_loop` and `fori_loop`: loops whose trip count is known at run time.

In: a condition, a body and an initial carry. Out: the last carry. `fori_loop` with bounds that Python can
read is a `scan`: its trip count then is a fact of the program, which reverse-mode differentiation needs.

The primitive `while` has a second form, which `vmap` makes of a loop whose condition differs from element to
element. There the condition is bool[lanes] for some leading shape `lanes`, all carries begin with these axes,
and each lane goes on until its own condition fails; from then on it keeps its carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.array import ConcreteArray
from jitcore.core.interpret import build_program
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, aval_of
from jitcore.core.refs import lend, read_refs, watch_refs, write_refs
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import run_compiled, to_array, to_numpy
from jitcore.lax import elementwise
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.loops import Loop
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_derivatives import jvp_while, split_while, transpose_while
from jitcore.lax.define import cast, define
from jitcore.transforms.batching import Unmapped, batch_values
from jitcore.tree_util import tree_leaves, tree_map, treedef_is_leaf, treedef_tuple


def _iterate(args: Sequence[np.ndarray], cond_nconsts: int, cond_jaxpr: ClosedJaxpr, body_nconsts: int,
             body_jaxpr: ClosedJaxpr) -> Iterator[Sequence[np.ndarray]]:
    """The carry before each round, and at last the one for which the condition does not hold."""
    holds, body = build_program(cond_jaxpr), build_program(body_jaxpr)
    cond_consts, body_consts, carry = control.split_operands(args, cond_nconsts, body_nconsts)
    yield carry
    if not _is_batched(cond_jaxpr=cond_jaxpr):
        while holds([*cond_consts, *carry])[0]:
            carry = body([*body_consts, *carry])
            yield carry
        return
    active = holds([*cond_consts, *carry])[0]
    while active.any():
        carry = _keep_stopped(active, body([*body_consts, *carry]), carry)
        yield carry
        active = active & holds([*cond_consts, *carry])[0]


def _run_while(*args: np.ndarray, **params) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        for carry in _iterate(args, **params):
            pass
    return list(carry)


def _run_while_at_once(*args: np.ndarray, **params) -> list[np.ndarray]:
    """Outside of every trace: what is left of a long loop is compiled. Lanes of a batch that have stopped
    stay so, as the condition does not hold for their carry."""
    equations = 1 + sum(control.count_equations(params[name]) for name in ("cond_jaxpr", "body_jaxpr"))
    most = control.MOST_EAGER_EQUATIONS // equations
    with np.errstate(all="ignore"):
        for count, carry in enumerate(_iterate(args, **params)):
            if count == most and control.may_compile():
                consts = args[: params["cond_nconsts"] + params["body_nconsts"]]
                return run_compiled(while_loop.primitive, [*consts, *carry], params)  # type: ignore[attr-defined]
    return list(carry)


def _is_batched(*, cond_jaxpr: ClosedJaxpr, **_) -> bool:
    """Whether each element of a batch has a condition of its own."""
    return bool(cond_jaxpr.out_avals[0].shape)


def _keep_stopped(active: np.ndarray, stepped: Sequence[np.ndarray], carry: Sequence[np.ndarray]) -> list:
    """The carry after a step: lanes that have stopped keep theirs."""
    masks = [active.reshape(active.shape + (1,) * (old.ndim - active.ndim)) for old in carry]
    return [np.where(mask, new, old) for mask, new, old in zip(masks, stepped, carry)]


def _while_aval(*avals: ShapedArray, cond_nconsts: int, cond_jaxpr: ClosedJaxpr, body_nconsts: int,
                body_jaxpr: ClosedJaxpr) -> list[ShapedArray]:
    cond_consts, body_consts, carry = control.split_operands(avals, cond_nconsts, body_nconsts)
    for jaxpr, consts in ((cond_jaxpr, cond_consts), (body_jaxpr, body_consts)):
        expected = [(aval.shape, aval.dtype) for aval in jaxpr.in_avals]
        if expected != [(aval.shape, aval.dtype) for aval in (*consts, *carry)]:
            raise TypeError("while called with operands of other types than its jaxprs take")
    (test,) = cond_jaxpr.out_avals
    if any(aval.shape[: test.ndim] != test.shape for aval in carry):
        raise TypeError(f"while called with a carry that does not begin with the axes of {test.long()}")
    return body_jaxpr.out_avals


def _lower_while(builder, *operands, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    cond_consts, body_consts, init = control.split_operands(operands, cond_nconsts, body_nconsts)
    return builder.while_loop(cond_jaxpr, cond_consts, body_jaxpr, body_consts, init)


def _hlo_while(b, *operands, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    cond_consts, body_consts, init = control.split_operands(operands, cond_nconsts, body_nconsts)
    batch_shape = cond_jaxpr.out_avals[0].shape

    def test(carry):
        return b.inline(cond_jaxpr, [*cond_consts, *carry])[0]

    def step(carry):
        return b.inline(body_jaxpr, [*body_consts, *carry])

    def step_batch(active, *carry):
        stepped = [b.choose(b.broadcast(active, old.shape, range(active.ndim)), new, old)
                   for new, old in zip(step(carry), carry)]
        return [b.map("and", active, test(stepped)), *stepped]

    if not batch_shape:
        return b.loop(lambda *carry: test(carry), lambda *carry: step(carry), init)
    return b.loop(lambda active, *_: b.reduce("or", active, range(len(batch_shape))), step_batch,
                  [test(init), *init])[1:]


def _batch_while(primitive, axis, values, batched, *, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    loop = Loop(cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts)
    cond_flags, body_flags, init_flags = loop.split(batched)
    batched_loop, flags = loop.batch(axis, cond_flags, body_flags, init_flags)
    cond_consts, body_consts, init = loop.split(values)
    outs = batched_loop.bind(cond_consts, body_consts, batch_values(axis, init, init_flags, flags))
    return [out if flag else Unmapped(out) for out, flag in zip(outs, flags)]


@define("while", impl=_run_while, eager=_run_while_at_once, aval=_while_aval, jvp=jvp_while,
        transpose=transpose_while, partial=split_while, batch=_batch_while, lower=_lower_while,
        hlo=_hlo_while, multiple_results=True, effects=control.effects_of_jaxprs, stores_result=True,
        control_flow=True)
def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any):
    """Applies body_fun to the carry for as long as cond_fun holds.

    Same as:
        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Args:
        cond_fun: carry -> scalar bool.
        body_fun: carry -> carry of the same structure, shapes and dtypes.
        init_val: pytree of arrays. A weakly typed leaf takes the dtype that the body returns for it.

    Raises: TypeError naming the component of the carry that the body changes, or when cond_fun returns no
        bool."""
    message = "lax.while_loop: body_fun and cond_fun arguments should be callable."
    control.check_callable(message, cond_fun, body_fun)
    init, in_tree, avals = control.flatten_operands(init_val)
    if control.runs_in_python(*init):
        return _loop_in_python(cond_fun, body_fun, in_tree.unflatten(map(to_array, init)))
    args_tree = treedef_tuple((in_tree,))
    refs: dict = {}
    body = control.trace_function(watch_refs(body_fun, refs), args_tree, avals, "while_loop")
    if refs:
        return _loop_with_refs([*refs], cond_fun, body_fun, init_val)
    while body.out_tree == in_tree:
        promoted = control.promote_carry(init, avals, body.out_avals)
        if promoted is None:
            break
        init, avals = promoted, list(map(aval_of, promoted))
        body = control.trace_function(body_fun, args_tree, avals, "while_loop")
    while marked := control.mark_carry(init, avals, body.out_avals):
        init, avals = marked, list(map(aval_of, marked))
        body = control.trace_function(body_fun, args_tree, avals, "while_loop")
    body = control.widen_outputs(body, avals)
    control.check_carry("while_loop", body_fun, 0, in_tree, avals, body.out_example)
    cond = control.trace_function(watch_refs(cond_fun, refs), args_tree, avals, "while_cond")
    if refs:
        return _loop_with_refs([*refs], cond_fun, body_fun, init_val)
    _check_condition(cond)
    cond_jaxpr, cond_consts = cond.close()
    body_jaxpr, body_consts = body.close()
    outs = while_loop.primitive.bind(
        *cond_consts, *body_consts, *init, cond_nconsts=len(cond_consts), cond_jaxpr=cond_jaxpr,
        body_nconsts=len(body_consts), body_jaxpr=body_jaxpr)
    return in_tree.unflatten(outs)


def _loop_with_refs(refs, cond_fun: Callable, body_fun: Callable, init_val):
    """What references hold is part of the carry."""

    def holds(state):
        with lend(refs, state[1]):
            answer = cond_fun(state[0])
            if any(ref.value is not old for ref, old in zip(refs, state[1])):
                raise NotImplementedError("cond_fun of while_loop writes to an array reference")
            return answer

    def step(state):
        with lend(refs, state[1]):
            return body_fun(state[0]), read_refs(refs)

    val, values = while_loop(holds, step, (init_val, read_refs(refs)))
    write_refs(refs, values)
    return val


def _loop_in_python(cond_fun: Callable, body_fun: Callable, val):
    while cond_fun(val):
        val = body_fun(val)
    return val


def _check_condition(cond: control.TracedFunction) -> None:
    if not treedef_is_leaf(cond.out_tree):
        raise TypeError(f"cond_fun must return a boolean scalar, but got pytree {cond.out_tree}.")
    (aval,) = cond.out_avals
    if aval.shape or aval.dtype != dtypes.bool_:
        raise TypeError(f"cond_fun must return a boolean scalar, but got output type(s) {cond.out_avals}.")


def fori_loop(lower, upper, body_fun: Callable, init_val: Any, *, unroll: int | bool | None = None):
    """Applies body_fun to each integer of [lower, upper) and the carry.

    Same as:
        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Args:
        lower, upper: integer scalars of one dtype; a Python int takes the other's dtype, and what is known
            counts as a Python int, unless it has 64 bits.
        body_fun: (i, carry) -> carry of the same structure, shapes and dtypes.
        init_val: pytree of arrays.
        unroll: iterations that a compiled loop does per round, as in `scan`; only for bounds that are known.

    Raises: TypeError for bounds that are not integers of one dtype, and as `while_loop` does; ValueError for
        `unroll` with traced bounds."""
    control.check_callable("lax.fori_loop: body_fun argument should be callable.", body_fun)
    lower, upper = _join_bounds(lower, upper)
    if control.runs_in_python(lower, upper, *tree_leaves(init_val)):
        return _count_in_python(lower, upper, body_fun, init_val)
    if control.is_concrete(lower, upper):
        return _loop_counted(lower, upper, body_fun, init_val, unroll)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

    def holds(carry):
        i, stop, _ = carry
        return elementwise.lt(i, stop)

    def body(loop_carry):
        i, stop, val = loop_carry
        return elementwise.add(i, _one_like(i)), stop, body_fun(i, val)

    _, _, result = while_loop(holds, body, (lower, upper, init_val))
    return result


def _join_bounds(lower, upper):
    lower, upper = (b.__jax_array__() if isinstance(b, DimExpr) else b for b in (lower, upper))
    avals = [control.as_scalar("fori_loop bound", bound) for bound in (lower, upper)]
    names = " and ".join(aval.dtype.name for aval in avals)
    if not all(dtypes.is_integer(aval.dtype) for aval in avals):
        raise TypeError(f"lower and upper arguments to fori_loop must be integers, got {names}")
    is_one = avals[0].dtype == avals[1].dtype
    is_joined = any(aval.weak_type for aval in avals) or dtypes.differ_in_width(*[a.dtype for a in avals])
    if not is_one and not is_joined:
        raise TypeError(f"lower and upper arguments to fori_loop must have equal types, got {names}")
    default = dtypes.default_dtype("i")
    if control.is_concrete(lower, upper) and all(aval.dtype.itemsize <= default.itemsize for aval in avals):
        known = [int(to_numpy(bound)) for bound in (lower, upper)]
        if max(known) <= np.iinfo(default).max:  # as Python's ints, whatever dtype they have
            return tuple(ConcreteArray(np.array(bound, default), True) for bound in known)
    if is_one:
        return lower, upper
    dtype, weak = dtypes.join_types(*[(aval.dtype, aval.weak_type) for aval in avals])
    return tuple(cast(bound, aval, dtype, weak) for bound, aval in zip((lower, upper), avals))


def _count_in_python(lower, upper, body_fun: Callable, init_val):
    aval, val = aval_of(lower), tree_map(to_array, init_val)
    for i in range(int(to_numpy(lower)), int(to_numpy(upper))):
        val = body_fun(ConcreteArray(np.array(i, aval.dtype), aval.weak_type), val)
    return val


def _loop_counted(lower, upper, body_fun: Callable, init_val, unroll):
    length = max(int(to_numpy(upper)) - int(to_numpy(lower)), 0)

    def step(loop_carry, _):
        i, val = loop_carry
        return (elementwise.add(i, _one_like(i)), body_fun(i, val)), None

    unroll = 1 if unroll is None else unroll
    (_, result), _ = scan(step, (lower, init_val), None, length=length, unroll=unroll)
    return result


def _one_like(i):
    aval = aval_of(i)
    return 1 if aval.weak_type else aval.dtype.type(1)
