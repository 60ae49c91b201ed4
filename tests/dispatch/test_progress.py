"""The line about slow compiles: one for each that takes long, none for others, none when turned off."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import jitcore
from jitcore.backends.cpu import native
from jitcore.config import config
from jitcore.dispatch import progress


@pytest.fixture
def slow_compiler(monkeypatch):
    """Makes compiling take longer than patience lasts, which is short here."""
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    translate_now = native._translate

    def translate_slowly(*arguments):
        time.sleep(0.3)
        return translate_now(*arguments)

    monkeypatch.setattr(native, "_translate", translate_slowly)
    jitcore.clear_caches()
    yield
    jitcore.clear_caches()


def test_a_slow_compile_is_announced_once(slow_compiler, capfd):
    @jitcore.jit
    def wave(x):
        return x * 2 + 1

    x = np.ones(3, np.float32)
    wave(x)
    wave(x)
    assert capfd.readouterr() == ("", "jitcore: compiling wave for 0.05 s ...\n")


def test_the_flag_turns_it_off(slow_compiler, capfd):
    with config.override(announce_compiles=False):
        jitcore.jit(lambda x: x * 3)(np.ones(3, np.float32))
    assert capfd.readouterr() == ("", "")


def test_a_fast_compile_is_silent(capfd, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.2)
    with progress.name_compile("fast"), progress.announce_slow():
        pass
    with pytest.raises(KeyError), progress.name_compile("failing"), progress.announce_slow():
        raise KeyError
    with progress.announce_slow():  # nobody says for what
        time.sleep(0.4)
    assert capfd.readouterr() == ("", "")


def test_parts_of_one_compile_are_announced_once_by_the_innermost_name(capfd, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    with progress.name_compile("outer"), progress.name_compile("inner"):
        for _ in range(3):
            with progress.announce_slow():
                time.sleep(0.1)
    assert capfd.readouterr() == ("", "jitcore: compiling inner for 0.02 s ...\n")


def test_without_standard_error_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(sys, "stderr", None)
    with progress.name_compile("f"), progress.announce_slow():
        time.sleep(0.1)


def test_people_wait_two_seconds():
    assert progress.PATIENCE == 2.0
