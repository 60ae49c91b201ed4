"""Gradients in reverse mode: of an elementwise chain, through the steps of a loop, through a stencil."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, loop, parallel_loop
from benchmarks.programs import ALPHA, LAMBDA, make_jacobi, make_selu
from benchmarks.workload import DTYPES, Workload
from benchmarks.workloads.loops import BETA, LORENZ_STEPS, RHO, SIGMA, TIME_STEP, advance, find_slopes

JACOBI_STEPS = 100


# -- an elementwise chain ------------------------------------------------------------------------------------


def make_selu_gradient(api) -> Callable:
    """Of the sum of SELU over the square of each element."""
    selu = make_selu(api)
    return api.grad(lambda x: api.numpy.sum(selu(x) ** 2))


def find_selu_gradient(x):
    power = np.exp(x)
    value = LAMBDA * np.where(x > 0, x, ALPHA * power - ALPHA)
    return 2 * value * LAMBDA * np.where(x > 0, 1, ALPHA * power)


@parallel_loop(fastmath=REORDER)
def run_selu_gradient(x):
    out = np.empty_like(x)
    alpha, scale, two = x.dtype.type(ALPHA), x.dtype.type(LAMBDA), x.dtype.type(2)
    for i in numba.prange(x.size):
        power = math.exp(x[i])
        value = x[i] if x[i] > 0 else alpha * power - alpha
        slope = x.dtype.type(1) if x[i] > 0 else alpha * power
        out[i] = two * scale * scale * value * slope
    return out


# -- a differential equation ---------------------------------------------------------------------------------


def make_orbit_gradient(api) -> Callable:
    """How the last state of Lorenz's equations depends on the first: the gradient of x * y + z."""

    def find_end(state):
        (x, y, z), _ = api.lax.scan(lambda state, _: (advance(state), None), state, None, length=LORENZ_STEPS)
        return x * y + z

    return lambda *state: api.grad(find_end)(state)


def find_orbit_gradient(x, y, z):
    """By tangents: the derivatives of the state by the three numbers it began with move along with it."""
    state, moved = np.array([x, y, z]), np.eye(3, dtype=x.dtype)

    def push(state, moved):
        x, y, z = state
        jacobian = np.array([[-SIGMA, SIGMA, 0], [RHO - z, -1, -x], [y, x, -BETA]], state.dtype)
        return np.array(find_slopes(*state)), jacobian @ moved

    half, sixth = 0.5 * TIME_STEP, TIME_STEP / 6
    for _ in range(LORENZ_STEPS):
        a, da = push(state, moved)
        b, db = push(state + half * a, moved + half * da)
        c, dc = push(state + half * b, moved + half * db)
        d, dd = push(state + TIME_STEP * c, moved + TIME_STEP * dc)
        state, moved = state + sixth * (a + 2 * b + 2 * c + d), moved + sixth * (da + 2 * db + 2 * dc + dd)
    return tuple(np.array([state[1], state[0], 1]) @ moved)


@loop
def pull_slopes(x, y, z, a, b, c, real):
    """The transposed Jacobian of the slopes, applied."""
    return (real(RHO) - z) * b - real(SIGMA) * a + y * c, real(SIGMA) * a - b + x * c, -x * b - real(BETA) * c


