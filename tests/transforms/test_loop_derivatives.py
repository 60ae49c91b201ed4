"""Derivatives of control flow: `scan` and `cond` against JAX, `while` (which JAX refuses in reverse mode) against
central differences in float64; memory and repeated work of reverse mode."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax, vmap
from jitcore.core.jaxpr import DropVar, sub_jaxprs
from jitcore.lax.control_flow.reverse_loop import MAX_SLOTS, _find_slot
from jitcore.passes import run_pipeline
from jitcore.transforms.autodiff import grad, jvp, vjp
from tests.jax_answers import jax

X = np.array([0.3, 0.7, 1.1])
TOLERANCE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(autouse=True)
def checked():
    with jitcore.config.override(check_jaxprs=True):
        yield


def central_difference(f, x, step=1e-5):
    """The gradient of a scalar function in float64."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        found[place] = (float(f(x + moved)) - float(f(x - moved))) / (2 * step)
    return found


def check_gradient(f, x=X, rtol=1e-7, second=True):
    """First and second derivatives in every mode against central differences; `vmap` inside and outside."""
    expected = central_difference(f, x)
    first = np.asarray(grad(f)(x))
    np.testing.assert_allclose(first, expected, rtol=rtol, atol=1e-8)
    for other in (jit(grad(f)), grad(jit(f))):
        np.testing.assert_allclose(np.asarray(other(x)), first, **TOLERANCE)
    direction = np.cos(np.arange(x.size, dtype=x.dtype)).reshape(x.shape)
    slope = float(jvp(f, (x,), (direction,))[1])
    np.testing.assert_allclose(slope, np.sum(first * direction), **TOLERANCE)
    batch = np.stack([x, 1.1 * x, 0.9 * x])
    each = np.stack([np.asarray(grad(f)(row)) for row in batch])
    np.testing.assert_allclose(np.asarray(jit(vmap(grad(f)))(batch)), each, **TOLERANCE)
    np.testing.assert_allclose(np.asarray(jit(grad(lambda b: vmap(f)(b).sum()))(batch)), each, **TOLERANCE)
    if second:
        check_second_derivative(f, x, direction, rtol)


def check_second_derivative(f, x, direction, rtol):
    def along(x):
        return jnp.sum(grad(f)(x) * direction)

    expected = central_difference(jit(along), x)
    np.testing.assert_allclose(np.asarray(jit(grad(along))(x)), expected, rtol=10 * rtol, atol=1e-7)
    forward = jit(lambda x: jvp(grad(f), (x,), (direction,))[1])(x)
    np.testing.assert_allclose(np.asarray(forward), expected, rtol=10 * rtol, atol=1e-7)


# -- scan and cond, against JAX -----------------------------------------------------------------------------
def scan_with_elements(np_, lax_):
    w = np.linspace(0.1, 1, 12).reshape(4, 3)

    def f(x):
        def body(c, w):
            y = np_.sin(c * w) + x
            return y * 0.5, (y * y).sum()

        c, ys = lax_.scan(body, x, w)
        return c.sum() + (ys * ys).sum()

    return f


def scan_reversed_over_argument(np_, lax_):
    def f(x):
        def body(c, row):
            return c * np_.cos(row.sum()) + x[0], (c, row * c)

        c, (a, b) = lax_.scan(body, np_.sum(x), np_.outer(x, x), reverse=True)
        return c + (a * a).sum() + (b * b * b).sum()

    return f


def scan_of_tuples(np_, lax_):
    def f(x):
        def body(carry, i):
            (a, b), n = carry
            return ((b, a * np_.sin(b) + x), n + 1), None

        ((a, b), n), _ = lax_.scan(body, ((x, 2 * x), 0), np.arange(5))
        return (a * b).sum() * n

    return f


def scan_without_carry(np_, lax_):
    def f(x):
        return (lax_.scan(lambda _, row: ((), np_.exp(row * x)), (), np_.outer(x, x))[1] ** 2).sum()

    return f


def counted_loop(np_, lax_):
    return lambda x: lax_.fori_loop(0, 5, lambda i, c: c * np_.cos(x) + i, x).sum()


def loop_over_rows(np_, lax_):
    def f(x):
        w = np_.outer(np_.arange(12.0), x)

        def body(i, c):
            c = np_.sin(c * w[i]) + w[i + 1] * w[2]
            return c + w[np_.array([3, 4])].sum(0) * w[-i] + w[i, 1] + w.sum() / 1000

        return lax_.fori_loop(0, 9, body, x).sum()

    return f


