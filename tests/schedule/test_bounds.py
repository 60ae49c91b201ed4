"""Loops over the places where a mask holds: ranges known at run time in place of masks, with the same results."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import jit, lax, numpy as jnp

RNG = np.random.default_rng(0)
SIZE = 300
LIMITS = st.integers(-3, SIZE + 3) | st.integers(-3, 40) | st.sampled_from([-(2**62), 2**62])
EXAMPLES = settings(max_examples=60, deadline=None)


def ranges(function) -> list[str]:
    """The loops of a program that do not run over all of an axis."""
    return re.findall(r"range\([^)]*\) of \d+", function.inspect("loop program"))


def places(size=SIZE, dtype=np.int64):
    return lax.iota(dtype, size)


def clip(low, high, size=SIZE) -> slice:
    """The slice of an array where low <= k < high."""
    low, high = (min(max(int(limit), 0), size) for limit in (low, high))
    return slice(low, max(low, high))


# -- reductions -------------------------------------------------------------------------------------------
LOWEST = {"i": np.iinfo(np.int32).min, "f": -np.inf}
REDUCTIONS = {
    "sum": (jnp.sum, np.sum, lambda kind: 0),
    "prod": (jnp.prod, lambda x: x.prod(dtype=x.dtype), lambda kind: 1),
    "max": (jnp.max, lambda x: x.max(initial=LOWEST[x.dtype.kind]), LOWEST.get),
    "min": (jnp.min, lambda x: x.min(initial=-1 - LOWEST["i"] if x.dtype.kind == "i" else np.inf),
            lambda kind: -1 - LOWEST["i"] if kind == "i" else np.inf),
}
VALUES = {"f": RNG.uniform(0.9, 1.1, SIZE), "i": RNG.integers(-9, 9, SIZE).astype(np.int32)}


@pytest.mark.parametrize("kind", "fi")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, kind):
    reduce, in_numpy, neutral = REDUCTIONS[name]
    x = VALUES[kind]

    @jit
    def masked(x, low, high):
        k = places()
        return reduce(jnp.where((k >= low) & (k < high), x, jnp.asarray(neutral(kind), x.dtype)))

    @EXAMPLES
    @given(LIMITS, LIMITS)
    def check(low, high):
        expected = in_numpy(x[clip(low, high)])
        np.testing.assert_allclose(masked(x, np.int64(low), np.int64(high)), expected, rtol=1e-12)

    check()
    assert len(ranges(masked)) == 1 and "select" not in masked.inspect("loop program")


@pytest.mark.parametrize("reduce", [jnp.argmax, jnp.argmin, jnp.any, jnp.all])
def test_positions_and_truth(reduce):
    is_truth = reduce in (jnp.any, jnp.all)
    x = VALUES["i"] > 7 if is_truth else np.where(RNG.random(SIZE) < 0.05, np.nan, VALUES["f"])
    outside = {jnp.argmax: -np.inf, jnp.argmin: np.inf, jnp.any: False, jnp.all: True}[reduce]

    @jit
    def masked(x, low, high):
        k = places()
        return reduce(jnp.where((low <= k) & (high > k), x, outside))

    in_numpy = getattr(np, reduce.__name__)

    @EXAMPLES
    @given(LIMITS, LIMITS)
    def check(low, high):
        k = np.arange(SIZE)
        expected = in_numpy(np.where((k >= low) & (k < high), x, outside))
        assert masked(x, np.int64(low), np.int64(high)) == expected

    check()
    assert len(ranges(masked)) == 1


SPELLINGS = {
    "not more": (lambda k, n: k <= n, lambda n: (0, n + 1)),
    "more": (lambda k, n: k > n, lambda n: (n + 1, SIZE)),
    "not less": (lambda k, n: jnp.logical_not(k < n), lambda n: (n, SIZE)),
    "equal": (lambda k, n: k == n, lambda n: (n, n + 1)),
    "neither": (lambda k, n: ~((k < n) | (k >= n + 9)), lambda n: (n, n + 9)),
    "shifted": (lambda k, n: k + 3 < n, lambda n: (0, n - 3)),
    "backwards": (lambda k, n: SIZE - 1 - k < n, lambda n: (SIZE - n, SIZE)),
    "nested": (lambda k, n: jnp.where(k > n, k < n + 20, False), lambda n: (n + 1, n + 20)),
    "as numbers": (lambda k, n: ((k < n).astype(np.int32) * (k > 4).astype(np.int32)).astype(bool),
                   lambda n: (5, n)),
    "broadcast": (lambda k, n: jnp.broadcast_to((k < n)[None], (1, SIZE))[0], lambda n: (0, n)),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name, dtype):
    mask, limits = SPELLINGS[name]
    masked = jit(lambda x, n: jnp.where(mask(places(SIZE, dtype), n), x, 0.0).sum())
    for n in (-(10**6), -1, 0, 1, 5, 17, SIZE - 1, SIZE, SIZE + 5, 10**6):
        expected = VALUES["f"][clip(*limits(n))].sum()
        np.testing.assert_allclose(masked(VALUES["f"], dtype(n)), expected, rtol=1e-12)
    assert len(ranges(masked)) == 1 and "select" not in masked.inspect("loop program")


def test_limits_at_the_end_of_numbers():
    """Limits whose neighbours do not exist."""
    after = jit(lambda x, n: jnp.where(places() > n, x, 0.0).sum())
    until = jit(lambda x, n: jnp.where(SIZE - 1 - places() <= n, x, 0.0).sum())
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    total = VALUES["f"].sum()
    for n, expected in ((low, total), (high, 0.0)):
        np.testing.assert_allclose(after(VALUES["f"], np.int64(n)), expected)
        np.testing.assert_allclose(until(VALUES["f"], np.int64(n)), total - expected)
    assert ranges(after) and ranges(until)


def test_long_reductions():
    """Blocks of a range, as many as it fills."""
    x = RNG.standard_normal(300_000)
    masked = jit(
        lambda x, low, high: jnp.where((places(x.size) >= low) & (places(x.size) < high), x, 0.0).sum()
    )
    for low, high in [
        (0, 300_000),
        (5, 7),
        (100, 100),
        (9, 3),
        (40_000, 290_001),
        (-5, 10**7),
        (299_999, 300_000),
    ]:
        expected = x[clip(low, high, x.size)].sum()
        np.testing.assert_allclose(masked(x, np.int64(low), np.int64(high)), expected, rtol=1e-9, atol=1e-9)
    assert "blocks" in masked.inspect("loop program") and ranges(masked)


def test_values_outside_are_not_read():
    """A gather below and above the range may find anything there."""
    starts = np.array([0, 4, 4, 11, 12])
    columns, values, x = RNG.integers(0, 9, 12), RNG.standard_normal(12), RNG.standard_normal(9)

    @jit
    def row(values, columns, x, low, high):
        k = places(12)
        taken = jnp.take(values, low + k, mode="clip") * jnp.take(x, jnp.take(columns, low + k, mode="clip"))
        return jnp.where(k < high - low, taken, 0.0).sum()

    for low, high in zip(starts[:-1], starts[1:]):
        expected = values[low:high] @ x[columns[low:high]]
        np.testing.assert_allclose(row(values, columns, x, low, high), expected, rtol=1e-12)
    text = row.inspect("loop program")
    assert text.count("kernel") == 1 and "temp" not in text
    inside, outside = text.split("else:")
    assert len(ranges(row)) == 2 and inside.count("min(") < outside.count(
        "min("
    )  # places in the array, or not


# -- several axes -----------------------------------------------------------------------------------------
ROWS, COLUMNS = 23, 41
MATRIX = RNG.standard_normal((ROWS, COLUMNS))


@EXAMPLES
@given(*[st.integers(-3, COLUMNS + 3)] * 4)
def test_boxes(low, high, left, right):
    x = MATRIX[clip(low, high, ROWS), clip(left, right, COLUMNS)]
    limits = tuple(map(np.int64, (low, high, left, right)))
    np.testing.assert_allclose(sum_of_box(MATRIX, *limits), x.sum(), rtol=1e-11, atol=1e-12)
    expected = np.zeros(ROWS)
    expected[clip(low, high, ROWS)] = x.sum(axis=1)
    np.testing.assert_allclose(rows_of_box(MATRIX, *limits), expected, rtol=1e-11, atol=1e-12)


def box(x, low, high, left, right):
    r, c = places(ROWS)[:, None], places(COLUMNS)[None, :]
    return jnp.where((r >= low) & (r < high) & (c >= left) & (c < right), x, 0.0)


sum_of_box = jit(lambda *args: box(*args).sum())
rows_of_box = jit(lambda *args: box(*args).sum(axis=1))


def test_boxes_are_loops():
    assert len(ranges(sum_of_box)) == 2 and len(ranges(rows_of_box)) == 1


@pytest.mark.parametrize("shift", [-50, -3, 0, 1, 60])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_triangles(axis, shift):
    @jit
    def lower(x, shift):
        r, c = places(ROWS)[:, None], places(COLUMNS)[None, :]
        return jnp.where(c <= r + shift, x, 0.0).sum(axis=axis)

    expected = np.tril(MATRIX, shift).sum(axis=axis)
    np.testing.assert_allclose(lower(MATRIX, shift), expected, rtol=1e-11, atol=1e-12)


def test_triangle_with_rows_around():
    masked = jit(lambda x: jnp.where(places(COLUMNS)[None, :] < places(ROWS)[:, None], x, 0.0).sum(axis=1))
    np.testing.assert_allclose(masked(MATRIX), np.tril(MATRIX, -1).sum(axis=1), rtol=1e-11, atol=1e-12)
    assert len(ranges(masked)) == 1


def test_limits_of_each_row():
    counts = RNG.integers(-2, COLUMNS + 3, ROWS)
    masked = jit(lambda x, counts: jnp.where(places(COLUMNS) < counts[:, None], x, 0.0).sum(axis=1))
    expected = [MATRIX[r, clip(0, counts[r], COLUMNS)].sum() for r in range(ROWS)]
    np.testing.assert_allclose(masked(MATRIX, counts), expected, rtol=1e-11, atol=1e-12)
    assert len(ranges(masked)) == 1


# -- stores -----------------------------------------------------------------------------------------------
def count_to(steps, body, init):
    return lax.fori_loop(0, steps, body, init)


def row_of(x, number):
    return lax.dynamic_slice(x, (number, 0 * number), (1, COLUMNS))


def assert_in_place(function) -> None:
    """A loop's stores are made in the memory of its carry, where the masks hold."""
    head, _, body = function.inspect("loop program").partition("do:")
    loops = re.findall(r"range\(.*", body)
    assert loops and all(" of " in line for line in loops), body
    assert not re.search(r"f64 = select", body) and "swap" not in body and "temp" not in head, body


