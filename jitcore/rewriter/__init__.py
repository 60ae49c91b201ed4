"""The bytecode rewriter: plain Python control flow on traced values, compiled.

In: a Python function. Out: the same function, whose `if`, `while` and `for` become `cond` and `while_loop`
where a traced value decides. `functions.py` is the entry.
"""

from jitcore.rewriter.functions import rewrite_function

__all__ = ["rewrite_function"]