def loop_of_no_iteration(np_, lax_):
    return lambda x: lax_.fori_loop(3, 3, lambda i, c: c * c, x).sum()


def stencil(np_, lax_):
    def f(x):
        def body(i, u):
            mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
            return u.at[1:-1, 1:-1].set(mean)

        u = np_.outer(np_.concatenate([x, x]), np_.concatenate([x, -x]))
        return (lax_.fori_loop(0, 4, body, u) ** 2).sum()

    return f


def branches(np_, lax_):
    def f(x):
        y = lax_.cond(x[0] < 0.5, lambda x: np_.sin(x) * x[1], lambda x: np_.exp(x) * x, x)
        z = lax_.cond(x[0] > 0.5, lambda x: np_.sin(x) * x[1], lambda x: 0 * x + 1, y)
        return (lax_.switch(1, [lambda y: y, lambda y: y**3 * x, lambda y: 2 * y], z) * y).sum()

    return f


def branches_in_loop(np_, lax_):
    def f(x):
        def body(c, i):
            y = lax_.cond(i % 2 == 0, lambda c: np_.sin(c) * c, lambda c: c + x, c)
            return y, y.sum()

        c, ys = lax_.scan(body, x, np.arange(6))
        return (c * ys[:3]).sum()

    return f


def loops_in_loop(np_, lax_):
    def f(x):
        def inner(c, w):
            return np_.tanh(c + w * x), c * w

        def outer(c, i):
            c, ys = lax_.scan(inner, c, np.linspace(0, 1, 4))
            return c * 0.9, ys.sum()

        c, ys = lax_.scan(outer, x, np.arange(3))
        return c.sum() + (ys * ys).sum()

    return f


PROGRAMS = (scan_with_elements, scan_reversed_over_argument, scan_of_tuples, scan_without_carry, counted_loop, loop_over_rows,
            loop_of_no_iteration, stencil, branches, branches_in_loop, loops_in_loop)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_jax(program):
    with jax.enable_x64(True):
        theirs = program(jax.numpy, jax.lax)
        expected = np.asarray(jax.grad(theirs)(X))
        second = np.asarray(jax.grad(lambda x: (jax.grad(theirs)(x) * x).sum())(X))
        slope = np.asarray(jax.jvp(theirs, (X,), (X,))[1])
        # Not 2 * X: there an ulp of x moves the derivative of `loop_over_rows` by 3e-7.
        batch = np.stack([X, X / 2])
        mapped = np.asarray(jax.vmap(jax.grad(theirs))(batch))
    f = program(jnp, lax)
    for ours in (grad(f), jit(grad(f)), grad(jit(f))):
        np.testing.assert_allclose(np.asarray(ours(X)), expected, **TOLERANCE)
    np.testing.assert_allclose(np.asarray(jvp(f, (X,), (X,))[1]), slope, **TOLERANCE)
    np.testing.assert_allclose(np.asarray(jit(vmap(grad(f)))(batch)), mapped, **TOLERANCE)
    np.testing.assert_allclose(
        np.asarray(jit(grad(lambda x: (grad(f)(x) * x).sum()))(X)), second, **TOLERANCE)


# -- what a split loop keeps --------------------------------------------------------------------------------
def list_equations(closed, name):
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for inner in sub_jaxprs(eqn.params):
            yield from list_equations(inner, name)


def find_scans(f, *args):
    forward, backward = list_equations(jitcore.make_jaxpr(lambda *args: vjp(f, *args)[1](1.0))(*args), "scan")
    return forward, backward


def test_a_linear_body_keeps_nothing():
    forward, backward = find_scans(stencil(jnp, lax), X)
    assert len(forward.outvars) == forward.params["num_carry"]
    assert len(backward.invars) == backward.params["num_consts"] + backward.params["num_carry"]


def test_elements_are_not_stacked_again():
    w = np.linspace(0.1, 1, 12).reshape(4, 3)
    forward, backward = find_scans(lambda x: lax.scan(lambda c, w: (c * w, None), x, w)[0].sum(), X)
    assert len(forward.outvars) == forward.params["num_carry"]
    assert len(backward.invars) == backward.params["num_carry"] + 1


def test_what_does_not_change_is_computed_once():
    def f(x):
        return lax.fori_loop(0, 5, lambda i, c: c * jnp.exp(jnp.sin(x)), x).sum()

    jaxpr = jitcore.make_jaxpr(grad(f))(X)
    forward, backward = list_equations(jaxpr, "scan")
    stacked = [var.aval.shape for var in forward.outvars[forward.params["num_carry"] :]]
    assert stacked == [(5, 3)]  # the carry alone
    assert "exp" in [eqn.primitive.name for eqn in jaxpr.eqns]


