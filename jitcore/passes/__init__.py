"""Passes: programs in, smaller programs out.

In: the `ClosedJaxpr` that tracing made. Out: a `ClosedJaxpr` that computes the same, with the same arguments,
outputs and effects. Every pass is a pure function in a module of its own and takes linear time; `PIPELINE` is
the list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jitcore.config import config
from jitcore.core.check import JaxprTypeError, check_jaxpr
from jitcore.core.jaxpr import ClosedJaxpr, count_equations
from jitcore.effort import spend
from jitcore.passes.canonical import program_key
from jitcore.passes.contractions import normalize_contractions
from jitcore.passes.cse import merge_common_subexpressions
from jitcore.passes.dce import eliminate_dead_code
from jitcore.passes.expand import expand_equations
from jitcore.passes.fold import fold_constants
from jitcore.passes.inline import inline_calls
from jitcore.passes.intervals import use_intervals
from jitcore.passes.overwritten import drop_overwritten
from jitcore.passes.pads import share_pads
from jitcore.passes.side_by_side import batch_iterations
from jitcore.passes.simplify import simplify
from jitcore.passes.sweeps import join_sweeps
from jitcore.passes.variances import block_variances

__all__ = ["PIPELINE", "Pass", "program_key", "run_pipeline"]


#: Steps that a pass needs for an equation.
_EQUATION = 4


class Pass(NamedTuple):
    """One step of the pipeline and why it stands where it does."""

    name: str
    run: Callable[[ClosedJaxpr], ClosedJaxpr]
    reason: str


PIPELINE = (
    Pass("expand", expand_equations, "before inline, which takes derivative rules away with the calls"),
    Pass("inline", inline_calls, "before the rest: the others then see across calls"),
    Pass("fold", fold_constants, "gives simplify the literals that its rules ask for"),
    Pass("contractions", normalize_contractions, "before simplify, which cancels transpositions it adds"),
    Pass("intervals", use_intervals, "before simplify, which drops choices whose condition became a literal"),
    Pass("simplify", simplify, "turns different spellings into equal equations, which CSE merges"),
    Pass("cse", merge_common_subexpressions, "before DCE: a merged equation leaves dead operands behind"),
    Pass("overwritten", drop_overwritten, "after CSE, which makes equal positions one variable"),
    Pass("pads", share_pads, "after CSE, which makes operands of equal pads one variable"),
    Pass("sweeps", join_sweeps, "after CSE, which makes operands of equal products one variable"),
    Pass("variances", block_variances, "after CSE, which makes equal arrays one variable"),
    Pass("dce", eliminate_dead_code, "removes what those before no longer refer to"),
    Pass("side by side", batch_iterations, "after DCE, which takes carries that nobody reads out of loops"),
)


def run_pipeline(closed_jaxpr: ClosedJaxpr, pipeline: Sequence[Pass] | None = None) -> ClosedJaxpr:
    """Passes in order, `PIPELINE` unless others are given. Under `config.check_jaxprs` the jaxpr is checked
    before and after each.

    Returns: a jaxpr with the same in_avals and out_avals, weak types included, and the same effects but for
        those of branches that are never taken.
    Raises: JaxprTypeError naming the pass that broke a rule of the language.
    """
    if config.check_jaxprs:
        check_jaxpr(closed_jaxpr)
    for step in PIPELINE if pipeline is None else pipeline:
        spend(_EQUATION * count_equations(closed_jaxpr.jaxpr))
        before, closed_jaxpr = closed_jaxpr, step.run(closed_jaxpr)
        if config.check_jaxprs:
            _check_step(step.name, before, closed_jaxpr)
    return closed_jaxpr


def _check_step(name: str, before: ClosedJaxpr, after: ClosedJaxpr) -> None:
    try:
        check_jaxpr(after)
    except JaxprTypeError as error:
        raise JaxprTypeError(f"after the pass {name!r}: {error}") from None
    if before.in_avals != after.in_avals or before.out_avals != after.out_avals:
        raise JaxprTypeError(f"the pass {name!r} changed the types of arguments or outputs")
    if not after.effects <= before.effects:
        raise JaxprTypeError(f"the pass {name!r} added effects {set(after.effects - before.effects)}")
