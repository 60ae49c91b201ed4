"""threadpoolctl: it limits the BLAS that jitcore calls; jitcore's own threads it does not see.

It lists shared libraries by their file names, and the pool of jitcore is code that is compiled into memory. The
variables that it documents are honoured, OMP_NUM_THREADS among them, and `config.num_threads` is a limit at any time.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.runtime.threads import get_num_threads, set_num_threads

threadpoolctl = pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed: jitcore[interop]")

X = np.random.default_rng(0).normal(size=(200, 200))


def test_limits_of_blas():
    product = jit(lambda x: jnp.linalg.solve(x, x @ x))
    expected = np.linalg.solve(X, X @ X)
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"} == {1}
        np.testing.assert_allclose(product(X), expected, rtol=1e-6, atol=1e-8)


def test_jitcores_threads_are_set_by_itself():
    assert not [one for one in threadpoolctl.threadpool_info() if "jitcore" in one["filepath"]]
    before = get_num_threads()
    try:
        set_num_threads(1)
        np.testing.assert_allclose(jit(jnp.sin)(X), np.sin(X), rtol=1e-12)
        assert get_num_threads() == 1
    finally:
        set_num_threads(before)


def test_environment():
    code = "from jitcore.backends.cpu.runtime.threads import get_num_threads; print(get_num_threads())"
    for name in ("OMP_NUM_THREADS", "JITCORE_NUM_THREADS"):
        found = subprocess.run([sys.executable, "-c", code], env=os.environ | {name: "3"}, capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "3"
