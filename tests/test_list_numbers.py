"""Lists of numbers as arrays and back: native code and Python's do the same, and what stays the same stays an object."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from jitcore.backends.cpu.runtime import launch
from jitcore.process import lists
from jitcore.process.lists import BOXED_LIMIT, LIMIT, MIXED


class Float(float):
    pass


class Int(int):
    pass


@pytest.fixture(params=["native", "python"], autouse=True)
def code(request, monkeypatch):
    launch.open_launchers()
    assert len(lists.find_native()) == 2
    if request.param == "python":
        monkeypatch.setattr(lists, "native", ())


def show(items):
    return [show(one) if type(one) is list else (type(one), repr(one)) for one in items]


FLAT = {
    bool: [True, False, True], int: [0, -1, 7, LIMIT - 1, -LIMIT], float: [0.0, -0.0, math.inf, -math.inf, 5e-324, 1.5],
    complex: [1j, -2.5 + 0j, 2 - 1j], MIXED: [0, 0.0, -0.0, 1, 1.0, -7, math.inf, -math.inf, BOXED_LIMIT - 1, -BOXED_LIMIT, 1e300],
}


@pytest.mark.parametrize("kind", FLAT)
def test_lists_come_back(kind):
    flat = FLAT[kind]
    for items in (flat, [flat[:2], flat[1:]][:1], [flat[:2], flat[-2:], flat[1:3]]):
        shape = (len(items),) if type(items[0]) is not list else (len(items), len(items[0]))
        found = lists.pack(kind, shape, items)
        assert found.shape == shape
        other = [0] * len(items) if len(shape) == 1 else [[None] * shape[1] for _ in items]
        rows = [*other]
        lists.unpack(kind, other, found)
        assert show(other) == show(items)
        assert len(shape) == 1 or all(one is row for one, row in zip(other, rows))  # the same rows
        if len(shape) == 1:
            assert show(lists.make(kind, found)) == show(items)


def test_nan_is_one_number():
    for bits in (0x7FF8 << 48, -1, 0x7FFF << 48 | 5, 0xFFF8 << 48, 0x7FFC << 48):
        nan = float(np.array(bits & (2**64 - 1), np.uint64).view(np.float64))
        found = lists.pack(MIXED, (2,), [nan, 3])
        assert show(lists.make(MIXED, found)) == [(float, "nan"), (int, "3")]


@pytest.mark.parametrize(("kind", "shape", "items"), [
    (int, (2,), [1, True]), (int, (2,), [1, 2.0]), (int, (2,), [1, LIMIT]), (int, (1,), [2**200]), (int, (1,), [Int(3)]),
    (float, (2,), [1.0, 2]), (float, (1,), [Float(2.0)]), (float, (1,), [np.float64(2.0)]), (bool, (1,), [1]),
    (MIXED, (2,), [1, BOXED_LIMIT]), (MIXED, (2,), [1.0, -BOXED_LIMIT - 1]), (MIXED, (2,), [1, True]),
    (MIXED, (2,), [1, None]), (float, (3,), [1.0, 2.0]), (float, (1,), [1.0, 2.0]), (float, (2,), (1.0, 2.0)),
    (float, (2, 2), [[1.0, 2.0], [3.0]]), (float, (2, 2), [[1.0, 2.0], (3.0, 4.0)]), (float, (2, 2), [[1.0, 2.0], 3.0]),
    (float, (2, 1), [[1.0]] * 2), (float, (2, 1), [[1.0]]), (float, (2,), None),
])
def test_other_lists_are_refused(kind, shape, items):
    assert lists.pack(kind, shape, items) is None


@pytest.mark.parametrize(("items", "found"), [
    ([1, 2], (int, (2,))), ([1, 2.0], (MIXED, (2,))), ([[1, 2.0], [1, 2]], (MIXED, (2, 2))), ([[1], [2.0]], (MIXED, (2, 1))),
    ([True], (bool, (1,))), ([True, 1], None), ([], None), ([[]], None), ([[1], 2], None), ([[1], [2, 3]], None), ([None], None),
    ([[1]] * 2, None), ([1j, 1.0], None), (["a"], None),
])
def test_lists_are_described(items, found):
    assert lists.describe(items) == found


MANY = 4 * lists.GUESSED


@pytest.mark.parametrize("items", [
    [1] * MANY, [1, 2.0, 3.0] * (MANY // 3), [1, 2.0, 3.0], [[1.0] * 8 for _ in range(MANY // 8)], [1.0, 2] * MANY,
    [[0.0] * MANY, [1.0] * MANY], [None] * MANY, [[1] * 8] * MANY, [], [[]], [[1] * 8, 2, *[[1] * 8] * MANY], ["a"] * MANY,
])
def test_guesses_are_what_lists_hold(items):
    assert lists.guess(items) == lists.describe(items)


def test_a_guess_may_miss_what_packing_sees():
    items = [1] * MANY
    items[-2] = 2.0
    assert lists.guess(items) == (int, (MANY,)) and lists.pack(int, (MANY,), items) is None


def test_guesses_look_at_few_numbers(monkeypatch):
    seen = []
    monkeypatch.setattr(lists, "describe", lambda items: seen.append(len(items)) or (int, (len(items),)))
    assert lists.guess([1] * 10 * MANY) == (int, (10 * MANY,)) and seen[0] <= 2 * lists.GUESSED


numbers = st.one_of(st.integers(-2**52, 2**52), st.floats(allow_nan=False))


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=8), st.data())
def test_what_does_not_change_stays_the_object(items, data):
    described = lists.describe(items)
    packed = described and lists.pack(*described, items)
    if packed is None:
        assert any(type(one) is int and not -BOXED_LIMIT <= one < BOXED_LIMIT for one in items)
        return
    place = data.draw(st.integers(0, len(items) - 1))
    before, other = [*items], packed[::-1][place]
    packed[place] = other
    lists.unpack(described[0], items, packed)
    assert show(items) == show([*before[:place], before[::-1][place], *before[place + 1 :]])
    if lists.native:
        assert all(one is was for k, (one, was) in enumerate(zip(items, before)) if k != place)
