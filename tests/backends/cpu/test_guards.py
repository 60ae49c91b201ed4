"""Places and conversions of scalar code whose rare side is behind a branch."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit, lax

EDGES = [0, 1, 19, 20, 21, -1, -19, -20, -21, -40, 2**31, -(2**31), 2**32 + 3, 2**63 - 1, -(2**63)]


def gather_by_rounds(read):
    """A loop of scalar code that reads one element a round."""

    def run(table, places):
        def body(i, found):
            return found.at[i].set(read(table, places[i]))

        return lax.fori_loop(0, places.shape[0], body, jnp.zeros(places.shape, table.dtype))

    return jit(run)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint32, np.uint64])
def test_clamped_places(dtype):
    table, places = np.arange(20.0), np.array(EDGES).astype(dtype)
    read = gather_by_rounds(lambda table, place: lax.dynamic_index_in_dim(table, place, keepdims=False))
    found = read(table, places)
    counted = [int(place) + 20 if place < 0 else int(place) for place in places]
    np.testing.assert_array_equal(found, [min(max(place, 0), 19) for place in counted])


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_places_that_only_the_caller_counts_from_the_end(dtype):
    """One extent counts, another one clamps."""
    table, places = np.arange(20.0), np.array(EDGES).astype(dtype)

    def read(table, place):
        counted = jnp.where(place < 0, place + 7, place)
        return lax.dynamic_slice(table, (jnp.maximum(counted, 0),), (1,))[0]

    found = gather_by_rounds(read)(table, places)
    counted = [int(np.array(place + 7).astype(dtype)) if place < 0 else int(place) for place in places]
    np.testing.assert_array_equal(found, table[np.clip(counted, 0, 19)])


def count(places, extent):
    found = np.zeros(extent, np.int64)
    for i in range(places.shape[0]):
        found[places[i]] += 1
    return found


def test_checked_places():
    places = np.array([0, 1, 19, -1, -19, -20, 7, 7])
    np.testing.assert_array_equal(autojit(count)(places, 20), count(places, 20))


@pytest.mark.parametrize("bad", [20, -21, 2**62, -(2**62), 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("extent", [5, 20])
def test_places_outside(bad, extent):
    places = np.array([0, 1, -1, bad, 2])
    with pytest.raises(IndexError, match="out of bounds"):
        autojit(count)(places, extent)


def test_places_outside_that_nothing_reads():
    """Tests of numbers that are no places."""

    def count_outside(places, last):
        found = 0
        for place in places:
            if place < 0 or place > last:
                found += 1
        return found

    compiled, places = autojit(count_outside), np.array(EDGES)
    for last in (19, 0, -1, -30, 2**63 - 1):
        assert compiled(places, last) == count_outside(places, last)


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("target", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_conversions(source, target):
    """Outside of its range a float becomes the nearest whole number, and NaN 0."""
    limits = np.iinfo(target)
    edges = [limits.min, limits.max, limits.min + 1.0, limits.max + 1.0, limits.min - 1.0, 0.5, -0.5, -1.5]
    values = np.array([*edges, np.nan, np.inf, -np.inf, 1e30, -1e30], source)

    def body(i, found):
        return found.at[i].set(lax.convert_element_type(values_of[0][i], target))

    values_of = [jnp.asarray(values)]
    found = jit(lambda: lax.fori_loop(0, len(values), body, jnp.zeros(len(values), target)))()
    expected = [0 if np.isnan(value) else limits.max if value >= limits.max else
                max(int(value) if np.isfinite(value) else limits.min, limits.min) for value in values]
    np.testing.assert_array_equal(found, np.array(expected, target))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_of_single_numbers(dtype):
    """NaN wins on either side, and of zeros any is right."""
    edges = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan], dtype)
    first, second = (np.ascontiguousarray(side.ravel()) for side in np.meshgrid(edges, edges))

    def body(i, found):
        lower, upper = jnp.minimum(a[i], b[i]), jnp.maximum(a[i], b[i])
        return found[0].at[i].set(lower), found[1].at[i].set(upper)

    a, b = jnp.asarray(first), jnp.asarray(second)
    lower, upper = jit(lambda: lax.fori_loop(0, len(first), body, (jnp.zeros_like(a), jnp.zeros_like(a))))()
    np.testing.assert_array_equal(lower, np.minimum(first, second))
    np.testing.assert_array_equal(upper, np.maximum(first, second))
