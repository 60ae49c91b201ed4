"""What the functions of a matrix product share: a job in memory, names, and splitting over threads.

In: a `TextWriter`. Out: LLVM text that reads and writes a job's fields and calls functions on ranges of work.
Stage: rendering.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.product.parts import TileShape, name_table
from jitcore.backends.cpu.runtime.threads import (BODY_TYPE, PARALLEL_TYPE, SWEEP_SYMBOL,
                                                  SYMBOL as PARALLEL_SYMBOL, locate_count)

#: Attributes of functions that run seldom: they are translated quickly instead of well.
UNHURRIED = "noinline optnone"

#: Arguments of a function that does a range of a job's work.
RANGE_ARGUMENTS = "ptr %none, ptr %job, i64 %start, i64 %stop"

# Addresses: operands, result, tables, packed panels. Counts: items and their segments; rows, columns and
# steps of an item, steps of a segment at most; tiles of rows, panels of columns and how many of these a unit
# has. Strides in bytes.
# left_tiles: tiles of rows that a thread packs at a time, 0 for none. k_block: steps per visit of a tile.
# adds: whether results add to what is there. finishes: whether nothing is added to them later. result: where
# the whole result begins. tall: tiles of full height in an item; rest: how the rows behind them are cut.
# a_item, width: of products with vectors alone, bytes between items and columns of a block.
_FIELDS = ("a", "b", "c", "items", "segments", "packed", "item_count", "segment_count", "m", "n", "steps",
           "length", "tiles", "panels", "groups", "group_panels", "a_row", "a_step", "b_item", "b_step",
           "b_column", "b_panel", "c_row", "k_block", "left_tiles", "adds", "finishes", "result", "epilogue",
           "epilogue_table", "epilogue_dims", "epilogue_work", "tall", "rest", "a_item", "width")

#: An epilogue: of its table and sizes, from which row to which, from which column to which.
EPILOGUE_TYPE = "void (ptr, ptr, i64, i64, i64, i64)"

#: Arguments of the functions that make jobs: an epilogue, see `EntryRenderer.epilogue_of`.
EPILOGUE_ARGUMENTS = "ptr %epilogue, ptr %epilogue_table, ptr %epilogue_dims, i64 %epilogue_work"


def name_symbol(kind: str, shape: TileShape) -> str:
    """The exported function of a module of `modules`."""
    return f"jitcore_product_{kind}_f{8 * shape.itemsize}"


def find_part(w: TextWriter, shape: TileShape, offset: int) -> str:
    """Where the table of parts has something."""
    w.declare(f"@{name_table(shape)} = external global i8")
    return w.at(f"@{name_table(shape)}", offset)


def load_part(w: TextWriter, shape: TileShape, offset: int) -> str:
    """A part: a function that the plan asks for, see `parts`."""
    return w.load(find_part(w, shape, offset), "ptr")


class Job:
    """The fields of one product: an array of 64-bit integers and pointers that all its threads read."""

    def __init__(self, w: TextWriter, pointer: str):
        self.w, self.pointer = w, pointer

    @classmethod
    def allocate(cls, w: TextWriter) -> Job:
        return cls(w, w.let(f"alloca [{len(_FIELDS)} x i64], align 64"))

    def _at(self, field: str) -> str:
        return self.w.at(self.pointer, 8 * _FIELDS.index(field))

    def get(self, field: str) -> str:
        return self.w.load(self._at(field))

    def get_pointer(self, field: str) -> str:
        return self.w.load(self._at(field), "ptr")

    def put(self, **fields: Operand) -> None:
        for field, value in fields.items():
            self.w.store(value, self._at(field))

    def put_epilogue(self, result: str) -> None:
        """Keeps the arguments that tell what is done to a result."""
        self.put_pointers(result=result, epilogue="%epilogue", epilogue_table="%epilogue_table",
                          epilogue_dims="%epilogue_dims")
        self.put(epilogue_work="%epilogue_work")

    def put_pointers(self, **fields: str) -> None:
        for field, value in fields.items():
            self.w.store(value, self._at(field), "ptr")


def divide_up(w: TextWriter, x: Operand, y: Operand) -> str:
    """x / y, rounded up."""
    return w.div(w.add(x, w.sub(y, 1)), y)


def load_thread_count(w: TextWriter) -> str:
    """How many threads there are."""
    declaration, place = locate_count()
    w.declare(declaration)
    return w.load(place)


def call_parallel(w: TextWriter, body: str, job: str, count: Operand, grain: Operand,
                  to_and_fro: bool = False) -> None:
    """Runs the function `body` on [0, count), by several threads if it is more than `grain`. to_and_fro: the
    range lies in order in memory, and every other call may begin at its end."""
    symbol = SWEEP_SYMBOL if to_and_fro else PARALLEL_SYMBOL
    with w.cases() as case:
        with case(w.compare("sle", count, grain)):
            w.call(body, "null", job, 0, count, type=BODY_TYPE)
        w.call(symbol, f"@{body}", "null", job, count, grain, type=PARALLEL_TYPE)
