"""Arrays whose axes lie in memory in any order: results lie there as NumPy's, writes go where they belong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jitcore import autojit

NUMBERS = np.arange(24.0).reshape(2, 3, 4) % 7
ORDERS = list(itertools.permutations(range(3)))


def with_gaps(order):
    return np.zeros((4, 9, 8))[1::2, ::3, ::2].transpose(order)


#: Arrays of the caller's, by name. Extents of one have strides that mean nothing; there are none.
ARGUMENTS = {
    **{f"turned {order}": lambda order=order: NUMBERS.copy().transpose(order) for order in ORDERS},
    **{f"gaps {order}": lambda order=order: with_gaps(order) + with_gaps(order) for order in ORDERS},
    **{f"cut {order}": lambda order=order: NUMBERS.copy().transpose(order)[:, :2, :2] for order in ORDERS},
    "backwards": lambda: NUMBERS.copy()[::-1], "backwards, turned": lambda: NUMBERS.copy()[:, ::-1].transpose(1, 0, 2),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
    "rows": lambda: NUMBERS.copy()[:, 1], "columns": lambda: NUMBERS.copy()[:, :, 1].T,
}
FUNCTIONS = {
    "operators": lambda x: (x + 1, -x * x, x > 2, x + x.T.T, abs(x)),
    "ufuncs": lambda x: (np.maximum(x, 1), np.modf(x), np.isnan(x), np.minimum(x, x[0])),
    "where": lambda x: np.where(x > 2, x, 0), "copies": lambda x: (x.copy(), x.copy("K"), np.array(x), x.astype("f4")),
    "like": lambda x: (np.zeros_like(x), np.full_like(x, 2)), "sort": lambda x: np.sort(x, axis=0),
    "turned": lambda x: (x.T + 1, np.swapaxes(x, 0, 1) * 2, np.moveaxis(x, 0, -1) * 2),
    "items": lambda x: (x[:, 1:] + 1, x[::-1] * 2, x[[0, 1]], x[:, 0] * 2, x[..., 1] + 0),
    "clip": lambda x: (np.clip(x, 1, 3), np.round(x)), "running": lambda x: (np.cumsum(x, 1), x.cumprod(0)),
    "reductions": lambda x: (x.sum(0), x.max(1), (x > 2).any(0), x.std(0), np.median(x, -1)),
    "means": lambda x: x - x.mean(0, keepdims=True), "joined": lambda x: (np.concatenate([x, x]), np.stack([x, x])),
    "moved": lambda x: (np.roll(x, 1, 0), np.flip(x, 0) + 0, np.nan_to_num(x)),
}


def describe(found):
    if isinstance(found, tuple):
        return [describe(part) for part in found]
    return found.shape, found.dtype, found.strides if 1 not in found.shape else None, found.tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name):
    compiled = autojit(FUNCTIONS[name], strict=True)
    for kind, make in ARGUMENTS.items():
        assert describe(compiled(make())) == describe(FUNCTIONS[name](make())), kind


def change(x, y):
    x[0] += 1
    x[..., 1] = y[..., 0]
    first = x[:, 0]
    first *= 2
    return x, first, x.T, x + y


@pytest.mark.parametrize("kind", [kind for kind in ARGUMENTS if kind != "windows"])
def test_writes(kind):
    compiled = autojit(change, strict=True)
    for other in (kind, "turned (0, 1, 2)", kind, "turned (2, 0, 1)", kind):
        plain, ours = ([ARGUMENTS[one]() for one in (other, kind)] for _ in range(2))
        if plain[0].shape != plain[1].shape:
            continue
        expected, found = change(*plain), compiled(*ours)
        assert found[0] is ours[0] and np.shares_memory(found[1], ours[0]) and np.shares_memory(found[2], ours[0])
        assert describe((*found, *ours)) == describe((*expected, *plain))


def test_a_program_serves_the_order_that_it_was_made_for():
    compiled = autojit(lambda x: x + 1, strict=True)
    for kind, make in [*ARGUMENTS.items()] * 2:
        assert describe(compiled(make())) == describe(make() + 1), kind


@pytest.mark.parametrize("function", [
    lambda x: x[:, [True, False, True]], lambda x: np.delete(x, np.array([True, False, True]), 1),
    lambda x: np.compress([True, False, True], x, 1), lambda x: np.take(x, [0, 2], 1), lambda x: np.imag(x),
    lambda x: x.T.imag, lambda x: (x + 1j).imag, lambda x: np.cumsum(x.T, 0)])
def test_orders_that_functions_choose(function):
    for x in (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2).T):
        expected, found = function(x), autojit(lambda x: function(x), strict=True)(x)
        assert describe(found) == describe(expected)
        assert found.flags.writeable == expected.flags.writeable


def store_nothing(x, y):
    made = np.zeros(2, int)
    if x[0] > 0:
        made[2:] = y[made[2:]].argsort() + 1
    else:
        made[:0] = made[1:1] + 1
    made[2:] += 1
    return made[2:] * 2, made


def test_stores_of_no_elements():
    for x in (np.ones(3), -np.ones(3)):
        assert describe(autojit(store_nothing, strict=True)(x, x)) == describe(store_nothing(x, x))


ORDERED = {
    "array": lambda x, dtype, order, copy: np.array(x, dtype, copy=copy, order=order),
    "array of two dimensions": lambda x, dtype, order, copy: np.array(x, dtype, copy=copy, order=order, ndmin=2),
    "asarray": lambda x, dtype, order, copy: np.asarray(x, dtype, order, copy=copy),
    "astype": lambda x, dtype, order, copy: x.astype(dtype or x.dtype, order or "K", copy=bool(copy)),
}


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("copy", [True, None, False])
def test_what_is_a_copy(name, copy):
    def write(x, dtype, order):
        made = ORDERED[name](x, dtype, order, copy)
        made[..., 0] = 7
        return made, x

    compiled = autojit(write)
    for make in (lambda: np.arange(6.0).reshape(2, 3), lambda: np.arange(6.0).reshape(2, 3).T, lambda: np.arange(12.0)[::2]):
        for dtype in (None, float, np.float32):
            for order in ("K", "A", "C", "F", None):
                results = []
                for function in (write, compiled):
                    try:
                        results.append([describe(part) for part in function(make(), dtype, order)])
                    except ValueError as error:
                        results.append(str(error))
                assert results[0] == results[1], (dtype, order)
