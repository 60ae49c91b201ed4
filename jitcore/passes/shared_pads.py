"""Pads of one array: where it is wanted at several offsets within zeros, it is padded once, and sliced.

In: a jaxpr. Out: the same program. The derivative of a stencil is a sum of pads, one for each of its points:
every pad would be an array of its own in memory, while slices of one array are read where they lie, by one
loop.
"""

from __future__ import annotations

import math

from jitcore.core.jaxpr import ClosedJaxpr, Equation, Literal, Var
from jitcore.core.primitive import registry
from jitcore.passes.canonical import encode_literal
from jitcore.passes.walk import Transform, map_inner_jaxprs, rewrite_each_once

# The common array may have so many times the elements of one pad; it has more where offsets are far apart.
MAX_GROWTH = 1.25


def share_pads(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces pads of one operand to one shape, wherever the widest of them is not much larger."""
    return rewrite_each_once(closed_jaxpr, _share)


def _share(closed_jaxpr: ClosedJaxpr, rewrite: Transform) -> ClosedJaxpr:
    jaxpr = closed_jaxpr.jaxpr
    groups: dict[tuple, list[Equation]] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "pad" and _is_plain(eqn):
            x, value = eqn.invars
            key = (x, encode_literal(value), eqn.outvars[0].aval.shape)
            groups.setdefault(key, []).append(eqn)
    plans = {id(group[0]): group for group in groups.values() if len(group) > 1 and _is_worth_it(group)}
    shared = {id(eqn): first for first, group in plans.items() for eqn in group}
    common: dict[int, tuple[Var, list]] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if id(eqn) in plans:
            eqn_of_all, margins = _pad_widest(plans[id(eqn)])
            common[id(eqn)] = eqn_of_all.outvars[0], margins
            eqns.append(eqn_of_all)
        if id(eqn) in shared:
            eqns.append(_slice_common(eqn, *common[shared[id(eqn)]]))
        else:
            eqns.append(map_inner_jaxprs(eqn, rewrite))
    if not shared and all(new is old for new, old in zip(eqns, jaxpr.eqns)):
        return closed_jaxpr
    return ClosedJaxpr(jaxpr.replace(eqns=eqns), closed_jaxpr.consts)


def _is_plain(eqn: Equation) -> bool:
    """Whether zeros, or copies of another literal, are only added around an array of known shape."""
    x, value = eqn.invars
    return (isinstance(x, Var) and isinstance(value, Literal)
            and all(isinstance(extent, int) for extent in x.aval.shape)
            and all(low >= 0 and high >= 0 and inside == 0
                    for low, high, inside in eqn.params["padding_config"]))


def _margins(group: list[Equation]) -> list[tuple[int, int]]:
    """The widest margins before and behind, for each axis."""
    configs = [eqn.params["padding_config"] for eqn in group]
    return [(max(low for low, _, _ in axis), max(high for _, high, _ in axis)) for axis in zip(*configs)]


def _is_worth_it(group: list[Equation]) -> bool:
    x, out = group[0].invars[0], group[0].outvars[0]
    wide = [low + extent + high for extent, (low, high) in zip(x.aval.shape, _margins(group))]
    return math.prod(wide) <= MAX_GROWTH * math.prod(out.aval.shape)


def _pad_widest(group: list[Equation]) -> tuple[Equation, list[tuple[int, int]]]:
    first, margins = group[0], _margins(group)
    x, value = first.invars
    shape = tuple(low + extent + high for extent, (low, high) in zip(x.aval.shape, margins))
    config = tuple((low, high, 0) for low, high in margins)
    out = Var(first.outvars[0].aval.update(shape=shape))
    return first.replace(outvars=[out], params=first.params | {"padding_config": config}), margins


def _slice_common(eqn: Equation, common: Var, margins: list[tuple[int, int]]) -> Equation:
    starts = tuple(wide - low for (wide, _), (low, _, _) in zip(margins, eqn.params["padding_config"]))
    limits = tuple(start + extent for start, extent in zip(starts, eqn.outvars[0].aval.shape))
    params = {"start_indices": starts, "limit_indices": limits, "strides": None}
    return Equation(registry["slice"], [common], eqn.outvars, params, source_info=eqn.source_info)
