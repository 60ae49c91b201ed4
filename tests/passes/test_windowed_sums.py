"""Sums of derivatives that are zero but for a part: what is added where, and what it costs."""

import numpy as np
import pytest

from jitcore import grad, jit, lax, numpy as jnp, vmap
from jitcore.lax.elementwise import add_any
from jitcore.passes.simplify import eliminate_dead_code, simplify
from tests.passes.programs import ShapedArray, count_calls, names, trace

N = 40
X, U = (np.random.default_rng(0).standard_normal(shape) for shape in ((N, 3), (2, 3)))
PLACES = np.array([[3], [3], [39]], np.int32)
ROWS_TO = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def put(u, start):
    return lax.dynamic_update_slice(jnp.zeros((N, 3), u.dtype), u, (start, 0))


def add_rows(u):
    return lax.scatter_add(jnp.zeros((N, 3), u.dtype), PLACES, jnp.concatenate([u, u[:1]]), ROWS_TO)


def around(u, low):
    return lax.pad(u, np.float64(0), ((low, N - 2 - low, 0), (0, 0, 0)))


def before_end(x, zeros=2):
    return lax.pad(x[2:], np.float64(0), ((0, zeros, 0), (0, 0, 0)))


def lower_half(x):
    return lax.pad(x[20:], np.float64(0), ((0, 20, 0), (0, 0, 0)))


def upper_half(x):
    return lax.pad(x[:20], np.float64(0), ((20, 0, 0), (0, 0, 0)))


HALVES = ["slice", "pad", "dynamic_update_slice"]
UPDATES = ["slice", "add_any", "dynamic_update_slice"]
#: Functions of (x, u), and what is left of them.
SUMS = {
    "slice": (lambda x, u: add_any(x * 2, put(u, 3)), ["mul", *UPDATES]),
    "slice first": (lambda x, u: add_any(put(u, 3), x * 2), ["mul", *UPDATES]),
    "start that is clamped": (lambda x, u: add_any(x * 2, put(u, 100)), ["mul", *UPDATES]),
    "slices": (lambda x, u: add_any(x * 2, add_rows(u)), ["mul", "slice", "concatenate", "scatter-add"]),
    "pad": (lambda x, u: add_any(x * 2, around(u, 5)), ["mul", "slice", "add_any", "dynamic_update_slice"]),
    "two parts": (lambda x, u: add_any(x * 2, add_any(put(u, 3), put(u, 4))), ["mul", *UPDATES * 2]),
    "parts alone": (lambda x, u: add_any(put(u, 3), put(u, 4)), ["broadcast_in_dim", "dynamic_update_slice",
                                                                   *UPDATES]),
    "halves": (lambda x, u: add_any(before_end(x), around(u, N - 2)), HALVES),
    "halves, the small one first": (lambda x, u: add_any(around(u, N - 2), before_end(x)), HALVES),
    "halves after a sum": (lambda x, u: add_any(add_any(x * 2, before_end(x)), around(u, N - 2)),
                           ["mul", "add_any", *HALVES]),
    "halves after a sum, the small one first": (
        lambda x, u: add_any(add_any(x * 2, around(u, N - 2)), before_end(x)), ["mul", "add_any", *HALVES]),
    "halves of one size": (lambda x, u: add_any(lower_half(x), upper_half(x)), [*HALVES, "slice"]),
    "three pieces": (lambda x, u: add_any(add_any(before_end(x[:-2], 4), around(u, N - 2)), around(u, N - 4)),
                     [*HALVES, "slice", "dynamic_update_slice"]),
    "not quite halves": (lambda x, u: add_any(before_end(x), around(u, N - 3)),
                         ["slice", "pad", "slice", "add_any", "dynamic_update_slice"]),
    "parts of parts": (
        lambda x, u: add_any(add_any(around(u, 0), put(u, 3)), add_any(x * 2, add_any(put(u, 3), put(u, 2)))),
        ["mul", *UPDATES * 2, "slice", "add_any", "dynamic_update_slice", *UPDATES]),
}
#: The same of an x that is an argument: what a loop sums up.
LOOP_SUMS = {
    "half": (lambda x, u: add_any(x, lax.pad(x[20:] * 2, np.float64(0), ((0, 20, 0), (0, 0, 0)))),
             ["mul", "slice", *UPDATES]),
    "halves": (lambda x, u: add_any(x, add_any(lower_half(x), upper_half(x))), ["slice", "slice", *UPDATES * 2]),
    "array and slice": (lambda x, u: add_any(x, add_any(x * 2, put(u, 3))), ["mul", "add_any", *UPDATES]),
    "slice and array": (lambda x, u: add_any(add_any(put(u, 3), x * 2), x), ["mul", "add_any", *UPDATES]),
}
#: What stays as it is.
OTHERS = {
    "plain sum": lambda x, u: add_any(x, x * 2),
    "half of an array": lambda x, u: add_any(x * 2, lower_half(x)),
    "slice of several": lambda x, u: add_any(x, lax.scatter(jnp.zeros((N, 3), u.dtype), PLACES[:2], u, ROWS_TO)),
    "sum of the user": lambda x, u: x + put(u, 3),
    "into ones": lambda x, u: add_any(x, lax.dynamic_update_slice(jnp.ones((N, 3), u.dtype), u, (3, 0))),
    "narrow pad": lambda x, u: add_any(x, lax.pad(x[1:], np.float64(0), ((0, 1, 0), (0, 0, 0)))),
    "pad with ones": lambda x, u: add_any(x, lax.pad(u, np.float64(1), ((0, N - 2, 0), (0, 0, 0)))),
    "pad between": lambda x, u: add_any(x, lax.pad(u, np.float64(0), ((0, N - 3, 1), (0, 0, 0)))),
    "work on the part": lambda x, u: add_any(x, around(u, 1) * 2),
}


