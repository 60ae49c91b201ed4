"""Arrays that decisions choose, one inside of another: which object is returned, whose memory it has, what is written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jitcore import autojit


def limit(v):
    return 3.0 if v > 0 else v


def behind_an_early_return(x, y):
    if x[0] > 0:
        return y
    b = y
    if x[1] > 0:
        b = x + 2
    return b


def in_a_chain(x, y):
    if x[0] > 0:
        return 0.0, y
    least, b = limit(x[1]), y
    for i in range(1, 3):
        s = np.append(y[i:], np.zeros(i))
        if limit(s[0]) < x[i]:
            least, b = limit(s[0]), s
    return least, b


def inside_of_both_sides(x, y):
    if x[0] > 0:
        b = y
        if x[1] > 0:
            b = x
    else:
        b = x + 1
        if x[2] > 0:
            b = y
    return b


def three_deep(x, y):
    b = x
    if x[0] > 0:
        if x[1] > 0:
            b = y
            if x[2] > 0:
                b = y * 2
    return b, y


def two_at_once(x, y):
    if x[0] > 0:
        return x, y
    b, c = y, x
    if x[1] > 0:
        b = x + 1
    if x[2] > 0:
        c = y
    return b, c


def tuples(x, y):
    if x[0] > 0:
        return (0.0, (1, y)), [y]
    return (1.0, (limit(x[1]), y)), [x]


def dicts(x, y):
    if x[0] > 0:
        made = {"a": 0.0, "b": y}
    else:
        made = {"a": limit(x[1]), "b": x + 1}
    return made["a"], made["b"].sum()


def written_behind(x, y):
    if x[0] > 0:
        return y
    b = x + 1
    if x[1] > 0:
        b = x + 2
    b[0] = 7
    return b


def flatten(found):
    return [part for one in found for part in flatten(one)] if isinstance(found, (list, tuple)) else [found]


def describe(found, x, y):
    arrays = [one for one in (*flatten(found), x, y) if isinstance(one, np.ndarray)]
    pairs = [(one is other, np.shares_memory(one, other)) for one, other in itertools.combinations(arrays, 2)]
    return repr(found), x.tolist(), y.tolist(), pairs


def check(function, **options):
    compiled = autojit(function, **options)
    for signs in itertools.product((-1.0, 1.0), repeat=3):
        plain, ours = ((np.array(signs), np.array(signs[::-1]) * [1, -1, 1]) for _ in range(2))
        assert describe(compiled(*ours), *ours) == describe(function(*plain), *plain)


@pytest.mark.parametrize("function", [behind_an_early_return, in_a_chain, inside_of_both_sides, three_deep, tuples, dicts,
                                      written_behind])
def test_chosen_arrays(function):
    check(function, strict=True)


@pytest.mark.filterwarnings("ignore::jitcore.autojitted.AutojitWarning")
def test_arrays_that_may_be_each_other():
    check(two_at_once)
