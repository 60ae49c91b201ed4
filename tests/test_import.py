"""What `import jitcore` does not do: load a compiler, start a thread, write a file; and what it offers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jitcore


def run_python(code: str, *options: str) -> str:
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = ("numba", "llvmlite", "scipy", "jax", "jitcore.api", "jitcore.numpy", "jitcore.backends.cpu")


def test_import_loads_nothing_heavy():
    loaded = run_python("import sys, jitcore; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_the_surface_loads_no_library_that_reads_packages():
    """Which reads mail headers and zip files, and takes as long as a third of NumPy."""
    code = "import sys, jitcore, jitcore.numpy, jitcore.lax; jitcore.jit, jitcore.Array; print(*sys.modules)"
    assert not {"importlib.metadata", "email", "zipfile"} & set(run_python(code).split())


def test_importing_the_whole_surface_loads_no_compiler_and_no_thread():
    code = """
import sys, threading, os
import jitcore, jitcore.numpy, jitcore.lax
jitcore.jit, jitcore.make_jaxpr, jitcore.Array
assert threading.active_count() == 1
if threads:
    assert len(os.listdir(tasks)) == threads, os.listdir(tasks)
print(*sys.modules)
"""
    # The BLAS libraries of NumPy and SciPy start threads of their own.
    before = "import os, numpy, scipy.linalg\ntasks = '/proc/self/task'\n"
    before += "threads = len(os.listdir(tasks)) if os.path.isdir(tasks) else 0\n"
    loaded = run_python(before + code).split()
    assert not {"numba", "llvmlite", "jax"} & set(loaded)


WITHOUT_NUMBA = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "tbb"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
import numpy as np
import jitcore.numpy as jnp
from jitcore import autojit, grad, jit

@jit(rewrite=True)
def double(x):
    while x.sum() < 100:
        x = x * 2
    return x

@autojit
def walk(x):
    total = 0.0
    for value in x:
        if value > 0.5:
            total += value * np.sin(value)
    return total

x = np.linspace(0, 1, 40_000)
print(jit(grad(lambda x: jnp.sin(x).sum()))(x)[0], double(np.ones(3))[0], round(walk(x) / 1e4, 3))
print(jit(lambda x: jnp.linalg.solve(jnp.eye(2) * 2, jnp.sort(x)[:2]) + jnp.fft.fft(x).real[1])(np.array([3.0, 1.0, 1.0, 1.0])))
"""


def test_programs_are_made_and_run_without_numba_and_tbb(tmp_path, monkeypatch):
    """They are for what is made for Numba; LLVM comes from llvmlite."""
    monkeypatch.setenv("JITCORE_CACHE_DIR", str(tmp_path))
    assert run_python(WITHOUT_NUMBA).splitlines()[0] == "1.0 64.0 1.042"


def test_import_writes_no_file(tmp_path):
    code = (
        "import sys; written = []\n"
        "def hook(event, args):\n"
        "    if event == 'open' and isinstance(args[1], str) and set(args[1]) & set('wax+'):\n"
        "        written.append(args[0])\n"
        "sys.addaudithook(hook)\n"
        "import jitcore, jitcore.numpy\n"
        "jitcore.jit\n"
        "assert not written, written\n"
    )
    run_python(code, "-B")


def test_each_public_name_exists():
    for name in jitcore.__all__:
        assert getattr(jitcore, name) is not None
        assert name in dir(jitcore)


def test_names_that_modules_share_stay_objects():
    code = (
        "import jitcore, jitcore.api, jitcore.config, jitcore.device\n"
        "assert callable(jitcore.devices) and jitcore.config.enable_x64 is False\n"
        "import jitcore.numpy as jnp\n"
        "assert jitcore.numpy is jnp and jnp.sin\n"
    )
    run_python(code)


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(jitcore.__file__).read_text(encoding="utf-8"))
    block = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"][1]
    seen = {node.module: {alias.asname for alias in node.names} for node in block.body}
    assert seen == {"jitcore": set(jitcore._MODULES),
                    **{module: set(names) for module, names in jitcore._EXPORTS.items()}}


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'jitcore' has no attribute 'no_such_name'"):
        _ = jitcore.no_such_name
