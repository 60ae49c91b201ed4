"""Items of handles against NumPy: views of views, stores, indices of every kind, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore.numpy_semantics.errors import NotTraceable
from tests.numpy_semantics.tracing import Static, check, check_error

A = np.arange(24.0).reshape(4, 6)
V = np.arange(8.0) * 1.5 - 4

INDICES = [
    0, -1, 2, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2), slice(5, 1),
    Ellipsis, None, (1, 2), (1, slice(None)), (slice(None), 2), (slice(1, -1), slice(1, -1)), (Ellipsis, 1),
    (None, 1, slice(2)), (slice(None), None, slice(None, None, -2)), (slice(0, 0), 1), (0, 0, Ellipsis), (),
    [0, 2], ([0, 2], [1, 5]), (slice(1, 3), [0, 5]), ([3, 0], slice(None, None, 3)), np.array([[0, 1], [3, -1]]),
    (0, [1, 2]), (slice(None), None, [1]), np.array([True, False, True, True]), np.arange(24).reshape(4, 6) % 3 == 0,
    (slice(None), np.array([True] * 3 + [False] * 3)), ([0, 1], slice(1, 3), None), np.array([], int), [],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_read(index):
    check(lambda a: a[index], A)
    check(lambda a: a.T[index] if A.T[index] is not None else 0, A) if fits(A.T, index) else None


def fits(array, index) -> bool:
    try:
        array[index]
    except IndexError:
        return False
    return True


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_write(index):
    def store(a, x):
        a[index] = x

    check(store, A, 7.0)
    check(store, A, Static(3))
    check(store, A, A[index] * 2 + 100)
    check(store, A.astype(np.int32), 2.75)

    def add(a, x):
        a[index] += x
        return a[index]

    check(add, A, 2.5)


def test_a_row_is_a_view_and_a_fancy_index_a_copy():
    def change(a, i):
        row, copy = a[1], a[[1, 2]]
        row[2:4] = -1
        copy[...] = 99
        element = a[0, 0]
        a[0, 0] = 50
        a.T[3][0] = -7
        return row, copy, element, a[i], a[i][1:]

    check(change, A, np.int64(2))


def test_views_of_views():
    def change(a):
        b = a[1:, ::2]
        c = b.T[::-1]
        c[0] = [1, 2, 3]
        c[1:, 0] += 10
        d = a.reshape(2, 2, 6)[:, 1]
        d *= -1
        a.ravel()[5] = 11
        a.flat[7] = 12
        a[None, ..., None][0, 3, 2, 0] = 13
        return b, c, d

    check(change, A)


def test_reshape_of_what_is_not_contiguous_copies():
    def change(a):
        b = a.T.reshape(-1)
        b[0] = 100
        c = a[:, 1:].ravel()
        c[:] = 0
        return b, c

    check(change, A)


def test_overlapping_stores():
    def shift(a, b):
        a[1:] = a[:-1]
        b[1:] += b[:-1]
        b[::-1][:3] = b[:3]

    check(shift, V, V * 2)


def test_real_and_imaginary_parts_are_views():
    def change(z, x):
        z.real[1:] = 3
        z.imag = x
        z.real += 1
        return z.real, z.imag, z[0].real, x.real, x.imag

    check(change, V + 1j, V)


def test_shape_setter_and_fill():
    def change(a, v):
        w = v + 1
        w.shape = (2, 4)
        w[1, 0] = 5
        a[1:3].fill(2.5)
        a.flat = [1, 2, 3]
        return w, w.T

    check(change, A, V)

    def reshape(v):
        v.shape = (2, 4)

    with pytest.raises(NotTraceable):  # the caller's array would have to change its shape
        check(reshape, V)


def test_arguments_that_are_one_array():
    def change(a, b):
        a[0] = 5
        b[1] = a[0] + 1
        return a is b, a + b

    x = V.copy()
    check(change, x, x)


def test_swap_by_tuple_assignment():
    def swap(a):
        a[0], a[1] = a[1], a[0]
        a[[2, 3]] = a[[3, 2]]
        a[4:6], a[6:8] = a[6:8].copy(), a[4:6].copy()

    check(swap, V)


def test_masked_stores():
    def change(a, v, m):
        a[a > 10] = -1
        a[v[:4] > 0] = 5
        a[:, m] = 3
        a[1, m] = 8
        v[v < 0] = [1.0, 2.0, 3.0]
        a[m[:4], 0] = -3

    check(change, A, V, np.array([True, False] * 3))


def test_a_masked_store_of_another_number_of_values_fails():
    def change(v):
        v[v < 0] = [1.0, 2.0]

    check_error(change, V)


# -- traced positions ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("i", [0, 3, -1, -4])
def test_traced_ints(i):
    def change(a, v, i):
        a[i] += 1
        a[i, 2] = v[i]
        a[:, i] *= 2
        v[i + 1 : i + 3] = 0 if False else v[i]
        return a[i], a[i, i], a[i][1:3], a[1:, None][0, 0, i]

    if i >= 0:
        check(change, A, V, i)
    check(lambda a, i: (a[i], a[i, 0], a[i, ::2], a[..., i]), A, i)
    check(lambda a, i: a[i], A, np.int32(i))


@pytest.mark.parametrize("i", [4, -5, 100, 2**40])
def test_traced_ints_out_of_range(i):
    check_error(lambda a, i: a[i], A, i)
    check_error(lambda a, i: a[i], A, np.int64(i))
    check_error(lambda a, i: a[i], A, Static(i))
    check_error(lambda a, i: a[[0, i]], A, i)
    check_error(lambda a, i: a[i], A, np.array([0, i]))

    def store(a, i):
        a[i] = 1

    check_error(store, A, i)


def test_windows_at_traced_places():
    def slide(v, i):
        return v[i : i + 3], v[i : i + 5 : 2], v[i - 1 : i + 2], v[2 * i : 2 * i + 1]

    check(slide, V, 2)

    def store(v, i):
        v[i : i + 2] = [10, 20]
        v[i + 2 : i + 6 : 2] = 7

    check(store, V, 1)


def test_traced_index_arrays():
    index = np.array([3, 0, -1, 3])
    check(lambda a, i: (a[i], a[i, i], a[1:, i], a[i[:, None], i[None, :]], a[0, i], a[i, None]), A, index)

    def store(a, i):
        a[i, 2] = [1, 2, 3, 4]
        a[i] = 9
        a[:2, i] += 1

    check(store, A, index)
    check(lambda a, i: a[i], A, index.astype(np.int8))
    check(lambda a, i: a[i], A, abs(index).astype(np.uint16))


# -- errors -------------------------------------------------------------------------------------------------
def test_errors():
    check_error(lambda a: a[0, 0, 0], A)
    check_error(lambda a: a[..., ...], A)
    check_error(lambda a: a[4], A)
    check_error(lambda a: a[1.0], A)
    check_error(lambda a: a["x"], A)
    check_error(lambda a, x: a[x], A, 1.0)
    check_error(lambda a: a[[1.5]], A)
    check_error(lambda a: a[np.ones(3, bool)], A)
    check_error(lambda a: a[[0, 4]], A)
    check_error(lambda a: a.reshape(5, 5), A)

    def store(a, x):
        a[1:3] = x

    check_error(store, A, np.ones(5))
    check_error(store, A, np.ones((3, 6)))
    check_error(store, A, 1j)
    check_error(lambda a: a[0][0][0], A)
    check_error(lambda a: len(a[0, 0]), A)


STORES = {
    "element": lambda x, v: x.__setitem__(0, v), "slice": lambda x, v: x.__setitem__(slice(2), v),
    "all": lambda x, v: x.__setitem__(..., v), "list": lambda x, v: x.__setitem__(slice(2), [v, 1]),
    "places": lambda x, v: x.__setitem__([0, 1], v), "mask": lambda x, v: x.__setitem__(x == 0, v),
    "fill": lambda x, v: x.fill(v), "put": lambda x, v: np.put(x, [0], v),
    "full": lambda x, v: x.__setitem__(slice(None), np.full(3, v, x.dtype)),
    "type": lambda x, v: x.__setitem__(0, x.dtype.type(v)),
    "array": lambda x, v: x.__setitem__(slice(1), np.array([v], x.dtype))}
NUMBERS = [math.nan, 1e30, 300.0, -1.5, np.float64(math.nan), np.float64(math.inf), np.float64(3e9), np.float32(300),
           np.float16(-1.5), np.array(math.nan), np.int64(300), np.int64(-1), np.uint64(2**63 + 5), 300]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("how", STORES)
def test_numbers_that_an_integer_dtype_does_not_hold(how, dtype):
    def store(x, v):
        STORES[how](x, v)
        return x

    for number in NUMBERS:
        for argument in (number, Static(number)):
            try:
                store(np.zeros(3, dtype), number)
            except (ValueError, OverflowError):
                check_error(store, np.zeros(3, dtype), argument)
            else:
                check(store, np.zeros(3, dtype), argument)


def test_complex_into_real_is_left_to_numpy():
    def store(a, z):
        a[0] = z

    with pytest.raises(NotTraceable):
        check(store, V, np.complex128(1 + 2j))


# -- random ones --------------------------------------------------------------------------------------------
@st.composite
def basic_index(draw, shape):
    items = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["int", "slice", "slice", "new"]))
        if kind == "int" and extent:
            items.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "new":
            items += [None, slice(None)]
        else:
            bound = st.none() | st.integers(-extent - 2, extent + 2)
            step = draw(st.none() | st.sampled_from([1, 2, 3, -1, -2]))
            items.append(slice(draw(bound), draw(bound), step))
    if draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


@st.composite
def chains(draw):
    """A shape, and steps from an array of it to a view of views."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    array, steps = np.zeros(shape), []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["index", "index", "transpose", "reshape"]))
        if kind == "index":
            steps.append(("index", draw(basic_index(array.shape))))
        elif kind == "transpose":
            steps.append(("transpose", draw(st.permutations(range(array.ndim)))))
        else:
            steps.append(("reshape", (-1,) if draw(st.booleans()) else (*array.shape, 1)))
        if kind == "reshape" and not array.size:
            steps.pop()
        else:
            array = follow(array, steps[-1:])
        if not isinstance(array, np.ndarray):
            break
    return shape, steps


