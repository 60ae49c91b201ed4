"""What rewritten code does in place of Python's operations, for operands that are traced.

In: the operands. Out: what Python would give, or a recipe that the program completes.

Modules:
    hooks      Hooks: what rewritten code does in place of operations in which a traced value means something
               else.
    matching   Patterns of `match`: what a value is asked, which may be traced, or a stand-in of another type.
    redirects  Redirects: functions of Python's that rewritten code calls in another form, for traced
               arguments.
    sequences  Comparisons of tuples and lists with traced elements: by the first two that differ.
    texts      Texts of traced values: `f"{x:.3f}"`, `"%d of %d" % (i, n)`, `str(x)`.
"""
