"""Dask: jitted and autojitted functions of chunks, in threads and in worker processes; their tokens."""

import os
import subprocess
import sys

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, autojit, grad, jit, vmap

dask = pytest.importorskip("dask", reason="dask is not installed: jitcore[interop]")
da = pytest.importorskip("dask.array")
from dask.base import tokenize  # noqa: E402

X = np.linspace(0, 1, 24).reshape(6, 4)
CHUNKED = da.from_array(X, chunks=(2, 4))


@jit
def bend(x):
    return jnp.sin(x) + x * x


def bend_numpy(x):
    return np.sin(x) + x * x


@autojit
def relax(u):
    new = u.copy()
    for _ in range(2):
        new[1:-1] = 0.5 * (new[:-2] + new[2:])
    return new


@jit
def spread(x):
    return x.mean(axis=-1), x.std(axis=-1)


EXPECTED = bend_numpy(X)


def compute(lazy):
    found = lazy.compute()
    assert found.dtype == lazy.dtype, "what Dask was told"
    return found


def test_map_blocks(scheduler):
    lazy = CHUNKED.map_blocks(bend, dtype=X.dtype)
    np.testing.assert_allclose(compute(lazy), EXPECTED, rtol=1e-12)
    np.testing.assert_allclose(compute(CHUNKED.map_blocks(bend)), EXPECTED, rtol=1e-12)  # dtype by a call
    np.testing.assert_allclose(compute((lazy + CHUNKED).sum(axis=0)), (EXPECTED + X).sum(0), rtol=1e-12)
    np.testing.assert_allclose(compute(CHUNKED.map_blocks(autojit(bend_numpy), dtype=X.dtype)), EXPECTED, rtol=1e-12)
    np.testing.assert_allclose(compute(CHUNKED.map_blocks(jit(grad(lambda x: bend(x).sum())), dtype=X.dtype)), np.cos(X) + 2 * X, rtol=1e-12)


def test_map_overlap(scheduler):
    blur = jit(lambda u: jnp.pad(0.5 * (u[:-2] + u[2:]), ((1, 1), (0, 0))))
    found = compute(CHUNKED.map_overlap(blur, depth=(1, 0), boundary="periodic", dtype=X.dtype))
    np.testing.assert_allclose(found, 0.5 * (np.roll(X, 1, 0) + np.roll(X, -1, 0)), rtol=1e-12)
    found = compute(CHUNKED.map_overlap(relax, depth=(2, 0), boundary="none", dtype=X.dtype))
    np.testing.assert_allclose(found, relax(X), rtol=1e-12)


def test_apply_gufunc(scheduler):
    means, deviations = da.apply_gufunc(spread, "(i)->(),()", CHUNKED, output_dtypes=(float, float))
    np.testing.assert_allclose(compute(means), X.mean(-1))
    np.testing.assert_allclose(compute(deviations), X.std(-1))
    row = jit(lambda x: x - x.max())
    found = da.apply_gufunc(row, "(i)->(i)", CHUNKED, vectorize=True, output_dtypes=float)
    np.testing.assert_allclose(compute(found), X - X.max(-1, keepdims=True))
    found = da.apply_gufunc(jit(vmap(row)), "(i)->(i)", CHUNKED, output_dtypes=float)
    np.testing.assert_allclose(compute(found), X - X.max(-1, keepdims=True))


def test_blockwise(scheduler):
    product = jit(lambda a, b: a @ b)
    right = da.from_array(X.T, chunks=(4, 3))
    found = da.blockwise(product, "ik", CHUNKED, "ij", right, "jk", dtype=X.dtype, concatenate=True)
    np.testing.assert_allclose(compute(found), X @ X.T, rtol=1e-12)


def test_reductions(scheduler):
    total = da.reduction(CHUNKED, jit(lambda x, axis, keepdims: jnp.sum(x * x, axis=axis, keepdims=keepdims), static_argnames=("axis", "keepdims")),
                         jit(jnp.sum, static_argnames=("axis", "keepdims")), dtype=X.dtype, axis=(0, 1))
    np.testing.assert_allclose(compute(total), (X * X).sum(), rtol=1e-12)


