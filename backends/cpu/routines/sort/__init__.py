"""Sorting of rows, stable orders and the largest elements, as native routines.

In: an equation `sort` or `top_k`. Out: a routine; the LLVM text of the functions that it calls.

Modules:
    encoding   Keys of sorting: elements of any real dtype as signed integers of the same order, and back.
    keys       Vectors of keys of sorting: their type, and what is done with their lanes.
    modules    Machine code of the sorting family: which module defines a symbol.
    moves      Transposed copies of batches of matrices in machine code: how an axis becomes the last one and
               goes back.
    network    Sorting networks: code that sorts a few vectors of keys in registers.
    order      Stable orders in machine code: the positions that sort rows, and elements put in an order.
    partition  Partition of keys in place: those below a threshold first.
    quicksort  The sorting engine: a vectorised quicksort of signed integer keys.
    routine    Routines of `sort` and `top_k`.
    rows       Sorting of rows in machine code: what runs over rows, in pieces, and the sorting of values.
    top_k      The largest elements of rows in machine code.
"""
