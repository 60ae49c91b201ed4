"""`cond` and `switch`: one of several functions, chosen at run time.

In: a scalar predicate or index, functions and operands. Out: the chosen function's output. Every branch is
traced, also when the choice is already known, so that branches that do not fit together raise in each case;
only the chosen one runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.core import source
from jitcore.core.interpret import build_program
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, Var, aval_of, eval_jaxpr
from jitcore.core.refs import enclose_refs, lend, read_refs, watch_refs, write_refs
from jitcore.core.trace import to_numpy
from jitcore.errors import arguments
from jitcore.lax import elementwise
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.callback import reject_io
from jitcore.lax.control_flow.cond_derivatives import jvp_cond, split_cond, transpose_cond
from jitcore.lax.define import cast, define
from jitcore.lax.shape import broadcast_in_dim
from jitcore.transforms.batching import Unmapped, batch_jaxpr
from jitcore.tree_util import tree_flatten_with_path
from jitcore.tree_util.nodes import keystr

_NO_OPERAND = object()


Branches = tuple[ClosedJaxpr, ...]


def _run_cond(index: np.ndarray, *operands: np.ndarray, branches: Branches) -> list[np.ndarray]:
    chosen = min(max(int(index), 0), len(branches) - 1)
    with np.errstate(all="ignore"):
        return build_program(branches[chosen])(operands)


def _cond_aval(index: ShapedArray, *operands: ShapedArray, branches: Branches) -> list[ShapedArray]:
    if index.shape or index.dtype != dtypes.int32:
        raise TypeError(f"cond takes an int32 scalar as index, got {index.long()}")
    for branch in branches:
        if [_type_of(aval) for aval in branch.in_avals] != [_type_of(aval) for aval in operands]:
            raise TypeError("cond called with operands of other types than its branches take")
    return [_join_outputs(index, avals) for avals in zip(*(branch.out_avals for branch in branches))]


def _type_of(aval: ShapedArray) -> tuple:
    return aval.shape, aval.dtype


def _join_outputs(index: ShapedArray, avals: Sequence[ShapedArray]) -> ShapedArray:
    """The type is weak where it is weak in every branch; the value varies where the choice or a branch
    does."""
    varying = index.varying.union(*(aval.varying for aval in avals))
    return avals[0].update(weak_type=all(aval.weak_type for aval in avals), varying=varying)


def _hlo_cond(b, index, *operands, branches, **_):
    last = b.constant(len(branches) - 1, index.dtype)
    index = b.op("clamp", b.constant(0, index.dtype), index, last, shape=())
    regions = [b.region([], lambda branch=branch: b.inline(branch, operands)) for branch in branches]
    return b.ops("case", [index], [(aval.shape, aval.dtype) for aval in branches[0].out_avals], regions)


def _batch_cond(primitive, axis, values, batched, *, branches):
    index, *operands = values
    index_batched, *flags = batched
    if index_batched:
        return _select_branch(axis, index, operands, flags, branches)
    found = [batch_jaxpr(branch, axis, flags)[1] for branch in branches]
    wanted = list(map(any, zip(*found)))
    batched_branches = tuple(batch_jaxpr(branch, axis, flags, wanted)[0] for branch in branches)
    outs = primitive.bind(index, *operands, branches=batched_branches)
    return [out if flag else Unmapped(out) for out, flag in zip(outs, wanted)]


def _select_branch(axis, index, operands, flags, branches: Branches) -> list:
    """Each element chooses its own branch: all branches run, and a selection follows.

    Raises: NotImplementedError for a branch with input or output, which would happen for all elements."""
    reject_io("cond", *branches)
    cases = []
    for branch in branches:
        jaxpr, _ = batch_jaxpr(branch, axis, flags, [True] * len(branch.out_avals))
        cases.append(eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, operands))
    if len(branches) == 2:
        which = elementwise.gt(index, np.int32(0))
    else:
        which = elementwise.clamp(np.int32(0), index, np.int32(len(branches) - 1))
    return [elementwise.select_n(_spread(which, outs[0]), *outs) for outs in zip(*cases)]


def _spread(which, like):
    """An index for each element of the batch in the shape of an array with the batch axis first."""
    return broadcast_in_dim(which, aval_of(like).shape, (0,))


@define("cond", impl=_run_cond, aval=_cond_aval, jvp=jvp_cond, transpose=transpose_cond, partial=split_cond,
        batch=_batch_cond,
        lower=lambda builder, index, *operands, branches, **_: builder.switch(index, branches, operands),
        hlo=_hlo_cond, multiple_results=True, effects=control.effects_of_jaxprs, stores_result=True,
        control_flow=True)
def cond(pred, true_fun: Callable, false_fun: Callable, *operands: Any, operand: Any = _NO_OPERAND):
    """`true_fun(*operands)` if pred, else `false_fun(*operands)`.

    Same as:
        return true_fun(*operands) if pred else false_fun(*operands)

    Args:
        pred: scalar of bool or number; a number counts as `pred != 0`.
        true_fun, false_fun: functions of the operands; they may use traced values from outside.
        operands: pytrees of arrays. operand: the older spelling of one operand.
        Older still is `cond(pred, x, true_fun, y, false_fun)`: each function has an operand of its own.

    Returns: the output of the chosen function. Where one branch's output is strongly typed, the result is.
    Raises: TypeError when the outputs differ in structure, shape or dtype, or pred is no scalar.
    Cost: both functions are traced, one runs."""
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        true_fun, false_fun, operands = _share_operands(true_fun, false_fun, *operands)
    operands = _merge_operand(operands, operand)
    message = "lax.cond: true_fun and false_fun arguments should be callable."
    control.check_callable(message, true_fun, false_fun)
    (true_fun, false_fun), operands = enclose_refs((true_fun, false_fun), operands, "cond")
    aval = control.as_scalar("Pred", pred)
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"Pred type must be either boolean or number, got {aval.dtype.name}.")
    if control.runs_in_python(pred):
        return true_fun(*operands) if to_numpy(pred) else false_fun(*operands)
    if aval.dtype != dtypes.bool_:
        pred = elementwise.ne(pred, aval.dtype.type(0))
    index = _to_index(pred)
    return _choose("cond", ("true_fun", "false_fun"), index, (false_fun, true_fun), operands)


def _share_operands(true_operand, true_fun: Callable, false_operand, false_fun: Callable) -> tuple:
    """Functions of both operands, of which each takes its own, and the operands."""
    take_first = functools.wraps(true_fun)(lambda first, _: true_fun(first))
    take_second = functools.wraps(false_fun)(lambda _, second: false_fun(second))
    return take_first, take_second, (true_operand, false_operand)


def switch(index, branches: Sequence[Callable], *operands: Any, operand: Any = _NO_OPERAND):
    """`branches[index](*operands)`, with the index clamped to the branches there are.

    Same as:
        return branches[clamp(0, index, len(branches) - 1)](*operands)

    Args:
        index: scalar of an integer dtype.
        branches: functions of the operands.
        operands: pytrees of arrays. operand: the older spelling of one operand.

    Raises: ValueError for an empty sequence; TypeError as `cond` does, or when the index is no integer
        scalar.
    Cost: all branches are traced, one runs."""
    operands = _merge_operand(operands, operand)
    control.check_callable("lax.switch: branches argument should be a sequence of callables.", *branches)
    aval = control.as_scalar("Branch index", index)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"Index type must be an integer, got {index!r} as {aval.dtype.name}")
    branches, operands = enclose_refs(branches, operands, "switch")
    if not branches:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if control.runs_in_python(index):
        return branches[min(max(int(index), 0), last)](*operands)
    names = tuple(f"branch {i}" for i in range(len(branches)))
    if control.is_concrete(index):
        clamped = np.int32(min(max(int(index), 0), last))
    else:
        # Clamped in its own dtype: a conversion first could wrap a large index.
        bound = min(last, int(np.iinfo(aval.dtype).max))
        clamped = _to_index(elementwise.clamp(aval.dtype.type(0), index, aval.dtype.type(bound)))
    return _choose("switch", names, clamped, branches, operands)


def _merge_operand(operands: tuple, operand: Any) -> tuple:
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError("if 'operand' keyword is passed then no positional operands can be passed, "
                        f"got {operand=!r} and positional operands {operands!r}")
    return (operand,)


def _to_index(value):
    if control.is_concrete(value):
        return np.int32(to_numpy(value))
    return cast(value, value.aval, dtypes.int32, False)


def _choose(primitive: str, names: tuple[str, ...], index, functions: tuple[Callable, ...], operands: tuple):
    leaves, in_tree, avals = control.flatten_operands(operands)
    refs: dict = {}
    traced = [control.trace_function(watch_refs(function, refs), in_tree, avals, primitive)
              for function in functions]
    if refs:
        return _choose_with_refs(list(refs), primitive, names, index, functions, operands)
    rows = zip(*(function.out_avals for function in traced))
    widest = [max(avals, key=lambda aval: aval.dtype.itemsize) for avals in rows]
    traced = [control.widen_outputs(function, widest) for function in traced]
    if primitive == "cond":  # the error text speaks of true_fun first; the index counts false_fun first
        _check_outputs(primitive, names, functions[::-1], traced[::-1])
    else:
        _check_outputs(primitive, names, functions, traced)
    branches, consts = join_consts(traced)
    outs = cond.primitive.bind(index, *consts, *leaves, branches=branches)
    return traced[0].out_tree.unflatten(outs)


def _choose_with_refs(refs, primitive: str, names, index, functions: tuple[Callable, ...], operands: tuple):
    """What references hold is an operand and a result."""

    def wrap(function):
        @functools.wraps(function)
        def run(values, operands):
            with lend(refs, values):
                return function(*operands), read_refs(refs)

        return run

    operands = read_refs(refs), operands
    out, values = _choose(primitive, names, index, tuple(map(wrap, functions)), operands)
    write_refs(refs, values)
    return out


def join_consts(traced: Sequence[control.TracedFunction]) -> tuple[tuple[ClosedJaxpr, ...], list]:
    """The branches with one common list of leading operands for the values that any of them closes over."""
    consts: dict[int, Any] = {}
    for function in traced:
        consts.update((id(const), const) for const in function.consts)
    avals = [aval_of(const) for const in consts.values()]
    branches = []
    for function in traced:
        own = dict(zip(map(id, function.consts), function.jaxpr.constvars))
        leading = [own[key] if key in own else Var(aval) for key, aval in zip(consts, avals)]
        jaxpr = function.jaxpr.replace(constvars=[], invars=leading + function.jaxpr.invars)
        branches.append(ClosedJaxpr(jaxpr))
    return tuple(branches), list(consts.values())


def _check_outputs(primitive: str, names, functions, traced: Sequence[control.TracedFunction]) -> None:
    first = traced[0]
    places = [" at ".join(filter(None, source.locate_function(function))) for function in functions]
    for name, place, other in zip(names[1:], places[1:], traced[1:]):
        pair, locations = (names[0], name), (places[0], place)
        if other.out_tree != first.out_tree:
            path, difference = control.find_structure_difference(first.out_example, other.out_example)
            at = f" at path {path}" if path else ""
            text = difference.format(f"{pair[0]} output{at}", f"{pair[1]} output{at}")
            raise arguments.branch_structure_error(primitive, pair, locations, text)
        for (path, aval), found in zip(tree_flatten_with_path(first.out_example)[0], other.out_avals):
            if _type_of(aval) != _type_of(found):
                types = (aval.long() + (f" at path {keystr(path)}" if path else ""), found.long())
                difference = control.describe_type_difference(aval, found)
                raise arguments.branch_types_error(primitive, pair, locations, types, difference)
