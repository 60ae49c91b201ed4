"""Sorting on a GPU: by a network in shared memory, or by digits of the keys.

In: the sorts of a program. Out: the steps that compute them.

Modules:
    keys      Keys of sorting: integers that order as elements do.
    network   Short rows: each is sorted in shared memory, by a bitonic network in which equal keys order by
              place. So the order is stable, and does not depend on how threads run.
    programs  Programs by sorts of rows: what stands around `SORT` so that it computes `sort` and `top_k`.
    radix     Radix sort: a stable pass for each digit of the keys, the least significant one first.
    rows      Sorting of rows: short ones by a network, long ones by digits.
"""
