"""Pads of one array: where it is wanted at several offsets within zeros, it is padded once, and sliced.

In: a jaxpr. Out: the same program. The derivative of a stencil is a sum of pads, one for each of its points:
every pad would be an array of its own in memory, while slices of one array are read where they lie, by one
loop.
"""

from __future__ import annotations

import math

from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, Var
from jitcore.lax.indexing.windows import Window, find_window, is_known
from jitcore.passes.canonical import encode_literal
from jitcore.passes.walk import Rule, Walk, rewrite_jaxprs

# The common array may have so many times the elements of one pad; it has more where offsets are far apart.
# This compares elements that are moved, on whatever machine.
MAX_GROWTH = 1.25


def share_pads(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces pads of one operand to one shape, wherever the widest of them is not much larger."""
    return rewrite_jaxprs(closed_jaxpr, _plan_sharing)


def _plan_sharing(closed_jaxpr: ClosedJaxpr) -> Rule:
    groups: dict[tuple, list[Equation]] = {}
    for eqn in closed_jaxpr.eqns:
        if eqn.primitive.name == "pad" and _is_plain(eqn):
            key = (eqn.invars[0], encode_literal(eqn.invars[1]), eqn.outvars[0].aval.shape)
            groups.setdefault(key, []).append(eqn)
    shared: dict[Var, tuple] = {}  # pad -> (the first of its group, the configuration of the widest)
    for first, *others in groups.values():
        config = _find_widest([first, *others])
        if others and _is_worth_it(first, config):
            shared |= {eqn.outvars[0]: (first.outvars[0], config) for eqn in (first, *others)}

    def rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
        plan = shared.get(eqn.outvars[0]) if eqn.outvars else None
        return None if plan is None else [_slice_common(walk, eqn, *plan)]

    return rule


def _is_plain(eqn: Equation) -> bool:
    """Whether copies of a literal, zero above all, are only added around an array of known shape."""
    x, value = eqn.invars
    window = find_window(eqn)
    return isinstance(x, Var) and isinstance(value, Literal) and window is not None and is_known(window.sizes)


def _find_widest(group: list[Equation]) -> tuple[tuple[int, int, int], ...]:
    """The configuration with the widest margins before and behind, for each axis."""
    configs = [eqn.params["padding_config"] for eqn in group]
    margins = [list(zip(*axis)) for axis in zip(*configs)]
    return tuple((max(lows), max(highs), 0) for lows, highs, _ in margins)


def _is_worth_it(pad: Equation, config: tuple) -> bool:
    wide = [low + extent + high for extent, (low, high, _) in zip(pad.invars[0].aval.shape, config)]
    return math.prod(wide) <= MAX_GROWTH * math.prod(pad.outvars[0].aval.shape)


def _slice_common(walk: Walk, eqn: Equation, first: Var, config: tuple) -> Var:
    """The slice of the widest pad that a pad is. The memory of the walk has the widest, by the first."""
    if first not in walk.memory:
        walk.memory[first] = walk.bind("pad", *eqn.invars, padding_config=config)
    common = walk.memory[first]
    starts = tuple(wide - low for (wide, _, _), (low, _, _) in zip(config, eqn.params["padding_config"]))
    window = Window(starts, eqn.outvars[0].aval.shape, common.aval.shape)
    return walk.bind("slice", common, **window.slice_params)