def test_gradients_of_parts(scheduler):
    slope = dask.delayed(jit(grad(lambda w, x: jnp.sum((x @ w) ** 2))))
    w = np.arange(4.0)
    parts = [slope(w, part) for part in CHUNKED.to_delayed().ravel()]
    np.testing.assert_allclose(dask.delayed(sum)(parts).compute(), 2 * X.T @ (X @ w), rtol=1e-12)


def test_arrays_are_chunked(scheduler):
    lazy = da.from_array(jnp.asarray(X), chunks=(2, 4))
    np.testing.assert_allclose(compute(lazy.mean(axis=0)), X.mean(0))


def test_client_map(client):
    rows = client.scatter([X[i] for i in range(6)])
    found = client.gather(client.map(bend, rows))
    assert all(isinstance(one, Array) for one in found)
    np.testing.assert_allclose(np.stack(found), EXPECTED, rtol=1e-12)
    scale = 3.0
    found = client.gather(client.map(jit(lambda x, k: (x * k * scale).sum()), rows, k=2.0))
    np.testing.assert_allclose(found, 6 * X.sum(1), rtol=1e-12)
    np.testing.assert_allclose(client.submit(autojit(bend_numpy), X).result(), EXPECTED, rtol=1e-12)


def count_threads():
    from jitcore.backends.cpu.runtime.threads import get_num_threads

    return get_num_threads()


def test_workers_use_their_share(client):
    """Dask gives OMP_NUM_THREADS=1 to its worker processes."""
    assert set(client.run(count_threads).values()) == {1}


def test_a_killed_worker(client):
    """Tasks of a worker that dies are done again."""
    lazy = CHUNKED.map_blocks(bend, dtype=X.dtype).persist()
    client.run(os._exit, 0, workers=[next(iter(client.scheduler_info()["workers"]))], on_error="ignore")
    np.testing.assert_allclose(compute(lazy + 0), EXPECTED, rtol=1e-12)


TOKENS = """
import functools
import numpy as np
import jitcore.numpy as jnp
from dask.base import tokenize
from jitcore import autojit, grad, jit, value_and_grad, vmap

def helper(x):
    return x if x > 0 else -x

def other_helper(x):
    return x if x > 0 else -x

@jit
def traced(x):
    return jnp.sin(x)

@jit(rewrite=True)
def rewritten(x):
    return helper(x) if x > 1 else 2 * x

@functools.partial(jit, static_argnames="n")
def power(x, n):
    return x ** n

@autojit
def plain(x):
    total = 0.0
    for value in x:
        total += other_helper(value)
    return total

def close(decorate, k):
    return decorate(lambda x: x * k)

x = np.ones(3)
things = [traced, rewritten, power, plain, close(jit, 2), close(jit, 3), close(autojit, 2), jit(lambda x: x + 1), functools.partial(power, n=2),
          grad(traced), jit(grad(traced)), vmap(traced), value_and_grad(traced), jit(np.sin), jit(traced.__wrapped__, keep_unused=True),
          jnp.arange(5.0), jnp.arange(5), jnp.asarray(1.0), jnp.arange(5.0)[::2]]
before = [tokenize(one, ensure_deterministic=True) for one in things]
traced(x), rewritten(2.0), power(x, n=2), plain(x), things[4](x), things[6](x), things[10](1.0)
after = [tokenize(one, ensure_deterministic=True) for one in things]
"""


def list_tokens(seed, folder, module):
    (folder / "tokens.py").write_text(TOKENS)
    (folder / "script.py").write_text(TOKENS + "print(before, after)")
    code = ["-c", "import tokens; print(tokens.before, tokens.after)"] if module else [str(folder / "script.py")]
    env = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run([sys.executable, *code], env=env, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("module", [False, True], ids=["script", "module"])
def test_tokens_are_equal_across_processes(tmp_path, module):
    printed = list_tokens(1, tmp_path, module)
    assert printed == list_tokens(2, tmp_path, module)
    before, after = eval(printed.replace("] [", "], ["))
    assert before == after  # calls change nothing
    assert len(set(before)) == len(before)


def test_tokens_tell_apart():
    assert tokenize(jnp.asarray(X)) == tokenize(jnp.asarray(X)) != tokenize(jnp.asarray(X + 1))
    assert tokenize(bend) == tokenize(bend) != tokenize(spread)
