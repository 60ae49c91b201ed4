"""Sorting on a GPU: by digits of the keys, or by tiles and merges.

In: a `sort`, `top_k` or order of a program. Out: the steps that compute it.

Modules:
    keys   Keys of sorting: integers that order as elements do.
    merge  Sorting: tiles in shared memory, then merges of runs, each twice as long as those before; or by
           digits.
    radix  Radix sort: a stable pass for each digit of the keys, the least significant one first.
"""
