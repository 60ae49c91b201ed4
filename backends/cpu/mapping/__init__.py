"""How loops run on this processor: in which lanes, side by side, ahead, past the caches.

In: kernels of a loop program and facts about the machine. Out: the decisions that rendering carries out.

Modules:
    balance      How square roots and quotients of a kernel are shared out to two units of the processor.
    columns      How many columns a loop takes at a time whose reductions and scans run down the columns.
    counts       Over how many iterations the functions of a kernel run.
    jam          Unroll-and-jam: rows side by side, where all of them read the same, and loops of single
                 updates.
    long_sums    Which sums are long.
    nontemporal  Loops whose results go past the caches, straight to memory.
    prefetching  Rows that are read from memory: where a core should wait less for them.
    rules        The rules of this processor: how loops run, in the order in which it is decided.
    short_rows   Short rows: where a kernel's sweeps go along rows that fill few registers, one row goes in
                 each lane.
    strides      Lanes that lie a few elements apart in memory.
    vectors      Vectorisation: how many registers an iteration in lanes fills, and what becomes of the ends
                 of ranges.
"""
