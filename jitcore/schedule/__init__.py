"""Scheduling: which values are stored, which loops fuse, where buffers lie.

In: an optimised jaxpr. Out: a `loopir.Program`.

Modules:
    aliasing              Results that take the memory of an operand which nothing reads afterwards.
    bounds                Loop bounds from masks: a loop runs where its statements do something, and there
                          without their masks.
    buffers               The buffer plan: dead temporaries go, scalars move to the stack, outputs reuse
                          donated inputs.
    conditions            Which comparisons a value hangs on: where one of them fails, the value is neutral.
    cost                  What a loop program computes: operations on floating-point numbers.
    demanded_ranges       Temporaries that are read in part are computed in part.
    epilogue_fusion       Epilogues: elementwise work on what a routine computes, done while it is in the
                          caches.
    fusion                Fusion groups: reductions and stores that share their outer loops become one kernel.
    index_set_splitting   Arrays that are joined where they are read, and loops split so that each part reads
                          one of the pieces.
    loop_per_element      Loops turned inside out: one kernel over the lanes, and in each lane the whole loop
                          in registers.
    loop_versioning       Computed places that a range keeps inside of an array: loops in two versions, of
                          which one runs.
    lower                 Lowering: a jaxpr becomes a loop program.
    nest                  The shape of a kernel's loops: which axes collapse into one, which runs in lanes,
                          what is split over threads.
    scan_outputs          Rows of a scan's stacked outputs: stored where they belong as soon as they are
                          computed.
    scatters              Scatters: updates at computed places, of which several may be the same element.
    target                What lowering asks of a backend: the protocols that its answers follow.
    transposed_operands   Operands that lie across: short rows, all of which are read for each of many others,
                          are turned around once, so that loops over them read neighbours.
    two_stage_reductions  Reductions and scans in blocks: where results, or columns, are too few for threads
                          to share, each thread combines a part of what is swept.
    unrolling             Copies of statements with other axes: what collapsing, unrolling and splitting of
                          axes have in common.
    uses                  How each value of a jaxpr is used: what decides whether it is stored or recomputed
                          where it is read.
    window_copies         What a region leaves of its base: the strips around a window.
"""

from jitcore.schedule.lower import lower_program

__all__ = ["lower_program"]
