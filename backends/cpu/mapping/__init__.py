"""How loops run on this processor: in which lanes, side by side, ahead, past the caches.

In: kernels of a loop program and facts about the machine. Out: the decisions that rendering carries out.

Modules:
    balance       How square roots and quotients are shared out to two units of a core.
    memory_order  Memory order: results that go past the caches, and short rows that go one in each lane.
    rules         The rules of this processor: how loops run, in the order in which it is decided.
    vectors       Vectorisation: how many registers an iteration in lanes fills, and what becomes of the ends
                  of ranges.
"""