LOOP_STORES = {
    "whole array": lambda x, r, c, low, new: jnp.where((r >= low) & (c < low), new, x),
    "window": lambda x, r, c, low, new: lax.dynamic_update_slice(
        x, jnp.where(c < low, row_of(new, low), row_of(x, low)), (low, 0 * low)),
    "row": lambda x, r, c, low, new: x.at[low].set(jnp.where(c[0] < low, new[low], x[low])),
    "column": lambda x, r, c, low, new: x.at[:, low].set(jnp.where(r[:, 0] >= low, new[:, low], x[:, low])),
}


def expected_stores(name, x, new, steps):
    x = x.copy()
    for low in range(steps):
        if name == "whole array":
            x[low:, :low] = new[low:, :low]
        elif name == "column":
            x[low:, low] = new[low:, low]
        else:
            x[low, :low] = new[low, :low]
    return x


@pytest.mark.parametrize("name", LOOP_STORES)
def test_stores_in_loops(name):
    store = LOOP_STORES[name]

    @jit
    def run(x, new, steps):
        r, c = places(ROWS)[:, None], places(COLUMNS)[None, :]
        return count_to(steps, lambda low, x: store(x, r, c, low, new * x.shape[0]), x)

    new = RNG.standard_normal((ROWS, COLUMNS))
    for steps in (0, 1, 2, 7, ROWS):
        result = run(MATRIX, new, np.int64(steps))
        np.testing.assert_array_equal(result, expected_stores(name, MATRIX, new * ROWS, steps))
    assert_in_place(run)


