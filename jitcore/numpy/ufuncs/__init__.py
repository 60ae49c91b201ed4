"""Universal functions of `jitcore.numpy`: what works element by element, with broadcasting.

In: arrays, ndarrays, numbers. Out: arrays of the shape where the operands meet.

Modules:
    arithmetic  Universal functions: arithmetic, elementary functions, bits, rounding, complex parts.
    logic       Comparison, logical functions, predicates on values and types, and selection by them.
    methods     The methods of a `Ufunc`: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.
    rounding    Rounding, parts of floats, and integer arithmetic that is not one primitive.
    scaled      Sums of exponentials and of squares that do not overflow where their result does not.
"""
