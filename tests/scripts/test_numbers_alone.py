"""Programs of Python's numbers, and lists of them, in a process without NumPy, compared with plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from jitcore.config import config
from tests.scripts.test_scripts import quick, run, run_sampled  # noqa: F401  a fixture

#: A later run of a script, whose programs are on disk.
_LATER = """
import sys
from types import ModuleType
from jitcore.config import config
from jitcore.scripts import learned, units
from jitcore.scripts.sampling import Sampler
from jitcore.scripts.texts import write_record
learned._stamp_folders = list  # other tests write compiled files meanwhile
units.LOADING = 0.0
source, module = sys.stdin.read(), ModuleType("__main__")
with config.override(cache_dir=sys.argv[1]):
    sampler = Sampler(sys.path[:])
    code = sampler.add(write_record(compile(source, "script.py", "exec"), source.encode()))
    sys.modules["__main__"] = module
    exec(code, vars(module))
entries = [unit.fate.entries for unit in sampler.units if unit.fate is not None]
print(sum(entries), "numpy" in sys.modules)
"""

SCRIPTS = {
    "ints, floats, bools and complex numbers of a module": """
        s, t, ok, z = 0, 0.5, True, 1j
        for i in range(300_000):
            s, t, z = (s * 31 + i) % 1_000_003, t * 0.5 + i, z * 0.5 + t
            ok = ok and t < 1e300
        print(s, t, ok, z)
        """,
    "a function": """
        import math
        def total(n, x):
            found = 0.0
            for i in range(n):
                found += math.sin(x * i) if i % 3 else -1.0
            return found
        print([total(200_000, 0.25) for _ in range(3)])
        """,
    "a while": """
        n, steps = 837799, 0
        for k in range(2000):
            n = 837799 + k
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
        print(n, steps)
        """,
    "attributes": """
        class Body:
            def __init__(self, x, v):
                self.x, self.v = x, v
        body, energy = Body(1.0, 0.0), 0.0
        for i in range(300_000):
            body.v -= body.x * 1e-3
            body.x += body.v * 1e-3
            energy = 0.5 * (body.x * body.x + body.v * body.v)
        print(body.x, body.v, energy)
        """,
    "numbers that become too large": """
        n = 1
        for i in range(100_000):
            n = n * 3 if n < 1 << 59 else n
            n = n + i
        print(n)
        for i in range(100):
            n = n * 3
        print(n)
        """,
    "a list of bools": """
        def sieve(n):
            found = [True] * (n + 1)
            for i in range(2, int(n ** 0.5) + 1):
                if found[i]:
                    for j in range(i * i, len(found), i):
                        found[j] = False
            return sum(found)
        print([sieve(200_000 + k) for k in range(3)])
        """,
    "rows of floats": """
        def multiply(a, b, result):
            for i in range(len(a)):
                for j in range(len(b[0])):
                    found = 0.0
                    for k in range(len(b)):
                        found += a[i][k] * b[k][j]
                    result[i][j] = found
        a = [[i * 0.5 + k for k in range(60)] for i in range(60)]
        b = [[i - k * 0.25 for k in range(60)] for i in range(60)]
        results = [[[0.0] * 60 for _ in range(60)] for _ in range(4)]
        rows = [*results[3]]
        for one in results:
            multiply(a, b, one)
        print(one[7][:4], all(row is other for row, other in zip(rows, one)), sum(map(sum, one)))
        """,
    "a list of ints and floats": """
        def relax(best, n):
            for k in range(n):
                i = k % (len(best) - 1)
                if best[i] + 1 < best[i + 1]:
                    best[i + 1] = best[i] + 1
        best = [0] + [float("inf")] * 400
        for _ in range(5):
            relax(best, 60_000)
        print(best[:3], best[-1], {type(one).__name__ for one in best})
        """,
    "letters": """
        def count(text, n):
            found = 0
            for k in range(n):
                i = k % len(text)
                if text[i] == "a" or text[i] == "\u00e9":
                    found += 1
            return found
        print([count("banana caf\u00e9 " * 40, 100_000) for _ in range(4)])
        """,
    "a queue of columns": """
        def place(n, columns, down, up):
            found = 0
            for k in range(n):
                c = (k * 7) % len(columns)
                if not columns[c] and not down[c] and not up[-1 - c]:
                    columns[c], down[(c + 1) % len(down)], up[c] = True, k % 3 == 0, False
                    found += 1
                else:
                    columns[c] = False
            return found
        columns, down, up = [False] * 50, [False] * 50, [False] * 50
        print([place(60_000, columns, down, up) for _ in range(4)], columns, down, up)
        """,
    "an error in the middle": """
        def divide(n):
            found = 0
            for i in range(n):
                found += 1000 // (250_000 - i)
            return found
        print(divide(240_000))
        try:
            divide(300_000)
        except ZeroDivisionError as error:
            print(error, error.__traceback__.tb_next.tb_lineno, error.__traceback__.tb_next.tb_frame.f_locals)
        """,
}


#: Scripts that load NumPy between two calls of a function.
LATE = {
    "numbers": """
        def total(n):
            found = 0
            for k in range(n):
                found = (found * 31 + k) % 1_000_003
            return found
        print(total(200_000))
        import numpy as np
        print(total(200_001), total(np.int64(20)), np.arange(3).sum())
        """,
    "lists": """
        def add(table, n):
            for k in range(n):
                table[k % len(table)] += k
            return sum(table)
        table = [0] * 100
        print(add(table, 100_000))
        import numpy as np
        print(add(table, 100_000), add(table, 100_000), add(table, 100_000), table[:3])
        print(add(np.array(table), 50), add([0.5] * 20, 100_000))
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_later_run_does_without_numpy(name, tmp_path):
    assert not run_twice(textwrap.dedent(SCRIPTS[name]), tmp_path)


@pytest.mark.parametrize("name", LATE)
def test_numpy_may_come_later(name, tmp_path):
    assert run_twice(textwrap.dedent(LATE[name]), tmp_path)


def run_twice(source: str, tmp_path) -> bool:
    """Returns: whether the second run has loaded NumPy."""
    with config.override(cache_dir=str(tmp_path)):
        _, written, sampler = run_sampled(source, opens=True)
        sampler.keep()
    plain = run(source)[1]
    assert written == plain and sampler.workshop.helper.jobs
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", _LATER, str(tmp_path)], input=source, text=True,
                           capture_output=True, env=environment)
    *lines, told = found.stdout.splitlines(keepends=True) or [found.stderr]
    entries, has_numpy = told.split()
    assert "".join(lines) == plain and int(entries), found.stderr
    return has_numpy == "True"