def test_a_row_is_added_in_its_place():
    """An iteration costs as much as the row that it reads, forward and backward."""
    w = np.ones((1000, 3))
    gradient = grad(lambda w: lax.fori_loop(0, 999, lambda i, c: jnp.sin(c * w[i + 1]), X).sum())
    _, backward = list_equations(run_pipeline(jitcore.make_jaxpr(gradient)(w)), "scan")
    whole = [eqn.primitive.name for eqn in backward.params["jaxpr"].eqns
             if any(var.aval.shape == w.shape for var in eqn.outvars if not isinstance(var, DropVar))]
    assert whole == ["dynamic_update_slice"]


@pytest.mark.cpu
def test_a_stencil_is_padded_once():
    f = jit(grad(stencil(jnp, lax)))
    f(np.linspace(0, 1, 50))
    assert f.inspect("jaxpr").count("= pad[") == 4
    text = f.inspect("optimized jaxpr")
    assert text[text.rindex("scan[") :].count("= pad[") == 1


@pytest.mark.cpu
def test_both_directions_are_native_loops():
    for program in (scan_with_elements(jnp, lax), stencil(jnp, lax), newton):
        f = jit(grad(program))
        f(X)
        text = f.inspect("loop program")
        assert "call" not in text
        assert text.count("repeat:") + text.count("while:") >= 2


# -- while, against central differences ---------------------------------------------------------------------
def newton(x):
    return lax.while_loop(
        lambda c: jnp.any(abs(c * c - x) > 1e-13), lambda c: 0.5 * (c + x / c), x + 1.0
    ).sum()


def early_exit(x):
    def body(carry):
        i, y, total = carry
        y = y * jnp.cos(y) + 0.1 * x
        return i + 1, y, total + i * jnp.sum(y * y)

    return lax.while_loop(lambda c: (c[0] < 9) & (c[2] < 20.0), body, (0, x, 0.0 * x[0]))[2]


def dynamic_counter(x):
    count = jnp.sum(jnp.asarray(x) > 0.5).astype(np.int32) + 4
    return lax.fori_loop(0, count, lambda i, c: jnp.sin(c) + x * i, x).sum()


def adaptive_ode(x):
    """An embedded pair of orders 1 and 2 for y' = -x y + sin(t), to t = 1, with a step that adapts."""

    def rate(t, y):
        return -x * y + jnp.sin(t)

    def body(carry):
        t, y, h = carry
        h = jnp.minimum(h, 1.0 - t)
        k1 = rate(t, y)
        k2 = rate(t + h, y + h * k1)
        error = lax.stop_gradient(jnp.max(abs(0.5 * h * (k2 - k1))))
        accepted = error < 1e-3
        t, y = jnp.where(accepted, t + h, t), jnp.where(accepted, y + 0.5 * h * (k1 + k2), y)
        return t, y, jnp.where(accepted, 1.3 * h, 0.5 * h)

    t0 = np.float64(0)
    return jnp.sum(lax.while_loop(lambda c: c[0] < 1.0 - 1e-9, body, (t0, x * x, np.float64(0.3)))[1] ** 2)


def while_in_scan(x):
    def step(c, w):
        c = lax.while_loop(lambda c: jnp.sum(c) < 3.0 + w, lambda c: c * 1.3 + 0.1 * x, c)
        return 0.3 * c, jnp.sum(c)

    c, ys = lax.scan(step, x, np.arange(3.0))
    return jnp.sum(c) + jnp.sum(ys * ys)


def scan_in_while(x):
    def body(carry):
        i, c = carry
        c, ys = lax.scan(lambda c, w: (jnp.sin(c) + w * x, jnp.sum(c)), c, np.linspace(0, 1, 3))
        return i + 1, c + 0.1 * jnp.sum(ys)

    return jnp.sum(lax.while_loop(lambda c: c[0] < 4, body, (0, x))[1])


def while_in_while(x):
    def body(carry):
        i, c = carry
        _, c = lax.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, jnp.sin(s[1]) * x), (0, c))
        return i + 1, c + 0.5

    return jnp.sum(lax.while_loop(lambda s: s[0] < 4, body, (0, x))[1])


