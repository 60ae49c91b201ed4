"""What backends that write LLVM IR share: scalar expressions, running values, complex numbers, functions.

In: expressions and statements of the loop program. Out: instructions. A backend adds how its target runs
loops, lanes and memory.
"""