def closed_program(function):
    return trace(lambda x, u: [function(x, u)], ShapedArray(X.shape, X.dtype), ShapedArray(U.shape, U.dtype))


def sorted_names(closed) -> list[str]:
    return sorted(names(closed))


@pytest.mark.parametrize("name", [*SUMS, *LOOP_SUMS])
def test_parts_are_added_where_they_belong(name):
    function, expected = (SUMS | LOOP_SUMS)[name]
    closed = closed_program(function)
    assert sorted_names(eliminate_dead_code(simplify(closed))) == sorted(expected)
    np.testing.assert_allclose(jit(function)(X, U), function(X, U), rtol=1e-14)


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay(name):
    closed = eliminate_dead_code(closed_program(OTHERS[name]))
    assert sorted_names(eliminate_dead_code(simplify(closed))) == sorted_names(closed)


def test_gradient_of_a_loop_updates_in_place():
    def loss(x, places):
        return lax.scan(lambda c, i: (c * 0.5 + jnp.sin(x[i]) * x[i + 1], None), 0.0, places)[0]

    x, places = X[:, 0].copy(), np.array([5, 1, 5, 30])
    gradient = jit(grad(loss))
    np.testing.assert_allclose(gradient(x, places), grad(loss)(x, places), rtol=1e-12)
    inside = gradient.inspect("loop program").split("do:")[-1]
    assert "in range" not in inside  # no sweep over x in an iteration
    batch = np.stack([x, x * 2])
    np.testing.assert_allclose(jit(vmap(grad(loss), (0, None)))(batch, places), vmap(grad(loss), (0, None))(
        batch, places), rtol=1e-12)


def test_gradient_of_an_array_and_its_elements_sweeps_once_in_an_iteration():
    def loss(x, places):
        return lax.scan(lambda c, i: (c * 0.5 + jnp.sum(jnp.sin(x)) * x[i], None), 0.0, places)[0]

    x, places = X[:, 0].copy(), np.array([5, 1, 5, 30])
    gradient = jit(grad(loss))
    np.testing.assert_allclose(gradient(x, places), grad(loss)(x, places), rtol=1e-12)
    inside = gradient.inspect("loop program").split("do:")[-1]
    assert inside.count("in range") == 1


def test_gradients_of_a_batch_of_loops_update_in_place():
    def loss(x, places):
        return lax.scan(lambda c, i: (c * 0.5 + jnp.sin(x[i]) * x[i + 1], None), 0.0, places)[0]

    xs, places = np.stack([X[:, 0], X[:, 1]]), np.array([[5, 1, 5, 30], [0, 38, 7, 7]])
    gradients = jit(vmap(grad(loss)))
    np.testing.assert_allclose(gradients(xs, places), np.stack(list(map(grad(loss), xs, places))), rtol=1e-12)
    inside = gradients.inspect("loop program").split("do:")[-1]
    assert "in range(40)" not in inside and "in range(80)" not in inside


def test_starts_that_are_clamped_overlap_what_lies_at_the_end():
    def loss(x):
        return jnp.sum(lax.dynamic_slice(x, (100,), (2,)) ** 2) + jnp.sum(x[N - 2 :] ** 3)

    x = X[:, 0].copy()
    expected = np.concatenate([np.zeros(N - 2), 2 * x[-2:] + 3 * x[-2:] ** 2])
    np.testing.assert_allclose(jit(grad(loss))(x), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(grad(lambda x: loss(x) + 0.0))(x), expected, rtol=1e-12)


def test_sums_of_many_parts_take_linear_time():
    def add_up(x, u):
        total = x * 2
        for place in range(1200):
            total = add_any(total, put(u, place % N))
        return add_any(total, x * 3)

    calls = count_calls(simplify, closed_program(add_up))
    assert calls < 2000 * 1200
