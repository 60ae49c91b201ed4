"""What backends that write LLVM IR share: scalar expressions, running values, complex numbers, functions.

In: expressions and statements of the loop program. Out: instructions. A backend adds how its target runs
loops, lanes and memory.

Modules:
    accumulator  Running values of reductions: sums, extremes and their positions, in lanes; and results of
                 blocks.
    complex_ops  Complex numbers in registers: operations, conversions, single numbers in memory.
    function     One LLVM function under construction: its module, buffers, sizes and the expressions computed
                 so far.
    mathlib/     The mathematical functions of the CPU backend, as LLVM IR for scalars and explicit vectors
                 alike.
    options      What code is rendered for: options of rendering, and sizes that are told at run time.
    registers    LLVM types and instructions for scalars and lanes: the vocabulary of the renderer.
    repeat       Rendering of `Repeat`: loops over scalars in registers, inside of a kernel.
    scalar_ops   The scalar operations of the loop program as LLVM instructions, on scalars and on lanes.
    statements   Statements of kernels as scalar code, one iteration after the other.
"""
