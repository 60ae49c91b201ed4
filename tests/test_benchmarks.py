"""The benchmark tool: peers agree on every row, and the figures are what they claim to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import command, measure, table
from benchmarks.measure import Measured, Timing
from benchmarks.peers import find_peers
from benchmarks.targets import TARGETS, describe_targets
from benchmarks.workload import Workload
from benchmarks.workloads import ROWS


@pytest.fixture(scope="module")
def peers():
    """All but Numba, whose loops take seconds to compile."""
    chosen = [peer for peer in find_peers() if peer.name != "Numba"]
    for peer in chosen:
        peer.start()
    return chosen


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_peers_agree(row, peers):
    measured = measure.measure_row(row, peers, quick=True)
    assert measured.difference == ""
    assert "jitcore" in measured.timings and len(measured.timings) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if getattr(row, "numba", None)], ids=lambda r: r.name)
def test_loops_written_for_numba_agree(row):
    chosen = [peer for peer in find_peers() if peer.name in ("jitcore", "Numba")]
    assert measure.measure_row(row, chosen, quick=True).difference == ""


def test_row_names_are_unique_and_targets_name_rows():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert {target.row for target in TARGETS} <= set(names)


def test_every_repeat_of_a_compile_row_compiles():
    """The figure would be that of a cache if a repeat found the program of the one before."""
    import jitcore

    for row in ROWS:
        if isinstance(row, Workload):
            continue
        for number in (1001, 1002):
            compiled = jitcore.jit(row.program(jitcore, number))
            compiled(*row.make_inputs())
            assert compiled.cache_info().compiles == 1, row.name


def test_wrong_results_are_reported_and_not_timed(peers):
    row = Workload("wrong", lambda size: (np.ones(size, np.float32),), lambda api: lambda x: x + 1,
                   numpy=lambda x: x + np.float32(1.01))  # fmt: skip
    measured = measure.measure_row(row, peers, quick=True)
    assert measured.difference.startswith("NumPy differs from jitcore by up to 0.01 ")
    assert measured.timings == {}
    assert table.format_tables([measured]) == f"DIFFERENT: wrong: {measured.difference}"
    assert f"DIFFERENT: {measured.difference}" in table.format_agreement([measured])


@pytest.mark.parametrize("theirs, agrees", [
    ([1.0, 2.0], True), ([1.0, 2.0 + 1e-7], True), ([1.0, 2.1], False), ([1.0], False),
    ([np.nan, 2.0], False),
])  # fmt: skip
def test_find_difference(theirs, agrees):
    results = {"jitcore": np.array([1.0, 2.0]), "other": np.array(theirs)}
    assert (measure.find_difference(results, 1e-6) == "") is agrees


def test_least_time_is_kept_and_peers_take_turns():
    order = []
    calls = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    effort = measure.Effort(seconds=0.0, rounds=3, batch_seconds=0.0, compiles=1)
    best = measure.time_in_turns(calls, effort)
    assert order == ["a", "b"] * 4  # one call each to size the batches, then three rounds
    assert all(0 < seconds < 1 for seconds in best.values())


def make_measured() -> Measured:
    return Measured("selu 1e6 f32", "call", {"jitcore": Timing(1e-4, 0.02), "JAX": Timing(2e-4, 0.03)})


def test_table():
    text = table.format_tables([make_measured()])
    header, _, row = text.splitlines()[2:]
    assert [cell.strip() for cell in header.split("|")[1:-1]] == ["workload", "jitcore", "JAX", "/ JAX"]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "selu 1e6 f32", "100 us (20 ms)", "200 us (30 ms)", "0.5"]  # fmt: skip


def test_targets():
    assert describe_targets([make_measured()]) == ["met     selu 1e6 f32: 0.5x JAX (at most 0.65x)"]
    assert math.isnan(make_measured().compare("NumPy"))


@pytest.mark.parametrize("seconds, text", [
    (2.54e-4, "254 us"), (1.2e-3, "1.2 ms"), (3.0, "3 s"), (5e-9, "5 ns"), (9.996e-4, "1 ms"),
])  # fmt: skip
def test_format_seconds(seconds, text):
    assert table.format_seconds(seconds) == text


def test_command_compares(capsys):
    assert command.main(["--quick", "--rows", "selu on 10", "--peers", "numpy"]) == 0
    out = capsys.readouterr().out
    assert out.count("same as NumPy") == 2 and "JAX" not in out.split("|", 1)[1]


def test_command_lists_rows(capsys):
    assert command.main(["--list", "--rows", "softmax"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("arguments", [["--rows", "no such row"], ["--quick", "--save"]])
def test_command_refuses(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        command.main(arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err


def test_results_are_saved_where_told(tmp_path):
    path = table.save_results("text", tmp_path)
    assert path.parent == tmp_path and path.suffix == ".md"
    assert path.read_text().splitlines()[-1] == "text"
