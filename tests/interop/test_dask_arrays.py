"""Jitted functions of Dask's arrays are lazy, and give what they give of the whole array."""

import operator
import os

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, jit, lax, nn, value_and_grad

dask = pytest.importorskip("dask", reason="dask is not installed: jitcore[interop]")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
X = RNG.random((24, 20))
ROWS, TILES = da.from_array(X, chunks=(7, 20)), da.from_array(X, chunks=(7, 6))


def check(f, *args, scheduler="sync", tolerance=1e-12):
    """Of a jitted function: what its lazy results compute is what it gives of whole arrays."""
    lazy = jitcore.tree.leaves(jit(f)(*args), is_leaf=lambda one: isinstance(one, da.Array))
    whole = jitcore.tree.leaves(jit(f)(*(one.compute() if isinstance(one, da.Array) else one for one in args)))
    with dask.config.set(scheduler=scheduler):
        found = dask.compute(*lazy)
    for one, got, expected in zip(lazy, found, whole, strict=True):
        assert isinstance(one, da.Array) and one.shape == expected.shape
        assert one.dtype == got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    return lazy


@jit
def scale(x, k=2.0):
    return jnp.where(x > 0.3, jnp.sin(x) * k, 0.0) / x.shape[0]  # of the whole array


def test_elementwise_functions(scheduler):
    lazy = scale(TILES)
    assert isinstance(lazy, da.Array) and lazy.chunks == TILES.chunks
    np.testing.assert_allclose(lazy.compute(), scale(X), rtol=1e-12)
    np.testing.assert_allclose(scale(TILES, k=3.0).sum().compute(), scale(X, k=3.0).sum(), rtol=1e-12)
    assert scale(TILES).name == lazy.name != scale(TILES, 3.0).name


@pytest.mark.parametrize("other", [X[0], X[:1], X[:, :1], 2.0, np.float32(2), np.array(2.0), jnp.asarray(X), jnp.asarray(2.0), da.from_array(X, chunks=(3, 2)),
                                   da.from_array(X[0], chunks=3), da.from_array(np.array(2.0))], ids=lambda x: f"{type(x).__name__}{np.shape(x)}")
def test_operands_meet_as_those_of_numpy(other):
    check(lambda a, b: (jnp.maximum(a, b) - b, a * b), TILES, other, tolerance=1e-6)


def test_pytrees_static_arguments_and_dtypes():
    found = jit(lambda tree, power: {"a": tree["x"].astype(jnp.float32) ** power}, static_argnames="power")({"x": TILES}, power=2)
    assert found["a"].dtype == np.float32
    np.testing.assert_allclose(found["a"].compute(), X.astype(np.float32) ** 2, rtol=1e-6)
    for f in (jnp.zeros_like, lambda x: jit(jnp.tanh)(x), lambda x: x, lambda x: (x, 1.0 * x.shape[0], 2), lambda x: x + X):
        check(f, TILES)


