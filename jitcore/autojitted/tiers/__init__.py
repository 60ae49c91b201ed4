"""Which way a call is served: compiled by tracing, by Numba, or by plain Python; and what that may cost.

In: bytecode, arguments, and how long calls took. Out: decisions, and what they were, for people.

Modules:
    budget  What compiling a function may cost, whether it can pay, and whether it did.
    native  The tier below tracing: the whole function compiled by Numba, if it gives what plain Python gives.
    report  The tiers of a function, for people: which serves a call, why no better one, and the warning that
            says so.
    tuning  Tuning: the thresholds of time and effort by which a function's tier is chosen.
"""
