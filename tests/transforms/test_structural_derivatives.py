"""Derivatives of primitives that move, join, select and contract elements, against JAX, over drawn shapes and
parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore
from jitcore import jit, lax, numpy as jnp, vmap
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import trace_to_jaxpr
from jitcore.debug import callback
from jitcore.lax.control_flow.callback import io_callback, pure_callback
from tests.jax_answers import jax
from tests.lax.test_conv import Problem as Convolution
from tests.lax.test_dot import random_contraction
from tests.lax.test_gather_scatter import Problem as Selection
from tests.lax.test_symbolic_shapes import CASES as SYMBOLIC_CASES, N
from tests.transforms.structural_oracle import compare, draw

jax_np = jax.numpy

FEW = settings(max_examples=8, deadline=None)
RNG = np.random.default_rng(0)
# Of a symbolic extent; what is without operand or of integers has no derivative.
SYMBOLIC = [case for case in SYMBOLIC_CASES if case[0] not in ("full", "iota", "argmax")]
X = draw(RNG, (3, 4))
V = draw(RNG, 6)


# -- shapes ---------------------------------------------------------------------------------------------------
#: Functions of (lax, *operands).
SHAPES = {
    "broadcast": (lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), X[:, :1]),
    "broadcast scalar": (lambda lax, x: lax.broadcast(x, (2, 3)), X[0, 0]),
    "broadcast nothing": (lambda lax, x: lax.broadcast_in_dim(x, (1, 3, 1), (1, 2)), X[:, :1]),
    "broadcast to empty": (lambda lax, x: lax.broadcast_in_dim(x, (0, 3), (1,)), X[:, 0]),
    "reshape": (lambda lax, x: lax.reshape(x, (6, 2)), X),
    "reshape, other order": (lambda lax, x: lax.reshape(x, (2, 6), (1, 0)), X),
    "transpose": (lambda lax, x: lax.transpose(x, (2, 0, 1)), draw(RNG, (2, 3, 4))),
    "squeeze": (lambda lax, x: lax.squeeze(x, (0, 2)), X[None, :, None]),
    "expand_dims": (lambda lax, x: lax.expand_dims(x, (0, 2)), X),
    "rev": (lambda lax, x: lax.rev(x, (1,)), X),
    "concatenate": (lambda lax, x, y, z: lax.concatenate([x, y, z], 1), X, X[:, :1], X[:, 1:1]),
    "concatenate one": (lambda lax, x: lax.concatenate([x, np.ones((2, 4))], 0), X),
    "split": (lambda lax, x: lax.split(x, (1, 0, 3), 1), X),
    "split, part": (lambda lax, x: lax.split(x, (1, 1, 2), 1)[1], X),
    "tile": (lambda lax, x: lax.tile(x, (2, 3)), X),
    "slice": (lambda lax, x: lax.slice(x, (1, 0), (3, 4), (1, 3)), X),
    "slice, empty": (lambda lax, x: lax.slice(x, (1, 2), (3, 2), (1, 3)), X),
    "dynamic_slice": (lambda lax, x: lax.dynamic_slice(x, (1, 9), (2, 3)), X),
    "dynamic_update_slice": (lambda lax, x, u: lax.dynamic_update_slice(x, u, (-1, 2)), X, X[:2, :2]),
    "dynamic_update_slice of a constant": (
        lambda lax, x: lax.dynamic_update_slice(x, np.ones((1, 2)), (1, 2)), X),
    "complex": (lambda lax, x: lax.pad(lax.rev(x, (0,)), x[0, 0], ((1, 0, 1), (0, -1, 0))), X + 1j * X[::-1]),
    "stop_gradient": (lambda lax, x: x * lax.stop_gradient(x), X),
    "copy": (lambda lax, x: jax_copy(lax, x), X),
}


def jax_copy(lax_module, x):
    return lax_module.copy(x) if lax_module is lax else jax_np.copy(x)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    function, *operands = SHAPES[name]
    compare(lambda *xs: function(lax, *xs), lambda *xs: function(jax.lax, *xs), *operands)


@FEW
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 3), st.integers(-2, 3), st.integers(0, 2)),
                min_size=1, max_size=3))
def test_pad(axes):
    config = [(low, high, gap) for _, low, high, gap in axes]
    extents = [(n - 1) * (gap + 1) + 1 + low + high if n else low + high for n, low, high, gap in axes]
    if min(extents) < 0:
        config = [(abs(low), abs(high), gap) for low, high, gap in config]
    x = draw(np.random.default_rng(1), [n for n, *_ in axes])
    compare(lambda x, v: lax.pad(x, v, config), lambda x, v: jax.lax.pad(x, v, config), x, np.float64(0.3))


@FEW
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3), st.integers(1, 3)),
                min_size=1, max_size=3))
def test_slice(axes):
    starts, steps = [start for start, *_ in axes], [step for *_, step in axes]
    limits = [start + size for start, size, *_ in axes]
    x = draw(np.random.default_rng(2), [start + size + rest for start, size, rest, _ in axes])
    compare(
        lambda x: lax.slice(x, starts, limits, steps), lambda x: jax.lax.slice(x, starts, limits, steps), x
    )


@pytest.mark.parametrize("function, names", [
    (lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), ["reduce_sum", "reshape"]),
    (lambda x: lax.broadcast_in_dim(x, (3, 1, 1), (0, 1)), ["reshape"]),
    (lambda x: lax.dynamic_slice(x, (1, 0), (2, 1)), ["broadcast_in_dim", "dynamic_update_slice"]),
    (lambda x: lax.slice(x, (1, 0), (3, 1), (2, 1)), ["pad"]),
    (lambda x: lax.pad(x, 0.0, ((1, 0, 2), (0, 3, 0))), ["slice"]),
    (lambda x: lax.concatenate([np.ones((1, 1)), x], 0), ["split"]),
    (lambda x: lax.split(x, (1, 2), 0)[1], ["pad"]),
    (lambda x: x[np.array([2, 0, 2])], ["broadcast_in_dim", "scatter-add"]),
])
def test_cost_of_transposition(function, names):
    x = np.ones((3, 1))
    jaxpr = jitcore.make_jaxpr(jitcore.linear_transpose(function, x))(np.ones(function(x).shape))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == names


@pytest.mark.parametrize("function", [case[1] for case in SYMBOLIC], ids=[case[0] for case in SYMBOLIC])
def test_symbolic_extents(function):
    def pull(x, places):
        out, pull_back = jitcore.vjp(lambda x: function(x, places), x)
        return pull_back(lax.full_like(out, 1))

    avals = [ShapedArray((N, 4), np.float32), ShapedArray((N, 1), np.int32)]
    jaxpr, _ = trace_to_jaxpr(pull, avals)
    check_jaxpr(jaxpr)
    assert jaxpr.out_avals[0].shape == (N, 4)


def test_compiled_derivatives_of_abstracted_axes():
    def loss(x, places):
        rows = jnp.concatenate([x[places], jnp.broadcast_to(x[0], x.shape)], 1)
        return jnp.sum(jnp.sort(rows, axis=0) @ rows.T) + jnp.sum(
            lax.pad(x, 1.0, ((1, 2, 0), (0, 0, 1))) ** 2
        )

    gradient = jit(jitcore.grad(loss), abstracted_axes=({0: "n"}, {0: "n"}))
    for size in (5, 9):
        x, places = draw(RNG, (size, 3)), RNG.integers(0, size, size)
        np.testing.assert_allclose(gradient(x, places), jitcore.grad(loss)(x, places), rtol=1e-10)


# -- stop_gradient --------------------------------------------------------------------------------------------
def test_stop_gradient_of_trees_and_integers():
    def loss(x):
        kept = lax.stop_gradient({"x": x, "n": jnp.arange(3)})
        assert kept["n"].dtype == np.int32
        return jnp.sum(kept["x"] * x * kept["n"])

    x = np.array([1.0, 2.0, 3.0])
    for gradient in (jitcore.grad(loss), jit(jitcore.grad(loss)), jitcore.grad(jit(loss))):
        np.testing.assert_allclose(gradient(x), x * np.arange(3))


def test_stop_gradient_holds_for_every_order():
    f = lambda x: lax.stop_gradient(x * x) * x  # noqa: E731
    assert jitcore.grad(jitcore.grad(f))(3.0) == 0
    np.testing.assert_allclose(vmap(jitcore.grad(f))(np.arange(3.0)), np.arange(3.0) ** 2)
    assert jitcore.jvp(lax.stop_gradient, (2.0,), (1.0,))[1] == 0


# -- gather and scatter ---------------------------------------------------------------------------------------
@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "fill"]))
def test_gather(seed, mode):
    problem = Selection(seed)
    compare(
        lambda x: lax.gather(x, problem.indices, problem.numbers(lax.GatherDimensionNumbers), problem.sizes,
                             mode=mode),
        lambda x: jax.lax.gather(x, problem.indices, problem.numbers(jax.lax.GatherDimensionNumbers),
                                 problem.sizes, mode=mode),
        draw(problem.rng, problem.shape))


def scatter_pair(name: str, problem: Selection, **options):
    numbers = [problem.numbers(module.ScatterDimensionNumbers) for module in (lax, jax.lax)]
    return [lambda x, u, m=module, n=n: getattr(m, name)(x, problem.indices, u, n, **options)
            for module, n in zip((lax, jax.lax), numbers)]


@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "drop"]),
       st.sampled_from(["scatter_add", "scatter_sub", "scatter_min", "scatter_max"]))
def test_scatter_with_repeated_positions(seed, mode, name):
    problem = Selection(seed, may_leave=mode == "drop")
    compare(*scatter_pair(name, problem, mode=mode), draw(problem.rng, problem.shape),
            draw(problem.rng, problem.out_shape))


def spread_positions(problem: Selection) -> Selection:
    """The problem with slices that do not overlap: one for each part of the operand."""
    shape = [n if dim in problem.indices_batching else 1 for dim, n in enumerate(problem.indices.shape[:-1])]
    problem.indices = problem.indices[tuple(slice(0, n) for n in shape)]
    window = iter([n for dim, n in enumerate(problem.out_shape) if dim in problem.offsets])
    batch = iter(problem.indices.shape[:-1])
    problem.out_shape = tuple(next(window if dim in problem.offsets else batch)
                              for dim in range(len(problem.out_shape)))
    return problem


@FEW
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["clip", "drop"]), st.sampled_from(["scatter", "scatter_mul"])
)
def test_scatter_of_distinct_positions(seed, mode, name):
    problem = spread_positions(Selection(seed))
    compare(*scatter_pair(name, problem, mode=mode, unique_indices=True), draw(problem.rng, problem.shape),
            draw(problem.rng, problem.out_shape))


@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "drop"]))
def test_scatter_of_one_slice_needs_no_promise(seed, mode):
    problem = spread_positions(Selection(seed))
    ours, _ = scatter_pair("scatter_mul", problem, mode=mode)
    _, theirs = scatter_pair("scatter_mul", problem, mode=mode, unique_indices=True)
    compare(ours, theirs, draw(problem.rng, problem.shape), draw(problem.rng, problem.out_shape))


@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "drop"]))
def test_only_the_update_that_stays_has_a_derivative(seed, mode):
    """Of overlapping updates: against a scatter of the numbers of the updates."""
    problem = Selection(seed, may_leave=mode == "drop")
    (ours, _), rng = scatter_pair("scatter", problem, mode=mode), problem.rng
    x, updates = draw(rng, problem.shape), draw(rng, problem.out_shape)
    sources = np.asarray(
        ours(np.full(problem.shape, -1.0), np.arange(updates.size).reshape(updates.shape) * 1.0)
    )
    kept, sources = sources < 0, sources.astype(int)
    x_t, u_t, ct = draw(rng, x.shape), draw(rng, updates.shape), draw(rng, x.shape)
    found = jitcore.jvp(ours, (x, updates), (x_t, u_t))[1]
    chosen = u_t.reshape(-1)[sources] if u_t.size else x_t
    np.testing.assert_array_equal(found, np.where(kept, x_t, chosen))
    x_ct, u_ct = jitcore.vjp(ours, x, updates)[1](ct)
    np.testing.assert_array_equal(x_ct, np.where(kept, ct, 0))
    wanted = np.zeros(updates.size)
    np.add.at(wanted, sources[~kept], ct[~kept])
    np.testing.assert_array_equal(np.asarray(u_ct).reshape(-1), wanted)


def test_scatter_mul_of_repeated_factors_is_refused():
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    places = np.array([[0], [0]])
    by_factors = lambda u: jnp.sum(lax.scatter_mul(V, places, u, numbers))  # noqa: E731
    with pytest.raises(
        NotImplementedError, match="scatter_mul gradients are only implemented if `unique_ind"
    ):
        jitcore.grad(by_factors)(np.ones(2))
    by_operand = lambda x: jnp.sum(lax.scatter_mul(x, places, np.array([2.0, 5.0]), numbers))  # noqa: E731
    assert jitcore.grad(by_operand)(V).tolist() == [10, 1, 1, 1, 1, 1]


#: Functions of (numpy, lax, *operands) of users.
INDEXING = {
    "element": (lambda np_, x: x[1, 2], X),
    "row": (lambda np_, x: x[1], X),
    "last row": (lambda np_, x: x[-1] * 2, X),
    "slices": (lambda np_, x: x[1:, ::-2], X),
    "new axis": (lambda np_, x: x[:, None, 1:], X),
    "rows": (lambda np_, x: x[np.array([0, 2, 0])], X),
    "elements": (lambda np_, x: x[np.array([[0, 2], [0, 0]]), np.array([1, 3])], X),
    "mixed": (lambda np_, x: x[np.array([0, 2]), None, 1:3], X),
    "mask": (lambda np_, x: x[np.array([True, False, True])], X),
    "take": (lambda np_, x: np_.take(x, np.array([0, 9, 1]), axis=1, mode="clip"), X),
    "take_along_axis": (lambda np_, x: np_.take_along_axis(x, np.array([[0, 2, 2], [3, 3, 0], [1, 1, 1]]), 1), X),
    "set": (lambda np_, x, u: np_.asarray(x).at[1:, 2].set(u), X, X[:2, 0]),
    "set constant": (lambda np_, x: np_.asarray(x).at[np.array([0, 0, 2])].set(3.0), X),
    "add": (lambda np_, x, u: np_.asarray(x).at[np.array([0, 0, 2])].add(u), X, X),
    "subtract": (lambda np_, x, u: np_.asarray(x).at[np.array([0, 0, 2])].subtract(u), X, X),
    "multiply": (lambda np_, x, u: np_.asarray(x).at[1].multiply(u), X, X[0]),
    "divide": (lambda np_, x, u: np_.asarray(x).at[1].divide(u), X, X[0]),
    "power": (lambda np_, x: np_.asarray(x).at[1].power(3), X),
    "max": (lambda np_, x, u: np_.asarray(x).at[np.array([0, 0, 2])].max(u), X, X),
    "min": (lambda np_, x, u: np_.asarray(x).at[np.array([1, 0, 2])].min(u), X, X),
    "get": (lambda np_, x, i: np_.asarray(x).at[i].get(mode="fill", fill_value=0), X, np.array([0, 7])),
    "roll": (lambda np_, x: np_.roll(x, 1, 0), X),
    "sort": (lambda np_, x: np_.sort(x, axis=0), X),
    "descending": (lambda np_, x: np_.sort(x, descending=True), X),
    "partition": (lambda np_, x: np_.partition(x, 2, axis=1)[:, 2], X),
    "median": (lambda np_, x: np_.median(x), X),
    "quantile": (lambda np_, x: np_.quantile(x, np.array([0.2, 0.7]), axis=1), X),
    "stack": (lambda np_, x, y: np_.stack([x, y], 1), X, X * 2),
    "hstack": (lambda np_, x, y: np_.hstack([x, y]), X, X * 2),
    "repeat": (lambda np_, x: np_.repeat(x, 3, axis=1), X),
    "tile": (lambda np_, x: np_.tile(x, (2, 1)), X),
    "split": (lambda np_, x: np_.split(x, 2, axis=1), X),
    "diagonal": (lambda np_, x: np_.diagonal(x, 1), X),
    "diag": (lambda np_, x: np_.diag(x[0]), X),
    "triu": (lambda np_, x: np_.triu(x), X),
    "trace": (lambda np_, x: np_.trace(x), X),
    "pad edge": (lambda np_, x: np_.pad(x, 2, mode="edge"), X),
    "pad reflect": (lambda np_, x: np_.pad(x, 1, mode="reflect"), X),
    "pad wrap": (lambda np_, x: np_.pad(x, ((1, 2), (3, 1)), mode="wrap"), X),
    "interp": (lambda np_, x, v: np_.interp(x, np.arange(6.0) - 3, v), X, V),
    "convolve": (lambda np_, x, y: np_.convolve(x, y), V, X[0]),
    "einsum": (lambda np_, x, y: np_.einsum("ij,kj->ki", x, y), X, X[:2]),
    "einsum diagonal": (lambda np_, x: np_.einsum("ii->i", x), X[:, :3]),
    "tensordot": (lambda np_, x, y: np_.tensordot(x, y, ((1, 0), (2, 0))), X, draw(RNG, (3, 2, 4))),
    "matmul": (lambda np_, x, y: np_.matmul(x, y), draw(RNG, (2, 3, 4)), draw(RNG, (4, 5))),
    "vecdot": (lambda np_, x, y: np_.vecdot(x, y), X, X * 3),
    "outer": (lambda np_, x, y: np_.outer(x, y), V, X),
    "kron": (lambda np_, x, y: np_.kron(x, y), X, X[:2, :2]),
    "cross": (lambda np_, x, y: np_.cross(x, y), X[:, :3], X[:, 1:]),
}


def test_apply():
    wave = lambda x: x.at[np.array([0, 2])].apply(jnp.sin)  # noqa: E731
    pull = lambda x: jitcore.vjp(wave, x)[1](np.ones(x.shape))[0]  # noqa: E731
    wanted = np.where(np.array([True, False, True])[:, None], np.cos(X), 1)
    for run in (pull, jit(pull)):
        np.testing.assert_allclose(run(jnp.asarray(X)), wanted, rtol=1e-12)


def test_distinct_places_that_are_known_need_no_promise():
    places = np.array([4, 0, 2])
    product = lambda u: jnp.sum(jnp.asarray(V).at[places].multiply(u) ** 2)  # noqa: E731
    for gradient in (jitcore.grad(product), jit(jitcore.grad(product))):
        np.testing.assert_allclose(gradient(np.ones(3)), 2 * V[places] ** 2)
    put = lambda u: jnp.asarray(np.zeros(6)).at[places].set(u)  # noqa: E731
    jaxpr = jitcore.make_jaxpr(jitcore.linear_transpose(put, np.ones(3)))(V)
    assert [eqn.primitive.name for eqn in jaxpr.eqns if eqn.invars[0].aval.shape] == ["gather"]


@pytest.mark.parametrize("name", INDEXING)
def test_functions_of_users(name):
    function, *operands = INDEXING[name]
    compare(lambda *xs: function(jnp, *map(jnp.asarray, xs)),
            lambda *xs: function(jax_np, *map(jax_np.asarray, xs)), *operands)


# -- order ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1])
def test_sort_of_several_operands(axis):
    keys, others = RNG.integers(0, 3, (4, 5)), (draw(RNG, (4, 5)), draw(RNG, (4, 5)))
    for count in (1, 2):
        compare(lambda k, x, y: lax.sort((k, x, y), axis, num_keys=count),
                lambda k, x, y: jax.lax.sort((k, x, y), axis, num_keys=count), keys, *others)
    compare(lambda x: lax.sort(x, axis), lambda x: jax.lax.sort(x, axis), others[0])
    compare(lambda x: lax.sort(x, axis), lambda x: jax.lax.sort(x, axis), others[0] + 1j * others[1])


@pytest.mark.parametrize("axis", [0, 1])
def test_top_k(axis):
    x = np.rint(draw(RNG, (6, 5)) * 2) / 2  # with equal elements
    compare(lambda x: lax.top_k(x, 3, axis=axis)[0], lambda x: jax.lax.top_k(x, 3, axis=axis)[0], x)


# -- products -------------------------------------------------------------------------------------------------
@FEW
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float64, np.complex128]))
def test_dot_general(seed, dtype):
    rng = np.random.default_rng(seed)
    lhs, rhs, numbers = random_contraction(rng)
    compare(lambda x, y: lax.dot_general(x, y, numbers), lambda x, y: jax.lax.dot_general(x, y, numbers),
            draw(rng, lhs, dtype), draw(rng, rhs, dtype))


@pytest.mark.parametrize(
    "dtypes", [("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float32", "float16")]
)
def test_dot_general_in_another_dtype(dtypes):
    x, y = (jax_np.asarray(draw(RNG, shape), dtype) for shape, dtype in zip(((3, 4), (4, 2)), dtypes))
    numbers = (((1,), (0,)), ((), ()))
    compare(lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=np.float32),
            lambda x, y: jax.lax.dot_general(x, y, numbers, preferred_element_type=np.float32),
            np.asarray(x), np.asarray(y), tolerance=2e-2)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 5))])
def test_gradients_of_products_need_no_transposition(shapes):
    left, right = (np.ones(shape) for shape in shapes)
    jaxpr = jitcore.make_jaxpr(jitcore.grad(lambda x, y: jnp.sum(jnp.sin(x @ y)), (0, 1)))(left, right)
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert "transpose" not in names and names.count("dot_general") == 3


def check_conv(seed: int, compiled: bool) -> None:
    problem = Convolution(seed)
    compare(lambda x, k: lax.conv_general_dilated(x, k, **problem.params),
            lambda x, k: jax.lax.conv_general_dilated(x, k, **problem.params),
            draw(problem.rng, problem.lhs_shape), draw(problem.rng, problem.rhs_shape),
            compiled=compiled)


@FEW
@given(st.integers(0, 2**32 - 1))
def test_conv(seed):
    check_conv(seed, compiled=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_compiled_conv(seed):
    check_conv(seed, compiled=True)


def test_conv_that_accumulates_in_another_dtype():
    x, k = (np.asarray(jax_np.asarray(draw(RNG, shape), "bfloat16")) for shape in ((1, 2, 6), (3, 2, 2)))
    wide = [np.asarray(value, np.float32) for value in (x, k)]
    run = lambda x, k: jnp.sum(lax.conv(x, k, (2,), "SAME", preferred_element_type=np.float32) ** 2)  # noqa: E731
    for found, want in zip(jitcore.grad(run, (0, 1))(x, k), jitcore.grad(run, (0, 1))(*wide)):
        assert found.dtype.name == "bfloat16"
        np.testing.assert_allclose(np.asarray(found, np.float32), want, rtol=2e-2)


# -- Fourier transforms ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape, lengths", [((8,), (8,)), ((7,), (7,)), ((3, 6), (6,)), ((2, 4, 5), (4, 5)),
                                            ((3, 4, 6), (3, 4, 6)), ((2, 1), (1,)), ((2, 2), (2,))])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_fft(kind, shape, lengths):
    if kind == "IRFFT":
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    x = draw(RNG, shape, np.float64 if kind == "RFFT" else np.complex128)
    compare(lambda x: lax.fft(x, kind, lengths), lambda x: jax.lax.fft(x, kind, lengths), x)


# -- collectives ----------------------------------------------------------------------------------------------
#: Functions of (lax, x) for an axis "i"; JAX has no rule for extrema, whose `vmap` has one.
COLLECTIVES = {
    "psum": lambda lax, x: lax.psum(x * x, "i") * x,
    "pmean": lambda lax, x: x - lax.pmean(x, "i"),
    "all_gather": lambda lax, x: (lax.all_gather(x, "i") ** 2 * x).sum(0),
    "all_gather, last": lambda lax, x: (lax.all_gather(x, "i", axis=1) * x[:, None]).sum(1),
    "all_gather, tiled": lambda lax, x: lax.all_gather(x, "i", tiled=True)[2:6] * x,
    "axis_index": lambda lax, x: lax.psum(x * lax.axis_index("i"), "i") * x,
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_inside_and_outside_of_vmap(name):
    body = COLLECTIVES[name]
    x, ct = draw(RNG, (3, 4)), draw(RNG, (3, 4))
    compare(lambda x: vmap(lambda v: body(lax, v), axis_name="i")(x),
            lambda x: jax.vmap(lambda v: body(jax.lax, v), axis_name="i")(x), x)

    def pull(lax_module, vjp, vmap):
        one = lambda v, c: vjp(lambda v: body(lax_module, v), v)[1](c)[0]  # noqa: E731
        return vmap(one, axis_name="i")(x, ct)

    with jax.enable_x64(True):
        expected = pull(jax.lax, jax.vjp, jax.vmap)
    np.testing.assert_allclose(pull(lax, jitcore.vjp, vmap), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(lambda: pull(lax, jitcore.vjp, vmap))(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["pmax", "pmin"])
def test_extrema_share_as_along_an_axis(name):
    x = np.array([[1.0, 5.0], [3.0, 5.0], [3.0, -1.0]])
    t = draw(RNG, x.shape)
    inside = lambda v, t: jitcore.jvp(lambda v: getattr(lax, name)(v, "i"), (v,), (t,))[1]  # noqa: E731
    over_axis = jitcore.jvp(lambda x: getattr(jnp, name[1:])(x, axis=0), (x,), (t,))[1]
    found = vmap(inside, axis_name="i")(x, t)
    np.testing.assert_allclose(found, np.broadcast_to(over_axis, x.shape))


# -- callbacks ------------------------------------------------------------------------------------------------
def test_callbacks_with_results_have_no_derivative():
    like = jitcore.ShapeDtypeStruct((), np.float32)
    with pytest.raises(
        ValueError, match="^Pure callbacks do not support JVP. Please use `jitcore.custom_jvp`"
    ):
        jitcore.grad(lambda x: pure_callback(np.sin, like, x))(1.0)
    with pytest.raises(ValueError, match="^IO callbacks do not support JVP."):
        jitcore.grad(jit(lambda x: io_callback(np.sin, like, x)))(1.0)


def test_debug_callbacks_see_primals_once():
    seen = []

    def loss(x):
        callback(lambda v: seen.append(float(v)), x * 2)
        return x * x

    for gradient in (jitcore.grad(loss), jit(jitcore.grad(loss)), jitcore.grad(jit(loss))):
        seen.clear()
        assert gradient(3.0) == 6.0
        jitcore.effects_barrier()
        assert seen == [6.0]
