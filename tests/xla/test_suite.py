"""The tests of primitives, transformations, control flow and the tutorial, once more on XLA."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

FOLDERS = (
    "backends/cpu/test_primitives.py lax transforms rewrite seeds core numpy test_jit.py test_callbacks.py "
    "test_nn.py test_scipy.py test_stats.py test_ops.py test_random.py"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_passes_on_xla(folder):
    root = Path(__file__).parents[2]
    options = "-q -p no:cacheprovider --backend xla".split()
    command = [sys.executable, "-m", "pytest", *options, f"tests/{folder}"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