def eliminate(x, k):
    """One step of Gaussian elimination: what it reads across, it reads from outside of what it writes."""
    r, c = places(ROWS)[:, None], places(ROWS)[None, :]
    row = lax.dynamic_slice(x, (k, 0 * k), (1, ROWS))
    column = lax.dynamic_slice(x, (0 * k, k), (ROWS, 1))
    return jnp.where((r > k) & (c >= k), x - column / x[k, k] * row, x)


def smooth(x, k):
    """The new elements need old neighbours, which must not be new ones."""
    c = places(ROWS)[None, :]
    return jnp.where((c > 0) & (c < k), 0.5 * (x + jnp.roll(x, 1, axis=1)), x)


def swap_rows(x, k):
    r = places(ROWS)[:, None]
    first, last = x[k], x[ROWS - 1 - k]
    x = jnp.where(r == k, last[None], x)
    return jnp.where(r == ROWS - 1 - k, first[None], x)


def use_old_and_new(x, k):
    new = jnp.where(places(ROWS)[:, None] < k, x + 1, x)
    return new * (1 + x.sum() * 0) + jnp.where(places(ROWS)[None, :] < k, x, new)


def in_numpy(name, x, steps):
    x = x.copy()
    for k in range(steps):
        if name == "eliminate":
            x[k + 1 :, k:] -= x[k + 1 :, k, None] / x[k, k] * x[k, k:]
        elif name == "smooth":
            x[:, 1:k] = 0.5 * (x[:, 1:k] + x[:, : max(k - 1, 0)])
        elif name == "swap_rows":
            x[[k, ROWS - 1 - k]] = x[[ROWS - 1 - k, k]]
        else:
            new = x.copy()
            new[:k] += 1
            x = new + np.where(np.arange(ROWS) < k, x, new)
    return x


