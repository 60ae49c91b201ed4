"""What is stored and what is computed again where it is read."""

import numpy as np
import pytest

from jitcore import jit, lax, numpy as jnp

RNG = np.random.default_rng(0)


def temporaries(function) -> list[str]:
    lines = function.inspect("loop program").splitlines()
    return [line.split(": temp ")[1] for line in lines if ": temp " in line]


def costly(x, bins):
    """A place of more operations than are repeated for each loop that reads them."""
    place = jnp.floor((x - 1.5) * (x + 2.5) * (x * x + 0.5) / (x * x + 9.0) * bins)
    return jnp.clip(place, 0, bins - 1).astype(jnp.int32)


@pytest.mark.parametrize("size", [1000, 40_000])
def test_places_that_a_gather_and_a_scatter_read(size):
    """The gather's elements are computed in the scatter's loop: so are the places."""
    x, table = RNG.random(size), RNG.random(50)

    @jit
    def add_up(x, table):
        place = costly(x, 50)
        return jnp.zeros(50).at[place].add(x * table[place])

    place = np.asarray(costly(x, 50))
    np.testing.assert_allclose(add_up(x, table), np.bincount(place, x * table[place], 50), rtol=1e-5)
    assert not any(temporary.endswith(f"[{size}]") for temporary in temporaries(add_up))


def test_places_that_another_loop_reads_besides():
    """Two loops in order would compute them twice."""
    x, table = RNG.random(40_000), RNG.random(50)

    @jit
    def add_up(x, table):
        place = costly(x, 50)
        return jnp.zeros(50).at[place].add(table[place]), jnp.zeros(70).at[place + 20].max(x)

    add_up(x, table)
    assert any(temporary.endswith("[40000]") for temporary in temporaries(add_up))


def test_histogram_stores_no_numbers_of_bins():
    x = RNG.random(100_000)
    counts = jit(lambda x: jnp.histogram(x, bins=100, range=(0.0, 1.0))[0])
    np.testing.assert_array_equal(counts(x), np.histogram(x, 100, (0.0, 1.0))[0])
    assert not any(temporary.endswith("[100000]") for temporary in temporaries(counts))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dear_elements_that_become_one_number_are_stored(dtype):
    """Their sum is scalar code, in which each would cost as much as all of them do in lanes."""
    table, weights = RNG.random((8, 8)).astype(dtype), RNG.random((8, 16)).astype(dtype)
    table /= table.sum(1, keepdims=True)
    seen = RNG.integers(0, 16, 50)

    def step(a, k):
        a = (a @ table) * jnp.asarray(weights)[:, k]
        total = a.sum()
        return a / total, jnp.log(total)

    filter_states = jit(lambda seen: lax.scan(step, jnp.full(8, 0.125, dtype), seen))
    state, logs = filter_states(seen)
    expected, exact = np.full(8, 0.125), []
    for k in seen:
        expected = expected @ table.astype(np.float64) * weights[:, k]
        exact.append(np.log(expected.sum()))
        expected /= expected.sum()
    np.testing.assert_allclose(state, expected, rtol=1e4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(logs, exact, rtol=1e4 * np.finfo(dtype).eps)
    assert filter_states.inspect("loop program").count(" = mul(") < 16


def test_cheap_elements_that_become_one_number_are_not():
    norm = jit(lambda x: jnp.sqrt((x * x).sum()))
    assert norm(np.arange(8.0)) == np.sqrt(140.0)
    assert norm.inspect("loop program").count("kernel") == 1


@pytest.mark.parametrize("shape", [(4, 8), (5, 300)])
def test_what_is_read_before_and_behind_totals_of_it_is_stored(shape):
    """Otherwise each stage would compute all the earlier ones again."""

    def count_exponentials(stages):
        def compute(x):
            for _ in range(stages):
                scaled = jnp.exp(x * 2)
                x = scaled / scaled.sum(-1, keepdims=True) + x
            return x

        function = jit(compute)
        x = RNG.random(shape)
        np.testing.assert_allclose(function(x), compute(x), rtol=1e-12)
        return function.inspect("loop program").count("exp(")

    one, two, four = map(count_exponentials, (1, 2, 4))  # not with the square
    assert four <= 2 * two <= 6 * one


def test_what_waits_for_totals_of_something_else_is_read_in_one_sweep():
    x, y = RNG.random(1000), RNG.random(1000)
    f = jit(lambda x, y: (lambda z: (z * 2, z + y.sum()))(jnp.exp(x) * jnp.sin(x) * jnp.tanh(x)))
    f(x, y)
    assert not temporaries(f) or all(not t.endswith("[1000]") for t in temporaries(f))
