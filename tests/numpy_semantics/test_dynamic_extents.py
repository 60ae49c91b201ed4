"""Arrays of traced extents against NumPy: whole kernels, slices of all kinds, what fails when the program runs."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import jitcore
from jitcore import autojit
from jitcore.core.jaxpr import eval_jaxpr
from jitcore.numpy_semantics.errors import NotTraceable
from tests.numpy_semantics.dynamic_extent_cases import CASES
from tests.numpy_semantics.tracing import Deoptimized, Static, check, check_error, run_traced, trace_call


def make_arguments(name: str) -> tuple:
    function, makers = CASES[name]
    rng = np.random.default_rng(3)
    arguments = [make(rng) for make in makers]
    return function, [Static(x) if isinstance(x, int) else x for x in arguments]


@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    function, arguments = make_arguments(name)
    check(function, *arguments, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["cholesky", "durbin", "sparse_product", "unequal_masks", "strided", "both_axes"]
)
def test_compiled_kernels(name):
    function, arguments = make_arguments(name)
    closed, values, *_ = trace_call(function, arguments)
    expected = jitcore.core.interpret.run_jaxpr_numpy(closed, values)
    found = jitcore.jit(lambda *args: tuple(eval_jaxpr(closed.jaxpr, closed.consts, args)))(*values)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-11)


def list_primitives(jaxpr) -> set[str]:
    names = set()
    for eqn in jaxpr.eqns:
        names.add(eqn.primitive.name)
        for value in eqn.params.values():
            if hasattr(value, "jaxpr"):
                names |= list_primitives(value.jaxpr)
    return names


@pytest.mark.parametrize(
    "name", ["cholesky", "lu", "solve_triangular", "rank_k_update", "triangular_product"]
)
def test_elements_stay_at_their_places(name):
    function, arguments = make_arguments(name)
    closed, *_ = trace_call(function, arguments)
    assert not list_primitives(closed.jaxpr) & {"gather", "scatter", "cumsum", "dot_general"}


def test_equal_bounds_are_known_to_be_equal():
    """The extents of both slices are the same, so that nothing is compared when the program runs."""
    function, arguments = make_arguments("sparse_product")
    closed, *_, mode = trace_call(function, arguments)
    assert all(isinstance(error, IndexError) for error in mode.failures), mode.failures


# -- slices of all kinds --------------------------------------------------------------------------------------
BOUND = st.one_of(st.none(), st.integers(-9, 9))
STEP = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
READS = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "any": lambda v: np.any(v > 0.5), "cumsum": np.cumsum,
    "std": np.std, "flip": lambda v: np.flip(v)[:1].sum(), "last": lambda v: v[-1:].sum(), "sort": np.sort,
    "diff": lambda v: np.diff(v).sum(), "size": lambda v: v.size * 1.0, "where": lambda v: np.where(v > 0, v, 1.0),
    "max": np.max, "argmin": np.argmin, "first": lambda v: v[0], "product": lambda v: v @ v, "outer":
    lambda v: np.outer(v, v).sum(),
}


def slice_by(x, bounds, flags, step):
    """A slice whose bounds are elements of an array, where a flag says so."""
    return x[slice(bounds[0] if flags[0] else None, bounds[1] if flags[1] else None, step)]


@given(st.tuples(BOUND, BOUND), STEP, st.sampled_from(sorted(READS)))
@settings(max_examples=120, deadline=None)
def test_reading_slices(bounds, step, name):
    flags = [bound is not None for bound in bounds]
    places = np.array([bound or 0 for bound in bounds])

    def function(x, places):
        return READS[name](slice_by(x, places, flags, step))

    compare(function, np.linspace(-1, 1, 7), places)


def compare(function, *arguments):
    """As plain Python; what raises there is left to Python by the program."""
    try:
        with np.errstate(all="ignore"):
            function(*[np.copy(x) for x in arguments])
    except (ValueError, IndexError):
        check_error(function, *arguments)
    else:
        check(function, *arguments, rtol=1e-9)


@given(st.tuples(BOUND, BOUND), st.tuples(BOUND, BOUND), STEP, STEP)
@settings(max_examples=120, deadline=None)
def test_storing_slices(target, source, step, other_step):
    flags = [[bound is not None for bound in bounds] for bounds in (target, source)]
    places = np.array([[bound or 0 for bound in bounds] for bounds in (target, source)])

    def function(x, places):
        slice_by(x, places[0], flags[0], step)[...] = 2 * slice_by(x, places[1], flags[1], other_step)

    try:
        compare(function, np.linspace(-1, 1, 7), places)
    except Deoptimized:  # one element for many is known only when the program runs
        assert len(slice_by(np.zeros(7), places[1], flags[1], other_step)) == 1


@given(st.integers(0, 6), st.integers(0, 6), st.integers(-7, 7), BOUND, STEP)
@settings(max_examples=80, deadline=None)
def test_slices_of_slices(low, high, start, stop, step):
    def function(x, places):
        view = x[places[0] : places[1]]
        inner = view[places[2] :: step] if stop is None else view[places[2] : places[3] : step]
        inner *= 3
        return inner.sum()

    compare(function, np.linspace(-1, 1, 7), np.array([low, high, start, stop or 0]))


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_masks(first, second):
    def function(x, one, other):
        x[one] *= 2
        v = x[one]
        w = v[other[one]]
        x[other] = x[other] + 1
        return v.sum(), w.sum(), w.size, v, x[one & other].sum(), x[one][:2].sum()

    check(function, np.linspace(-1, 1, 6), np.array(first), np.array(second))


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
@settings(max_examples=40, deadline=None)
def test_masks_of_equally_many(first, second):
    def function(x, y, one, other):
        x[one] = y[other]
        return x[one] - y[other]

    compare_masks(function, np.array(first), np.array(second))


def compare_masks(function, one, other):
    arguments = np.linspace(-1, 1, 6), np.linspace(3, 4, 6), one, other
    if one.sum() == other.sum():
        check(function, *arguments)
    elif 1 not in (one.sum(), other.sum()):
        check_error(function, *arguments)


# -- kinds and dtypes -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "dtype", [np.int8, np.int32, np.uint16, np.float32, np.float16, np.complex64, np.bool_]
)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all", "max", "min", "std", "cumsum", "argmax",
                                  "ptp"])
def test_dtypes_of_reductions(dtype, name):
    if (
        name in ("max", "min", "argmax", "ptp")
        and dtype == np.complex64
        or name == "ptp"
        and dtype == np.bool_
    ):
        pytest.skip("not compared")
    x = np.array([3, 0, 1, 2, 5, 1]).astype(dtype)
    check(lambda x, n: getattr(np, name)(x[n[0] : n[1]]), x, np.array([1, 4]), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.complex128, np.bool_])
def test_dtypes_of_products(dtype):
    x = np.array([3, 0, 1, 2, 5, 1]).astype(dtype)
    check(lambda x, n: (x[: n[0]] @ x[: n[0]], np.dot(x[n[0] :], x[n[0] :])), x, np.array([4]), rtol=1e-5)


def test_axes_and_kept_dimensions():
    def function(a, n):
        part = a[: n[0], n[1] :]
        rows = part - part.mean(axis=1, keepdims=True)
        a[: n[0], n[1] :] = rows / part.std(axis=0)
        return (
            part.sum(axis=0),
            part.T.max(axis=0),
            np.sum(part, axis=(0, 1)),
            part[..., None].sum(axis=(1, 2)),
        )

    check(function, np.random.default_rng(0).uniform(size=(5, 6)), np.array([3, 2]))


def test_products_of_matrices():
    def function(a, b, n):
        i, j, k = n
        return (
            a[:i, :j] @ b[:j, k:],
            a[i] @ b[:, k:],
            a[:i] @ b[:, 0],
            a[:, :j].T @ b[:, k:],
            b[0, :j] @ a[:j],
        )

    rng = np.random.default_rng(0)
    check(function, rng.uniform(size=(4, 4)), rng.uniform(size=(4, 4)), np.array([2, 3, 1]))


def test_arrays_made_with_traced_extents():
    def function(n):
        out = 0.0
        for k in range(6):
            t = np.zeros(k) + 1
            t += np.arange(k)
            t[k // 2 :] = -1
            m = np.ones((k, 2))
            out += t.sum() + m.sum() + np.full(k, 2.5).sum() + np.zeros_like(t).size
        return out

    check(function, np.zeros(1))


def test_returned_arrays():
    check(lambda x, n: (x[n[0] :: -1], x[x > 0], x[: n[0], None] + x[None, : n[0]], x[x > 0][::-1]),
          np.linspace(-1, 1, 7), np.array([3]))


def test_functions_that_find_elements():
    def function(x, n):
        part = x[n[0] : 0 : -1]
        (places,) = np.nonzero(x > 0)
        x[places] += 1
        rows, columns = np.nonzero(x.reshape(3, 3) > 0.4)
        counts = np.unique(n[: n[0]])
        return (places, np.where(part > 0)[0], part[part > -0.5], np.flatnonzero(part < 0), rows * columns,
                np.argwhere(x.reshape(3, 3) > 0.9), np.extract(x > 0.2, x), np.unique(np.round(x)), counts,
                np.compress(x > 0, x.reshape(3, 3), axis=None), counts.sum())

    check(function, np.linspace(-1, 1, 9), np.array([4, 1, 4, 2, 2]))


@pytest.mark.parametrize("values", [[], [np.nan, 1, np.nan, 1, 0]])
def test_unique_elements(values):
    check(lambda x: np.unique(x), np.array(values, float))


def test_concatenation():
    def function(x, n):
        both = np.concatenate([x[: n[0]], x[n[0] :], x[x > 0]])
        rows = np.concatenate([x.reshape(3, 3)[: n[1]], x.reshape(3, 3)], axis=0)
        return both, rows, np.append(x[: n[0]], 5), np.hstack([x[n[0] :: -1], n]), np.hstack([x[: n[1]], x])

    check(function, np.linspace(-1, 1, 9), np.array([4, 1]))


def test_lists_of_places_in_several_axes():
    def function(a, rows, columns, n):
        a[rows[: n[0]], columns[: n[0]]] = 7
        a[n[1], columns[n[0] :]] += a[rows[n[0] :], n[1]]
        a[:, columns[: n[1]]] *= 2
        return a[rows[: n[0]], columns[: n[0]]].sum(), a[rows[: n[0]], n[1] :], a[: n[0], columns[: n[1]]]

    rng = np.random.default_rng(0)
    check(
        function, rng.uniform(size=(5, 6)), np.array([0, 4, -1, 2]), np.array([5, 0, 3, -2]), np.array([3, 2])
    )


def test_masks_over_some_axes():
    def function(a, mask, n):
        a[:, mask] *= 2
        part = a[: n[0], n[1] :]
        return a[:, mask].sum(axis=1), a[mask[:5]], part[part > 0.5].mean(), a[mask[:5]][:, n[0]]

    rng = np.random.default_rng(0)
    check(
        function,
        rng.uniform(size=(5, 6)),
        np.array([True, False, True, True, False, False]),
        np.array([3, 2]),
    )


def test_views_share_memory():
    def function(x, n):
        view = x[n[0] :]
        other = view[::-1]
        other[0] = 10
        view += 1
        x[3] = 7
        return view[0], other.sum(), view.sum()

    check(function, np.linspace(-1, 1, 7), np.array([2]))


def test_loops_over_found_elements_find_them_once():
    def function(x):
        total = 0.0
        for i in np.nonzero(x > 0)[0]:
            total += x[i] * i
        for v in x[x < 0]:
            total -= v
        return total

    x = np.linspace(-1, 1, 9)
    check(function, x)
    closed, *_ = trace_call(function, [x])
    loops = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "while"]
    assert len(loops) == 2
    assert not any("cumsum" in list_primitives(loop.params["body_jaxpr"].jaxpr) for loop in loops)


def test_stores_that_a_numbered_copy_would_hide_are_refused():
    """`v[1:]` is a view for NumPy, and a copy here: a store into either must not be lost."""

    def store_into_array(x):
        v = x[x > 0]
        w = v[1:]
        v += 1
        return w.sum()

    def store_into_view(x):
        v = x[x > 0]
        w = v[1:]
        w += 1
        return v.sum()

    for function in (store_into_array, store_into_view):
        with pytest.raises(NotTraceable, match="share memory"):
            run_traced(function, [np.linspace(-1, 1, 7)])


def test_masks_and_bounds_count_as_they_were():
    def function(x, n):
        mask = x > 0
        k = n[0]
        v, w = x[mask], x[:k]
        mask[:] = False
        n[0] = 1
        x += 1
        places = n[1:]
        for i in range(4):
            v = v + x[places[: i + 1]].sum()
            places[i] = 0
        return v, w.sum(), w.size

    check(function, np.linspace(-1, 1, 7), np.array([4, 1, 2, 3, 5]))


def test_masks_that_only_begin_alike_are_carried_apart():
    def function(x, y):
        total = 0.0
        for i in range(3):
            x, y = x[x > i * 0.2], y[y < 0.9 - i * 0.3]
            total += x.sum() * len(y) + y.sum()
        return total

    check(function, np.linspace(-1, 1, 9), np.linspace(-1, 1, 9))


# -- loops that change an array's extent ------------------------------------------------------------------------
def test_a_loop_that_drops_elements():
    def function(x, limit):
        steps = np.zeros(20, np.int64)
        for i in range(20):
            if not len(x):
                break
            x = x * 0.7
            steps[i] = len(x)
            x = x[np.abs(x) > limit]
        return steps

    check(function, np.linspace(-1, 1, 9), 0.2)


@pytest.mark.parametrize("kind", ["f4", "f8", "c16", "i8", "u1"])
def test_a_loop_that_drops_elements_of_several_arrays(kind):
    def function(x, c, rows, columns, limit):
        found, steps = np.zeros((7, 9), x.dtype), np.zeros((7, 9), np.int64)
        for i in range(12):
            if not len(x):
                break
            x = x + c
            far = np.abs(x) > limit
            found[rows[far], columns[far]] = x[far]
            steps[rows[far], columns[far]] = i + 1
            near = ~far
            x, c = x[near], c[near]
            rows, columns = rows[near], columns[near]
        return found, steps

    rng = np.random.default_rng(len(kind))
    for size in (1, 20, 63):
        places = rng.permutation(63)[:size]
        x, c = (rng.integers(0, 9, (2, size)) * (1 if kind[0] in "iu" else 0.25)).astype(kind)
        check(function, x, c, *np.divmod(places, 9), 11 if kind[0] in "iu" else 2.5)


def test_dropped_elements_go_in_one_sweep_over_those_that_are_left():
    @autojit(strict=True)
    def function(x, y, n):
        total = 0
        for i in range(100):
            mask = x > i / 100
            x, y = x[mask], y[mask]
            total += len(x)
            n[i] = y.sum()
        return total

    x, y, n = np.random.default_rng(0).random(500), np.arange(500), np.zeros(100, np.int64)
    expected = n.copy()
    total = sum(int((x > i / 100).sum()) for i in range(100))
    for i in range(100):
        expected[i] = y[x > i / 100].sum()
    assert function(x, y, n) == total
    np.testing.assert_array_equal(n, expected)
    text = function.inspect("loop program")
    loop = text[text.index("while:") :]
    assert loop.count(" packed") == 2 and "swap" not in loop
    assert len(set(re.findall(r"(out\d+|tmp\d+)\[0\] = t\d+ where (t\d+) packed", loop))) == 2
    assert not re.search(r"range\(500\)", loop)


def test_elements_behind_those_of_a_mask_are_never_places():
    """Of the elements that a loop has dropped some are no places of the array."""

    @autojit(strict=True)
    def function(x, places):
        total = 0.0
        for i in range(5):
            places = places[places < 60 - 9 * i]
            for k in range(2):
                total += x[places].sum() * (k + 1)
        return total

    x, places = np.random.default_rng(0).random(60), np.random.default_rng(1).integers(0, 200, 300)
    expected = sum(3 * x[places[places < 60 - 9 * i]].sum() for i in range(5))
    np.testing.assert_allclose(function(x, places), expected, rtol=1e-13)
    assert function.report().regions[0].tiers[0].value == "traced"


def test_a_loop_over_ever_shorter_slices():
    def function(x):
        total = 0.0
        while len(x) > 1:
            total += x[0] * x[-1]
            x = x[1:]
        return total

    check(function, np.linspace(-1, 1, 9))


# -- families of functions --------------------------------------------------------------------------------------
FUNCTIONS = {
    "elements": lambda v, w: (
        np.isclose(v, w), np.clip(v, 0, w), np.interp(v, [0.0, 1, 3], [1.0, 0, 2]), np.i0(v), np.fix(v),
        np.digitize(v, [0.0, 1, 3]), np.searchsorted([0.0, 1, 3], v), np.isin(v, [1.0, 2]), np.isposinf(v),
        np.heaviside(v, 0.5), np.polyval([1.0, 2, 3], v),
    ),
    "stores where a condition holds": lambda v, w: (
        np.add(v, w, where=v > 1, out=w), np.sqrt(v, where=v > 1, out=v), np.copyto(v, 7.0, where=w > 2), v,
    ),
    "numbers for NaN in place": lambda v, w: (np.nan_to_num(w / 0 * 0, copy=False, nan=3.0), np.nan_to_num(v)),
    "reductions where a condition holds": lambda v, w: (
        np.mean(v, where=v > 1), np.var(v, where=v > 1), np.std(v, ddof=1, where=w > 1), np.sum(v, where=w > 1),
        np.max(v, where=v > 1, initial=0), np.std(v, mean=np.mean(v, keepdims=True)), np.var(v, correction=1),
    ),
    "without NaN": lambda v, w: (
        np.nanprod(v), np.nanmedian(v), np.nanpercentile(v, 30), np.nanquantile(w, [0.1, 0.7]),
        np.nansum(v.astype(int)), np.nanmax(v.astype(int)), np.nansum(v, where=w > 1),
    ),
    "quantiles": lambda v, w: (
        np.median(v), np.median(v.astype(int)), np.percentile(v, [20, 70]), np.quantile(v, 0.3),
    ),
    "weights": lambda v, w: (np.average(v, weights=np.abs(w)), np.average(v)),
    "norms": lambda v, w: [np.linalg.norm(v, order) for order in (None, 0, 1, 2, 3, np.inf, -np.inf)],
    "products": lambda v, w: (np.vdot(v, w), np.inner(v, w), np.outer(v, w), np.subtract.outer(v, w)),
    "sources": lambda v, w: (
        np.ptp(v), np.trapezoid(v), np.gradient(v), np.unwrap(v), np.vander(v, 3), np.cumulative_sum(v),
        np.intersect1d(v, w), np.vstack([v, w]), np.dstack([v, w]), np.append(v, w),
    ),
    "lists": lambda v, w: (v[:3] + [1.0, 2, 3], np.where(v[:3] > 1, [1.0, 2, 3], 0), np.outer(v, 2.0)),
    "shapes of their own": lambda v, w: (np.zeros_like(v, shape=(2, 3)), np.full_like(v, 7), np.ones_like(v, int)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_families(name):
    def function(x, n):
        return FUNCTIONS[name](x[n[0] : n[1]], x[n[0] - 1 : n[1] - 1])

    check(function, np.array([3, 1, 2, 5, 4, 1.5, -2, 7, 0.25]), np.array([2, 7]), rtol=1e-9)


TABLES = {
    "along axes": lambda m: (
        np.nanvar(m, axis=0), np.median(m, axis=0), np.median(m, axis=1, keepdims=True), np.var(m, axis=(0, 1)),
        np.percentile(m, [10, 60], axis=1), np.mean(m, axis=0, where=m > 2),
    ),
    "all elements": lambda m: (
        m.ravel(), m.flatten(), np.cumsum(m), np.cumprod(m), m.argmax(), np.linalg.norm(m), np.append(m, 5),
        np.concatenate([m, m], axis=None), np.outer(m, m[0]), np.vdot(m, m),
    ),
    "results in other arrays": lambda m: (
        np.nansum(m, axis=0, out=np.zeros(4)), np.median(m, axis=0, out=np.zeros(4)),
        np.argmin(m, axis=0, out=np.zeros(4, int)), np.std(m, axis=0, out=np.zeros(4)),
    ),
    "weights along an axis": lambda m: (
        np.average(m, axis=0, weights=m[:, 1]), np.average(m, axis=-1, weights=[1.0, 2, 3, 4]),
        np.average(m, weights=m + 1),
    ),
    "behind each other": lambda m: (
        np.concatenate([m, m[::-1]], axis=1), np.concatenate([m, m[:1]]), np.hstack([m, m]),
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("step", [1, -1, 2])
def test_families_along_axes(name, step):
    table = np.arange(20.0).reshape(5, 4) * 1.5 % 7
    check(lambda a, n: TABLES[name](a[: n[0]][::step]), table, np.array([3]), rtol=1e-9)


def test_all_elements_of_what_a_mask_picks():
    def function(a, mask):
        rows = a[mask]
        return rows.ravel(), a[:, mask[:4]].ravel(), np.cumsum(rows), np.concatenate([rows, rows * 2], axis=1)

    check(function, np.arange(20.0).reshape(5, 4), np.array([True, False, True, True, False]))


def test_flattened_copies_are_not_written():
    """`np.ravel` gives a view or a copy, by the strides; here it is a copy."""

    def store(x, n):
        part = x[: n[0], : n[1]]
        flat = part.ravel()
        flat[...] = 1
        return part.sum()

    with pytest.raises(NotTraceable, match="share memory"):
        run_traced(store, [np.ones((3, 4)), np.array([2, 3])])


EXTREMA = [
    [-np.inf] * 7, [1, -np.inf, -np.inf, -np.inf, 2, 3, 4], [np.nan, 1, 5, np.nan, 2, 9, np.nan],
    [0, 5, 5, 5, 1, 7, 5],
]


@pytest.mark.parametrize("values", EXTREMA)
@pytest.mark.parametrize("step", [1, 2, -1, -2])
@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "u1", "?"])
def test_places_of_extrema(values, step, kind):
    def function(x, n):
        part = x[n[0] : n[1]][::step]
        return part.argmax(), part.argmin(), np.argmax(part[part == part])

    x = np.array(values) if kind[0] == "f" else np.nan_to_num(values, posinf=9, neginf=0)
    check(function, x.astype(kind), np.array([1, 5]))


def test_weights_that_sum_to_zero():
    check_error(lambda x, n: np.average(x[: n[0]], weights=x[: n[0]] * 0), np.arange(7.0), np.array([3]))


# -- what fails when the program runs ---------------------------------------------------------------------------
FAILURES = {
    "unequal extents": lambda x, n: x[: n[0]] + x[: n[1]],
    "unequal store": lambda x, n: x[: n[0]].__setitem__(slice(None), x[: n[1]]),
    "empty maximum": lambda x, n: x[n[1] : n[0]].max(),
    "empty argmin": lambda x, n: x[n[1] : n[0]].argmin(),
    "element outside": lambda x, n: x[: n[0]][n[1]],
    "index outside": lambda x, n: x[n[: n[0]] * 4],
    "matrix product": lambda x, n: x[: n[0]] @ x[: n[1]],
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name):
    check_error(FAILURES[name], np.linspace(-1, 1, 7), np.array([3, 5]))


REFUSALS = {
    "stack": lambda x, n: np.stack([x[: n[0]], x[: n[0]]]),
    "ndmin": lambda x, n: np.array(x[: n[0]], ndmin=2),
    "elements of traced extent": lambda x, n: np.isin(x, x[: n[0]]),
    "fft": lambda x, n: np.fft.fft(x[: n[0]]),
    "reshape": lambda x, n: x[: n[0]].reshape(2, -1),
    "traced step": lambda x, n: x[:: n[0]],
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_supported_says_so(name):
    with pytest.raises(NotTraceable):
        run_traced(REFUSALS[name], [np.linspace(-1, 1, 7), np.array([4, 5])])


def test_views():
    def view(x, n):
        part = x[: n[0]]
        np.moveaxis(part, 0, 1)[1, 0] = 9
        return np.rot90(part, 3), np.rollaxis(part, 1), np.expand_dims(part, (0, 2)), np.squeeze(part[:, :1], 1)

    check(view, np.arange(21.0).reshape(7, 3), np.array([4]))


def test_a_flip_of_what_a_mask_picks_is_a_view_of_it():
    def change(x):
        picked = x[x > 0]
        np.flip(picked)[0] = 9
        return picked

    with pytest.raises(NotTraceable, match="share memory"):
        run_traced(change, [np.linspace(-1, 1, 7)])


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_moments_without_nan(dtype):
    def measure(a, n):
        part = a[1:n]
        moments = np.nanmean(part), np.nanvar(part), np.nanstd(part, ddof=1)
        return *moments, np.nansum(part), np.nanmax(part), np.nanmin(part)

    a = np.array([np.nan, 1, np.nan, 4, 2, 7, np.nan, 5], dtype)
    for n in (2, 4, 6, 8):
        check(measure, a, n)
