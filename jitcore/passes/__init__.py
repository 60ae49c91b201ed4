"""Passes: programs in, smaller programs out.

In: the `ClosedJaxpr` that tracing made. Out: a `ClosedJaxpr` that computes the same, with the same arguments,
outputs and effects. Every pass is a pure function in a module of its own and takes linear time; `PIPELINE` is
the list of them.

Modules:
    assumptions           Assumptions: what else is known of the numbers of a jaxpr where one of them is in a
                          given range.
    canonical             The identity of a program: a text that equal programs share, and its hash.
    contractions          Normal form of contractions: every `dot_general` and convolution is spelled in the
                          one way that backends have code for.
    dead_updates          Overwritten updates: an update of a window that a later update replaces whole is not
                          made.
    expand                Expansion: equations that a backend has no routine for give way to the loops that
                          compute them, derivatives above all.
    inline                Inlining: equations of inner jitted functions move into the function that calls
                          them.
    interval_rules        Ranges of numbers, how the elementwise primitives compute with them, and how
                          counters of loops change.
    intervals             Intervals: comparisons, clamps and checks whose outcome the ranges of integers
                          decide go away.
    keys                  Keys: what compiled programs hold in their place.
    linear_forms          Linear forms: what tests say of sums of several numbers, as `i < n - k` says that `i
                          + k < n`.
    loop_invariants       Loop invariants: what a loop computes anew in each iteration from what stays the
                          same is computed once.
    loop_ranges           Ranges of what a `while` carries: how they settle, and what its test says of its
                          rounds.
    loop_vectorization    Loops whose iterations meet in sums and extremes only: blocks of iterations are
                          computed side by side.
    matrix_vector_fusion  Products of one matrix with vectors on both of its sides, made in one sweep over the
                          matrix.
    one_pass_variance     Sums of squared distances from the mean, of rows that are longer than caches: made
                          in one reading.
    shared_pads           Pads of one array: where it is wanted at several offsets within zeros, it is padded
                          once, and sliced.
    simplify              Simplification: constants are folded, equations that change nothing or that nobody
                          reads go away, equal ones are merged.
    tuning                Tuning: the numbers that passes go by and that only measurement explains.
    walk                  The walk that the rewriting passes share: once through the equations, in order.
    windowed_sums         Sums of derivatives of which one is zero but for parts: these are added where they
                          belong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from jitcore.config import config
from jitcore.core.check import JaxprTypeError, check_jaxpr
from jitcore.core.jaxpr import ClosedJaxpr, count_primitives, holds_keys
from jitcore.core.primitive import Primitive
from jitcore.events.publishing import span
from jitcore.passes.canonical import program_key
from jitcore.passes.contractions import normalize_contractions
from jitcore.passes.dead_updates import drop_overwritten
from jitcore.passes.expand import expand_equations
from jitcore.passes.inline import inline_calls
from jitcore.passes.intervals import use_intervals
from jitcore.passes.keys import lower_keys
from jitcore.passes.loop_invariants import hoist_invariants
from jitcore.passes.loop_vectorization import batch_iterations
from jitcore.passes.matrix_vector_fusion import join_sweeps
from jitcore.passes.one_pass_variance import block_variances
from jitcore.passes.shared_pads import share_pads
from jitcore.passes.simplify import eliminate_dead_code, fold_constants, merge_common_subexpressions, simplify
from jitcore.passes.tuning import DEFAULT, Tuning
from jitcore.process.effort import spend

__all__ = ["PIPELINE", "Pass", "list_passes", "program_key", "run_pipeline"]


#: Steps that a pass needs for an equation.
_EQUATION = 4


class Pass(NamedTuple):
    """One step of the pipeline and why it stands where it does.

    needs: names of primitives, or of traits of primitives: a program stays as it is that has fewer equations
        of these than `least`. There are none for a pass that is for any program."""

    name: str
    run: Callable[[ClosedJaxpr], ClosedJaxpr]
    reason: str
    needs: tuple[str, ...] = ()
    least: int = 1

    def applies_to(self, primitives: Counter[Primitive]) -> bool:
        """Whether a program with so many equations of each primitive may change."""
        return not self.needs or self.least <= sum(
            count for primitive, count in primitives.items()
            if any(name == primitive.name or name in primitive.traits for name in self.needs))


def list_passes(tuning: Tuning) -> tuple[Pass, ...]:
    """The pipeline that goes by these numbers."""
    return (
        Pass("expand", expand_equations, "before inline, which takes derivative rules away with the calls",
             needs=("expand",)),
        Pass("inline", inline_calls, "before the rest: the others then see across calls", needs=("inline",)),
        Pass("fold", fold_constants, "gives simplify the literals that its rules ask for"),
        Pass("contractions", partial(normalize_contractions, tuning=tuning),
             "before simplify, which cancels transpositions it adds",
             needs=("dot_general", "conv_general_dilated")),
        Pass("intervals", use_intervals,
             "before simplify, which drops choices whose condition became a literal",
             needs=("while", "scan")),
        Pass("simplify", simplify, "turns different spellings into equal equations, which CSE merges"),
        Pass("cse", merge_common_subexpressions, "before DCE: a merged equation leaves dead operands behind"),
        Pass("overwritten", drop_overwritten, "after CSE, which makes equal positions one variable",
             needs=("dynamic_update_slice", "dynamic_slice"), least=2),
        Pass("pads", share_pads, "after CSE, which makes operands of equal pads one variable",
             needs=("pad",), least=2),
        Pass("sweeps", join_sweeps, "after CSE, which makes operands of equal products one variable",
             needs=("dot_general",), least=2),
        Pass("variances", partial(block_variances, tuning=tuning),
             "after CSE, which makes equal arrays one variable", needs=("reduce_sum",)),
        Pass("invariants", partial(hoist_invariants, tuning=tuning),
             "after CSE: of equal equations one moves; before DCE, which takes what it leaves behind",
             needs=("while", "scan")),
        Pass("dce", eliminate_dead_code, "removes what those before no longer refer to"),
        Pass("side by side", partial(batch_iterations, tuning=tuning),
             "after DCE, which takes carries that nobody reads out of loops", needs=("while", "scan"),
             least=2),
    )


PIPELINE = list_passes(DEFAULT)


def run_pipeline(closed_jaxpr: ClosedJaxpr, pipeline: Sequence[Pass] | None = None) -> ClosedJaxpr:
    """Passes in order, `PIPELINE` unless others are given; of those, the ones that may apply. Under
    `config.check_jaxprs` the jaxpr is checked before and after each.

    Returns: a jaxpr with the same in_avals and out_avals, weak types included, but for keys, which are
        numbers then (`keys`); and the same effects but for those of branches that are never taken.
    Raises: JaxprTypeError naming the pass that broke a rule of the language."""
    if config.check_jaxprs:
        check_jaxpr(closed_jaxpr)
    if holds_keys(closed_jaxpr.jaxpr):
        closed_jaxpr = lower_keys(closed_jaxpr)
    if config.check_jaxprs:
        check_jaxpr(closed_jaxpr)
    primitives = count_primitives(closed_jaxpr.jaxpr)
    for step in PIPELINE if pipeline is None else pipeline:
        if not step.applies_to(primitives):
            continue
        spend(_EQUATION * primitives.total())
        before = closed_jaxpr
        with span("pass", step=step.name):
            closed_jaxpr = step.run(closed_jaxpr)
        if closed_jaxpr is before:
            continue
        primitives = count_primitives(closed_jaxpr.jaxpr)
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
