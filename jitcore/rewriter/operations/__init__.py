"""What rewritten code does in place of Python's operations, for operands that are traced.

In: the operands. Out: what Python would give, or a recipe that the program completes.

Modules:
    hooks      Hooks: what rewritten code does in place of operations in which a traced value means something
               else.
    printing   `print` in rewritten functions: the program prints, in the order and as often as Python would.
    redirects  Redirects: functions of Python's that rewritten code calls in another form, for traced
               arguments.
    special    Special methods of the user's classes, called by their rewritten form where Python's operators
               call them.
    texts      Texts of traced values: `f"{x:.3f}"`, `"%d of %d" % (i, n)`, `str(x)`.
"""