@pytest.mark.parametrize("step", [eliminate, smooth, swap_rows, use_old_and_new])
def test_stores_that_read_across(step):
    x = RNG.standard_normal((ROWS, ROWS)) + ROWS * np.eye(ROWS)
    run = jit(lambda x, steps: count_to(steps, lambda k, x: step(x, k), x))
    for steps in (0, 1, 3, ROWS if step is not use_old_and_new else 5):
        expected = in_numpy(step.__name__, x, steps)
        np.testing.assert_allclose(run(x, np.int64(steps)), expected, rtol=1e-10, atol=1e-10)
    if step is eliminate:
        text = run.inspect("loop program")
        assert len(ranges(run)) == 3 and "swap" not in text and f"temp f64[{ROWS},{ROWS}]" not in text


def test_loops_in_loops_share_memory():
    """An array carried by the inner and the outer loop is never copied, but for the caller's own."""

    def set_element(x, i, j):
        k = places(ROWS)
        s = jnp.where(k < j, x[i] * x[j], 0.0).sum()
        return x.at[i, j].set((x[i, j] - s) / x[j, j])

    @jit
    def run(x):
        return count_to(ROWS, lambda i, x: lax.fori_loop(0, i, lambda j, x: set_element(x, i, j), x), x)

    x = RNG.standard_normal((ROWS, ROWS)) + ROWS * np.eye(ROWS)
    expected = x.copy()
    for i in range(ROWS):
        for j in range(i):
            expected[i, j] = (expected[i, j] - expected[i, :j] @ expected[j, :j]) / expected[j, j]
    np.testing.assert_allclose(run(x), expected, rtol=1e-11)
    head, _, body = run.inspect("loop program").partition("do:")
    assert "temp f64" not in head and f"range({ROWS * ROWS})" not in body and "swap" not in body


def test_an_array_that_is_read_later_is_kept():
    """What reads the old array after the inner loop still finds it."""

    @jit
    def run(x, steps):
        def body(k, x):
            old = x[::-1]
            new = lax.fori_loop(0, k, lambda j, y: y.at[j].add(old[j]), x)
            return new + 0.5 * old

        return count_to(steps, body, x)

    x = RNG.standard_normal(9)
    expected = x.copy()
    for k in range(5):
        old, new = expected[::-1].copy(), expected.copy()
        new[:k] += old[:k]
        expected = new + 0.5 * old
    np.testing.assert_allclose(run(x, np.int64(5)), expected, rtol=1e-12)


# -- where masks stay -------------------------------------------------------------------------------------
def split_mask(x, n):
    return jnp.where((places() < n) | (places() > n + 50), x, 0.0).sum()


