"""Events: published where something happens, read by whoever asks, and by nobody else."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import autojit, jit
from jitcore.config import config
from jitcore.events import publishing
from jitcore.events.publishing import add_reader, publish, remove_reader, span


@pytest.fixture
def events():
    """Those that have ended."""
    found = []

    def read(event):
        if event.seconds is not None:
            event.facts = event.read_facts()
            found.append(event)

    add_reader(read)
    yield found
    remove_reader(read)


def list_kinds(events, name):
    return [event.kind for event in events if event.name == name]


def test_a_first_call_tells_of_each_step(events, tmp_path):
    @jit
    def wave(x):
        return x * 2 + 41

    with config.override(cache_dir=str(tmp_path)):
        jitcore.clear_caches()
        wave(np.ones(3, np.float32))
    kinds = list_kinds(events, "wave")
    order = ["miss", "trace", "passes", "schedule", "render", "compile", "load", "build", "bind", "first call"]
    assert [kind for kind in kinds if kind in order] == order
    assert {event.place.rpartition(":")[0] for event in events if event.name == "wave"} == {__file__}
    outcomes = [event.read_facts()["outcome"] for event in events if event.kind == "disk cache"]
    assert outcomes == ["miss", "miss", "written", "written"]
    first = next(event for event in events if event.kind == "first call")
    assert first.seconds >= sum(event.seconds for event in events if event.kind in ("trace", "build"))
    del events[:]
    wave(np.ones(3, np.float32))
    assert not events


def test_a_miss_has_its_reason(events):
    f = jit(lambda x: x + 1)
    f(np.ones(3, np.float32))
    f(np.ones(4, np.float32))
    reasons = [event.read_facts()["reason"] for event in events if event.kind == "miss"]
    assert reasons[0] == "It was the first call: the cache was empty."
    assert "argument x: shape was (3,), is (4,)" in reasons[1]


def test_autojit_tells_of_misses_and_fallbacks(events):
    @autojit
    def scale(x, n):
        for _ in range(n):
            x = x * 2
        return x

    scale(np.ones(3), 40)
    scale(np.ones(5), 40)
    reasons = [event.read_facts()["reason"] for event in events if event.kind == "miss"]
    assert "the cache was empty" in reasons[0] and reasons[1] == "x was float64[3], is float64[5]"
    assert "trace" in [event.kind for event in events]

    @autojit
    def read(x):
        open("/dev/null").close()
        return x

    with pytest.warns(jitcore.AutojitWarning):
        read(np.ones(3))
    (fallback,) = [event for event in events if event.kind == "fallback"]
    assert "open() is called" in fallback.read_facts()["reason"] and fallback.facts["tier"] == "python"


def test_names_are_those_of_the_span_around(events):
    with span("build", "outer", "a.py:1"), span("compile"):
        publish("disk cache", outcome="miss")
    assert [(event.kind, event.name, event.place) for event in events] == [
        (kind, "outer", "a.py:1") for kind in ("disk cache", "compile", "build")]
    assert publishing._current.name == publishing._current.place == ""


def test_facts_are_computed_for_readers_alone():
    publish("miss", reason=lambda: pytest.fail("nobody asked"))


def test_logging_is_off_until_it_is_asked_for(caplog):
    jit(lambda x: x + 3)(np.ones(3, np.float32))
    assert not caplog.records
    with caplog.at_level(logging.INFO, "jitcore"):
        jit(lambda x: x + 4)(np.ones(3, np.float32))
    messages = [record.getMessage() for record in caplog.records]
    assert any(message.startswith("miss <lambda>") for message in messages)
    assert any(message.startswith("first call <lambda>") and " ms" in message for message in messages)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert not [message for message in messages if message.startswith("disk cache")]


def test_debug_tells_all(caplog):
    with caplog.at_level(logging.DEBUG, "jitcore"):
        jit(lambda x: jnp.sin(x) + 5)(np.ones(3, np.float32))
    assert {"pass", "schedule"} <= {record.event.kind for record in caplog.records}


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    import os

    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True,
                          env={**os.environ, **environment})


CALL = "import numpy as np, jitcore, sys\njitcore.jit(lambda x: x + 1)(np.ones(3, np.float32))\n"


def test_the_environment_variable():
    done = run_python(CALL, JITCORE_LOG="info")
    assert "jitcore miss <lambda>" in done.stderr and "jitcore first call <lambda>" in done.stderr
    assert "pass" not in done.stderr
    assert "jitcore pass <lambda>" in run_python(CALL, JITCORE_LOG="debug").stderr


def test_nothing_is_imported_that_nobody_reads():
    code = "print(*[name for name in sys.modules if name.startswith('jitcore')])"
    done = run_python(CALL + code)
    assert {"jitcore.events.logbook", "jitcore.events.progress"}.isdisjoint(done.stdout.split())
    assert "jitcore.events.publishing" in done.stdout and "profiler" not in done.stdout
    assert not done.stderr
