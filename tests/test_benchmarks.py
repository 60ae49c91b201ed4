"""The benchmark tool: its figures are what they claim to be, and its tables and files say them."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import threading
from functools import partial
from time import sleep

import numpy as np
import pytest

from benchmarks import (agreement, bars, command, compile_time, cuda, first_calls, gpu, imports, machine,
                        measured, memory, results_file, run_time, scaling, table, timing)
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Measured, Section
from benchmarks.peers import JITCORE, NumpyPeer, find_peers, find_tracing_peers
from benchmarks.timing import Call, Effort
from benchmarks.workload import Workload
from jitcore.config import config

BRIEF = Effort(seconds=1e-3, rounds=3, batch_seconds=0.0, compiles=1, processes=1, longest=1e-4)


def make_workload(**fields) -> Workload:
    given = {"name": "increment f32", "make_inputs": lambda size: (np.ones(size, np.float32),),
             "program": lambda api: lambda x: x + 1, "size": 100}
    return Workload(**given | fields)


# -- results -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs, agrees", [
    ([1.0, 2.0], True), ([1.0, 2.0 + 1e-7], True), ([1.0, 2.1], False), ([1.0], False), ([np.nan, 2.0], False),
])
def test_find_difference(theirs, agrees):
    difference = agreement.find_difference(make_workload(), np.array(theirs), np.array([1.0, 2.0]))
    assert (difference == "") is agrees


def test_integers_are_compared_exactly_but_for_the_share_that_may_differ():
    ours, right = np.array([1, 2, 3, 5]), np.array([1, 2, 3, 4])
    assert agreement.find_difference(make_workload(), ours, right) == "1 of 4 elements differ"
    assert agreement.find_difference(make_workload(mismatches=0.25), ours, right) == ""


def test_results_are_compared_leaf_by_leaf():
    right = {"a": np.ones(2), "b": (np.zeros(1), 3)}
    assert agreement.find_difference(make_workload(), {"b": (np.zeros(1), 3), "a": np.ones(2)}, right) == ""
    assert agreement.find_difference(make_workload(), {"a": np.ones(2)}, right) == "1 results instead of 3"


def test_the_reference_is_computed_in_double_precision():
    row = make_workload(program=lambda api: lambda x, tree: (x.dtype, tree["w"].dtype, tree["n"].dtype))
    inputs = np.ones(2, np.float32), {"w": np.ones(2, np.complex64), "n": np.ones(2, np.int32)}
    assert agreement.compute_reference(row, inputs) == (np.float64, np.complex128, np.int32)


def test_wrong_results_and_failures_are_reported_and_not_timed():
    row = make_workload(numpy=lambda x: x + np.float32(1.01), reference=lambda x: x + 1,
                        numba=lambda x: 1 / 0)
    result = run_time.measure_workload(row, find_peers(["numpy", "numba"]), BRIEF)
    assert list(result.seconds) == ["jitcore"]
    assert result.problems["NumPy"].startswith("WRONG: off by up to 0.01,")
    assert result.problems["Numba"] == "failed: ZeroDivisionError: division by zero"
    assert "- increment f32, Numba: failed" in table.format_section([result])


def test_what_a_library_lacks_is_told_from_its_failures():
    row = make_workload(program=lambda api: api.no_such_transformation, numpy=lambda x: x)
    result = run_time.measure_workload(row, find_peers(["numpy"]), BRIEF)
    assert result.problems["jitcore"].startswith("not available: ") and list(result.seconds) == ["NumPy"]
    assert measured.explain_error(AttributeError("x")).startswith("failed: AttributeError")


def test_every_peer_reads_inputs_of_its_own():
    seen = []

    def note(x):
        seen.append(x)
        return x + 1

    x = np.ones(5, np.float32)
    row = make_workload(numpy=note, numba=note)
    calls = [peer.make_call(row, (x,)) for peer in find_peers(["numpy", "numba"])[1:]]
    results = [call.run() for call in calls]
    assert all(np.array_equal(result, x + 1) for result in results) and len(seen) == 2
    assert not any(np.shares_memory(*pair) for pair in ((seen[0], seen[1]), (seen[0], x), (seen[1], x)))


# -- times ---------------------------------------------------------------------------------------------------


def test_least_time_is_kept_and_peers_take_turns():
    order = []
    calls = {name: Call(lambda name=name: order.append(name)) for name in "ab"}
    best = timing.time_in_turns(calls, Effort(1.0, 3, 0.0, 1, 1, 1.0))
    assert order == ["a", "b"] * 4  # one call each to size the batches, then three rounds
    assert all(0 < seconds < 1 for seconds in best.values())


def test_a_batch_that_does_not_count_comes_first():
    order = []

    def run(name):
        order.append(name)
        sleep(2e-3)

    calls = {name: Call(partial(run, name)) for name in "ab"}
    timing.time_in_turns(calls, Effort(1.0, 3, 2e-3, 1, 1, 1.0))
    assert order == ["a", "b"] + ["a", "a", "b", "b"] * 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel about threads")
def test_the_thread_that_asks_runs():
    own = str(threading.get_native_id())
    assert own in timing._list_threads() and timing._runs(own)
    assert not timing._runs("0")


def test_other_threads_are_waited_for(monkeypatch):
    answers = iter([True, True, True, False])
    monkeypatch.setattr(timing, "_list_threads", lambda: {"7", str(threading.get_native_id())})
    monkeypatch.setattr(timing, "_runs", lambda thread: thread == "7" and next(answers))
    timing.wait_for_threads(most=60)
    assert not list(answers)
    monkeypatch.setattr(timing, "_runs", lambda thread: True)
    start = timing.perf_counter()
    timing.wait_for_threads(most=0.01)
    assert timing.perf_counter() - start >= 0.01


def test_a_slow_peer_drops_out():
    counts = dict.fromkeys("fs", 0)

    def count(name, seconds):
        counts[name] += 1
        stop = timing.perf_counter() + seconds
        while timing.perf_counter() < stop:
            pass

    calls = {"f": Call(lambda: count("f", 0)), "s": Call(lambda: count("s", 0.02))}
    timing.time_in_turns(calls, Effort(seconds=0.01, rounds=5, batch_seconds=0, compiles=1, processes=1, longest=1))
    assert counts["s"] == 1 and counts["f"] == 6


def test_rows_close_to_their_bar_are_measured_again():
    times = {"close": iter([1.1, 1.2, 0.97]), "far": iter([2.0, 1.6, 1.7]), "fast": iter([0.2])}

    def measure(name):
        seconds = next(times[name])
        return Measured(name, {"jitcore": seconds, "JAX": 1.0}, note=f"{seconds:.2f}")

    names: list[str] = []
    rows = measured.measure_rows({name: partial(measure, name) for name in times}, 2, names.append)
    assert names == ["close", "far", "fast", "close", "far", "close", "far"]
    assert [(row.seconds["jitcore"], row.note) for row in rows] == [(0.97, "0.97"), (1.6, "1.60"), (0.2, "0.20")]


def test_calls_run_inside_their_scope():
    inside = []

    class Scope:
        def __enter__(self):
            inside.append(True)

        def __exit__(self, *exception):
            inside.pop()

    timing.time_in_turns({"a": Call(lambda: inside[0], Scope)}, BRIEF)
    assert not inside


def test_time_first_call_in_a_fresh_process():
    assert 0 < run_fresh(first_calls.time_first_call, "jitcore", "x+1", environment={"JITCORE_CACHE_DIR": ""}) < 60


def test_a_fresh_process_says_how_it_failed():
    with pytest.raises(RuntimeError, match="^KeyError: 'no such row'"):
        run_fresh(first_calls.time_first_call, "jitcore", "no such row")
    with pytest.raises(NotImplementedError, match="has no attribute 'absent'"):
        run_fresh(use_what_is_absent)
    with pytest.raises(RuntimeError, match="exit code 3"):
        run_fresh(leave_at_once)


def use_what_is_absent() -> None:
    return np.absent


def leave_at_once() -> None:
    os._exit(3)


def test_first_calls_import_no_compiler():
    code = ("import sys, benchmarks.fresh_process, benchmarks.first_calls\n"
            "print(sorted({'numba', 'llvmlite', 'jax', 'jitcore', 'scipy'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_new_shapes_compile_nothing():
    for program, dimensions in compile_time.RESHAPED.values():
        assert compile_time.time_new_shape(JITCORE, program, dimensions, BRIEF) < 1


def test_limits_are_measured():
    assert 1e8 < machine.measure_bandwidth(1e5, threads=1) < 1e14
    assert 1e8 < machine.measure_peak("float32", threads=1) < 1e14


# -- memory and scaling --------------------------------------------------------------------------------------


@pytest.mark.skipif(not memory._STATUS.exists(), reason="needs Linux")
def test_temporary_memory_is_seen():
    measured = run_fresh(measure_hungry_call)
    assert measured["output"] == 40e6 and 79e6 < measured["extra"] < 85e6


def measure_hungry_call() -> dict[str, int]:
    """Of a call that holds two arrays of 40 MB beside its result."""

    def call(x):
        held = [x + number for number in range(3)]
        return held[0]

    return memory.measure_call(call, np.ones(10_000_000, np.float32))


def test_scaling_points():
    points = list(scaling.measure_work("sum", [JITCORE], BRIEF))
    assert points[0].elements == 100 and len(points) < len(scaling.SIZES)  # the longest call ends it
    assert all(0 < share for point in points for share in point.shares.values())
    assert "| sum  | 1e2 " in scaling.format_points(points)


def test_scaling_plot(tmp_path):
    pytest.importorskip("matplotlib")
    series = scaling.name_series(machine.count_threads())
    points = [scaling.Point("sum", size, {series: 1e-3, "JAX": 2e-3}, {series: 0.5}) for size in (100, 1000)]
    assert scaling.draw_points(points, tmp_path / "plot.png") == "![Shares of the limits over sizes](plot.png)"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


# -- text ----------------------------------------------------------------------------------------------------


def make_rows() -> list[Measured]:
    return [Measured("slow f32", {"jitcore": 4e-4, "Numba": 1e-4, "JAX": 2e-4}, note="50%"),
            Measured("fast f32", {"jitcore": 1e-4, "JAX": 2e-4})]


def test_ratios():
    slow, fast = make_rows()
    assert (slow.find_best(), slow.compare("JAX"), slow.is_over()) == ("Numba", 2.0, True)
    assert math.isnan(fast.compare("Numba")) and not fast.is_over()
    assert not Measured("alone", {"jitcore": 1.0}).is_over() and not Measured("none", {"JAX": 1.0}).is_over()


def test_table():
    header, _, first, second = table.format_times(make_rows(), note="share").splitlines()
    assert [cell.strip() for cell in header.split("|")[1:-1]] == [
        "workload", "jitcore", "Numba", "JAX", "/ best", "/ Numba", "/ JAX", "share"]
    assert [cell.strip() for cell in first.split("|")[1:-1]] == [
        "slow f32", "400 us", "100 us", "200 us", "4", "4", "2", "50%"]
    assert [cell.strip() for cell in second.split("|")[1:-1]][-4:] == ["0.5", "", "0.5", ""]


def test_bars():
    assert bars.describe_bars(make_rows(), {"JAX": 0.5}) == [
        "geometric mean: 4x Numba, 1 rows",
        "geometric mean: 1x JAX (bar 0.5x), 2 rows",
        "geometric mean: 1.41x the best of them, 2 rows",
        "1 of 2 rows over their bar",
        "- slow f32: 4x Numba (bar 1x)",
    ]


@pytest.mark.parametrize("seconds, text", [
    (2.54e-4, "254 us"), (1.2e-3, "1.2 ms"), (3.0, "3 s"), (5e-9, "5 ns"), (9.996e-4, "1 ms"), (0, "0 ns"),
])
def test_format_seconds(seconds, text):
    assert table.format_seconds(seconds) == text


def test_saved_sections_replace_those_of_the_same_title(tmp_path, monkeypatch):
    monkeypatch.setattr(results_file, "describe_limits", lambda: "- limits")
    results_file.save_sections([Section("Run time", "old"), Section("Memory", "| kept |")], tmp_path)
    path = results_file.save_sections([Section("Run time", "new", draw=lambda path: f"![]({path.name})")], tmp_path)
    assert path.parent == tmp_path and path.suffix == ".md"
    chapters = results_file.split_chapters(path.read_text())
    assert list(chapters) == ["Run time", "Memory"] and chapters["Memory"] == "| kept |"
    assert chapters["Run time"].startswith("new\n\n![](") and chapters["Run time"].endswith("-run.png)")


# -- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def without_limits(monkeypatch):
    monkeypatch.setattr(command, "describe_limits", lambda: "")


def test_command_compares(capsys, without_limits):
    assert command.main(["--quick", "--rows", "selu 1e6 f32", "--peers", "numpy"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^\| selu 1e6 f32 +\|", out, re.MULTILINE) and "x NumPy" in out and "/ JAX" not in out


def test_command_dispatches(capsys, without_limits):
    assert command.main(["dispatch", "--quick", "--rows", "2 Python", "--peers", "numpy"]) == 0
    assert "| 2 Python scalars |" in capsys.readouterr().out


@pytest.mark.parametrize("section, name", [
    ("run", "softmax 1000x1000 axis 1 f32"), ("compile", "in a second process: selu"), ("dispatch", "4 arrays"),
    ("scaling", "matmul"), ("memory", "10,000 shapes"), ("rewriting", "collatz"), ("plain", "towers of Hanoi"), ("scripts", "game_of_life"), ("clusters", "gradient of a loss"), ("import", "jitcore"), ("all", "eager x*2+1"),
])
def test_command_lists_rows(section, name, capsys):
    assert command.main([section, "--list"]) == 0
    assert name in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("arguments", [
    ["--rows", "no such row"], ["--quick", "--save"], ["--rows", "selu", "--save"], ["--peers", "nobody"], ["walk"],
])
def test_command_refuses(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        command.main(arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err


def test_imports_take_turns(monkeypatch):
    asked = []
    monkeypatch.setattr(imports, "IMPORTS", {"Python": "", "numba": "no_such_module", "jitcore": "sys", "numpy": "os"})
    monkeypatch.setattr(imports.importlib.util, "find_spec", lambda name: None if name == "numba" else name)
    monkeypatch.setattr(imports.subprocess, "run", lambda command, **_: asked.append(command[2]))
    section = imports.run_section(list(imports.IMPORTS), [], BRIEF, lambda name: None)
    assert asked == ["", "import sys", "import os"] * (len(asked) // 3)
    assert "not installed" in section.text and "is not there" in section.text and not section.failed


def test_tracing_peers():
    assert find_tracing_peers(["numpy"]) == [JITCORE]
    assert NumpyPeer().make_call(make_workload(reference=lambda x: x), (1,)) is None


# -- GPUs ----------------------------------------------------------------------------------------------------
def test_accesses_of_machine_code_are_counted_by_width():
    sass = """
        /*0010*/ LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/ STG.E.128 desc[UR4][R6.64], R8 ;
        /*0030*/ LDG.E.64 R4, desc[UR4][R2.64] ;
        /*0040*/ LDG.E R4, desc[UR4][R2.64] ;
        /*0050*/ LDG.E.U8.CONSTANT R4, desc[UR4][R2.64] ;
        /*0060*/ LDS.128 R4, [R2] ;
    """
    assert cuda.count_accesses(sass) == "2 1 1 1" and cuda.count_accesses("EXIT ;") == ""


@pytest.mark.parametrize(("bar", "told"), [
    (gpu.Bar("copy", 0.9), "90% of a copy: yes"), (gpu.Bar("copy", 0.99), "99% of a copy: no"),
    (gpu.Bar("JAX", 0.5), "0.5 of JAX: yes"), (gpu.Bar("JAX", 0.2), "0.2 of JAX: no"),
    (gpu.Bar("CuPy", 1.0), "1 of CuPy: not measured"), (gpu.Bar(), ""),
])
def test_bars_of_gpus(bar, told):
    cells = gpu._format_row({"jitcore": 1e-3, "JAX": 3e-3}, 950_000, 1e9, bar)
    assert cells[1] == "95%" and cells[-1] == told
    assert gpu._format_row({}, 0, 1e9, bar) == [""] * (3 + len(gpu.PEERS))


@pytest.mark.parametrize("name", ["selu 1e8 f32", "while of 1000 small rounds f32"])
def test_rows_of_gpus_are_right_on_the_device_in_software(name):
    with config.override(default_backend=gpu.EMULATED):
        seconds, _, problem = gpu.measure(name)
    assert seconds > 0 and problem == ""


def test_libraries_without_a_gpu_measure_no_row_of_gpus():
    assert gpu.measure_other("JAX", "x + 1, 4 elements f32") == {}


def test_calls_are_awaited_once_in_a_batch():
    events = []
    seconds = gpu.time_calls(lambda: events.append("run"), lambda: events.append("wait"))
    assert 0 < seconds < 1 and events[:4] == ["run", "wait"] * 2
    assert events.count("wait") == 2 + gpu.BATCHES and events.count("run") > events.count("wait")