def other_default(x, n):
    return jnp.where(places() < n, x, 1.0).sum()


def product_of_masked(x, n):
    return (jnp.where(places() < n, x, 0.0) * jnp.log(x * 0)).max()


def limit_along_the_axis(x, n):
    return jnp.where(places() < jnp.arange(SIZE)[::-1] * n, x, 0.0).sum()


def wrapped_place(x, n):
    k = places(SIZE, np.int8)
    return jnp.where(k < n.astype(np.int8), x, 0.0).sum()


def in_numpy_masked(function, x, n):
    k = np.arange(SIZE)
    if function is split_mask:
        return x[(k < n) | (k > n + 50)].sum()
    if function is other_default:
        return np.where(k < n, x, 1.0).sum()
    if function is product_of_masked:
        with np.errstate(all="ignore"):
            return (np.where(k < n, x, 0.0) * -np.inf).max()
    if function is limit_along_the_axis:
        return x[k < k[::-1] * n].sum()
    return x[k.astype(np.int8) < np.int8(n)].sum()


@pytest.mark.parametrize(
    "function", [split_mask, other_default, product_of_masked, limit_along_the_axis, wrapped_place]
)
def test_masks_that_stay(function):
    compiled = jit(function)
    for n in (-4, 0, 3, 60, 127):
        expected = in_numpy_masked(function, VALUES["f"], n)
        np.testing.assert_allclose(compiled(VALUES["f"], np.int64(n)), expected, rtol=1e-11)
    assert not ranges(compiled)


def test_a_store_of_something_else_keeps_its_mask():
    run = jit(lambda x, y, steps: count_to(steps, lambda k, x: jnp.where(places() < k, x[::-1], y), x))
    x, y = VALUES["f"], VALUES["f"][::-1] * 2
    expected = x
    for k in range(4):
        expected = np.where(np.arange(SIZE) < k, expected[::-1], y)
    np.testing.assert_array_equal(run(x, y, np.int64(4)), expected)


def test_masked_and_whole_sums_in_one_kernel():
    both = jit(lambda x, n: (jnp.where(places() < n, x, 0.0).sum(), x.sum()))
    for n in (-1, 5, SIZE + 1):
        part, whole = both(VALUES["f"], np.int64(n))
        np.testing.assert_allclose(
            [part, whole], [VALUES["f"][clip(0, n)].sum(), VALUES["f"].sum()], rtol=1e-12
        )


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.complex64, np.complex128, np.int8, np.uint16, bool]
)
def test_dtypes(dtype):
    x = RNG.integers(0, 2, (ROWS, COLUMNS)).astype(dtype)
    masked = jit(lambda x, n: jnp.where(places(COLUMNS) < n, x, jnp.zeros((), dtype)).sum(axis=1))
    for n in (-1, 0, 7, COLUMNS + 1):
        expected = np.where(np.arange(COLUMNS) < n, x, np.zeros((), dtype)).sum(axis=1)
        np.testing.assert_array_equal(masked(x, np.int32(n)), expected)
    assert ranges(masked)


# -- random programs --------------------------------------------------------------------------------------
@st.composite
def random_masks(draw):
    """A mask over rows and columns as text: comparisons of places with limits and each other, joined."""
    sides = ["r", "c", "r + 2", f"{COLUMNS - 1} - c", "a", "b", "a - 1", "7"]

    def term(depth):
        if depth and draw(st.booleans()):
            sign = draw(st.sampled_from("&&&|"))
            return f"({term(depth - 1)} {sign} {term(depth - 1)})"
        first, second = draw(st.sampled_from(sides)), draw(st.sampled_from(sides))
        return draw(st.sampled_from(["", "~"])) + f"({first} {draw(st.sampled_from(SIGNS))} {second})"

    return term(2)


SIGNS = ["<", "<=", ">", ">=", "=="]


