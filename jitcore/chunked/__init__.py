"""Jitted functions of Dask's arrays: a lazy array, whose chunks are calls.

In: a call with a `dask.array` among its arguments. Out: the result with lazy arrays in it. The function is
traced once for whole arrays. Of each equation it is known which elements of its operands an element of its
result needs (`windows`); from that follow the chunks of results, and for each of them the parts of the
arguments that it needs and the program that computes it from these (`programs`). Reductions over axes in
several chunks are stages of their own: a program for each chunk, and a tree that joins what these give
(`graph`).

Modules:
    graph     The graph of tasks: from a call with arrays of Dask to lazy arrays.
    programs  Programs of parts: what a chunk of a result needs, and the program that computes it from that.
    windows   Which elements of operands each element of a result needs, and the equation of a part of the
              result.
"""
