"""What the tutorials say in prose about values, traces and compiles, as checks on a replayed notebook."""

from __future__ import annotations

import numpy as np

import jitcore
from jitcore.backends.cpu.native.libraries import code_cache
from jitcore.process.effort import counters


def check_selu(notebook) -> None:
    """Eager and compiled SELU of 0 ... 999999 agree with NumPy's in float64."""
    notebook.run(notebook.find("selu_jit = "))
    names = notebook.namespace
    x = np.arange(1000000.0)
    expected = 1.05 * np.where(x > 0, x, 1.67 * np.exp(np.minimum(x, 0)) - 1.67)
    for result in (names["selu"](names["x"]), names["selu_jit"](names["x"])):
        assert result.dtype == np.float32
        np.testing.assert_allclose(np.asarray(result), expected, rtol=3e-7)


def check_compiles_once(loop, traces: int) -> None:
    """`loop(10, 20)`, which jits in each of its 20 rounds, gives 30, compiling once and tracing so often."""
    jitcore.clear_caches()
    code_cache.clear()  # machine code outlives the programs that it was made for
    traces_before, compiles_before = counters.traces, counters.compiles
    result = loop(10, 20)
    assert repr(result) == "Array(30, dtype=int32, weak_type=True)"
    assert counters.traces - traces_before == traces
    assert counters.compiles - compiles_before == 1