FUNCTIONS = {
    # windows
    "five_point": lambda u: u.at[1:-1, 1:-1].set(u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]),
    "periodic": lambda u: jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 2, 1) - 2 * u,
    "far_roll": lambda u: jnp.roll(u, 11, 0),
    "wrap": lambda u: jnp.pad(u, ((1, 1), (0, 0)), mode="wrap")[2:],
    "zeros": lambda u: jnp.pad(u, ((3, 1), (0, 2)), constant_values=2.0),
    "wide_margin": lambda u: jnp.pad(u, ((30, 0), (0, 0))),
    "edge": lambda u: jnp.pad(u, 1, mode="edge"),
    "differences": lambda u: (jnp.diff(u, axis=0), jnp.diff(u, n=2, axis=1), *jnp.gradient(u)),
    "steps": lambda u: u[1::2, ::3],
    "flip": lambda u: u[::-1, ::-1],
    "convolve": lambda u: jnp.convolve(u[:, 0], jnp.array([1.0, 2.0, -1.0]), mode="same"),
    "sum_pool": lambda u: lax.reduce_window(u, 0.0, lax.add, (3, 2), (1, 2), "SAME"),
    "max_pool": lambda u: lax.reduce_window(u, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"),
    "dilated_pool": lambda u: lax.reduce_window(u, 0.0, lax.add, (3, 1), (1, 1), ((2, 2), (0, 0)), window_dilation=(2, 1)),
    "conv_2d": lambda u: lax.conv_general_dilated(u[None, None], jnp.arange(9.0, dtype=u.dtype).reshape(1, 1, 3, 3), (1, 1), "SAME")[0, 0],
    "conv_strided": lambda u: lax.conv_general_dilated(u[None, None], jnp.arange(9.0, dtype=u.dtype).reshape(1, 1, 3, 3), (2, 1), "VALID", lhs_dilation=(1, 2))[0, 0],
    "time_steps": lambda u: lax.fori_loop(0, 4, lambda i, u: u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * i), u),
    "slope_of_stencil": grad(lambda u: (jnp.diff(u, axis=0) ** 2).sum()),
    "slope_of_steps": grad(lambda u: (u[::2] * u[1::2]).sum()),
    # places
    "transpose": lambda u: u.T,
    "row": lambda u: (u[3], u[-1], u[2:5]),
    "set_row": lambda u: u.at[0].set(0.0).at[5:9, 3].set(1.0),
    "stack": lambda u: jnp.stack([u, 2 * u], -1),
    "concatenate": lambda u: jnp.concatenate([u, u * 2]),
    "merge_axes": lambda u: u[:, :18].reshape(24, 6, 3).sum(2),
    "split_axis": lambda u: u.sum(1).reshape(6, 4),
    "positions": lambda u: u + jnp.arange(24.0)[:, None] * lax.iota(float, 20),
    "triangle": lambda u: jnp.tril(u),
    "outer": lambda u: jnp.outer(u[:, 0], u[0]),
    "one_hot": lambda u: nn.one_hot((u[:, 0] * 4).astype(int), 4),
    "table": lambda u: jnp.arange(10.0)[(u * 9).astype(int)],
    # reductions
    "sums": lambda u: (u.sum(0), u.sum(1), u.sum(), u.prod(), u.mean(axis=0, keepdims=True), u.std(), u.var(axis=1)),
    "extremes": lambda u: (u.max(), u.min(axis=1), u.argmax(0), u.argmin(1), jnp.ptp(u)),
    "logic": lambda u: ((u > 0.99).any(axis=0), (u > 0.1).all(axis=1), jnp.count_nonzero(u > 0.5)),
    "nan_mean": lambda u: jnp.nanmean(jnp.where(u > 0.5, jnp.nan, u)),
    "nan_places": lambda u: jnp.where((u > 0.9) & (u < 0.95), jnp.nan, u).argmax(0),
    "norm": lambda u: jnp.linalg.norm(u),
    "whiten": lambda u: (u - u.mean(0)) / u.std(0),
    "softmax": lambda u: (nn.softmax(u, axis=0), nn.softmax(u, axis=1), jitcore.scipy.special.logsumexp(u)),
    "products": lambda u: (u.T @ u, u @ u.T, jnp.einsum("ij,ij->i", u, u)),
    "after_reductions": lambda u: jnp.where(u > u.mean(), u, 0).sum() / u.shape[0],
    "small": lambda u: (u.astype(jnp.float32).sum(0), (u > 0.5).sum(), (u * 9).astype(jnp.int8).max()),
}


