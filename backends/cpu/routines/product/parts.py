"""Parts of products' machine code that are compiled when a plan first needs them.

In: the sizes that a plan cuts. Out: names of the parts that it needs, and the table by which `multiply` calls
them. Stage: lowering; opening parts before the first call.

Each function takes milliseconds to compile, and one product needs few of them: tiles of the heights that its
rows are cut into, for whole panels of columns or the last one; packing and adding where blocks ask for it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jitcore.backends.cpu.machine import host

_TABLE_PREFIX, _PART_PREFIX = "jitcore_parts_", "jitcore_part_"

#: Where the table has its functions, in bytes. For each number of rows that a tile may have, the largest
#: first: that number, the function for whole panels, the one for `columns` of a panel, and the one for
#: `columns` that one vector holds.
PACK_AT, TILES_AT, TILE_BYTES = 0, 8, 32

# Rows a tile of few rows takes as much time as: its sums wait for one another.
_LATENCY_ROWS = 4

# Bytes of vectors from which on processors load and store some lanes as fast as all.
_MASKED_BYTES = 64


class TileShape(NamedTuple):
    """Registers of the largest tile: `rows` x `vectors` sums of `lanes` elements."""

    element: str
    itemsize: int
    lanes: int
    rows: int
    vectors: int

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.itemsize}"

    @property
    def width(self) -> int:
        """Columns of a full tile."""
        return self.lanes * self.vectors

    @property
    def vector_bytes(self) -> int:
        return self.lanes * self.itemsize


def choose_tile_shape(itemsize: int) -> TileShape:
    """The tile whose sums, with a row of the right operand, fill this processor's vector registers."""
    size = host.native_vector_bytes()
    registers = 16 if size < 64 and "sse2" in host.cpu_features() else 32
    element = {4: "float", 8: "double"}[itemsize]
    return TileShape(element, itemsize, size // itemsize, (registers - 4) // 2, 2)


# -- how rows are cut ----------------------------------------------------------------------------------------
def list_heights(largest: int) -> list[int]:
    """Heights of tile functions: halves, rounded up, down to what takes no less time for fewer rows."""
    heights = [largest, -(-largest // 2)]
    while heights[-1] > _LATENCY_ROWS:
        heights.append(-(-heights[-1] // 2))
    return heights


def list_rows(largest: int) -> list[int]:
    """Numbers of rows that a tile may have, the largest first."""
    return [largest, *range(list_heights(largest)[1], 0, -1)]


def find_height(rows: int, heights: Sequence[int]) -> int:
    """Of the heights the least one that does for so many rows."""
    return min(height for height in heights if height >= rows)


def cut_rows(rows: int, heights: list[int]) -> list[int]:
    """Rows of tiles of these heights that add up to a number of rows in the least time; the largest first."""
    return list(_cut_rows(rows, tuple(heights)))


@functools.cache
def _cut_rows(rows: int, heights: tuple[int, ...]) -> tuple[int, ...]:
    if not rows:
        return ()
    cuts = [(own, *_cut_rows(rows - own, heights)) for own in range(1, min(rows, max(heights)) + 1)]
    best = min(cuts, key=lambda cut: sum(find_height(own, heights) for own in cut))
    return tuple(sorted(best, reverse=True))


def has_full(shape: TileShape, height: int) -> bool:
    """Whether whole panels have a function of their own."""
    return height == shape.rows or shape.vector_bytes < _MASKED_BYTES


# -- parts and their table -----------------------------------------------------------------------------------
def name_table(shape: TileShape) -> str:
    return f"{_TABLE_PREFIX}f{8 * shape.itemsize}"


def list_parts(itemsize: int, rows: int, widths: Iterable[int], *, packs: bool) -> tuple[str, ...]:
    """Names of the parts for items of so many rows, and of so many columns at a time."""
    shape = choose_tile_shape(itemsize)
    heights, widths = list_heights(shape.rows), list(widths)
    rests = [width % shape.width for width in widths]
    wanted = {find_height(count, heights[1:]) for count in cut_rows(rows % shape.rows, heights[1:])}
    wanted |= {shape.rows} if rows >= shape.rows else set()
    kinds = ["pack"] * packs
    for height in sorted(wanted):
        is_masked = not has_full(shape, height)
        has_whole = any(width >= shape.width for width in widths)
        needs_edge = is_masked and has_whole or any(rest > shape.lanes for rest in rests)
        needs_half = any(0 < rest <= shape.lanes for rest in rests)
        needs_half &= height == shape.rows or not needs_edge  # which does as well for few rows
        kinds += [f"tile{height}full"] * (not is_masked and has_whole)
        kinds += [f"tile{height}edge"] * needs_edge + [f"tile{height}half"] * needs_half
    return tuple(f"{_PART_PREFIX}{kind}_f{8 * itemsize}" for kind in kinds)


@functools.cache
def find_table(symbol: str) -> np.ndarray:
    """The table of a dtype; machine code reads it for as long as the process lives."""
    shape = choose_tile_shape(int(symbol.removeprefix(f"{_TABLE_PREFIX}f")) // 8)
    entries = [(rows, 0, 0, 0) for rows in list_rows(shape.rows)]
    return np.array([0, *(word for entry in entries for word in entry)], np.int64)


def enter_part(symbol: str, address: int) -> None:
    """From now on the table has a part."""
    kind, dtype = symbol.removeprefix(_PART_PREFIX).split("_")
    table = find_table(_TABLE_PREFIX + dtype)
    if kind == "pack":
        table[PACK_AT // 8] = address
        return
    shape = choose_tile_shape(int(dtype[1:]) // 8)
    heights, (height, width) = list_heights(shape.rows), split_kind(kind)
    for number, rows in enumerate(list_rows(shape.rows)):
        if find_height(rows, heights) == height:
            entry = table[TILES_AT // 8 + number * TILE_BYTES // 8 :]
            if width == "edge":
                entry[2] = address
                entry[3] = entry[3] or address
            if width == "half":
                entry[3] = address
            elif width == "full" or not has_full(shape, height):
                entry[1] = address


def split_kind(kind: str) -> tuple[int, str]:
    """Height of a tile and which columns it has, from "tile7edge"."""
    height, width = re.fullmatch(r"tile(\d+)(full|edge|half)", kind).groups()
    return int(height), width
