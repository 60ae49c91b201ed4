"""Programs of plain Python, without arrays, with which a compiler of arrays has nothing to do."""

from __future__ import annotations

from benchmarks.plain_program import PlainProgram
from benchmarks.plain_programs import containers, lists, numbers, objects, recursion, texts

ROWS: tuple[PlainProgram, ...] = (
    *recursion.ROWS, *lists.ROWS, *texts.ROWS, *containers.ROWS, *objects.ROWS, *numbers.ROWS,
)
