"""The workloads of the benchmarks on tiny inputs: every library that takes part computes the right result."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks import dispatch_time, first_calls
from benchmarks.peers import JAX, JITCORE, NumbaPeer, NumexprPeer
from benchmarks.run_time import check_peers
from benchmarks.timing import QUICK
from benchmarks.workloads import ROWS


def check_row(row, peer):
    """Fails if the peer computes something else than the reference; skips if it lacks what the row needs."""
    problems: dict[str, str] = {}
    peer.start()
    check_peers(row, row.make_inputs(row.tiny), [peer], problems)
    if problems.get(peer.name, "").startswith("not available"):
        pytest.skip(problems[peer.name])
    assert problems == {}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_jitcore_is_right(row):
    check_row(row, JITCORE)


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.numba], ids=lambda row: row.name)
def test_loops_written_for_numba_are_right(row):
    check_row(row, NumbaPeer())


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_jax_is_right(row):
    check_row(row, JAX)


@pytest.mark.skipif(not importlib.util.find_spec("numexpr"), reason="numexpr is not installed")
@pytest.mark.parametrize("row", [row for row in ROWS if row.numexpr], ids=lambda row: row.name)
def test_expressions_are_right(row):
    check_row(row, NumexprPeer())


def test_names_are_unique_and_end_in_a_dtype():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert {row.dtype for row in ROWS} <= {"f32", "f64", "i32", "c64", "c128"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_stated_work_is_positive(row):
    inputs = row.make_inputs(row.tiny)
    for count in (row.bytes_moved, row.flops):
        assert count is None or count(*inputs) > 0


@pytest.mark.parametrize("row", first_calls.ROWS, ids=lambda row: row.name)
def test_first_calls_compile_each_time(row):
    """A figure would be that of a cache if a repeat found the program of the one before."""
    api = JITCORE.load_api()
    for _ in range(2):
        api.clear_caches()
        try:
            function = api.jit(row.program(api))
            function(*row.make_inputs())
        except AttributeError as error:
            pytest.skip(str(error))
        assert function.cache_info().compiles >= 1


@pytest.mark.parametrize("name", dispatch_time.ROWS)
def test_dispatch_rows_run(name):
    measured = dispatch_time.measure_dispatch(name, [JITCORE], QUICK)
    assert measured.problems == {} and 0 < measured.seconds["jitcore"] < 1
