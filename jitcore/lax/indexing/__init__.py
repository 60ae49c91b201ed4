"""Primitives that read and write parts of arrays: slices, windows at computed positions, gather and scatter.

In: operands, and positions that are static or values. Out: the parts, or the operands with other parts.

Modules:
    dimension_numbers  Gather and scatter: their dimension numbers, their modes and their shape rules.
    gather_numpy       Gather and scatter in NumPy: what their primitives run at once.
    gather_scatter     Gather and scatter: many slices read from or written into one operand at listed
                       positions.
    slices             Slices: static ones, dynamic ones whose position is a value, and updates of a slice.
    windows            Windows: the part of an array that a slice takes, an update replaces, or a pad
                       surrounds.
"""