def follow(array, steps):
    for kind, value in steps:
        array = (
            array[value]
            if kind == "index"
            else array.transpose(value)
            if kind == "transpose"
            else array.reshape(value)
        )
    return array


@settings(max_examples=150, deadline=None)
@given(chains(), st.booleans())
def test_random_views_and_stores(chain, adds):
    shape, steps = chain

    def change(a, x):
        view = follow(a, steps)
        if getattr(view, "ndim", 0):
            if adds:
                view += x
            else:
                view[...] = x
            view[(0,) * (view.ndim if view.size else 0)] = 77
        return view, a

    check(change, np.arange(np.prod(shape), dtype=float).reshape(shape), 0.5, rewrite=False)


def test_an_empty_selection_looks_at_no_place():
    check(lambda a: a[[], [100]], A)
    check(lambda a: a[[False] * 4, [-100]], A)


@pytest.mark.parametrize("read", [lambda a, n: a[n > 2], lambda a, n: a[:n][True], lambda a, n: a[:n, None, n > 2]])
def test_a_single_bool_is_refused(read):
    with pytest.raises(NotTraceable, match="a single bool"):
        check(read, A, 3)


def test_a_part_takes_one_ellipsis():
    check_error(lambda a, n: a[:n][..., 0, ...], A, 3)
    check(lambda a, n: a[:n][:, []], A, 3)
