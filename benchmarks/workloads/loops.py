"""Loops whose steps depend on each other: numbers, differential equations, escape times, gravity."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal, make_uniform
from benchmarks.numba_loops import REORDER, loop, parallel_loop
from benchmarks.workload import DTYPES, Workload

FACTOR = 0.999999
STEPS = 1_000_000
STARTS = 10_000
ITERATIONS = 100
TIME_STEP = 2e-4
SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0
LORENZ_STEPS, BATCH_STEPS = 10_000, 1000
LEAPFROG_STEPS, SOFTENING, LEAPFROG_TIME = 10, 0.01, 0.001


# -- one number ----------------------------------------------------------------------------------------------


def make_recurrence(api) -> Callable:
    return lambda start: api.lax.fori_loop(0, STEPS, lambda _, c: c * FACTOR + 1.0, start)


@loop
def run_recurrence(start):
    factor, one = start.dtype.type(FACTOR), start.dtype.type(1)
    value = start[()]
    for _ in range(STEPS):
        value = value * factor + one
    return value


def make_collatz(api) -> Callable:
    """The longest way to 1 from a start below `limit`."""
    jnp, lax = api.numpy, api.lax

    def step(state):
        n, count = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    def count_steps(start):
        return lax.while_loop(lambda state: state[0] != 1, step, (start, jnp.int32(0)))[1]

    def find_longest(limit):
        def visit(start, longest):
            return jnp.maximum(longest, count_steps(jnp.int32(start)))

        return lax.fori_loop(1, limit, visit, jnp.int32(0))

    return find_longest


@loop
def run_collatz(limit):
    longest = 0
    for start in range(1, limit):
        n, count = np.int32(start), 0
        while n != 1:
            n = n // np.int32(2) if n % np.int32(2) == 0 else np.int32(3) * n + np.int32(1)
            count += 1
        longest = max(longest, count)
    return longest


# -- Lorenz's equations by the method of Runge and Kutta -----------------------------------------------------


def find_slopes(x, y, z):
    return SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z


def advance(state):
    """One step of the fourth order; components of any shape."""
    half, sixth = 0.5 * TIME_STEP, TIME_STEP / 6
    k1 = find_slopes(*state)
    k2 = find_slopes(*(s + half * k for s, k in zip(state, k1)))
    k3 = find_slopes(*(s + half * k for s, k in zip(state, k2)))
    k4 = find_slopes(*(s + TIME_STEP * k for s, k in zip(state, k3)))
    return tuple(s + sixth * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))


def make_orbit(api) -> Callable:
    """All states on the way, stacked."""

    def step(state, _):
        state = advance(state)
        return state, state

    return lambda *state: api.lax.scan(step, state, None, length=LORENZ_STEPS)[1]


def make_orbits(api) -> Callable:
    """The last states of many systems, each the state of one."""

    def run(start):
        x, y, z = api.lax.fori_loop(0, BATCH_STEPS, lambda _, state: advance(state), tuple(start))
        return api.numpy.stack([x, y, z])

    return api.vmap(run)


def follow_orbit(x, y, z):
    state, out = (x[()], y[()], z[()]), np.empty((3, LORENZ_STEPS), x.dtype)
    for number in range(LORENZ_STEPS):
        state = advance(state)
        out[:, number] = state
    return tuple(out)


def follow_orbits(starts):
    state = tuple(starts.T)
    for _ in range(BATCH_STEPS):
        state = advance(state)
    return np.stack(state, axis=1)


@loop
def slope_numbers(x, y, z, real):
    return real(SIGMA) * (y - x), x * (real(RHO) - z) - y, x * y - real(BETA) * z


@loop
def advance_numbers(x, y, z, real):
    half, whole, sixth, two = real(0.5 * TIME_STEP), real(TIME_STEP), real(TIME_STEP / 6), real(2)
    a1, b1, c1 = slope_numbers(x, y, z, real)
    a2, b2, c2 = slope_numbers(x + half * a1, y + half * b1, z + half * c1, real)
    a3, b3, c3 = slope_numbers(x + half * a2, y + half * b2, z + half * c2, real)
    a4, b4, c4 = slope_numbers(x + whole * a3, y + whole * b3, z + whole * c3, real)
    return (x + sixth * (a1 + two * a2 + two * a3 + a4), y + sixth * (b1 + two * b2 + two * b3 + b4),
            z + sixth * (c1 + two * c2 + two * c3 + c4))


@loop
def run_orbit(x, y, z):
    real = x.dtype.type
    a, b, c = x[()], y[()], z[()]
    out = np.empty((3, LORENZ_STEPS), x.dtype)
    for i in range(LORENZ_STEPS):
        a, b, c = advance_numbers(a, b, c, real)
        out[0, i], out[1, i], out[2, i] = a, b, c
    return out[0], out[1], out[2]


@parallel_loop
def run_orbits(starts):
    out = np.empty_like(starts)
    for i in numba.prange(starts.shape[0]):
        a, b, c = starts[i, 0], starts[i, 1], starts[i, 2]
        for _ in range(BATCH_STEPS):
            a, b, c = advance_numbers(a, b, c, starts.dtype.type)
        out[i, 0], out[i, 1], out[i, 2] = a, b, c
    return out


# -- Mandelbrot's set ----------------------------------------------------------------------------------------


def make_escape_times(api) -> Callable:
    """How often z*z + c stays within radius 2, for each c."""

    def count(real, imaginary):
        def step(state):
            n, x, y = state
            return n + 1, x * x - y * y + real, 2 * x * y + imaginary

        def stays(state):
            n, x, y = state
            return (n < ITERATIONS) & (x * x + y * y <= 4.0)

        return api.lax.while_loop(stays, step, (api.numpy.int32(0), 0 * real, 0 * imaginary))[0]

    return api.vmap(count)


def make_plane(side: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    real, imaginary = np.meshgrid(np.linspace(-2, 0.6, side), np.linspace(-1.2, 1.2, side))
    return real.ravel().astype(dtype), imaginary.ravel().astype(dtype)


def escape_numpy(real, imaginary):
    """Only the points that have not escaped take part."""
    counts = np.zeros(real.size, np.int32)
    active, x, y = np.arange(real.size), np.zeros_like(real), np.zeros_like(imaginary)
    for _ in range(ITERATIONS):
        stays = x * x + y * y <= 4.0
        if not stays.all():
            active, x, y, real, imaginary = (v[stays] for v in (active, x, y, real, imaginary))
        x, y = x * x - y * y + real, 2 * x * y + imaginary
        counts[active] += 1
    return counts


@parallel_loop
def run_escape_times(real, imaginary):
    out = np.empty(real.size, np.int32)
    four, two = real.dtype.type(4), real.dtype.type(2)
    for i in numba.prange(real.size):
        x, y, n = real.dtype.type(0), real.dtype.type(0), 0
        while n < ITERATIONS and x * x + y * y <= four:
            x, y = x * x - y * y + real[i], two * x * y + imaginary[i]
            n += 1
        out[i] = n
    return out


# -- gravity -------------------------------------------------------------------------------------------------


def make_gravity(api) -> Callable:
    """Leapfrog steps of bodies that attract each other: positions (n, 3), velocities (n, 3), masses (n)."""
    jnp = api.numpy

    def accelerate(positions, masses):
        apart = positions[None] - positions[:, None]
        square = jnp.sum(apart * apart, axis=-1) + SOFTENING
        return jnp.sum(apart * (masses / (square * jnp.sqrt(square)))[..., None], axis=1)

    def step(_, state):
        positions, velocities, masses = state
        velocities = velocities + 0.5 * LEAPFROG_TIME * accelerate(positions, masses)
        positions = positions + LEAPFROG_TIME * velocities
        velocities = velocities + 0.5 * LEAPFROG_TIME * accelerate(positions, masses)
        return positions, velocities, masses

    def run(positions, velocities, masses):
        state = positions, velocities, masses
        if not hasattr(api, "lax"):  # NumPy
            for number in range(LEAPFROG_STEPS):
                state = step(number, state)
            return state[:2]
        return api.lax.fori_loop(0, LEAPFROG_STEPS, step, state)[:2]

    return run


@parallel_loop(fastmath=REORDER)
def accelerate_bodies(x, y, z, masses, out):
    real = x.dtype.type
    softening = real(SOFTENING)
    for i in numba.prange(x.size):
        a, b, c = real(0), real(0), real(0)
        for j in range(x.size):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + softening
            pull = masses[j] / (square * math.sqrt(square))
            a, b, c = a + pull * dx, b + pull * dy, c + pull * dz
        out[i, 0], out[i, 1], out[i, 2] = a, b, c


@loop
def run_gravity(positions, velocities, masses):
    positions, velocities, slopes = positions.copy(), velocities.copy(), np.empty_like(positions)
    half, whole = positions.dtype.type(0.5 * LEAPFROG_TIME), positions.dtype.type(LEAPFROG_TIME)
    for _ in range(LEAPFROG_STEPS):
        for drift in (True, False):
            accelerate_bodies(positions[:, 0].copy(), positions[:, 1].copy(), positions[:, 2].copy(), masses,
                              slopes)
            velocities += half * slopes
            if drift:
                positions += whole * velocities
    return positions, velocities


# -- rows ----------------------------------------------------------------------------------------------------


def _make_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    def make_start(size):
        return tuple(np.array(v, dtype) for v in (1.0, 1.0, 20.0))

    def make_bodies(count):
        return (make_normal(count, 3, dtype=dtype), make_normal(count, 3, dtype=dtype, seed=1),
                make_uniform(0.1, 1, count, dtype=dtype, seed=2))

    return (
        # a million rounded steps: a fused multiply-add and its absence differ in the third digit of float32
        Workload(f"fori_loop {STEPS:.0e} steps {name}".replace("e+0", "e"),
                 lambda size: (np.array(1, dtype),), make_recurrence, size=1, tiny=1,
                 reference=run_recurrence.py_func, numba=run_recurrence,
                 tolerance={"f32": 2e-3, "f64": 1e-9}[name]),
        Workload(f"Lorenz RK4 {LORENZ_STEPS} steps {name}", make_start, make_orbit, size=1, tiny=1,
                 numpy=follow_orbit, numba=run_orbit, tolerance={"f32": 1e-3, "f64": 1e-10}[name]),
        Workload(f"Lorenz RK4 by vmap, 1000 systems {name}",
                 lambda count: (make_normal(count, 3, dtype=dtype) + np.array([1, 1, 20], dtype),),
                 make_orbits, size=1000, tiny=10, numpy=follow_orbits, numba=run_orbits,
                 tolerance={"f32": 1e-3, "f64": 1e-10}[name]),
        Workload(f"n-body 1000, {LEAPFROG_STEPS} steps {name}", make_bodies, make_gravity, size=1000, tiny=20,
                 numba=run_gravity, tolerance={"f32": 1e-4, "f64": 1e-11}[name]),
    )


def _make_mandelbrot_row(side: int, name: str, dtype: str) -> Workload:
    return Workload(f"mandelbrot {side}x{side} {name}", lambda n: make_plane(n, dtype), make_escape_times,
                    size=side, tiny=20, numpy=escape_numpy, numba=run_escape_times,
                    mismatches=0.02)


ROWS = (
    *(row for name, dtype in DTYPES.items() for row in _make_rows(name, dtype)),
    Workload(f"collatz below {STARTS} i32", lambda limit: (limit,), make_collatz, size=STARTS, tiny=100,
             reference=run_collatz, numba=run_collatz),
    *(_make_mandelbrot_row(side, name, dtype) for side in (300, 2000) for name, dtype in DTYPES.items()),
)
