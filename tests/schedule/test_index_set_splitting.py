"""Pads, concatenations and windows that are joined where they are read: values, sweeps and stored arrays."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import config, grad, jit, lax, numpy as jnp, vmap

RNG = np.random.default_rng(0)


def five_points(p):
    return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])


def burgers(u):
    c, west = u[1:-1, 1:-1], u[:-2, 1:-1]
    return u.at[1:-1, 1:-1].set(c - 0.1 * c * (c - west) + 0.1 * (five_points(u) - c))


def with_edges(u):
    """A step, then conditions at the edges."""
    u = u.at[1:-1, 1:-1].set(five_points(u))
    u = u.at[0].set(u[1]).at[-1].set(2 * u[-2])
    return u.at[:, 0].set(0.0).at[:, -1].set(u[:, -2])


def cube(u):
    c = slice(1, -1)
    return u.at[c, c, c].set(
        u[:-2, c, c] + u[2:, c, c] + u[c, :-2, c] + u[c, 2:, c] - u[c, c, 2:] + u[c, c, :-2]
    )


#: Steps on a grid of so many dimensions.
STEPS = {
    "window": (2, lambda u: u.at[1:-1, 1:-1].set(five_points(u))),
    "window of a line": (1, lambda u: u.at[2:-2].set(u[:-4] - 2 * u[1:-3] + 3 * u[4:])),
    "window of a cube": (3, cube),
    "zeros around": (2, lambda u: five_points(jnp.pad(u, 1))),
    "ones around": (2, lambda u: five_points(jnp.pad(u, 1, constant_values=1))),
    "edges around": (2, lambda u: five_points(jnp.pad(u, 1, mode="edge"))),
    "wide weights": (1, lambda u: sum(w * jnp.pad(u, 4)[i : i + u.size] for i, w in enumerate(range(1, 10)))),
    "roll": (2, lambda u: sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u),
    "roll of a line": (1, lambda u: jnp.roll(u, 3) - 2 * jnp.roll(u, -2)),
    "roll of a cube": (3, lambda u: sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1, 2))),
    "roll by half": (1, lambda u: u + jnp.roll(u, u.size // 2)),
    "roll along two axes": (2, lambda u: jnp.roll(u, (1, -2), (0, 1)) - u),
    "two pads": (1, lambda u: jnp.pad(jnp.pad(u, 1)[2:] * 2, (1, 0))[:-1] + u),
    "backwards": (1, lambda u: jnp.pad(u, 2)[::-1][1:-3] + u),
    "every other": (1, lambda u: jnp.repeat(jnp.pad(u, (0, 1))[::2], 2)[: u.size] + u),
    "product": (2, burgers),
    "edges": (2, with_edges),
}


def grid(rank, side, dtype=np.float64):
    """Small whole numbers: sums and products of them are exact."""
    return jnp.asarray(RNG.integers(-4, 5, (side, side + 1, side + 2)[:rank]).astype(dtype))


@pytest.mark.parametrize("side", [5, 16, 37])
@pytest.mark.parametrize("name", STEPS)
def test_steps(name, side):
    rank, step = STEPS[name]
    u = grid(rank, side)
    np.testing.assert_allclose(jit(step)(u), step(u), rtol=1e-13, atol=1e-13)
    weights = grid(rank, side)

    def loss(u):
        return jnp.sum(weights[: u.shape[0]] * step(step(u)))

    np.testing.assert_allclose(jit(grad(loss))(u), grad(loss)(u), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", STEPS)
def test_gradients_through_loops(name):
    rank, step = STEPS[name]
    u = grid(rank, 21)

    def loss(u):
        return jnp.sum(lax.fori_loop(0, 3, lambda i, u: step(u), u) ** 2)

    reference = jit(grad(loss), backend="reference")(u)
    np.testing.assert_allclose(jit(grad(loss))(u), reference, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "complex128", "int8", "int32", "bool"])
@pytest.mark.parametrize("name", ["roll", "window of a line", "zeros around", "two pads"])
def test_dtypes(name, dtype):
    rank, step = STEPS[name]
    u = grid(rank, 20, dtype)
    if dtype == "bool":
        step = {1: lambda u: jnp.roll(u, 3) ^ jnp.pad(u, 1)[2:], 2: lambda u: jnp.roll(u, 1, 1) & u}[rank]
    elif name == "zeros around":
        step = lambda u: jnp.pad(u, 1)[2:, 1:-1] - jnp.pad(u, 1)[1:-1, 2:]  # noqa: E731
    result = jit(step)(u)
    assert result.dtype == step(u).dtype
    np.testing.assert_array_equal(result, step(u))


def test_signs_of_zeros_and_nans_stay():
    u = jnp.asarray(np.array([-0.0, np.nan, np.inf] * 10))
    for step in (lambda u: jnp.pad(u, 1)[2:], lambda u: jnp.roll(u, 1), lambda u: -jnp.pad(u, 1)[:-2]):
        expected = np.asarray(step(u))
        np.testing.assert_array_equal(jit(step)(u), expected)
        np.testing.assert_array_equal(np.signbit(jit(step)(u)), np.signbit(expected))


# -- what is stored -----------------------------------------------------------------------------------------
ONE_SWEEP = ["window", "zeros around", "ones around", "edges around", "roll", "product", "window of a cube",
             "roll of a cube", "roll along two axes", "edges"]


def arrays_of(text: str) -> list[str]:
    """The shapes of temporaries of a loop program that have more than a row of a grid of 40 rows."""
    shapes = re.findall(r"tmp\d+: temp \w+\[([\d,]+)\]", str(text))
    return [shape for shape in shapes if np.prod([int(extent) for extent in shape.split(",")]) > 42]


@pytest.mark.parametrize("name", ONE_SWEEP)
def test_steps_store_nothing_but_the_result(name):
    rank, step = STEPS[name]
    f = jit(step)
    f(grid(rank, 40))
    assert arrays_of(f.inspect("loop program")) == []


@pytest.mark.parametrize("name", [name for name in ONE_SWEEP if name != "edges"])
def test_adjoints_store_nothing_but_the_result(name):
    rank, step = STEPS[name]
    u, ct = grid(rank, 40), grid(rank, 40)
    f = jit(lambda u, ct: grad(lambda u: jnp.sum(step(u) * ct))(u))
    f(u, ct)
    assert arrays_of(f.inspect("loop program")) == []


def test_interior_has_no_choices():
    """The largest loop reads arrays where they lie."""
    f = jit(STEPS["zeros around"][1])
    f(grid(2, 100))
    text = str(f.inspect("loop program"))
    interior = text.split("in range(98):")[1].split("out0[")[0]
    assert "in range(99):" in interior and "select" not in text
    assert interior.count("in0[") == 4


def test_dear_work_is_not_repeated():
    """What is read at several places is stored, in the padded array, where computing it again takes longer."""
    f = jit(lambda u: five_points(jnp.pad(jnp.exp(u), 1)))
    f(grid(2, 40))
    assert f.inspect("loop program").count("= exp(") == 1


def test_reductions_read_stored_arrays():
    f = jit(lambda u: jnp.sum(five_points(jnp.pad(u, 1)) ** 2))
    u = grid(2, 40)
    np.testing.assert_allclose(f(u), np.sum(five_points(np.pad(np.asarray(u), 1)) ** 2), rtol=1e-13)
    assert len(arrays_of(f.inspect("loop program"))) == 1


def test_a_few_edges_of_a_carry_are_set_in_place():
    def step(i, u):
        u = u.at[0].set(u[1])
        return u.at[-1].set(u[-2] + i)

    f = jit(lambda u: lax.fori_loop(0, 5, step, u))
    u = grid(2, 40)
    expected = np.array(u)
    for i in range(5):
        expected[0], expected[-1] = expected[1], expected[-2] + i
    np.testing.assert_array_equal(f(u), expected)
    inside = str(f.inspect("loop program")).split("do:")[-1]
    assert " out0, " not in inside and set(re.findall(r"range\((\d+)\)", inside)) == {"41"}


def test_inputs_are_not_overwritten_before_they_are_read():
    """A joined value reads its pieces late; an update of one of them comes in between."""

    def f(u):
        wide, double = jnp.pad(u * 2, 1), u * 2
        changed = double.at[3].set(100.0)
        return wide[2:] + wide[:-2], changed

    u = grid(1, 40)
    np.testing.assert_array_equal(jit(f)(u)[0], f(u)[0])
    np.testing.assert_array_equal(jit(f)(u)[1], f(u)[1])

    def step(i, u):
        wide = jnp.pad(u, 1)
        return u.at[i].set(0.0) + wide[2:]

    def loop(u):
        return lax.fori_loop(0, 9, step, u)

    np.testing.assert_array_equal(jit(loop)(u), jit(loop, backend="reference")(u))


@pytest.mark.machine_code
def test_any_number_of_threads():
    u = RNG.standard_normal((70, 80, 90)).astype(np.float32)
    step, results = STEPS["roll of a cube"][1], []
    for count in (1, 2, 5):
        config.update("num_threads", count)
        try:
            results.append(np.asarray(jit(grad(lambda u: jnp.sum(step(u) * step(u))))(u)))
        finally:
            config.update("num_threads", 0)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_batches():
    u = grid(3, 20)
    for name in ("zeros around", "roll", "window"):
        step = STEPS[name][1]
        np.testing.assert_array_equal(jit(vmap(step))(u), jnp.stack([step(one) for one in u]))
        last = jit(vmap(step, in_axes=2, out_axes=2))(jnp.moveaxis(u, 0, 2))
        np.testing.assert_array_equal(last, jnp.stack([step(one) for one in u], 2))


@pytest.mark.machine_code
def test_new_sizes_compile_nothing():
    f = jit(lambda u: STEPS["roll"][1](u))
    for side in (50, 77, 120):
        f(grid(2, side))
    assert f.cache_info().compiles <= 1


# -- random programs ----------------------------------------------------------------------------------------
class Draw:
    """Random steps on arrays of one rank. Extents stay below 60."""

    def __init__(self, data, rank: int):
        self.data, self.rank = data, rank

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def window(self, shape: tuple) -> list[tuple[int, int]]:
        """(start, size) for each dimension, most often all but a little."""
        found = []
        for extent in shape:
            low = self.number(0, min(3, extent - 1))
            high = self.number(0, min(3, extent - 1 - low))
            if self.number(0, 4) == 0:
                low, high = 0, extent - 1 - self.number(0, min(2, extent - 1))
            found.append((low, extent - low - high))
        return found

    def choose(self, arrays: list) -> int:
        return self.number(0, len(arrays) - 1)

    def step(self, shapes: list[tuple]):
        """A function of the arrays so far, drawn from their shapes alone."""
        kind, which, other = self.number(0, 6), self.choose(shapes), self.choose(shapes)
        shape = shapes[which]
        if kind == 0:
            widths = [(self.number(0, 3), self.number(0, 3)) for _ in shape]
            value = float(self.number(-1, 1))
            return lambda xs: jnp.pad(xs[which], widths, constant_values=value)
        if kind == 1:
            cut = tuple(slice(start, start + size) for start, size in self.window(shape))
            return lambda xs: xs[which][cut]
        if kind == 2:
            axis = self.number(0, self.rank - 1)
            shift = self.number(-3, 3) if self.number(0, 2) else shape[axis] // 2
            return lambda xs: jnp.roll(xs[which], shift, axis)
        if kind == 3:
            cut = tuple(slice(start, start + size) for start, size in self.window(shape))
            factor = float(self.number(-2, 2))
            return lambda xs: xs[which].at[cut].set(factor * xs[which][cut] + 1)
        if kind == 4:
            axis, end = self.number(0, self.rank - 1), self.number(0, 1)
            return lambda xs: lax.rev(xs[which], (axis,)) if end else xs[which] * 2 - 1.0
        return lambda xs: _add_common(xs[which], xs[other])


def _add_common(x, y):
    cut = tuple(slice(0, min(pair)) for pair in zip(x.shape, y.shape))
    return x[cut] - 2 * y[cut]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_programs(data):
    draw = Draw(data, data.draw(st.integers(1, 3)))
    shape = tuple(draw.number(1, 40) if draw.rank < 3 else draw.number(1, 20) for _ in range(draw.rank))
    u = jnp.asarray(np.random.default_rng(draw.number(0, 99)).integers(-3, 4, shape).astype(np.float64))
    steps, arrays = [], [u]
    for _ in range(draw.number(1, 8)):
        steps.append(draw.step([x.shape for x in arrays]))
        arrays.append(steps[-1](arrays))
    kept, total = draw.choose(arrays), draw.number(0, 1)

    def program(u):
        arrays = [u]
        for step in steps:
            arrays.append(step(arrays))
        return arrays[-1], arrays[kept], jnp.sum(arrays[-1]) if total else arrays[kept] * 2

    for result, expected in zip(jit(program)(u), program(u)):
        np.testing.assert_array_equal(result, expected)

    def loss(u):
        return jnp.sum(program(u)[0] ** 2) + jnp.sum(program(u)[1])

    reference = np.asarray(jit(grad(loss), backend="reference")(u))
    scale = max(1.0, float(np.max(np.abs(reference))))
    np.testing.assert_allclose(np.asarray(jit(grad(loss))(u)) / scale, reference / scale, rtol=0, atol=1e-12)