@loop
def run_orbit_gradient(x, y, z):
    """Forwards with all states kept, then backwards through the four stages of each step."""
    real = x.dtype.type
    half, whole = real(0.5 * TIME_STEP), real(TIME_STEP)
    sixth, third = real(TIME_STEP / 6), real(TIME_STEP / 3)
    points = np.empty((LORENZ_STEPS, 4, 3), x.dtype)
    s, t, u = x[()], y[()], z[()]
    for i in range(LORENZ_STEPS):
        dx, dy, dz = real(0), real(0), real(0)
        ex, ey, ez = real(0), real(0), real(0)
        for stage in range(4):
            step = real(0) if stage == 0 else (whole if stage == 3 else half)
            p, q, r = s + step * dx, t + step * dy, u + step * dz
            points[i, stage, 0], points[i, stage, 1], points[i, stage, 2] = p, q, r
            dx, dy, dz = real(SIGMA) * (q - p), p * (real(RHO) - r) - q, p * q - real(BETA) * r
            weight = sixth if stage == 0 or stage == 3 else third
            ex, ey, ez = ex + weight * dx, ey + weight * dy, ez + weight * dz
        s, t, u = s + ex, t + ey, u + ez
    a, b, c = t, s, real(1)
    for i in range(LORENZ_STEPS - 1, -1, -1):
        fa, fb, fc = a, b, c  # of the state that the step began with
        ga, gb, gc = real(0), real(0), real(0)  # of the point of the stage behind
        for stage in range(3, -1, -1):
            weight = sixth if stage == 0 or stage == 3 else third
            step = real(0) if stage == 3 else (whole if stage == 2 else half)
            ga, gb, gc = pull_slopes(
                points[i, stage, 0], points[i, stage, 1], points[i, stage, 2],
                weight * a + step * ga, weight * b + step * gb, weight * c + step * gc, real)
            fa, fb, fc = fa + ga, fb + gb, fc + gc
        a, b, c = fa, fb, fc
    return a, b, c


# -- a stencil -----------------------------------------------------------------------------------------------


def make_jacobi_gradient(api) -> Callable:
    """Of the sum of squares after relaxation, by the grid before it."""
    relax = make_jacobi(api, JACOBI_STEPS)
    return api.grad(lambda u: api.numpy.sum(relax(u) ** 2))


def find_jacobi_gradient(u):
    u = u.copy()
    for _ in range(JACOBI_STEPS):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    slope = 2 * u
    for _ in range(JACOBI_STEPS):
        inner = 0.25 * slope[1:-1, 1:-1]
        slope[1:-1, 1:-1] = 0
        slope[:-2, 1:-1] += inner
        slope[2:, 1:-1] += inner
        slope[1:-1, :-2] += inner
        slope[1:-1, 2:] += inner
    return slope


@parallel_loop
def run_jacobi_gradient(u):
    quarter, two = u.dtype.type(0.25), u.dtype.type(2)
    rows, columns = u.shape
    now, new = u.copy(), u.copy()
    for _ in range(JACOBI_STEPS):
        for i in numba.prange(1, rows - 1):
            for j in range(1, columns - 1):
                new[i, j] = quarter * (now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1])
        now, new = new, now
    slope, before = two * now, np.empty_like(u)
    for _ in range(JACOBI_STEPS):
        for i in numba.prange(rows):
            for j in range(columns):
                total = u.dtype.type(0)
                if 0 < j < columns - 1:
                    total += (slope[i - 1, j] if i > 1 else 0) + (slope[i + 1, j] if i < rows - 2 else 0)
                if 0 < i < rows - 1:
                    total += (slope[i, j - 1] if j > 1 else 0) + (slope[i, j + 1] if j < columns - 2 else 0)
                edge = i == 0 or j == 0 or i == rows - 1 or j == columns - 1
                before[i, j] = quarter * total + (slope[i, j] if edge else 0)
        slope, before = before, slope
    return slope


# -- rows ----------------------------------------------------------------------------------------------------


def _make_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    return (
        Workload(f"gradient of selu 1e6 {name}", lambda n: (make_normal(n, dtype=dtype),), make_selu_gradient,
                 numpy=find_selu_gradient, numba=run_selu_gradient,
                 bytes_moved=lambda x: 2 * x.nbytes),
        Workload(f"gradient through {LORENZ_STEPS} steps of Lorenz RK4 {name}",
                 lambda size: tuple(np.array(v, dtype) for v in (1.0, 1.0, 20.0)), make_orbit_gradient,
                 size=1, tiny=1, numpy=find_orbit_gradient, numba=run_orbit_gradient,
                 tolerance={"f32": 1e-2, "f64": 1e-9}[name]),
        Workload(f"gradient through {JACOBI_STEPS} Jacobi steps 500x500 {name}",
                 lambda n: (make_normal(n, n, dtype=dtype),), make_jacobi_gradient, size=500, tiny=12,
                 numpy=find_jacobi_gradient, numba=run_jacobi_gradient,
                 tolerance={"f32": 1e-4, "f64": 1e-11}[name]),
    )


ROWS = tuple(row for name, dtype in DTYPES.items() for row in _make_rows(name, dtype))
