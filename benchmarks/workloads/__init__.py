"""The rows of the benchmark, in the order of the table."""

from __future__ import annotations

from benchmarks.workload import Row
from benchmarks.workloads import (
    black_scholes,
    chain,
    compiling,
    fori_loop,
    jit_in_a_loop,
    matmul,
    reductions,
    selu,
    softmax,
    unary,
)

ROWS: tuple[Row, ...] = (
    *selu.ROWS, *compiling.ROWS, *jit_in_a_loop.ROWS, *softmax.ROWS, *reductions.ROWS, *unary.ROWS,
    *black_scholes.ROWS, *matmul.ROWS, *fori_loop.ROWS, *chain.ROWS,
)  # fmt: skip
