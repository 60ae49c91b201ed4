"""Decisions and loops whose outcome a traced value decides.

In: the states of a run at such a place. Out: both sides, or a body, traced by themselves and joined in one
equation; and the state behind it.

Modules:
    arms         Arms: the sides of a traced decision and the bodies of traced loops, each traced by itself.
    carries      Loop-carried values: what the body of a traced loop changes, one value for each variable or
                 place.
    driver       The driver: runs code with many entries, and compiles the decisions that traced values make.
    fixpoint     The fixpoint of the carry: which variables and places the body of a traced loop changes, to
                 which types.
    growing      Lists that grow in a traced loop of known length: the body only appends to them.
    iterators    Iterators whose number of steps, or whose position, is traced.
    loops        Traced loops: a loop whose end a traced value decides becomes a `while`, one of known length
                 a `scan`.
    merging      Joining: two arms of a traced decision become one `cond`, and their states one state.
    raising      Exceptions under a traced condition: which ones a program can raise, and the checks that do
                 it.
    while_loops  `while` loops: their tests, and when those that Python could go through are compiled.
"""