@pytest.mark.parametrize("chunks", [(7, 6), (12, 20)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_chunks(name, chunks):
    check(FUNCTIONS[name], da.from_array(X, chunks=chunks), tolerance=1e-5 if name == "small" else 1e-10)


def test_chunks_of_results():
    """Those of the argument, moved as windows say: steps of a simulation keep them."""
    assert jit(FUNCTIONS["five_point"])(TILES).chunks == TILES.chunks == jit(FUNCTIONS["periodic"])(TILES).chunks
    assert jit(lambda u: jnp.diff(u, axis=0))(ROWS).chunks == ((6, 7, 7, 3), (20,))
    assert jit(lambda u: jnp.pad(u, ((2, 0), (0, 0))))(ROWS).chunks == ((9, 7, 7, 3), (20,))
    assert jit(lambda u: jnp.concatenate([u, u]))(TILES).chunks[0] == (7, 7, 7, 10, 7, 7, 3)


def test_tasks_read_margins():
    """A chunk of a stencil takes one row of each neighbour, and chunks inside share one program."""
    lazy = jit(lambda u: jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0))(da.from_array(X, chunks=(4, 20)))
    tasks = dict(lazy.dask)
    cut = [task for key, task in tasks.items() if "-of-" in str(key[0])]
    assert len(cut) == 12  # the first and the last row of each chunk
    from jitcore.chunked.programs import Program

    programs = {task[0] for task in tasks.values() if isinstance(task, tuple) and isinstance(task[0], Program)}
    assert len(programs) == 3


WHOLE_AXES = {"cumsum": lambda x, axis: jnp.cumsum(x, axis), "sort": lambda x, axis: jnp.sort(x, axis=axis), "fft": lambda x, axis: jnp.fft.fft(x, axis=axis).real}


@pytest.mark.parametrize("name", WHOLE_AXES)
def test_whole_axes(name):
    """An axis in one chunk may be needed whole; of another one the error says which operation, and where."""
    check(lambda x: WHOLE_AXES[name](x, 1), ROWS, tolerance=1e-10)
    with pytest.raises(TypeError, match=rf"{name} needs more") as caught:
        jit(lambda x: WHOLE_AXES[name](x, 0))(ROWS)
    assert "test_dask_arrays.py" in str(caught.value) and "rechunk" in str(caught.value)
    check(lambda x: (jnp.median(x, axis=1), jnp.quantile(x, 0.3, axis=1), x.ravel()), ROWS)


@pytest.mark.parametrize("f, name", [(lambda x: lax.while_loop(lambda u: u.sum() < 1, lambda u: 2 * u, x), "while"), (lambda x: x[jnp.array([3, 1])], "gather"),
                                     (lambda x: x.reshape(8, 60), "reshape"), (lambda x: jitcore.debug.print("{}", x) or x, "debug")])
def test_what_chunks_do_not_tell(f, name):
    with pytest.raises(TypeError, match=name):
        jit(f)(TILES)


def test_calls_while_tracing():
    with pytest.raises(TypeError, match=r"jit\(grad\(f\)\)"):
        grad(jit(lambda w, x: (x @ w).sum()))(X[0], TILES)


def test_unknown_shapes():
    with pytest.raises(TypeError, match="compute_chunk_sizes"):
        scale(TILES[TILES > 0])


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["a"] + w["b"]) @ w["c"] - y) ** 2)


WEIGHTS = {"a": RNG.random((20, 5)), "b": RNG.random(5), "c": RNG.random(5)}


def test_gradients_of_a_chunked_loss(scheduler):
    """The sum of the chunks' gradients; each chunk is read by one task."""
    lazy = jit(value_and_grad(loss))(WEIGHTS, ROWS, ROWS[:, 0])
    value, slopes = dask.compute(lazy)[0]
    expected, expected_slopes = jit(value_and_grad(loss))(WEIGHTS, X, X[:, 0])
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, expected_slopes[name], rtol=1e-10)
    parts = [key for key in lazy[0].dask if "-part" in str(key[0])]
    assert len(parts) == len(ROWS.chunks[0])
    check(lambda x, y: value_and_grad(lambda x: loss(WEIGHTS, x, y))(x), ROWS, ROWS[:, 0], tolerance=1e-10)


def train(x, y):
    """Ten steps of gradient descent, each of them lazy."""
    w = jnp.zeros(20)
    step = jit(lambda w, x, y: w - 0.1 * grad(lambda w: jnp.mean((x @ w - y) ** 2))(w))
    for _ in range(10):
        w = step(w, x, y)
    return w


def test_training(scheduler):
    np.testing.assert_allclose(train(ROWS, ROWS[:, 3]).compute(), train(X, X[:, 3]), rtol=1e-10)


def test_time_steps(scheduler):
    step, u, whole = jit(FUNCTIONS["five_point"]), TILES, X
    for _ in range(5):
        u, whole = step(u), step(whole)
    np.testing.assert_allclose(u.compute(), whole, rtol=1e-10)


def test_a_killed_worker(client):
    """What a worker that dies had computed is computed again, with the same bits."""
    lazy = jit(lambda u: (u - u.mean(0)) / u.std(0))(TILES)
    before = lazy.compute()
    kept = lazy.persist()
    client.run(os._exit, 0, workers=[next(iter(client.scheduler_info()["workers"]))], on_error="ignore")
    np.testing.assert_array_equal(kept.compute(), before)
    client.wait_for_workers(2)


