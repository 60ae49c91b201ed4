"""Tuning: the numbers that scheduling goes by and that only measurement explains.

In: nothing. Out: a record that a backend's target brings, with other numbers for other machines. Work is
counted in multiply-adds (`loopir.expr.OP_COST`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Thresholds, by transformation."""

    # -- what is stored (`uses`, `aliasing`) --------------------------------------------------------------
    #: A value is stored when computing it again, in all loops of other kinds that read it, is dearer.
    recompute_limit: int = 32
    #: A value dearer than this is stored when a broadcast would recompute it for each outer iteration.
    broadcast_limit: int = 8
    #: Where there are as many of these as the second number, a store costs nothing, and the limit is the
    #: first one; but masks remain what bounds of loops are found by.
    repeated_limit: int = 2
    often: int = 16
    #: A slice has a small part of an array when the array has so many times its elements.
    part: int = 16
    #: Work that a scalar, or an element known by its position, may take to be computed where it is read.
    max_direct_work: int = 8
    #: Work that finding the place of a window may take, outside of the loops that read it.
    max_window_work: int = 32

    # -- fusion -------------------------------------------------------------------------------------------
    #: Groups that stay open for more members; programs rarely alternate between more kernels.
    max_open_groups: int = 4
    #: A kernel with more stores and reductions than this would only run out of registers.
    max_members: int = 24
    #: Work for an element that is packed in the same loop, which is not split over threads.
    max_ordered_work: int = 16

    # -- index-set splitting ------------------------------------------------------------------------------
    #: Pieces that are joined as they are read, and loops that one kernel is split into along its last axis.
    max_pieces: int = 4
    max_ranges: int = 16
    #: Choices that one element of a joined array may take, which several others may be computed from.
    max_nested: int = 32
    #: Choices that one element of any value may take: with each the code of edges gets longer; and those
    #: that several loops evaluate again.
    max_choices: int = 192
    max_repeated_choices: int = 28

    # -- threads ------------------------------------------------------------------------------------------
    #: Iterations of one block of a split reduction, and blocks that a thread should have at least.
    block_work: int = 32768
    grain_blocks: int = 2
    #: Scalar operations that a thread should have before another one is woken up: a sleeping one takes 50 us.
    grain_work: int = 262144
    #: Columns that a thread which walks down rows should have beside each other.
    grain_columns: int = 128
    #: Iterations in lanes that a thread should have at least: what several registers hold.
    grain_lanes: int = 64
    #: Rows of tiles that a thread should have at least: whole cache lines of what is read across them.
    grain_tiled_rows: int = 32

    # -- the axis in lanes --------------------------------------------------------------------------------
    min_vector_extent: int = 6
    #: Strides up to this cost shuffles instead of gathers; axes up to this are better not the ones in lanes.
    short: int = 8
    #: What an access counts that a sweep does not repeat, compared to one for each of its elements.
    seldom: float = 1 / 16
    cache_line: int = 64
    #: Bytes of an array above which elements at computed places are fetched ahead: where caches end.
    far_bytes: int = 16 << 20
    #: Bytes from which on elements at computed places are updated without lanes, and work of such an update:
    #: a core waits for the cache that several share, and for more elements at a time when nothing comes
    #: between them. From `far_bytes` on lists of places that lanes compute are faster, as what they name is
    #: fetched ahead.
    shared_bytes: int = 512 << 10
    max_lone_work: int = 16

    # -- unrolling ----------------------------------------------------------------------------------------
    #: Results that one sweep may accumulate.
    max_parts: int = 16
    #: Expressions of stores that stand side by side, and what these have in common at least.
    max_unrolled_nodes: int = 512
    min_shared_work: int = 2

    # -- bounds of loops ----------------------------------------------------------------------------------
    #: What loops over ranges of their own may compute once more.
    max_shared_work: int = 8
    #: Expressions, one inside of the other, that are searched for comparisons, and for a place's steps.
    max_mask_depth: int = 40
    max_place_depth: int = 8
    #: Clamped places of one loop that are worth a look.
    max_places: int = 8

    # -- transposed operands ------------------------------------------------------------------------------
    #: Elements of a row: two are picked from registers, of more than the last a row fills several.
    min_row: int = 3
    max_row: int = 64
    #: Rows that fill a register, how many others they are read for, and elements that are read in all: the
    #: code of a copy takes long to compile.
    min_rows: int = 16
    min_repeats: int = 16
    min_reads: int = 1 << 15
    #: Bytes of a copy, which stays in the second cache.
    max_copy_bytes: int = 1 << 18

    # -- two-stage reductions -----------------------------------------------------------------------------
    #: Rows that threads cannot share evenly, and that caches do not hold; elements of each from which on
    #: these are divided.
    max_long_rows: int = 16
    min_long_row: int = 1 << 18
    #: Columns that threads cannot share evenly, and stacks of them, at most. Of the blocks of rows that these
    #: are divided into: iterations, rows at least, and at most their number, and their results together.
    max_columns: int = 255
    max_stacks: int = 1
    short_block_work: int = 32768
    min_block_rows: int = 1
    max_blocks: int = 1 << 30
    max_block_results: int = 1 << 30
    #: Whether what is reduced to one number is divided in the same way, or by backends, while it runs.
    cuts_totals: bool = False
    #: Rows whose scans are divided, and elements of each from which on; operations of a step, up to which
    #: those of blocks are made twice.
    max_scan_rows: int = 0
    min_scan_row: int = 1 << 15
    max_scan_cost: int = 0

    # -- epilogues ----------------------------------------------------------------------------------------
    #: Shorter rows are not worth a loop of their own.
    min_epilogue_columns: int = 64
    #: Rows of a multiple of so many elements fill lanes; of longer ones, those left over are few.
    whole_columns: int = 32
    many_columns: int = 256

    # -- loops inside of each element ---------------------------------------------------------------------
    #: Scalars that one lane may carry, and elements of one value that it may compute.
    max_registers: int = 64
    #: Expressions of one body: more would spill, and take long to compile.
    max_expressions: int = 1500
    #: Work of a round that lanes may have in common.
    max_common_work: int = 16
    #: Rounds to expect of a loop that does not say.
    usual_trips: int = 16

    # -- scatters -----------------------------------------------------------------------------------------
    #: Kinds of numbers whose updates are made in parts: none where there are other ways to share them.
    scatter_kinds: str = "iuf"
    #: Updates that a part should have at least, and updates for each element of its copies.
    min_scatter_part: int = 8192
    min_updates_per_element: int = 4
    min_updates_per_turn: int = 2
    max_scatter_parts: int = 32
    #: Updates of few elements take turns in so many copies, so that one need not wait for the one before it,
    #: as long as the copies fill no more of the first cache than so many bytes.
    max_turns: int = 4
    turn_bytes: int = 8192
    #: What is left over for the end is never so little that the number would stand in the program's text.
    min_rest: int = 16

    # -- effort -------------------------------------------------------------------------------------------
    #: Steps that an equation costs.
    equation_steps: int = 150
