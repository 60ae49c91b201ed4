"""What calls may be given, what they may change and what they return: as in plain Python."""

from __future__ import annotations

import collections
import dataclasses
import warnings

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same, check

A = np.linspace(0.5, 3.0, 12).reshape(3, 4)
V = np.arange(5.0)
Pair = collections.namedtuple("Pair", "left right")


class Model:
    """A plain class of a user."""

    scale = 2.0

    def __init__(self, weights, steps=0):
        self.weights, self.steps = weights, steps

    def step(self, x):
        self.weights -= 0.5 * x
        self.steps += 1
        self.last = x
        return self.weights.sum() * self.scale


def add_in_place(x, y):
    x += y


def update_items(x):
    x[1:3] = 7
    x[-1] *= 2
    return x[0]


def swap(x, y):
    x[:], y[:] = y.copy(), x.copy()


def clear_and_return(x):
    y = x * 2
    x[:] = 0
    return y


def mixed_results(x, n, text, flag):
    return x.sum(), n + 1, text, flag, None, x.shape, [x, (x, x[1:])], {"twice": 2 * x}


def views(x):
    return x, x[:], x.T, x[1], x[::-1, 1:], x.reshape(-1), x[None], x.ravel()


def views_of_new(x):
    y = x + 1
    return y[1:], y.T, y


def change_list(items):
    items.append(items[0] + 1)
    items[0] = 5.0
    return len(items)


def change_dict(table):
    table["sum"] = table["x"].sum()
    table["x"] = table["x"] * 2
    table.pop("old", None)


def use_model(model, x):
    first = model.step(x)
    return first, model.weights


def read_pair(pair):
    return Pair(pair.right, pair.left * 2)


def scalars(a, b, c):
    return a + 1, a * b, b + c, abs(c), a / 3


def strange_signature(x, /, y=2.0, *rest, scale=3, **more):
    return x * y * scale + sum(rest) + more.get("shift", 0)


CASES = [
    (add_in_place, A, 1.5),
    (add_in_place, A, A[0]),
    (add_in_place, np.asfortranarray(A), A),
    (add_in_place, np.arange(4), 3),
    (add_in_place, A.astype(np.float32), np.float32(2)),
    (update_items, V),
    (update_items, np.arange(12)[::2]),
    (swap, V, V + 1),
    (clear_and_return, V),
    (mixed_results, V, 3, "text", True),
    (views, A),
    (views, np.asfortranarray(A)),
    (views_of_new, A),
    (change_list, [1.0, 2.0]),
    (change_list, [V, 2.0]),
    (change_dict, {"x": V, "old": 1}),
    (use_model, Model(V), V + 1),
    (read_pair, Pair(V, 2.0)),
    (scalars, 2, 2.5, 1 + 2j),
    (scalars, np.float32(2), np.int8(3), 7),
    (scalars, True, np.uint16(9), np.complex64(1j)),
    (strange_signature, V),
    (strange_signature, 2.0, V, 1, V),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}")
def test_call_is_that_of_python(case):
    check(*case)


def test_keywords_and_defaults():
    f = jitcore.autojit(strange_signature, strict=True)
    for arguments, keywords in [((V,), {}), ((V,), {"y": 3.0}), ((V, 1.0, 2.0), {"shift": V, "scale": 1.0})]:
        assert_same(strange_signature(*arguments, **keywords), f(*arguments, **keywords))
    with pytest.raises(TypeError) as ours:
        jitcore.autojit(scalars)(1)
    with pytest.raises(TypeError) as theirs:
        scalars(1)
    assert str(ours.value) == str(theirs.value)


def test_argument_itself_and_views_of_it_are_returned():
    x = A.copy()
    itself, again, turned, row, *_ = jitcore.autojit(views, strict=True)(x)
    assert itself is x and again is not x
    assert np.shares_memory(turned, x) and np.shares_memory(row, x)
    row[0] = 99
    assert x[1, 0] == 99


def test_views_without_axes_stay_arrays():
    x = A.copy()
    found = jitcore.autojit(lambda x: np.squeeze(x[:1, :1]), strict=True)(x)
    assert type(found) is np.ndarray and found.shape == () and np.shares_memory(found, x)


def test_new_arrays_own_their_memory():
    f = jitcore.autojit(lambda x: x + 1, strict=True)
    x = np.zeros(3)
    for _ in range(6):
        y = f(x)
        assert type(y) is np.ndarray and y.flags.owndata and y.flags.writeable
        y[:] = 7
        assert not x.any()


def test_one_array_twice():
    def f(x, y):
        x += y
        return x is y

    x = V.copy()
    compiled = jitcore.autojit(f, strict=True)
    assert compiled(x, x) is True
    np.testing.assert_array_equal(x, 2 * V)
    assert compiled(x, V) is False
    np.testing.assert_array_equal(x, 3 * V)
    assert compiled(x, x) is True
    np.testing.assert_array_equal(x, 6 * V)