# -- random programs --------------------------------------------------------------------------------------------
STEPS = [lambda u: u[1:], lambda u: u[:, :-1], lambda u: u[::2], lambda u: u[::-1], lambda u: jnp.roll(u, 2, 1), lambda u: jnp.roll(u, -1, 0), lambda u: u.T,
         lambda u: jnp.pad(u, ((1, 2), (0, 1))), lambda u: jnp.concatenate([u, u[:3]]), lambda u: u.at[1:2, :-1].multiply(3.0), lambda u: u - u.mean(0),
         lambda u: u / (1 + u.max(1, keepdims=True)), lambda u: jnp.sin(u) + u, lambda u: u + jnp.arange(float(u.shape[1])), lambda u: 0.5 * (u[1:] + u[:-1]),
         lambda u: (u @ u.T)[:, :15], lambda u: u[:, None, :].sum(1), lambda u: jnp.stack([u, -u], 1).reshape(-1, u.shape[1]), lambda u: jnp.cumsum(u, 1)]


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    steps = [STEPS[i] for i in rng.integers(len(STEPS) - 1, size=rng.integers(2, 7))]
    chunks = (int(rng.integers(3, 13)), int(rng.integers(5, 21)))

    def f(u):
        for step in steps:
            u = step(u)
        return u, u.sum(), u.max(0)

    try:
        check(f, da.from_array(X, chunks=chunks), tolerance=1e-9)
    except TypeError as error:
        assert "reshape needs more" in str(error)


def test_operators_of_lazy_arrays():
    """Results go on as arrays of Dask."""
    lazy = jit(FUNCTIONS["periodic"])(TILES)
    found = operator.add(lazy, TILES)[2:5].rechunk(2).sum(axis=1)
    np.testing.assert_allclose(found.compute(), (FUNCTIONS["periodic"](X) + X)[2:5].sum(1), rtol=1e-12)


TWO = da.from_array(X * 2 + 1, chunks=(7, 11))
PAIRS = {
    "a tuple": lambda x, y: lax.fori_loop(0, 4, lambda i, c: (c[0] + c[1] * i, c[1] * 0.5), (x, y)),
    "a list": lambda x, y: lax.fori_loop(0, 4, lambda i, c: [c[0] + c[1], c[1] - c[0]], [x, y]),
    "exchanged": lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (x, y)),
    "margins": lambda x, y: lax.fori_loop(0, 3, lambda i, c: (jnp.roll(c[1], 1, 0), c[0] + 1), (x, y)),
    "reductions": lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[0] / c[1].sum(), c[1] + c[0].mean()), (x, y)),
    "numbers": lambda x, y: lax.scan(lambda c, s: ((c[0] + s * c[1], c[1] * 0.5), None), (x, y), jnp.arange(4.0))[0],
    "results": lambda x, y: lax.scan(lambda c, _: ((c[0] + c[1], c[1]), (c[0], c[1].sum())), (x, y), length=3),
    "rows": lambda x, y: lax.scan(lambda c, rows: (c + rows[0], c * rows[1]), jnp.zeros(20), (x, y)),
    "rows, backwards": lambda x, y: lax.scan(lambda c, rows: (c + rows[0], c * rows[1]), jnp.zeros(20), (x, y), reverse=True),
    "map": lambda x, y: lax.map(lambda rows: (rows[0] + rows[1], rows[0].sum()), (x, y)),
    "a condition": lambda x, y: lax.cond(x.sum() > 0, lambda a, b: (a + 1, b), lambda a, b: (b, a), x, y),
    "a switch": lambda x, y: lax.switch((y.sum() * 0 + 2).astype(int), [lambda a: a, lambda a: 2 * a, lambda a: a * a], x),
    "one in the other": lambda x, y: lax.fori_loop(
        0, 3, lambda i, c: lax.cond(i % 2 == 0, lambda a, b: (a + b, b), lambda a, b: (a, b - 1), *c), (x, y)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_loops_and_branches_over_several_arrays(name):
    check(PAIRS[name], TILES, TWO, tolerance=1e-10)


@pytest.mark.parametrize("f, name", [
    (lambda x, y: lax.fori_loop(0, 5000, lambda i, c: (c[0] + c[1], c[1]), (x, y)), r"a loop \(scan, fori_loop or map\) of 5000 rounds"),
    (lambda x, y: lax.while_loop(lambda c: c[0].sum() < 1, lambda c: (c[0] + c[1], c[1]), (x, y)), r"a loop until a condition \(while_loop\)"),
    (lambda x, y: lax.cond(y.sum() > 0, lambda u: lax.while_loop(lambda v: v[0, 0] < 1, lambda v: v + 1, u), lambda u: u, x), "cond")])
def test_loops_that_chunks_cannot_do(f, name):
    with pytest.raises(TypeError, match=name) as caught:
        jit(f)(TILES, TWO)
    assert "test_dask_arrays.py" in str(caught.value) and "rechunk" in str(caught.value)
