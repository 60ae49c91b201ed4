"""The rows of the run-time section, in the order of its table. One module for each kind of work; a row gives
its inputs, the program, and what the other libraries run."""

from __future__ import annotations

from benchmarks.workload import Workload
from benchmarks.workloads import (derivatives, elementwise, formulas, library, loops, normalizing, products,
                                  random_numbers, reductions, scans, scattering, shapes, sorting, stencils,
                                  training)

ROWS: tuple[Workload, ...] = (
    *elementwise.ROWS, *formulas.ROWS, *reductions.ROWS, *normalizing.ROWS, *scans.ROWS, *sorting.ROWS,
    *scattering.ROWS, *shapes.ROWS, *products.ROWS, *stencils.ROWS, *loops.ROWS, *random_numbers.ROWS,
    *training.ROWS, *derivatives.ROWS, *library.ROWS,
)
