"""Ray: jitted functions as tasks and in actors, Arrays as what travels."""

import os

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, autojit, jit

ray = pytest.importorskip("ray", reason="ray is not installed: jitcore[interop]")

X = np.linspace(0, 1, 20)


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
    except Exception as problem:
        pytest.skip(f"Ray does not start here: {problem}")
    yield
    ray.shutdown()


@jit
def bend(x, k):
    return jnp.sin(x) * k


def count_threads():
    from jitcore.backends.cpu.runtime.threads import get_num_threads

    return get_num_threads()


def test_tasks():
    scale = 2.0
    work = ray.remote(lambda x, k: bend(x, k))
    found = ray.get([work.remote(X, k) for k in range(3)])
    assert all(isinstance(one, Array) for one in found)
    np.testing.assert_allclose(found, [np.sin(X) * k for k in range(3)], rtol=1e-12)
    closure = jit(lambda x: x * scale)
    np.testing.assert_allclose(ray.get(ray.remote(lambda f, x: f(x)).remote(closure, X)), X * 2)
    plain = autojit(lambda x: float(np.sin(x).sum()))
    np.testing.assert_allclose(ray.get(ray.remote(lambda f, x: f(x)).remote(plain, X)), np.sin(X).sum())


def test_objects_are_read_only_and_travel():
    stored = ray.put(jnp.asarray(X))
    found = ray.get(stored)
    assert isinstance(found, Array) and found.dtype == X.dtype
    np.testing.assert_array_equal(found, X)
    raw = ray.get(ray.put(X))  # an ndarray in shared memory, which is read-only
    np.testing.assert_allclose(bend(raw, 2.0), np.sin(X) * 2, rtol=1e-12)


def test_actors():
    @ray.remote
    class Sum:
        def __init__(self):
            self.step, self.total = jit(lambda total, x: total + x.sum()), jnp.asarray(0.0)

        def add(self, x):
            self.total = self.step(self.total, x)
            return float(self.total)

    actor = Sum.remote()
    assert ray.get([actor.add.remote(X) for _ in range(2)])[-1] == pytest.approx(2 * X.sum(), rel=1e-6)


def test_workers_use_their_share():
    """Ray gives OMP_NUM_THREADS to the processes of tasks, as many as they have processors."""
    assert ray.get(ray.remote(num_cpus=1)(count_threads).remote()) == 1
