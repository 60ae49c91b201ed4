"""Updates of elements that several indices name, on the CPU backend, against NumPy's `ufunc.at`."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore.backends.cpu.native.libraries import code_cache
from tests.combinations import spread

UFUNCS = {"set": None, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum,
          "max": np.maximum}
# updates, elements: none, one by one, in lanes, in parts, in parts with turns
SIZES = [(0, 5), (1, 5), (40, 7), (1000, 2000), (40_000, 1), (100_003, 1000), (200_000, 11)]
CASES = [(op, dtype) for op in UFUNCS for dtype in ("float32", "float64", "int8", "int32", "int64")]
CASES += [("set", "bool"), ("max", "bool"), ("set", "complex64"), ("add", "complex64")]


def draw(count, dtype, seed):
    x = np.random.default_rng(seed).standard_normal(count) * 3
    return x > 0 if dtype == "bool" else x.astype(dtype)


def update(op, x, index, values):
    """x with values combined in order, in a wider format; indices that are out of range are left out."""
    index = np.where(index < 0, index + len(x), index)
    inside = (index >= 0) & (index < len(x))
    wide = x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))
    if UFUNCS[op] is None:
        wide[index[inside]] = values[inside]
    else:
        UFUNCS[op].at(wide, index[inside], values[inside])
    return wide


def agree(got, wanted):
    got, exact = np.asarray(got), got.dtype.kind not in "fc"
    tolerance = 0 if exact else 2e3 * float(np.finfo(got.dtype).eps)
    scale = 0 if exact else np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("case, index_dtype", spread(CASES, ["int32", "int64"], times=1))
def test_repeated_indices(case, index_dtype):
    op, dtype = case
    for count, size in SIZES:
        x, values = draw(size, dtype, 1), draw(count, dtype, 2)
        if op == "multiply" and values.dtype.kind == "f":
            values = 1 + values * values.dtype.type(1e-4)
        index = np.random.default_rng(3).integers(-size - 3, size + 3, count).astype(index_dtype)
        got = jitcore.jit(lambda x, i, v: getattr(x.at[i], op)(v))(x, index, values)
        agree(got, update(op, x, index, values))


@pytest.mark.parametrize("count, rows, width", [(50, 7, 5), (3000, 7, 33), (60_000, 5, 3), (1000, 1000, 40)])
def test_rows(count, rows, width):
    x, values = draw(rows * width, "float32", 1).reshape(rows, width), draw(count * width, "float32", 2)
    values = values.reshape(count, width)
    index = np.random.default_rng(3).integers(0, rows, count)
    agree(jitcore.jit(lambda x, i, v: x.at[i].add(v))(x, index, values), update("add", x, index, values))
    agree(jitcore.jit(lambda x, i, v: x.at[i].set(v))(x, index, values), update("set", x, index, values))


def test_updates_that_read_what_is_updated():
    x, index = draw(1000, "float32", 1), np.random.default_rng(3).integers(0, 1000, 5000)
    wanted = update("add", x, index, 2 * x[index])
    agree(jitcore.jit(lambda x, i: x.at[i].add(2 * x[i]))(x, index), wanted)
    donating = jitcore.jit(lambda x, i: x.at[i].add(2 * x[i]), donate_argnums=0)
    agree(donating(jnp.array(x), index), wanted)
    looped = jitcore.jit(lambda x, i: jitcore.lax.fori_loop(0, 1, lambda _, c: c.at[i].add(2 * c[i]), x))
    agree(looped(x, index), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "complex64"])
def test_indices_promised_to_be_unique(dtype):
    for count in (1, 30, 5003, 300_001):
        x, values = draw(count, dtype, 1), draw(count, dtype, 2)
        index = np.random.default_rng(3).permutation(count)[: -(-count // 2)].astype(np.int32)
        index[::7] += count  # out of range, so left out
        values = values[: index.size]
        for op in ("set", "add"):
            got = jitcore.jit(lambda x, i, v: getattr(x.at[i], op)(v, unique_indices=True))(x, index, values)  # noqa: B023
            agree(got, update(op, x, index, values))


def test_arrays_larger_than_caches():
    x, index = draw(5_000_000, "float32", 1), np.random.default_rng(3).integers(-100, 5_000_000, 200_003)
    for dtype in ("int32", "int64", "uint32"):
        at = np.abs(index).astype(dtype) if dtype == "uint32" else index.astype(dtype)
        np.testing.assert_array_equal(np.asarray(jitcore.jit(lambda x, i: x[i])(x, at)), x[at])
        agree(jitcore.jit(lambda x, i: x[i].sum())(x, at), x[at].astype(np.float64).sum())
        agree(jitcore.jit(lambda x, i, v: x.at[i].add(v))(x, at, x[:200_003]), update("add", x, at, x[:200_003]))


@pytest.mark.parametrize("op, dtype", [("set", "float32"), ("add", "float64"), ("max", "int64"), ("add", "complex64")])
def test_arrays_in_the_last_cache(op, dtype):
    """Updates one by one, written out in groups: any number of them may be left over."""
    x = draw(300_000, dtype, 1)
    index = np.random.default_rng(3).integers(-300_100, 300_100, 30_008)
    call = jitcore.jit(lambda x, i, v: getattr(x.at[i], op)(v))
    for count in (0, 1, 7, *range(30_000, 30_009)):
        values = draw(count, dtype, 2)
        agree(call(x, index[:count], values), update(op, x, index[:count], values))


def test_places_in_two_dimensions_in_the_last_cache():
    x, values = draw(640_000, "float32", 1), draw(40_001, "float32", 2)
    rows, columns = np.random.default_rng(3).integers(0, 800, (2, values.size))
    got = jitcore.jit(lambda x, i, j, v: x.at[i, j].add(v))(x.reshape(800, 800), rows, columns, values)
    agree(got, update("add", x, 800 * rows + columns, values).reshape(800, 800))


@pytest.mark.parametrize("count", [5, 1000, 4099])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_elements_read_where_a_condition_holds(count, share):
    x, y = draw(700, "float32", 1), draw(count, "float32", 2)
    generator = np.random.default_rng(4)
    index, chosen = generator.integers(0, 700, count), generator.random(count) < share
    outside = np.where(chosen, index, 5000)

    got = jitcore.jit(lambda x, i: x.at[i].get(mode="fill", fill_value=-3))(x, outside)
    np.testing.assert_array_equal(np.asarray(got), np.where(chosen, x[index], np.float32(-3)))
    got = jitcore.jit(lambda x, y, i, c: jnp.where(c, x[i] * 2 + y, y))(x, y, index, chosen)
    agree(got, np.where(chosen, x[index] * 2 + y, y))
    got = jitcore.jit(lambda x, y, i, c: jnp.where(c, y, x[i]) + x[i])(x, y, index, chosen)
    agree(got, np.where(chosen, y, x[index]) + x[index])
    got = jitcore.jit(lambda x, y, i, c: jnp.where(c, x[i], y).max())(x, y, index, chosen)
    agree(got, np.where(chosen, x[index], y).max())


def test_result_does_not_depend_on_threads():
    x, values = np.zeros(300, np.float32), draw(400_000, "float32", 2)
    index = np.random.default_rng(3).integers(0, 300, values.size)
    options = [{"parallel": False}, {"num_threads": 2}, {"num_threads": 3}, {}]
    results = [np.asarray(jitcore.jit(lambda x, i, v: x.at[i].add(v), compiler_options=o)(x, index, values))
               for o in options]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_another_number_of_updates_shares_the_code():
    code_cache.clear()
    add = jitcore.jit(lambda x, i, v: x.at[i].add(v))
    for count in (300_001, 412_345, 555_555):
        index, values = np.arange(count) % 100, np.ones(count, np.int32)
        agree(add(np.zeros(100, np.int32), index, values), np.bincount(index))
    assert add.cache_info().compiles <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins", [1, 3, 10, 1000])
def test_histogram_obeys_its_edges(dtype, bins):
    for count in (1, 5, 1000, 100_000):
        x = draw(count, dtype, 5)
        for limits in (None, (-5, 7), (-5.5, 8.25)):
            counts, edges = jitcore.jit(lambda x, r=limits: jnp.histogram(x, bins, range=r))(x)
            wanted = np.histogram(x, np.asarray(edges))[0]
            np.testing.assert_array_equal(np.asarray(counts), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bins, limits", [(1000, (0, 1)), (7, (-3, 5)), (100, (1000, 1001)), (4096, (0.1, 0.7))])
def test_histogram_of_values_on_and_next_to_edges(dtype, bins, limits):
    count = jitcore.jit(lambda x: jnp.histogram(x, bins, range=limits))
    edges = np.asarray(count(np.zeros(1, dtype))[1])
    away = np.array([-np.inf, np.inf, limits[0] - 1, limits[1] + 1], dtype)
    x = np.concatenate([edges, np.nextafter(edges, away[0]), np.nextafter(edges, away[1]), away, edges])
    wanted = np.searchsorted(edges, x[(x >= edges[0]) & (x <= edges[-1])], "right") - 1
    wanted = np.bincount(np.minimum(wanted, bins - 1), minlength=bins)
    np.testing.assert_array_equal(np.asarray(count(x)[0]), wanted)


def test_histogram_counts_more_than_float32_can():
    counts, _ = jitcore.jit(lambda x: jnp.histogram(x, 1, range=(0, 1)))(np.zeros(2**24 + 6, np.float32))
    assert int(counts[0]) == 2**24 + 6


def test_histogram_leaves_nan_out():
    x = np.array([np.nan, 0.0, 0.25, 1.0, 2.0, -1.0, np.inf], np.float32)
    counts, _ = jitcore.jit(lambda x: jnp.histogram(x, 4, range=(0, 1)))(x)
    assert np.asarray(counts).tolist() == [1, 1, 0, 1]