def cond_in_while(x):
    def body(carry):
        i, c = carry
        return i + 1, lax.cond(i % 2 == 0, lambda c: jnp.sin(c) * x, lambda c: c + jnp.exp(-c), c)

    return jnp.sum(lax.while_loop(lambda s: s[0] < 5, body, (0, x))[1])


def never_entered(x):
    return jnp.sum(lax.while_loop(lambda c: jnp.sum(c) < -1.0, lambda c: c * c, x * x))


WHILE_PROGRAMS = (newton, early_exit, dynamic_counter, adaptive_ode, while_in_scan, scan_in_while, while_in_while,
                  cond_in_while, never_entered)


@pytest.mark.parametrize("program", WHILE_PROGRAMS, ids=lambda program: program.__name__)
def test_while_equals_central_differences(program):
    check_gradient(program, rtol=1e-6)


def test_lanes_stop_each_on_its_own():
    """Lanes that have ended hand their cotangent on, also where the body would not be finite for them."""

    def f(x):
        def body(c):
            return c - 1.0 + 0.02 * jnp.sqrt(c - 1.0) * x

        return lax.while_loop(lambda c: c > 2.0, body, 3.0 * x)

    x = np.array([0.4, 1.2, 2.1, 3.7])
    each = np.array([float(grad(f)(value)) for value in x])
    expected = np.array([float(central_difference(f, np.asarray(value))) for value in x])
    np.testing.assert_allclose(each, expected, rtol=1e-7)
    np.testing.assert_allclose(np.asarray(jit(vmap(grad(f)))(x)), each, **TOLERANCE)
    np.testing.assert_allclose(np.asarray(jit(grad(lambda x: vmap(f)(x).sum()))(x)), each, **TOLERANCE)
    twice = jit(vmap(grad(grad(f))))(x)
    np.testing.assert_allclose(
        twice, [float(central_difference(grad(f), np.asarray(v))) for v in x], rtol=1e-6
    )


def test_constant_shared_by_lanes():
    def f(w):
        return vmap(lambda x: lax.while_loop(lambda c: c < 5.0, lambda c: c + w * x, x))(X).sum()

    np.testing.assert_allclose(
        float(jit(grad(f))(0.7)), float(central_difference(f, np.asarray(0.7))), rtol=1e-5
    )


def test_higher_orders():
    def f(x):
        return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1]

    def unrolled(x):
        y = x
        for _ in range(4):
            y = jnp.sin(y) * x
        return y

    x = np.float64(1.3)
    for _ in range(4):
        f, unrolled = grad(f), grad(unrolled)
        np.testing.assert_allclose(float(jit(f)(x)), float(jit(unrolled)(x)), rtol=1e-10)


def test_mixed_second_derivatives_are_symmetric():
    def f(x, y):
        return jnp.sum(lax.while_loop(lambda c: jnp.sum(c) < 40.0, lambda c: c * y + jnp.sin(c * x), x))

    x, y = X, np.array([1.4, 1.2, 1.3])
    basis = np.eye(3)
    by_xy = np.stack([np.asarray(jit(grad(lambda x, e=e: jnp.sum(grad(f, 1)(x, y) * e)))(x)) for e in basis])
    by_yx = np.stack([np.asarray(jit(grad(lambda y, e=e: jnp.sum(grad(f, 0)(x, y) * e)))(y)) for e in basis])
    np.testing.assert_allclose(by_xy, by_yx.T, **TOLERANCE)
    forward = np.stack([np.asarray(jvp(lambda x: grad(f, 1)(x, y), (x,), (e,))[1]) for e in basis])
    np.testing.assert_allclose(forward, by_yx, **TOLERANCE)


def test_jacobians_by_batched_cotangents_and_tangents():
    def f(x):
        return lax.while_loop(lambda c: jnp.sum(c) < 9.0, lambda c: c * x + 1.0, x)

    _, pull_back = vjp(f, X)
    by_rows = np.asarray(vmap(lambda ct: pull_back(ct)[0])(np.eye(3)))
    by_columns = np.asarray(vmap(lambda t: jvp(f, (X,), (t,))[1])(np.eye(3)))
    np.testing.assert_allclose(by_rows, by_columns.T, **TOLERANCE)


# -- checkpoints --------------------------------------------------------------------------------------------
def accumulate(x, count):
    """Every iteration matters to the gradient."""

    def body(carry):
        i, y = carry
        return i + 1, y + 0.05 * jnp.sin(y * x + i)

    return jnp.sum(lax.while_loop(lambda c: c[0] < count, body, (jnp.int32(0), x))[1])


