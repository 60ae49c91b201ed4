"""Tuning: the numbers that passes go by and that only measurement explains.

In: nothing. Out: a record from which `list_passes` makes a pipeline; a backend may bring its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Thresholds, by pass."""

    # -- contractions -------------------------------------------------------------------------------------
    #: Elements of a matrix from which on a sweep that computes it beside reading is better than to store it.
    min_computed_matrix: int = 1 << 14
    #: Positions in a line of results from which on a layout that has them side by side needs no
    #: transposition.
    min_line: int = 32

    # -- one-pass variance --------------------------------------------------------------------------------
    #: Bytes of a row that is divided, as shorter ones stay in the second cache; and of a block.
    min_row_bytes: int = 1 << 19
    block_bytes: int = 1 << 14

    # -- loop invariants ----------------------------------------------------------------------------------
    #: Multiply-adds for an element from which on it is rather read than computed, from the second cache, and
    #: from behind it; bytes of the second cache; bytes that are worth keeping.
    min_invariant_cost: int = 9
    min_far_invariant_cost: int = 24
    near_bytes: int = 1 << 20
    max_invariant_bytes: int = 1 << 23

    # -- loop vectorization -------------------------------------------------------------------------------
    #: Iterations side by side: some registers of lanes, whatever the dtype.
    iterations: int = 64
    #: Rounds of all lanes for each one that a lane needs: with more, one iteration after the other is faster.
    max_waste: float = 5.0


DEFAULT = Tuning()
