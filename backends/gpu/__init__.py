"""What backends for GPUs share: which threads run what.

In: a kernel of the loop program. Out: how its iterations are given to threads, and in which functions; the
numbers by which that is decided. `cuda` renders them to PTX, `python.cuda` as a person would write them.

Modules:
    mapping  Which threads run what: the mapping of a kernel's iterations.
    rows     Rows in registers: what the sweeps of an item compute for each other along one axis.
    tuning   Tuning: the numbers by which kernels are mapped to a GPU and that only measurement explains.
"""
