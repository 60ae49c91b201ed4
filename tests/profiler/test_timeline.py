"""Timelines: files of the trace event format, whose kernels compute what programs compute."""

from __future__ import annotations

import gzip
import json
import threading

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import autojit, jit, lax, profiler, value_and_grad
from jitcore.backends.cpu import backend, timing
from jitcore.events import publishing

pytestmark = pytest.mark.cpu


def check_trace_events(found: dict) -> list[dict]:
    """The rules of the trace event format, for the phases that there are. Returns: slices and instants."""
    assert set(found) == {"traceEvents", "displayTimeUnit", "otherData"} and found["displayTimeUnit"] in ("ms", "ns")
    rows, open_until = [], {}
    for event in found["traceEvents"]:
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
            continue
        assert event["ph"] in ("X", "i") and event["cat"] and event["ts"] >= 0
        assert event["dur"] > 0 if event["ph"] == "X" else event["s"] in ("t", "p", "g")
        assert all(isinstance(fact, str | int | float) for fact in event["args"].values())
        rows.append(event)
    for event in sorted(rows, key=lambda event: (event["ts"], -event.get("dur", 0))):  # slices of a thread nest
        around = open_until.setdefault(event["tid"], [])
        while around and around[-1] <= event["ts"]:
            around.pop()
        end = event["ts"] + event.get("dur", 0)
        assert not around or end <= around[-1] + 1
        around.append(end)
    return rows


def run_traced(path, run):
    with profiler.trace(path):
        result = run()
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as file:
        return result, check_trace_events(json.load(file))


def list_kernels(rows):
    return [row for row in rows if row["cat"] == "kernel"]


