"""The line about slow compiles: for who waits in a terminal or a notebook, and gone when it is done."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
import types

import numpy as np
import pytest

import jitcore
from jitcore.config import config
from jitcore.events import progress, publishing
from jitcore.events.publishing import Event, span


class Terminal(io.StringIO):
    """Tells when something was written to it."""

    def __init__(self):
        super().__init__()
        self.is_written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.is_written.set()
        return count


@pytest.fixture
def open_terminal(monkeypatch):
    """Makes standard error one, in front of which somebody has lost patience; in a test, as pytest sets it before."""
    def make():
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        monkeypatch.setattr(sys, "stderr", made := Terminal())
        return made

    return make


def wait_for(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_slow_compile_is_announced_and_the_line_erased(open_terminal):
    terminal = open_terminal()

    @jitcore.jit
    def wave(x):
        assert terminal.is_written.wait(60)
        return x * 2 + 1

    wave(np.ones(3, np.float32))
    wait_for(lambda: terminal.getvalue().endswith("\r\x1b[K"))
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines[0] == lines[-1] == ""
    pattern = re.compile(r"jitcore: compiling wave: [a-z ()]+, \d s")
    assert lines[1:-1] and all(map(pattern.fullmatch, lines[1:-1]))


def test_the_innermost_step_and_function_are_named():
    outer, inner = Event("first call", "step", "a.py:1", {}, 10.0), Event("pass", "loss", "", {"step": "cse"}, 12.0)
    assert progress.describe([outer], 12.4) == "jitcore: compiling step: first call, 2 s"
    assert progress.describe([outer, inner], 15.0) == "jitcore: compiling step: pass (cse) of loss, 5 s"


def test_the_flag_turns_it_off(open_terminal):
    terminal = open_terminal()
    with config.override(announce_compiles=False):
        jitcore.jit(lambda x: x * 3)(np.ones(3, np.float32))
    assert terminal.getvalue() == ""


def test_nobody_reads_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not publishing._shows_progress()
    closed = io.StringIO()
    closed.close()
    for stream in (None, object(), closed):
        monkeypatch.setattr(sys, "stderr", stream)
        assert not publishing._shows_progress()


def test_a_fast_compile_is_silent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", made := Terminal())
    with span("build", "fast"):
        pass
    with pytest.raises(KeyError), span("build", "failing"):
        raise KeyError
    assert made.getvalue() == "" and progress._wait.stack is None


def test_a_notebook_has_a_line_that_is_updated(monkeypatch):
    class Handle:
        def __init__(self):
            self.texts = []

        def update(self, data, raw):
            assert raw
            self.texts.append(data["text/plain"])

    class Display:
        def display(self, data, raw, display_id):
            assert display_id and data == {"text/plain": ""} and raw
            return made

    made = Handle()
    monkeypatch.setattr(progress, "ipython", Display())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython.core.getipython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with span("build", "wave", backend="cpu"):
        wait_for(lambda: made.texts)
    wait_for(lambda: made.texts[-1] == "")
    assert set(made.texts) == {"jitcore: compiling wave: build, 0 s", ""}


def test_people_wait_two_seconds():
    assert progress.PATIENCE == 2.0
