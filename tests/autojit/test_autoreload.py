"""`%autoreload 2` of a notebook: helpers of compiled functions are edited, and the next cell sees that."""

from __future__ import annotations

import subprocess
import sys

import pytest

SOURCES = {
    "low": "def low(x):\n    return x * {k}\nclass Box:\n    def go(self, x): return x + {k}\n",
    "middle": "import low\ndef middle(x):\n    return low.low(x) + {k}\n",
    "top": "from jitcore import autojit\nfrom middle import middle\nimport low\n"
    "@autojit\ndef top(x):\n    return middle(x) - {k}\n@autojit\ndef make(x):\n    return low.Box().go(x)\n",
}

SESSION = '''
import os, sys
from IPython.core.interactiveshell import InteractiveShell

folder, sources = sys.argv[1], eval(sys.argv[2])
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "autoreload")
shell.run_line_magic("autoreload", "2")
numbers, time = dict.fromkeys(sources, 1), 1_700_000_000


def edit(name, k):
    """Another time of change for each edit, so that autoreload sees it."""
    global time
    time += 10
    numbers[name] = k
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(sources[name].replace("{k}", str(k)))
    os.utime(path, (time, time))


def run(cell):
    found = shell.run_cell(cell + ";")
    found.raise_error()


for name in sources:
    edit(name, 1)
run("""
import numpy as np
from jitcore import autojit
import low as module
from low import Box, low
from middle import middle
from top import make, top

BOX, x = Box(), np.array([10.0])

@autojit
def here(x): return middle(x) * 2 + low(x)

@autojit
def method(x): return BOX.go(x)
""")
before = None
for name, k in [("low", 5), ("middle", 7), ("top", 3), ("low", 1), ("low", 5), ("middle", 1)]:
    edit(name, k)
    for _ in range(3):
        run("found = [float(f(x)[0]) for f in (top, make, here, method)]")
        run("expected = [float(v[0]) for v in (middle(x) - %d, module.Box().go(x), middle(x) * 2 + low(x), BOX.go(x))]"
            % numbers["top"])
        found, expected = shell.user_ns["found"], shell.user_ns["expected"]
        assert found == expected, (name, k, found, expected)
    assert name == "top" or found != before, (name, k)
    before = found
assert shell.user_ns["here"].cache_info().traces <= 6, shell.user_ns["here"].cache_info()
'''


def test_autoreload_of_helpers(tmp_path):
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SESSION, str(tmp_path), repr(SOURCES)],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
