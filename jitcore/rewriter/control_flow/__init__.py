"""Decisions and loops whose outcome a traced value decides.

In: the states of a run at such a place. Out: both sides, or a body, traced by themselves and joined in one
equation; and the state behind it.

Modules:
    arms        Arms: the sides of a traced decision and the bodies of traced loops, each traced by itself.
    carries     Carries: what the body of a traced loop changes, one value for each variable or place.
    driver      The driver: runs code with many entries, and compiles the decisions that traced values make.
    foresight   Foresight: what a traced loop will carry, guessed before its body is traced.
    growing     Lists that grow in a traced loop of known length: the body only appends to them.
    iterators   Iterators whose number of steps, or whose position, is traced.
    joining     Joining: two arms of a traced decision become one `cond`, and their states one state.
    loop_tests  Tests of `while` loops: the code at the head of a loop that decides whether there is another
                iteration.
    loops       Traced loops: a loop whose end a traced value decides becomes a `while`, one of known length a
                `scan`.
    raising     Exceptions under a traced condition: which ones a program can raise, and the checks that do
                it.
    rolling     `while` loops whose test Python can read: when they are compiled as loops.
    rotation    Rotation: variables of a traced loop that exchange their memory in each iteration, as `u, v =
                v, u` does.
    settling    Settling: which variables and places the body of a traced loop changes, and to which types.
"""
