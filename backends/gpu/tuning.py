"""Tuning: the numbers by which kernels are mapped to a GPU and that only measurement explains.

In: nothing. Out: a record that comes with an architecture (`cuda.architectures`), so that another GPU brings
other numbers. What hardware or a format fixes is no tuning, and stands where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Thresholds, by what they decide."""

    # -- threads of an item (`mapping`) ---------------------------------------------------------------
    #: Threads of a block of several items.
    block: int = 128
    #: Iterations of an item that one thread does by itself, and that each thread of a team should have.
    lone_work: int = 16
    team_work: int = 8
    #: Threads of a team at least; and at most, where there are so many threads that each may have more work.
    least_team: int = 4
    usual_team: int = 128
    many_threads: int = 1 << 20
    #: Rows that stay in registers between sweeps: bytes of each thread at least, where there is so much; at
    #: most, and where the usual team would have more; threads of a multiprocessor that there are registers
    #: for. For so many operations on an element, and again for twice as many, it has twice the registers.
    row_bytes: int = 64
    most_row_bytes: int = 128
    long_row_bytes: int = 128
    row_threads: int = 1024
    row_cost: int = 20
    #: Rows that the teams of columns reach, at most.
    column_team: int = 16
    #: Of tiles of columns: threads of a block, at most; rows that a thread has on their way; bytes of what it
    #: has found, at most.
    column_block: int = 256
    column_batch: int = 4
    column_bytes: int = 128
    #: Elements of a thread side by side, at most: more of short ones take more registers than they are worth.
    most_elements: int = 8

    # -- scans (`mapping`) ----------------------------------------------------------------------------
    #: Threads that share a piece; elements of one at least, and pieces at most.
    piece_team: int = 256
    least_piece: int = 4096
    most_pieces: int = 4096
    #: Columns from which on scans down them go side by side; fewer keep too few blocks busy.
    least_scan_columns: int = 1024
    #: Rows of each thread in a tile of a scan down the columns.
    scan_run: int = 16
    #: Elements of a thread in a tile of a scan.
    scan_elements: int = 16

    # -- control flow (`cuda.render.loops`, `cuda.program`) -----------------------------------------------
    #: Operations of a round that one thread does, and that one block does, before several are launched.
    lone_round: int = 64
    block_round: int = 32768
    #: Operations that a thread of such a block should have.
    thread_work: int = 4
    #: Launches in a row from which on a graph is faster.
    least_graph: int = 3
    #: Bytes that a loop on the device may copy in each round instead of letting memory change places.
    most_moved: int = 4 << 20

    # -- kernels (`cuda.render`) --------------------------------------------------------------------------
    #: Rounds of a thread's part of a reduction that are written out together, if one has so many operations
    #: at least (NVIDIA's assembler does that with shorter ones), and results of so many bytes at most.
    rounds: int = 4
    least_unrolled: int = 16
    most_unrolled_bytes: int = 256
    #: Kernels with more calls of mathematical functions keep them as calls: copies take long to compile.
    most_inlined_calls: int = 8
    #: Extents from which on products go by tiles; tiles that keep a GPU busy: where there are fewer of the
    #: large ones, they are smaller.
    least_product: int = 8
    many_tiles: int = 132
    #: Tiles, from large to small, of numbers of four and of eight bytes, and of tensor cores: rows, columns,
    #: threads, and bytes that tiles of factors go along the sum (at least 64 for tensor cores), all powers of
    #: two. The last one is for few rows or columns.
    product_shapes: tuple[tuple[int, int, int, int], ...] = (
        (128, 128, 256, 32), (64, 64, 256, 64), (32, 32, 256, 64), (16, 16, 256, 64))
    wide_product_shapes: tuple[tuple[int, int, int, int], ...] = (
        (128, 64, 256, 32), (64, 64, 256, 64), (32, 32, 256, 64), (16, 16, 256, 64))
    tensor_product_shapes: tuple[tuple[int, int, int, int], ...] = (
        (128, 128, 256, 64), (64, 64, 256, 64), (32, 32, 256, 64), (16, 16, 256, 64))
    #: Threads of products that a multiprocessor runs at once at least: so many leave each 128 registers.
    product_threads: int = 512
    #: Of transposed reads: warps of a block; extents from which on tiles pay; arrays that go through shared
    #: memory, and bytes of it, at most; accesses that a thread has on their way.
    turned_warps: int = 8
    least_turned: int = 32
    most_turned: int = 4
    turned_bytes: int = 18 << 10
    turned_batch: int = 4
    #: Of updates in tables: bytes of a block's tables, at most; threads of a block that shares one; warps of
    #: a block, at most, where each has its own; blocks, at most; updates that a block has for each element,
    #: at least; accesses that a thread has on their way.
    private_bytes: int = 32 << 10
    private_block: int = 512
    private_warps: int = 8
    private_blocks: int = 528
    private_updates: int = 4
    private_batch: int = 2
    #: Updates in order from which on sorting them pays.
    least_updates: int = 64

    # -- sorting (`cuda.sorting`) -------------------------------------------------------------------------
    #: By digits: threads of a block, whole warps and at least 256; elements of one, and their bytes, at most:
    #: of the tiles of 8192 elements of four bytes, 128 bytes of each digit lie side by side.
    digit_block: int = 512
    most_digit_items: int = 16
    digit_item_bytes: int = 64
    #: By digits: blocks that a multiprocessor has registers for, at least; the same where keys go alone.
    digit_blocks: int = 2
    digit_key_blocks: int = 3
    #: By digits: elements that a thread counts, and how many it reads at one time.
    digit_count_items: int = 64
    digit_batch: int = 8

    # -- NVIDIA's libraries (`cuda.libraries`) ------------------------------------------------------------
    #: Extents of real matrices from which on a product is the library's: tiles in registers and shared memory
    #: then do not hide that they have no tensor cores and no asynchronous copies.
    least_library_product: int = 512
    #: Elements of a matrix from which on a batch is the library's, one matrix after the other: LAPACK needs
    #: less time for a smaller one than the launches of one call take.
    least_in_batch: int = 128 * 128
