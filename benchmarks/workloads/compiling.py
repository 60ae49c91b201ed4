"""Time to compile three functions, each with a constant that no earlier function had."""

from __future__ import annotations

from benchmarks.workload import CompileTime
from benchmarks.workloads.inputs import make_normal, make_square
from benchmarks.workloads.selu import ALPHA, make_selu
from benchmarks.workloads.softmax import make_softmax


def _make_vector():
    return (make_normal(1000),)


def _make_matrix():
    return (make_square(10_000),)


ROWS = (
    CompileTime("compile x+1", _make_vector, lambda api, number: lambda x: x + number),
    CompileTime("compile selu", _make_vector, lambda api, number: make_selu(api, ALPHA + number / 2**20)),
    CompileTime("compile softmax", _make_matrix,
                lambda api, number: make_softmax(api, 1, 1 + number / 2**20)),
)  # fmt: skip