def test_slots_of_checkpoints_are_distinct():
    for doublings in range(12):
        places = np.arange(8, dtype=np.int32) << doublings
        assert sorted(np.asarray(_find_slot(places, 8))) == list(range(8))


@pytest.mark.parametrize("budget", [1, 1000, 1 << 28])
def test_any_number_of_iterations_in_any_memory(budget):
    def counted(x, count):
        step = lambda y, i: (y + 0.05 * jnp.sin(y * x + i), None)  # noqa: E731
        return jnp.sum(lax.scan(step, x, jnp.arange(count, dtype=np.int32))[0])

    with jitcore.config.override(loop_checkpoint_bytes=budget, check_jaxprs=False):
        f = jit(grad(accumulate))
        for count in [*range(20), 31, 32, 33, 64, 100, 257, 1000]:
            with jitcore.config.override(loop_checkpoint_bytes=1 << 28):
                expected = np.asarray(grad(counted)(X, count))
            np.testing.assert_allclose(np.asarray(f(X, np.int32(count))), expected, rtol=1e-12)


def count_steps(count, budget):
    """How often the reverse pass runs the body's primal part, for a gradient over `count` iterations."""
    calls = []

    def tick(i):
        calls.append(i)
        return i + np.int32(1)

    def f(x):
        def body(carry):
            i, y = carry
            return jitcore.pure_callback(tick, jitcore.ShapeDtypeStruct((), np.int32), i), jnp.sin(y) + x

        return lax.while_loop(lambda c: c[0] < count, body, (jnp.int32(0), x))[1]

    with jitcore.config.override(loop_checkpoint_bytes=budget, check_jaxprs=False):
        jit(grad(f))(0.5)
    return len(calls)


def test_repeated_work_is_bounded():
    assert count_steps(100, 1 << 28) == 100
    half = MAX_SLOTS // 2
    assert count_steps(half, 1 << 28) == half
    assert half < count_steps(4 * half, 1 << 28) <= 2 * 4 * half
    assert count_steps(300, 1) <= 300 * 5  # of eight slots


def test_one_trace_and_one_compile():
    jitcore.clear_caches()
    f = jit(grad(accumulate))
    for count in (3, 7, 2000):
        f(X, np.int32(count))
    assert f.cache_info().traces == 1
    assert f.cache_info().compiles == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 7, 50])
def test_segments_equal_the_whole(length, reverse):
    w = np.linspace(0.1, 1, length)

    def f(x):
        def body(c, w):
            c = c + 0.1 * jnp.sin(c * w) * x
            return c, jnp.sum(c * c)

        c, ys = lax.scan(body, x, w, reverse=reverse)
        return jnp.sum(c * c) + jnp.sum(ys * ys)

    expected = np.asarray(jit(grad(f))(X))
    second = np.asarray(jit(grad(lambda x: jnp.sum(grad(f)(x) * x)))(X))
    for budget in (300, 1):
        with jitcore.config.override(loop_checkpoint_bytes=budget):
            for ours in (grad(f), jit(grad(f))):
                np.testing.assert_allclose(np.asarray(ours(X)), expected, rtol=1e-12)
        if length <= 7:
            with jitcore.config.override(loop_checkpoint_bytes=budget):
                again = jit(grad(lambda x: jnp.sum(grad(f)(x) * x)))(X)
            np.testing.assert_allclose(np.asarray(again), second, rtol=1e-11)


MEMORY_PROGRAM = """
import resource, sys
import numpy as np
import jitcore, jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.passes import run_pipeline
from jitcore.transforms.autodiff import grad

def loop(x):
    return lax.fori_loop(0, {count}, lambda i, c: c + 1e-5 * jnp.sin(c * c), x).sum()

def search(x):
    body = lambda c: (c[0] + 1, c[1] + 1e-5 * jnp.sin(c[1] * c[1]))
    return lax.while_loop(lambda c: c[0] < {count}, body, (0, x))[1].sum()

x = np.linspace(0.5, 2, 1000)
for f in (jit(grad(loop)), jit(grad(search))):
    with jitcore.config.override(loop_checkpoint_bytes=16 << 20):
        f(x[:2])  # compiled, for another size
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert np.isfinite(np.asarray(f(x))).all()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.cpu
def test_memory_of_long_loops_is_bounded():
    """20,000 states of 8 KB would take 160 MB, and the residuals as much again."""
    result = subprocess.run([sys.executable, "-c", MEMORY_PROGRAM.format(count=20_000)], text=True,
                            capture_output=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    for grown in map(int, result.stdout.split()):
        assert grown * unit < 48 << 20
