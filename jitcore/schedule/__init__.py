"""Scheduling: which values are stored, which loops fuse, where buffers lie.

In: an optimised jaxpr and what a backend says of it. Out: a `loopir.Program`. `STAGES` lists the
transformations, with what each one is about: a program that has none of it never enters them.

Modules:
    aliasing              Results that take the memory of an operand which nothing reads afterwards.
    bounds                Loop bounds from masks: a loop runs where its statements do something, and there
                          without their masks.
    buffers               The buffer plan: dead temporaries go, scalars move to the stack, outputs reuse
                          donated inputs.
    cost                  What a loop program computes: operations on floating-point numbers.
    demanded_ranges       Temporaries that are read in part are computed in part.
    epilogue_fusion       Epilogues: elementwise work on what a routine computes, done while it is in the
                          caches.
    fusion                Fusion groups: reductions and stores that share their outer loops become one kernel.
    index_set_splitting   Arrays that are joined where they are read, and loops split so that each part reads
                          one of the pieces.
    loop_per_element      Loops turned inside out: one kernel over a batch, and for each member the whole loop
                          in registers.
    loop_versioning       Computed places that a range keeps inside of an array: loops in two versions, of
                          which one runs.
    lower                 Lowering: the equations of a jaxpr become statements.
    nest                  The shape of a kernel's loops: which axes collapse into one, which runs in lanes,
                          what is split over threads.
    regions               Stores of regions: kernels that write windows, scattered elements, and rows of a
                          scan's outputs.
    target                What lowering asks of a backend: the protocols that its answers follow.
    transposed_operands   Operands that lie across: short rows, all of which are read for each of many others,
                          are turned around once, so that loops over them read neighbours.
    tuning                Tuning: the numbers that scheduling goes by and that only measurement explains.
    two_stage_reductions  Reductions and scans in blocks: where results, or columns, are too few for threads
                          to share, each thread combines a part of what is swept.
    unrolling             Copies of statements with other axes: what collapsing, unrolling and splitting of
                          axes have in common.
    uses                  How each value of a jaxpr is used: what decides whether it is stored or recomputed
                          where it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, list_equations
from jitcore.loopir.check import check_program
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import Program
from jitcore.schedule.aliasing import prepare_memory, settle
from jitcore.schedule.bounds import split_stores, tighten
from jitcore.schedule.buffers import plan_temporaries, reuse_inputs
from jitcore.schedule.demanded_ranges import narrow_producers
from jitcore.schedule.epilogue_fusion import join_epilogue, place_results
from jitcore.schedule.index_set_splitting import join_where_read
from jitcore.schedule.lower import Lowering
from jitcore.schedule.nest import collapse_axes
from jitcore.schedule.target import Target
from jitcore.schedule.transposed_operands import turn_operands
from jitcore.schedule.two_stage_reductions import cut_into_blocks
from jitcore.schedule.unrolling import split_axes, unroll_rows, unroll_stores

__all__ = ["STAGES", "Stage", "lower_program"]


class Stage(NamedTuple):
    """A transformation and why it stands where it does.

    at: what it is given, in the order in which a program is made: an "equation" about to be lowered, a
        "value" that it gives, a value about to be put in memory ("store"), a fusion "group" that ends, its
        "stores" or "loops", those of each "kernel", the "body" of the kernel, the "program".
    needs: features, of which one has to be there: all else stays as it is. There are none for what is for
        anything. Of a program they are `Lowering.features`, of a value its class, of what becomes a kernel
        `traversal.list_features` and `nest.find_features`."""

    name: str
    at: str
    run: Callable[..., Any]
    reason: str
    needs: tuple[str, ...] = ()

    def applies_to(self, features: Collection[str]) -> bool:
        """Whether something with these features may change."""
        return not self.needs or any(name in features for name in self.needs)


STAGES = (
    Stage("aliasing", "equation", prepare_memory, "before results replace what others read",
          needs=("control_flow", "updates_operand")),
    Stage("join pieces", "value", join_where_read, "before values are stored, which these need not be",
          needs=("Regions",)),
    Stage("settle", "store", settle, "before a value overwrites what it reads",
          needs=("control_flow", "updates_operand")),
    Stage("epilogue", "group", join_epilogue, "instead of a kernel: a call runs it", needs=("Call",)),
    Stage("split stores", "stores", split_stores, "before each run is a kernel", needs=("mask",)),
    Stage("blocks", "loops", cut_into_blocks, "first: what a few results share is read by all threads",
          needs=("Reduce",)),
    Stage("transposed operands", "loops", turn_operands, "of loops that stay whole", needs=("nest",)),
    Stage("digits", "kernel", split_axes, "before collapse, which joins what need not be apart",
          needs=("FloorDiv", "Mod")),
    Stage("collapse", "kernel", collapse_axes, "before unrolling, which asks for axes of few positions",
          needs=("nest",)),
    Stage("unroll rows", "kernel", unroll_rows, "before stores: reductions become parts of one",
          needs=("few",)),
    Stage("unroll stores", "kernel", unroll_stores, "before the axis in lanes is chosen", needs=("few",)),
    Stage("bounds", "body", tighten, "once the order of loops is known", needs=("mask",)),
    Stage("results in place", "program", place_results, "once all readers of a result are known",
          needs=("Call",)),
    Stage("demanded ranges", "program", narrow_producers, "once all loops have their bounds",
          needs=("packed", "range")),
    Stage("temporaries", "program", plan_temporaries, "after all that drops reads of them",
          needs=("temporary",)),
    Stage("reused inputs", "program", reuse_inputs, "last: outputs take memory of inputs as these are read",
          needs=("donated",)),
)


def lower_program(closed: ClosedJaxpr, target: Target, donated: Sequence[bool] = (),
                  stages: Sequence[Stage] = STAGES) -> Program:
    """The loop program of a jaxpr.

    Args:
        closed: a closed jaxpr without constants.
        target: what the backend can do.
        donated: which inputs may be overwritten."""
    jaxpr, rows = closed.jaxpr, defaultdict(list)
    for stage in stages:
        rows[stage.at].append(stage)
    lowering = Lowering(list(list_equations(jaxpr)), target, donated, rows)
    inputs = [Buffer(f"in{k}", var.aval.shape, var.aval.dtype, "in") for k, var in enumerate(jaxpr.invars)]
    outputs = [Buffer(f"out{k}", atom.aval.shape, atom.aval.dtype, "out")
               for k, atom in enumerate(jaxpr.outvars)]
    env = {var: lowering.stored(buffer) for var, buffer in zip(jaxpr.invars, inputs)}
    lowering.lower_jaxpr(jaxpr, env, outputs)
    lowering.end_group()
    program = Program(inputs, outputs, lowering.temps, lowering.steps)
    program.origins = lowering.origins
    for stage in lowering.choose("program"):
        stage.run(lowering, program)
    if config.check_jaxprs:
        check_program(program)
    return program
