"""Programs of Python's numbers in a process that has not loaded NumPy, compared with plain Python."""

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


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_later_run_does_without_numpy(name, tmp_path):
    source = textwrap.dedent(SCRIPTS[name])
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
    assert "".join(lines) == plain and int(entries) and has_numpy == "False"