def make_step():
    random = np.random.default_rng(0)
    params = [{"w": random.normal(size=(24, 32)), "b": np.zeros(32)}, {"w": random.normal(size=(32, 1)), "b": np.zeros(1)}]
    batch = random.normal(size=(64, 24)), random.normal(size=(64, 1))

    def loss(params, x, y):
        for layer in params[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return ((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2).mean()

    @jit
    def step(params, x, y):
        value, grads = value_and_grad(loss)(params, x, y)
        return value, jitcore.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step, params, batch


def test_a_training_step(tmp_path):
    step, params, batch = make_step()

    def train():
        found = params
        for number in range(3):
            with profiler.StepTraceAnnotation("train", step_num=number):
                value, found = step(found, *batch)
        return value, found

    result, rows = run_traced(tmp_path / "step.json", train)
    kinds = {row["cat"] for row in rows}
    assert {"first call", "trace", "passes", "pass", "schedule", "build", "load", "kernel", "annotation", "miss"} <= kinds
    assert [row["args"]["step_num"] for row in rows if row["name"] == "train"] == [0, 1, 2]
    kernels = list_kernels(rows)
    assert len(kernels) >= 9 and len(kernels) % 3 == 0
    for row in kernels:
        assert row["args"]["bytes"] > 0 and "test_timeline.py:" in row["args"]["line"]
        assert row["args"].get("threads", 1) >= 1 and row["args"]["function"].startswith("step (")
    products = [row["args"]["flops"] for row in kernels if "product" in row["args"]["what"]]
    assert 2 * 64 * 24 * 32 in products and all(flops > 0 for flops in products)
    plain = train()
    assert [leaf.tolist() for leaf in jitcore.tree.leaves(plain)] == [leaf.tolist() for leaf in jitcore.tree.leaves(result)]


def settle(x):
    return lax.while_loop(lambda v: v.sum() < 1e4, lambda v: v + jnp.cumsum(v), jnp.sort(x))


PROGRAMS = {
    "scalars between kernels": lambda x: (x - x.mean()) / x.std() + jnp.argmax(x),
    "a loop": settle,
    "a choice": lambda x: lax.cond(x.sum() > 0, jnp.cumsum, jnp.sort, x) * x[0],
    "rounds": lambda x: lax.fori_loop(0, 7, lambda i, u: u.at[i].add(u.sum()), x) - x.max(),
    "Python within": lambda x: jitcore.pure_callback(np.sin, x, x).sum() + x,
    "a copy": lambda x: x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_one_by_one_compute_the_same(name, tmp_path):
    f, x = jit(PROGRAMS[name]), np.linspace(0.1, 3, 40)
    before = np.asarray(f(x))
    result, rows = run_traced(tmp_path / "t.json", lambda: np.asarray(f(x)))
    assert result.tolist() == before.tolist() == np.asarray(f(x)).tolist()
    kernels = list_kernels(rows)
    assert kernels and ("bytes of a round" in str(kernels)) == (name in ("a loop", "rounds"))


def test_donated_memory_and_autojit(tmp_path):
    f = jit(lambda x, y: (x.at[3].set(y.sum()), x + y), donate_argnums=0)

    @autojit
    def smooth(u):
        for _ in range(5):
            u[1:-1] = (u[:-2] + u[2:]) / 2
        return u.sum()

    def run():
        u = np.arange(50.0)
        return [np.asarray(part).tolist() for part in f(jnp.arange(8.0), np.ones(8, np.float32))], smooth(u), u.tolist()

    before = run()
    run()
    found, rows = run_traced(tmp_path / "t.json", run)
    assert found == before == run()
    assert {row["args"]["function"].partition(" ")[0] for row in list_kernels(rows)} >= {"<lambda>"}


def test_calls_are_as_before_when_it_has_ended(tmp_path):
    f = jit(lambda x: x * 2 + 1)
    f(np.ones(3))
    bound = [run for run, prepared in backend._bound.items() if prepared.origin[0] == "<lambda>"]
    launches = [run.__globals__["launch"] for run in bound]
    run_traced(tmp_path / "t.json", lambda: f(np.ones(3)))
    assert bound and [run.__globals__["launch"] for run in bound] == launches
    assert not any(isinstance(launch, timing.TimedLauncher) for launch in launches)
    _, rows = run_traced(tmp_path / "t.json", lambda: f(np.ones(3)))
    assert {row["cat"] for row in rows} == {"kernel"}  # nothing is made anew


def test_nothing_is_read_when_it_has_ended(tmp_path):
    before = publishing._added
    run_traced(tmp_path / "t.json", lambda: None)
    assert publishing._added == before and not publishing.is_timing


def test_threads_have_names(tmp_path):
    f = jit(lambda x: jnp.cos(x) + 1)
    f(np.ones(3))

    def run():
        thread = threading.Thread(target=lambda: f(np.ones(3)), name="the other one")
        thread.start()
        thread.join()
        f(np.ones(3))

    run_traced(tmp_path / "t.json.gz", run)
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        names = [row["args"]["name"] for row in json.load(file)["traceEvents"] if row["name"] == "thread_name"]
    assert "the other one" in names and "MainThread" in names


def test_annotations(tmp_path):
    @profiler.annotate_function(name="load", size=3)
    def load():
        return 1

    @profiler.annotate_function
    def keep():
        return load()

    @profiler.TraceAnnotation("both")
    def run():
        return keep() + keep()

    assert run() == 2
    result, rows = run_traced(tmp_path / "t.json", run)
    assert sorted(row["name"].rpartition(".")[2] for row in rows) == ["both", "keep", "keep", "load", "load"]
    assert [row["args"] for row in rows if row["name"] == "load"] == [{"size": 3}] * 2


def test_there_is_one_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="no timeline is on"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    with pytest.raises(RuntimeError, match="is on already"):
        profiler.start_trace(tmp_path)
    path = profiler.stop_trace()
    assert json.loads(open(path).read())["traceEvents"]


def test_it_does_not_grow_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("jitcore.profiler.timeline.MOST_EVENTS", 3)
    f = jit(lambda x: x + 1)
    profiler.start_trace(tmp_path)
    for _ in range(5):
        f(np.ones(3))
    with open(profiler.stop_trace()) as file:
        found = json.load(file)
    assert len([row for row in found["traceEvents"] if row["ph"] != "M"]) == 3 and found["otherData"]["dropped"] > 3
