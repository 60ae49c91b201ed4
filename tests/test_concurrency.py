"""Jitted functions in several threads and in forked children."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore.dispatch.counters import counters


def run_in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_one_function_in_eight_threads():
    f = jitcore.jit(lambda x: (jnp.sin(x) * 2, x.sum()))
    inputs = [np.random.default_rng(n).standard_normal(200_000).astype(np.float32) for n in range(8)]
    expected = [(np.sin(x.astype(np.float64)) * 2, x.astype(np.float64).sum()) for x in inputs]

    def work(number):
        for _ in range(20):
            doubled, total = f(inputs[number])
            np.testing.assert_allclose(np.asarray(doubled), expected[number][0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(float(total), expected[number][1], rtol=1e-3, atol=1e-1)

    run_in_threads(8, work)
    assert f.cache_info().compiles == 1


def test_threads_that_compile_at_once_compile_once():
    barrier = threading.Barrier(6)
    f = jitcore.jit(lambda x: jnp.tanh(x) * 1.2345678)

    def work(number):
        barrier.wait()
        np.testing.assert_allclose(np.asarray(f(np.ones(7, np.float32))), np.tanh(1) * 1.2345678, rtol=1e-6)

    before = counters.compiles
    run_in_threads(6, work)
    assert counters.compiles - before == 1


def test_threads_trace_apart():
    def work(number):
        for k in range(10):
            jaxpr = jitcore.make_jaxpr(lambda x: jnp.sin(x) + number * 10 + k)(1.0)
            assert len(jaxpr.eqns) == 3

    run_in_threads(6, work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_child_forked_after_a_parallel_call():
    script = """
        import os, numpy as np, jitcore, jitcore.numpy as jnp
        f = jitcore.jit(lambda x: (x * 2, x.sum()))
        x = np.ones(1_000_000, np.float32)
        f(x)
        pid = os.fork()
        if pid == 0:
            doubled, total = f(x)
            other = jitcore.jit(lambda x: jnp.cos(x).max())(x)
            good = float(total) == 1e6 and float(doubled.sum()) == 2e6 and abs(float(other) - 0.5403023) < 1e-6
            os._exit(0 if good else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert float(f(x)[1]) == 1e6
        raise SystemExit(status)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
