"""The loop program: loop nests over buffers, scalar expressions, native control flow, library calls.

In: fusion groups from `schedule`. Out: a `Program` that a backend renders to kernels. It assumes no
device: loops carry facts (parallel, vector axis), sizes are run-time values, library calls are named.

Modules:
    builder       The builder: what a primitive's lowering rule writes its loop program with.
    check         The specification of the loop program, executable.
    complex_math  Complex arithmetic in terms of real arithmetic: the formulas that all backends share.
    expr          Expressions of the loop program: pure, typed, hash-consed scalars, and places as affine
                  forms of axes.
    monoids       The monoids that reductions and scans combine with.
    narrow        Conversions from and to narrow dtypes, which are bytes to every backend: their bits in
                  32-bit arithmetic.
    picture       The picture of a loop program, as notebooks show it: kernels and calls as boxes, arrays as
                  edges.
    program       Statements of the loop program.
    text          The text of loop programs: what people read, and what code is found again by.
    traversal     Questions that go through all statements of a body: one traversal for all kinds.
    values        Values: what lowering rules pass around. A value is a shape, a dtype and a way to get one
                  element.
    ways          Ways: how a target runs the iterations of a statement, in the words of loop transformations.
"""
