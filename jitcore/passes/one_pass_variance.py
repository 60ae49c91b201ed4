"""Sums of squared distances from the mean, of rows that are longer than caches: made in one reading.

In: a jaxpr. Out: the same program, in which `sum((x - mean(x)) ** 2)` over long rows goes block by block: a
block's own sum, then the squares of distances from its own mean, while it is in the first cache. From those
of the blocks follow those of the row: what a block lacks is its length times the squared distance of the
means (Chan, Golub and LeVeque 1983). Nothing cancels, so results are as exact as by two readings.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from jitcore import dtypes, lax
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, Var
from jitcore.lax.indexing.windows import is_known
from jitcore.passes.tuning import DEFAULT, Tuning
from jitcore.passes.walk import Rule, Walk, rewrite_jaxprs


class _Pair(NamedTuple):
    """rows: the array, whose last axes are reduced. n_kept: how many axes are not. total: its sum."""

    rows: Var
    n_kept: int
    total: Var


def block_variances(closed_jaxpr: ClosedJaxpr, tuning: Tuning = DEFAULT) -> ClosedJaxpr:
    """Divides the rows of each sum of squares whose distances are those from the mean."""
    return rewrite_jaxprs(closed_jaxpr, functools.partial(_plan_division, tuning=tuning))


def _plan_division(closed_jaxpr: ClosedJaxpr, tuning: Tuning) -> Rule:
    pairs, block = _find_pairs(closed_jaxpr.eqns, tuning.min_row_bytes), tuning.block_bytes
    totals = {pair.total: pair for pair in pairs.values()}
    sums: dict[Var, Atom] = {}

    def rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
        out = eqn.outvars[0] if eqn.outvars else None
        if out in totals:
            total, sums[out] = walk.spell(lambda x: _sum_rows(x, totals[out].n_kept, block), eqn.invars)
            return [total]
        if out in pairs:
            rows, n_kept, total = pairs[out]
            return walk.spell(lambda *given: [_sum_squares(*given, n_kept, block)],
                              [walk.read(rows), sums[total], walk.read(total)])
        return None

    return rule


# -- what is written ----------------------------------------------------------------------------------------
def _cut(x, n_kept: int, nbytes: int) -> tuple:
    """(x with blocks and their elements as last axes, what they leave of each row or None)."""
    kept, length = x.shape[:n_kept], math.prod(x.shape[n_kept:])
    block = nbytes // x.dtype.itemsize
    count, rest = divmod(length, block)
    if not rest:
        return lax.reshape(x, (*kept, count, block)), None
    x, end = lax.reshape(x, (*kept, length)), length - rest
    blocks = lax.reshape(lax.slice_in_dim(x, 0, end, axis=n_kept), (*kept, count, block))
    return blocks, lax.slice_in_dim(x, end, length, axis=n_kept)


def _sum_rows(x, n_kept: int, nbytes: int) -> list:
    """[the sum of each row, those of its blocks]."""
    blocks, rest = _cut(x, n_kept, nbytes)
    sums = _sum_last(blocks)
    total = _sum_last(sums)
    return [total if rest is None else lax.add(total, _sum_last(rest)), sums]


def _sum_squares(x, sums, total, n_kept: int, nbytes: int):
    """The sum of squares of each row, by the sums of its blocks and its own. What blocks leave of a row is
    short enough to stay in the cache."""
    blocks, rest = _cut(x, n_kept, nbytes)
    mean = _divide_by(total, math.prod(x.shape[n_kept:]))
    means = _divide_by(sums, blocks.shape[-1])
    apart = _square(means, mean)
    inside = _sum_last(_square(blocks, means))
    squares = _sum_last(lax.add(inside, lax.mul(apart, apart.dtype.type(blocks.shape[-1]))))
    return squares if rest is None else lax.add(squares, _sum_last(_square(rest, mean)))


def _square(x, mean):
    """Squared distances of the elements of rows from a number for each row."""
    mean = lax.broadcast_in_dim(mean, x.shape, tuple(range(mean.ndim)))
    return lax.square(lax.sub(x, mean))


def _sum_last(x):
    return lax.reduce_sum(x, (x.ndim - 1,))


def _divide_by(x, count: int):
    return lax.div(x, x.dtype.type(count))


# -- what is looked for -------------------------------------------------------------------------------------
def _find_pairs(eqns: list[Equation], least: int) -> dict[Var, _Pair]:
    """By the sum of squares. least: bytes of a row."""
    defined = {var: eqn for eqn in eqns for var in eqn.outvars}
    sums = [eqn for eqn in eqns if eqn.primitive.name == "reduce_sum"]
    return {eqn.outvars[0]: pair for eqn in sums if (pair := _find_pair(defined, eqn, least)) is not None}


def _find_pair(defined: dict[Var, Equation], eqn: Equation, least: int) -> _Pair | None:
    distance, axes = _find_squared(defined, eqn.invars[0]), tuple(sorted(eqn.params["axes"]))
    if distance is None or distance.primitive.name != "sub":
        return None
    if not _has_long_rows(distance.invars[0], axes, least):
        return None
    rows, mean = distance.invars
    total = _find_total(defined, mean, rows, axes)
    return None if total is None else _Pair(rows, rows.aval.ndim - len(axes), total)


def _find_squared(defined: dict[Var, Equation], atom: Atom) -> Equation | None:
    """What computes the number whose square this is."""
    eqn = defined.get(atom)
    if eqn is None:
        return None
    name, (x, *others) = eqn.primitive.name, eqn.invars or (None,)
    is_square = name == "square" or name == "mul" and others == [x]
    is_square = is_square or name == "integer_pow" and eqn.params["y"] == 2
    return defined.get(x) if is_square else None


def _has_long_rows(x: Atom, axes: tuple[int, ...], least: int) -> bool:
    """Whether the axes are the last ones of an array of known shape, and its rows do not fit caches."""
    shape, kind = x.aval.shape, x.aval.dtype
    if not isinstance(x, Var) or kind not in (dtypes.float32, dtypes.float64):
        return False
    if not is_known(shape) or axes != tuple(range(len(shape) - len(axes), len(shape))):
        return False
    return math.prod(shape[axis] for axis in axes) * kind.itemsize >= least


def _find_total(defined: dict[Var, Equation], mean: Atom, rows: Var, axes: tuple[int, ...]) -> Var | None:
    """The sum that a mean in the shape of the rows comes from: broadcast, divided, and broadcast, if at all,
    so that reduced axes have one element in between."""
    shape, kept = rows.aval.shape, tuple(axis for axis in range(rows.aval.ndim) if axis not in axes)
    count, divided = math.prod(shape[axis] for axis in axes), False
    while (eqn := defined.get(mean)) is not None:
        name, out = eqn.primitive.name, eqn.outvars[0].aval
        if name == "reduce_sum":
            fits = divided and eqn.invars[0] is rows and tuple(sorted(eqn.params["axes"])) == axes
            return mean if fits else None
        if name == "div" and not divided and isinstance(eqn.invars[1], Literal):
            divided = eqn.invars[1].to_numpy() == out.dtype.type(count)
            if not divided:
                return None
        elif name != "broadcast_in_dim" or not _keeps_rows(eqn, out, shape, kept):
            return None
        mean = eqn.invars[0]
    return None


def _keeps_rows(eqn: Equation, out, shape: tuple, kept: tuple[int, ...]) -> bool:
    """Whether the operand, an element for each row with or without axes of one, stays with its row."""
    places = eqn.params["broadcast_dimensions"]
    if out.ndim != len(shape) or any(out.shape[axis] != shape[axis] for axis in kept):
        return False
    operand = eqn.invars[0].aval.shape
    return places == kept or (places == tuple(range(len(shape)))
                              and all(operand[axis] == 1 for axis in range(len(shape)) if axis not in kept))
