"""Random programs with captured state, compiled and in plain Python: results, arguments, state, output, errors."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.fuzz.state_kinds import KINDS
from tests.fuzz.state_programs import write_program
from tests.fuzz.state_runs import NotJudged, Run, compare, find_first_difference
from tests.fuzz.state_shrinking import shrink

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_random_state(first):
    failed = {}
    for seed in range(first, first + 25):
        try:
            if found := compare(write_program(seed)):
                failed[seed] = str(found)
        except NotJudged:
            continue
    assert not failed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 50_050, 2000))
def test_more_random_state(first):
    """In processes of their own; to see a program: `python -m tests.fuzz.state_programs --minimize SEED`."""
    command = [sys.executable, "-m", "tests.fuzz.state_programs", "--count", "2000", "--seed", str(first), "--jobs", "1"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# -- the judge ----------------------------------------------------------------------------------------------------
def _copy_result(function):
    return functools.wraps(function)(lambda *values: list(function(*values)))


def _lose_output(function):
    space = dict(function.__globals__, print=lambda *values: None)
    return functools.wraps(function)(types.FunctionType(function.__code__, space, "f"))


def _repeat(function):
    @functools.wraps(function)
    def repeated(*values):
        function(*values)
        return function(*values)

    return repeated


def _turn_errors(function):
    @functools.wraps(function)
    def turned(*values):
        try:
            return function(*values)
        except ValueError as error:
            raise ValueError("other") from error

    return turned


def _copy_array(function):
    return functools.wraps(function)(lambda *values: function(*values).copy())


def _leave_float(function):
    return functools.wraps(function)(lambda *values: float(function(*values)))


_WRONG = {
    "copied": (_copy_result, "G = [1]\n@compiled\ndef f(x): return G", "result"),
    "lost output": (_lose_output, "@compiled\ndef f(x): print(x)", "printed"),
    "done twice": (_repeat, "G = {}\n@compiled\ndef f(x): G[len(G)] = x", "state"),
    "in an attribute": (_repeat, "def h(): pass\nh.m = 0\n@compiled\ndef f(x): h.m += 1", "state"),
    "in a class": (_repeat, "class C:\n m = 0\n@compiled\ndef f(x): C.m += 1", "state"),
    "in a cell": (_repeat, "def make():\n m = 0\n def peek(): return m\n @compiled\n def f(x):\n  nonlocal m\n  m += 1\n return f, peek\nf, peek = make()", "state"),
    "in a default": (_repeat, "def h(v, d=[]): d.append(v)\n@compiled\ndef f(x): h(1)", "state"),
    "in a deque": (_repeat, "G = deque(maxlen=3)\n@compiled\ndef f(x): G.append(x)", "state"),
    "arguments": (_repeat, "@compiled\ndef f(x): x[0] += 1", "arguments"),
    "error": (_turn_errors, "@compiled\ndef f(x): raise ValueError('this')", "error"),
    "type": (_leave_float, "@compiled\ndef f(x): return 1", "result"),
    "shared memory": (_copy_array, "G = np.zeros(3)\n@compiled\ndef f(x): return G[1:]", "shared memory"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_differences_are_found(name):
    decorate, source, kind = _WRONG[name]
    right, wrong, same = (Run(source, "<judged>", decorator) for decorator in (lambda f: f, decorate, lambda f: f))
    expected = right.call("", "np.zeros(2)")
    assert find_first_difference(0, expected, same.call("", "np.zeros(2)")) is None
    assert find_first_difference(0, expected, wrong.call("", "np.zeros(2)")).kind == kind


def test_plain_python_agrees_with_itself():
    """Nothing in a program depends on addresses, hashes, time or the program before."""
    for seed in range(100):
        with contextlib.suppress(NotJudged):
            assert compare(write_program(seed), decorate=lambda function: function) is None, seed


def test_programs_are_made_small():
    source = "\n".join(["A = 1", "def make():", "    G = [A]", "    @compiled", "    def f(x):", "        for i in range(3):", "            if x:",
                        "                G.append(i)", "        return G", "    return dict(f=f)", "globals().update(make())", "CALLS = [('', '1'), ('', '2')]"])
    found, said = shrink(source, lambda text: "append(" in text and "CALLS" in text)
    assert said and len(found.splitlines()) == 4, found


def test_programs_are_what_they_should_be():
    """That a change of the generator loses no kind of state, way of reaching it, or fate."""
    text = "\n".join(write_program(seed) for seed in range(600))
    wanted = ["global ", "nonlocal ", "def make():", "ModuleType(", "f.state", "class G", "[0]", "['k']", "globals()", ".append(", ".pop(", "+= ", "del ", ".setdefault(",
              "for i in range(k)", "for i in range(n", "while ", "else:", "try:", "finally:", "except", "continue", "break", "__getitem__", "__len__", "__enter__", "__iter__", "@property",
              "@contextmanager", "yield", "lru_cache", "partial", "singledispatch", "key=h", "map(h", "filter(h", "re.sub", "any(", "lambda", "__code__", "environ", "logging",
              "raise ", "assert ", "// n", "np.zeros(0)", "np.float32)", "4611686018427387904", ", 0, ", "g = sum((g * w", "return (f"]
    assert not [one for one in wanted if one not in text]
    assert not [kind for kind, table in KINDS.items() if not any(f"= {value}" in text for value in table.values)]
