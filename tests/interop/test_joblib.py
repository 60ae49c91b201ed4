"""joblib: jitted functions in processes and threads of `Parallel`, arguments and results by `Memory`."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit

joblib = pytest.importorskip("joblib", reason="joblib is not installed: jitcore[interop]")

X = np.linspace(0, 1, 50)
EXPECTED = [np.sum(np.sin(X) * k) for k in range(6)]


@jit
def work(x, k):
    return jnp.sum(jnp.sin(x) * k)


@autojit
def work_in_place(x, k):
    total = 0.0
    for value in x:
        total += np.sin(value) * k
    return total


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("f", [work, work_in_place], ids=["jit", "autojit"])
def test_parallel(backend, f):
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(f)(X, k) for k in range(6))
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-12)


def test_closures():
    scale = 3.0
    f = jit(lambda x: jnp.sum(x) * scale)
    np.testing.assert_allclose(joblib.Parallel(2)(joblib.delayed(f)(X * k) for k in range(3)), [3 * X.sum() * k for k in range(3)])


def test_large_arrays_are_mapped():
    """Arguments above `max_nbytes` come as memory maps, which are read-only."""
    large = np.linspace(0, 1, 1000)
    found = joblib.Parallel(2, max_nbytes=100)(joblib.delayed(work)(large, k) for k in range(3))
    np.testing.assert_allclose(found, [np.sin(large).sum() * k for k in range(3)], rtol=1e-12)


def count_threads():
    from jitcore.backends.cpu.runtime.threads import get_num_threads

    return get_num_threads()


@pytest.mark.parametrize("share", [1, 2])
def test_workers_use_their_share(share):
    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=share):
        assert joblib.Parallel()(joblib.delayed(count_threads)() for _ in range(2)) == [share, share]
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


def test_memory(tmp_path):
    memory = joblib.Memory(tmp_path, verbose=0)
    calls = []

    @memory.cache
    def keep(x):
        calls.append(1)
        return jnp.sin(x)

    first, again = keep(jnp.asarray(X)), keep(jnp.asarray(X))
    assert len(calls) == 1
    np.testing.assert_array_equal(first, again)
    assert joblib.hash(jnp.asarray(X)) == joblib.hash(jnp.asarray(X)) != joblib.hash(jnp.asarray(X + 1))


def test_dump_and_load(tmp_path):
    joblib.dump({"f": work, "x": jnp.asarray(X)}, tmp_path / "kept")
    kept = joblib.load(tmp_path / "kept")
    np.testing.assert_allclose(kept["f"](kept["x"], 2), EXPECTED[2], rtol=1e-12)
