"""Windows of equations: where they lie, and how they lie to each other."""

import numpy as np
import pytest

from jitcore import lax
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.symbolic import DimVar
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.indexing.windows import Window, find_window, has_short_edges, is_part

X, U, PLACE = ShapedArray((10, 4), np.float32), ShapedArray((2, 4), np.float32), ShapedArray((), np.int32)


def list_windows(function, *avals):
    jaxpr, _ = trace_to_jaxpr(function, avals)
    return [find_window(eqn) for eqn in jaxpr.eqns]


@pytest.mark.parametrize("function, starts", [
    (lambda x, u: [lax.slice(x, (3, 0), (5, 4))], (3, 0)),
    (lambda x, u: [lax.dynamic_slice(x, (np.int32(3), np.int32(0)), (2, 4))], (3, 0)),
    (lambda x, u: [lax.dynamic_slice(x, (np.int32(99), np.int32(1)), (2, 4))], (8, 0)),
    (lambda x, u: [lax.dynamic_update_slice(x, u, (np.int32(-99), np.int32(0)),
                                            allow_negative_indices=False)], (0, 0)),
    (lambda x, u: [lax.pad(u, np.float32(0), ((3, 5, 0), (0, 0, 0)))], (3, 0)),
])
def test_known_windows(function, starts):
    assert list_windows(function, X, U) == [Window(starts, (2, 4), (10, 4))]


def test_windows_at_one_variable_are_equal():
    def function(x, u, i):
        place = (i, np.int32(0))
        taken = lax.dynamic_slice(x, place, (2, 4), allow_negative_indices=False)
        return [lax.dynamic_update_slice(x, lax.add(taken, u), place, allow_negative_indices=False)]

    first, _, second = list_windows(function, X, U, PLACE)
    assert first == second and not first.is_known and not first.is_beside(second)


@pytest.mark.parametrize("function", [
    lambda x: [lax.slice(x, (0, 0), (10, 4), (2, 1))],
    lambda x: [lax.pad(x, np.float32(0), ((1, -1, 0), (0, 0, 0)))],
    lambda x: [lax.pad(x, np.float32(0), ((1, 1, 1), (0, 0, 0)))],
    lambda x: [lax.sin(x)],
])
def test_no_window(function):
    assert list_windows(function, X) == [None]


def test_windows_beside_each_other():
    def make(start, size):
        return Window((start, 0), (size, 4), (10, 4))

    assert make(0, 3).is_beside(make(3, 2)) and make(5, 1).is_beside(make(0, 5))
    assert not make(0, 4).is_beside(make(3, 2)) and not make(3, 2).is_beside(make(3, 2))
    assert not make(0, 3).is_beside(make(3, DimVar("n")))


def test_sizes_of_windows():
    assert is_part((2, 4), (10, 4), 5) and not is_part((2, 4), (10, 4), 6) and not is_part((DimVar("n"),), (9,), 1)
    assert Window((0,), (5,), (10,)).covers_most and not Window((0,), (4,), (10,)).covers_most
    assert Window((0,), (DimVar("n"),), (10,)).covers_most
    assert has_short_edges([(2, 30)], 40) and not has_short_edges([(12, 14)], 40) and has_short_edges([], 3)
    assert Window((1, 0), (38, 3), (40, 3)).leaves_edges and not Window((1,), (2,), (4,)).leaves_edges
