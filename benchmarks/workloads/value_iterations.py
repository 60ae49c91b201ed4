"""Value iterations of economics: a step is applied until nothing changes any more. Steps are products of
matrices with vectors, interpolations, and the best of several choices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.inputs import make_uniform
from benchmarks.workload import Workload

TOLERANCE, MOST_STEPS = 1e-6, 1000


# -- steps: (NumPy or what acts like it, inputs) -> first values, and values -> better values ----------------
def search_job(np, wages, chances):
    """A worker takes an offer or waits for the next one, which depends on it. v(wage)."""
    discount, benefit = 0.97, 6.0
    taken = wages / (1 - discount)
    return taken, lambda v: np.maximum(taken, benefit + discount * (chances @ v))


def save(np, assets, incomes, chances):
    """A household chooses its next assets among those of the grid. v(assets, income)."""
    discount, interest = 0.94, 0.03
    eaten = (1 + interest) * assets[:, None, None] + incomes[:, None] - assets
    utility = np.where(eaten > 0, -1.0 / np.maximum(eaten, 1e-10), -1e10)

    def improve(v):
        return (utility + discount * (chances @ v.T)).max(-1)

    return np.zeros_like(utility[:, :, 0]), improve


def grow(np, capital, shocks, shares):
    """An economy invests a share of what it has, and does not know how much that yields. v(capital)."""
    discount, power = 0.95, 0.4

    def improve(v):
        after = (shares[:, None, None] * capital[:, None]) ** power * shocks
        expected = np.interp(after, capital, v).mean(-1)
        return (np.log((1 - shares[:, None]) * capital) + discount * expected).max(0)

    return np.log(capital), improve


def hold(np, capital, states, chances):
    """A firm keeps its capital, which wears off, and pays dividends. v(state, capital)."""
    discount, wear = 0.96, 0.08

    def improve(v):
        expected = chances @ v
        later = [np.interp((1 - wear) * capital + 0.1 * states[i], capital, expected[i])
                 for i in range(len(states))]
        return states[:, None] * capital**0.3 + discount * np.stack(later)

    return states[:, None] * capital, improve


def consume(np, assets, incomes, chances):
    """The same household as it balances what a unit is worth now and later. consumption(income, assets)."""
    discount, interest, aversion = 0.94, 0.03, 2.0

    def improve(eaten):
        had = (eaten + assets) / (1 + interest)
        now = (1 + interest) * assets + incomes[:, None]
        later = np.stack([np.interp(now[i], (1 + interest) * had[i], eaten[i]) for i in range(len(incomes))])
        worth = discount * (1 + interest) * (chances @ np.maximum(later, 1e-3) ** -aversion)
        return worth ** (-1 / aversion)

    return np.zeros_like(incomes[:, None] * assets) + assets + 0.1, improve


# -- rows ---------------------------------------------------------------------------------------------------
def make_solver(make_step: Callable) -> Callable[..., Callable]:
    """api -> a function of the inputs."""

    def program(api) -> Callable:
        def solve(*inputs):
            values, improve = make_step(api.numpy, *inputs)

            def step(state):
                better = improve(state[0])
                return better, abs(better - state[0]).max(), state[2] + 1

            def goes_on(state):
                return (state[1] > TOLERANCE) & (state[2] < MOST_STEPS)

            return api.lax.while_loop(goes_on, step, (values, values[(0,) * values.ndim] * 0 + 1.0, 0))[0]

        return solve

    return program


def make_plain_solver(make_step: Callable) -> Callable:
    """The same in NumPy."""

    def solve(*inputs):
        values, improve = make_step(np, *inputs)
        for _ in range(MOST_STEPS):
            before, values = values, improve(values)
            if not abs(values - before).max() > TOLERANCE:
                break
        return values

    return solve


def make_chances(count: int) -> np.ndarray:
    """Of going from one state to another."""
    weights = make_uniform(0.1, 1.0, count, count, dtype="float64")
    return weights / weights.sum(1, keepdims=True)


def make_household(size: int) -> tuple:
    return np.linspace(0.0, 20.0, size), np.linspace(0.5, 1.5, 7), make_chances(7)


ITERATIONS = {
    "job search": (search_job, lambda n: (np.linspace(10.0, 20.0, n), make_chances(n))),
    "savings": (save, make_household),
    "growth": (grow, lambda n: (np.linspace(0.1, 4.0, n), np.exp(np.linspace(-0.3, 0.3, 7)),
                                np.linspace(0.05, 0.95, 40))),
    "dividends": (hold, lambda n: (np.linspace(0.1, 4.0, n), np.linspace(0.7, 1.3, 10), make_chances(10))),
    "consumption": (consume, make_household),
}

ROWS = tuple(Workload(f"value iteration: {name} f64", make_inputs, make_solver(step), size=200, tiny=20,
                      numpy=make_plain_solver(step), tolerance=1e-9)
             for name, (step, make_inputs) in ITERATIONS.items())
