"""The tracer and its IR: primitives, avals, jaxprs and their specification, traces.

In: a Python function and abstract arguments. Out: a `ClosedJaxpr`.

Modules:
    algebra        The algebra of numbers that are not known: intervals that they lie in, and affine forms.
    check          The specification of the jaxpr, executable: every rule that a well-formed jaxpr obeys.
    folding        The HTML of a jaxpr, as notebooks show it: equation by equation, with the user's line under
                   the pointer; jaxprs inside of equations are folded.
    interpret      Runs a jaxpr on ndarrays with the NumPy implementations of its primitives.
    jaxpr          The jaxpr: jitcore's first-order typed program text, with one equation per primitive
                   application.
    polynomial     Polynomials with integer coefficients, as dictionaries from monomial to coefficient.
    pretty         The text of a jaxpr, in the format of JAX's tutorial.
    primitive      Primitives: the operations a jaxpr is made of, with every rule of one primitive on one
                   object.
    refs           Mutable references to arrays, as values: `Ref` is a cell that holds the newest array.
    size_bounds    Bounds of symbolic dimensions: the interval of values that an expression may have.
    source         Where in the user's code something happened: capture, text for messages, tracebacks without
                   internals.
    symbolic       Symbolic dimensions: integer expressions over named sizes, usable wherever an extent of a
                   shape is.
    symbolic_text  Symbolic shapes as text, and the sizes that their variables have in concrete shapes.
    trace          Tracing: the current trace of each thread, eager evaluation, and recording into a jaxpr.
    varying        Where values vary: inside of `shard_map` each knows along which axes of the mesh it may
                   differ from device to device (`ShapedArray.varying`).
"""