@settings(max_examples=40, deadline=None)
@given(random_masks(), st.sampled_from([None, 0, 1]), st.lists(st.integers(-3, 45), min_size=4, max_size=4))
def test_random_masks(mask, axis, limits):
    code = compile(mask, "mask", "eval")

    def where(r, c, a, b):
        return eval(code, {"r": r, "c": c, "a": a, "b": b})

    def reduced(x, a, b):
        r, c = places(ROWS)[:, None], places(COLUMNS)[None, :]
        return jnp.where(where(r, c, a, b), x, 0.0).sum(axis=axis)

    def stored(x, a, b):
        r, c = places(ROWS)[:, None], places(COLUMNS)[None, :]
        return count_to(b - a, lambda k, x: jnp.where(where(r, c, a + k, b), x * 2 + k, x), x)

    reduced, stored = jit(reduced), jit(stored)
    r, c = np.arange(ROWS)[:, None], np.arange(COLUMNS)[None, :]
    for a, b in zip(limits, limits[1:]):
        expected = np.where(where(r, c, np.int64(a), np.int64(b)), MATRIX, 0.0).sum(axis=axis)
        np.testing.assert_allclose(
            reduced(MATRIX, np.int64(a), np.int64(b)), expected, rtol=1e-10, atol=1e-11
        )
        x = MATRIX
        for k in range(min(b - a, 5)):
            x = np.where(where(r, c, np.int64(a + k), np.int64(min(b, a + 5))), x * 2 + k, x)
        result = stored(MATRIX, np.int64(a), np.int64(min(b, a + 5)))
        np.testing.assert_allclose(result, x, rtol=1e-12)


def test_branches_update_in_place():
    """An array that some branches update and others hand on stays where it is."""

    def step(k, x):
        def add(x):
            return x.at[k].add(1.0)

        def scale(x):
            return lax.cond(k > 5, lambda x: x, lambda x: x.at[k].multiply(2.0), x)

        return lax.cond(x[k] > 0, add, scale, x)

    run = jit(lambda x, steps: count_to(steps, step, x))
    x = RNG.standard_normal(9)
    expected = x.copy()
    for k in range(9):
        expected[k] = expected[k] + 1 if expected[k] > 0 else expected[k] * (1 if k > 5 else 2)
    np.testing.assert_array_equal(run(x, np.int64(9)), expected)
    head, _, body = run.inspect("loop program").partition("do:")
    assert "temp" not in head and "swap" not in body and "range" not in body


def test_a_branch_that_reads_across_makes_a_new_array():
    def step(k, x):
        old = x[::-1]
        return lax.cond(x[k] > 0, lambda x: x + old, lambda x: x.at[k].set(0.5), x)

    x = RNG.standard_normal(9)
    expected = x.copy()
    for k in range(9):
        expected = (
            expected + expected[::-1] if expected[k] > 0 else np.where(np.arange(9) == k, 0.5, expected)
        )
    np.testing.assert_array_equal(jit(lambda x: count_to(9, step, x))(x), expected)


def test_ranges_that_differ_are_loops_of_their_own():
    def step(k, state):
        x, y, total = state
        places_ = places()
        total = total + jnp.where(places_ < k, x, 0.0).sum() * jnp.where(places_ >= 2 * k, y, 0.0).sum()
        return jnp.where(places_ < k, x + 1, x), jnp.where(places_ > SIZE - k, y * 2, y), total

    run = jit(lambda x, y, steps: count_to(steps, step, (x, y, 0.0 * x[0])))
    x, y, total = VALUES["f"].copy(), VALUES["f"][::-1].copy(), 0.0
    for k in range(6):
        total += x[:k].sum() * y[2 * k :].sum()
        x[:k] += 1
        y[SIZE - k + 1 :] *= 2
    for result, expected in zip(run(VALUES["f"], VALUES["f"][::-1].copy(), np.int64(6)), (x, y, total)):
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert len(ranges(run)) == 4


def test_shared_work_is_not_repeated():
    """One sweep computes what a masked sum and a stored array have in common."""

    @jit
    def run(x, n):
        e = jnp.exp(jnp.sin(x))
        return e, jnp.where(places() < n, e, 0.0).sum()

    e, total = run(VALUES["f"], np.int64(9))
    expected = np.exp(np.sin(VALUES["f"]))
    np.testing.assert_allclose(e, expected, rtol=1e-12)
    np.testing.assert_allclose(total, expected[:9].sum(), rtol=1e-12)
    assert run.inspect("loop program").count("exp(") == 1
