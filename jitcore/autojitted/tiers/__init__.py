"""Which way a call is served: compiled by tracing, by Numba, or by plain Python; and what that may cost.

In: bytecode, arguments, and how long calls took. Out: decisions, and what they were, for people.

Modules:
    budget  What compiling a function may cost, whether it can pay, and whether it did.
    native  The tier below tracing: the whole function compiled by Numba, if it gives what plain Python gives.
    report  What became of a function, for people: the tier of each region and what stood in the way of a
            better one.
    ways    The ways in which a call can be served, and the warning that says when a slower one is taken.
"""