def test_overlapping_arrays():
    def f(x, y):
        x[:] = 1
        y += x
        return y.sum()

    for part in slice(1, None), slice(None, -1), slice(None, None, -1):
        memory, expected = np.arange(6.0), np.arange(6.0)
        compiled = jitcore.autojit(f, strict=True)
        for _ in range(2):
            x, y = memory[part], memory[: len(memory[part])]
            theirs = f(expected[part], expected[: len(memory[part])])
            assert compiled(x, y) == theirs
            np.testing.assert_array_equal(memory, expected)


def test_parts_that_do_not_overlap_are_compiled():
    memory = np.arange(8.0)
    compiled = jitcore.autojit(add_in_place, strict=True)
    compiled(memory[::2], memory[1::2])
    np.testing.assert_array_equal(memory, [1, 1, 5, 3, 9, 5, 13, 7])


def test_read_only_arrays():
    x = V.copy()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jitcore.autojit(update_items)(x)
    assert jitcore.autojit(lambda x: x.sum(), strict=True)(x) == V.sum()


def test_ints_are_constants_then_inputs():
    def f(x, n):
        return x * n

    compiled = jitcore.autojit(f, strict=True)
    for n in range(40):
        np.testing.assert_array_equal(compiled(V, n), V * n)
    assert compiled.cache_info().traces <= 4


def test_floats_are_inputs_unless_their_value_is_needed():
    def f(x, a):
        return x * a

    def g(x, n):
        return x.reshape(int(n), -1) * n

    compiled, other = jitcore.autojit(f, strict=True), jitcore.autojit(g, strict=True)
    for a in (1.5, 2.5, -0.0):
        np.testing.assert_array_equal(compiled(V, a), V * a)
    for n in (3.0, 2.0, 6.0):
        np.testing.assert_array_equal(other(A, n), A.reshape(int(n), -1) * n)
    assert compiled.cache_info().traces == 1 and other.cache_info().traces == 3


def test_only_the_number_that_is_needed_becomes_a_constant():
    def f(x, a, n, shape):
        return x.reshape(int(n), shape) * a

    compiled = jitcore.autojit(f, strict=True)
    for a, n, shape in [(1.5, 3.0, np.int64(4)), (2.5, 3.0, np.int64(4)), (0.5, 2.0, np.int64(6))]:
        np.testing.assert_array_equal(compiled(A, a, n, shape), f(A, a, n, shape))
    assert compiled.cache_info().traces == 2


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float
    table: np.ndarray


def test_frozen_dataclasses():
    def f(settings, x):
        return settings.table * settings.rate + x, settings

    compiled = jitcore.autojit(f, strict=True)
    for rate in (1.5, 2.5):
        settings = Settings(rate, V)
        found = compiled(settings, V)
        np.testing.assert_array_equal(found[0], V * rate + V)
        assert found[1] is settings
    assert compiled.cache_info().traces == 1


def test_static_argnames():
    compiled = jitcore.autojit(lambda x, a: x * a, static_argnames="a", strict=True)
    for a in (1.5, 2.5):
        np.testing.assert_array_equal(compiled(V, a), V * a)
    assert compiled.cache_info().traces == 2


@pytest.mark.parametrize(
    "value", [np.array(["a"]), np.array([None]), np.matrix([[1.0]]), {1, 2}, iter([1]), np.longdouble(1)]
)
def test_what_cannot_be_traced_runs_in_python(value):
    def f(x):
        return x

    compiled = jitcore.autojit(f)
    with pytest.warns(jitcore.AutojitWarning, match="test_arguments.py"):
        assert compiled(value) is value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(value) is value


def test_which_array_is_returned_is_decided_as_in_python():
    def f(x, y):
        for _ in range(3):
            x, y = y, x + 1
        return x

    def g(x):
        return x.reshape(-1)

    for function, arguments in [(f, (V, V + 5)), (g, (np.asfortranarray(A[:, :1]),))]:
        compiled = jitcore.autojit(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                expected, found = function(*arguments), compiled(*arguments)
                assert_same(expected, found)
                sharing = [np.shares_memory(expected, argument) for argument in arguments]
                assert [np.shares_memory(found, argument) for argument in arguments] == sharing


def test_a_program_for_arrays_in_no_order_serves_those_in_order():
    """What it only reads may lie in C's order as well; what it writes, and Fortran's order, are other signatures."""
    @jitcore.autojit
    def read(x):
        return 2.0 * x + x[0]

    @jitcore.autojit
    def write(x):
        x += 1.0
        return x

    base = np.arange(120.0).reshape(6, 20)
    for x in (base[:, ::2], base[:, :10].copy(), base[:, 10:]):
        found, expected = read(x), 2.0 * x + x[0]
        assert np.array_equal(found, expected) and found.strides == expected.strides
    assert read.cache_info().traces == 1
    fortran = np.asfortranarray(base[:, :10])
    assert np.array_equal(read(fortran), 2.0 * fortran + fortran[0]) and read.cache_info().traces == 2
    line = np.arange(40.0)
    for x in (line[::2].copy(), line[::2], line[20:]):
        expected = x + 1.0
        assert write(x) is x and np.array_equal(x, expected)
    assert write.cache_info().traces == 2
