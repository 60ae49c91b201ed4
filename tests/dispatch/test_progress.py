"""The line about slow compiles: one for each that takes long, none for others, none when turned off."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import jitcore
from jitcore.backends.cpu.native import libraries
from jitcore.config import config
from jitcore.process import effort


@pytest.fixture
def impatience(monkeypatch):
    """Patience ends at once. Gives what waits until somebody has lost it."""
    monkeypatch.setattr(effort, "PATIENCE", 0.0)
    lost, wait = threading.Semaphore(0), effort._wait

    def wait_and_tell(*arguments):
        wait(*arguments)
        lost.release()

    monkeypatch.setattr(effort, "_wait", wait_and_tell)
    return lambda: lost.acquire(timeout=60)


@pytest.fixture
def slow_compiler(impatience, monkeypatch):
    """Makes compiling take longer than patience lasts."""
    translate_now = libraries._translate

    def translate_slowly(*arguments):
        if config.announce_compiles:
            assert impatience()
        return translate_now(*arguments)

    monkeypatch.setattr(libraries, "_translate", translate_slowly)
    jitcore.clear_caches()
    yield
    jitcore.clear_caches()


@pytest.mark.cpu
def test_a_slow_compile_is_announced_once(slow_compiler, capfd):
    @jitcore.jit
    def wave(x):
        return x * 2 + 1

    x = np.ones(3, np.float32)
    wave(x)
    wave(x)
    assert capfd.readouterr() == ("", "jitcore: compiling wave for 0 s ...\n")


def test_the_flag_turns_it_off(slow_compiler, capfd):
    with config.override(announce_compiles=False):
        jitcore.jit(lambda x: x * 3)(np.ones(3, np.float32))
    assert capfd.readouterr() == ("", "")


def test_a_fast_compile_is_silent(capfd):
    with effort.compiling("fast"), effort.announce_slow():
        pass
    with pytest.raises(KeyError), effort.compiling("failing"), effort.announce_slow():
        raise KeyError
    assert capfd.readouterr() == ("", "")


def test_without_a_name_nobody_waits(capfd, monkeypatch):
    monkeypatch.setattr(effort._thread, "start_new_thread", None)
    with effort.announce_slow():
        pass
    assert capfd.readouterr() == ("", "")


def test_parts_of_one_compile_are_announced_once_by_the_innermost_name(capfd, impatience):
    with effort.compiling("outer"), effort.compiling("inner"):
        for _ in range(3):
            with effort.announce_slow():
                assert impatience()
    assert capfd.readouterr() == ("", "jitcore: compiling inner for 0 s ...\n")


def test_without_standard_error_nothing_is_printed(impatience, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with effort.compiling("f"), effort.announce_slow():
        assert impatience()


def test_people_wait_two_seconds():
    assert effort.PATIENCE == 2.0
