"""Kernels and entry points of a loop program as LLVM IR.

In: a loop program whose loops are mapped. Out: functions in an `ir.Module`.

Modules:
    branches         Choices between two values, of which one is behind a branch.
    column_sweeps    Rendering of reductions and scans down columns that go row by row.
    entry            Rendering of a native step: its entry point calls kernels, runs native loops and
                     branches, keeps scalars on the stack.
    extremes         Rendering of searches for the place of an extreme along a row.
    fetch            Asking for memory before it is needed: elements at places that are computed from other
                     elements.
    function         One LLVM function of this backend under construction.
    jammed_rows      Rows side by side: what all of them read is loaded and shuffled once.
    kernel           Rendering of kernels: one fused loop nest group becomes one LLVM function, with explicit
                     lanes.
    loop_functions   Loops of scalar code: each is a function of its own, which LLVM's passes over loops work
                     on.
    prefetched_rows  Rendering of sweeps over rows that come from memory: in halves, or with the next row
                     asked for.
    rows_in_lanes    Rendering of sweeps along short rows, one row in each lane.
    scan             Rendering of `Scan`: running sums and their kin, in registers.
    scatter          Rendering of stores at computed places: what is stored where in lanes, block by block,
                     then one by one.
    sharing          Kernels of one program that have the same code: it is rendered and compiled once.
    stores           Memory accesses: loads and stores of elements and lanes, strided, complex and
                     nontemporal.
    tellers          Functions that hand a routine the sizes that it is told, which stand side by side in the
                     array of sizes.
    tiles            Rendering of a kernel in tiles: operands that lie across the lanes are read in whole
                     registers too.
    vector_loops     Rendering of loops in lanes: whole vectors, and what they leave under a mask.
"""
