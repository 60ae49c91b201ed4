"""The bytecode rewriter: plain Python control flow on traced values, compiled.

In: a Python function. Out: the same function, whose `if`, `while` and `for` become `cond` and `while_loop`
where a traced value decides. `functions.py` is the entry.

Modules:
    bytecode/      Code objects of CPython: decoded to a normal form, as graphs, and assembled again.
    control_flow/  Decisions and loops whose outcome a traced value decides.
    errors         What is said when Python control flow on traced values cannot be compiled.
    functions      Rewritten functions: from a Python function to one whose control flow may depend on traced
                   values.
    handles        Handles: traced values that stand for Python and NumPy objects with rules of their own.
    journal        The journal: what a rewritten function changes outside of its local variables.
    objects        Objects of the user's as they are: whose code they are of, what they hold, how far
                   iterators have come.
    operations/    What rewritten code does in place of Python's operations, for operands that are traced.
    values         Values as the driver sees them: which are traced, which leaves containers have, how two
                   join in one.
    writing/       The code that a rewritten function runs.
"""
