"""`%load_ext jitcore`: cells whose hot loops and functions are compiled do what they do without."""

from __future__ import annotations

import re
import sys

import pytest

from tests.scripts.test_runner import run

pytest.importorskip("IPython")

#: Runs cells, which are separated by lines of dashes, and says how each ended.
SHELL = """
import signal, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.argv[1].split("\\n----\\n"):
    done = shell.run_cell(cell, store_history=True)
    print("->", type(done.error_in_exec or done.error_before_exec).__name__, signal.getitimer(signal.ITIMER_PROF)[1])
"""
CELLS = """
import numpy as np
def total(n):
    s = 0
    for i in range(n):
        s += i % 7
    return s
----
total(6_000_000)
----
s = 0
for i in range(3_000_000):
    s += i % 5
s
----
total("a")
----
import asyncio
await asyncio.sleep(0)
total(3_000_000)
----
%prun -q total(1000)
total(1000)
"""


def run_cells(cells: str, folder, **environment: str) -> tuple[list[str], str]:
    """(lines, errors)"""
    done = run("-c", SHELL, cells.strip(), folder=folder, PYTHONPATH=sys.path[0], IPYTHONDIR=str(folder),
               JITCORE_CACHE_DIR=str(folder / "cache"), **environment)
    text = re.sub(r"\x1b\[[\d;]*m|0x\w+", "", done.stdout)
    return text.split("\n"), done.stderr


def test_cells_do_what_they_do_without(tmp_path):
    theirs, _ = run_cells(CELLS, tmp_path)
    for _ in range(2):
        ours, errors = run_cells("%load_ext jitcore\n----\n%autojit on\n----\n" + CELLS.strip(), tmp_path)
        assert not errors
        numbers = [re.sub(r"\[\d+\]|line \d+|In ", "", line) for line in ours[2:]]
        assert numbers == [re.sub(r"\[\d+\]|line \d+|In ", "", line) for line in theirs]


def test_what_was_compiled_is_reported(tmp_path):
    lines, errors = run_cells("""
%load_ext jitcore
%autojit
----
%%autojit
s = 0
for i in range(20_000_000):
    s += i % 7
s
----
%autojit
%autojit report
----
t = 0
for i in range(1_000_000):
    t += i % 7
t
----
%autojit report
%unload_ext jitcore
----
%autojit on
""", tmp_path)
    text = "\n".join(lines)
    assert lines[0].startswith("%autojit is off. ") and "Out[2]: 59999997\n-> NoneType 0.0\n%autojit is off" in text
    assert text.count("lines  tier") == 2 and len(re.findall("^3-4 +", text, re.MULTILINE)) == 2
    assert "UsageError: Line magic function `%autojit` not found" in errors + text


def test_an_interrupted_cell(tmp_path):
    lines, _ = run_cells("""
%load_ext jitcore
%autojit on
import os, signal, threading
import numpy as np
u, n = np.zeros(3), 0
----
threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
for i in range(10**10):
    u += 1
    n += 1
----
print((u == n).all(), n == i + 1)
""", tmp_path)
    assert "-> KeyboardInterrupt 0.0" in lines and "True True" in lines
    assert not any("jitcore/scripts" in line for line in lines)
