"""Section of clusters: jitted functions of Dask's arrays on one and on two local worker processes.

In: names of rows. Out: their table: seconds by workers of one thread each, which take turns, and efficiency:
the time of one divided by twice that of two. Beside it stands what the machine lets two processes reach that
need not tell each other anything: the time of a chunk in one worker, divided by the same while the other one
works, too. Dask's own functions of the same arrays on two workers come last.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_seconds
from benchmarks.timing import Effort
from jitcore import block_until_ready, jit, lax, value_and_grad

TITLE = "Clusters: Dask's arrays on local workers"
#: The least efficiency on two workers.
EFFICIENCY = 0.9
_TURNS = 4


class Row(NamedTuple):
    """make: (da, share of the full size) -> arguments; jitted: the function; plain: the same in functions of
    NumPy and Dask, if they have it. by_blocks: whether `map_blocks` has to be told that chunks are apart."""

    make: Callable[[Any, float], tuple]
    jitted: Callable
    plain: Callable | None = None
    by_blocks: bool = False


def _make_grid(da: Any, share: float) -> tuple:
    side = int(8000 * share)
    return (da.random.random((side, side), chunks=(side // 16, side)),)


def _make_options(da: Any, share: float) -> tuple:
    count = int(40_000_000 * share)
    return tuple(da.random.random(count, chunks=count // 16) + 0.5 for _ in range(3))


def _make_prices(da: Any, share: float) -> tuple:
    count = int(6_000_000 * share)
    spot, strike, price = (da.random.random(count, chunks=count // 20) for _ in range(3))
    return spot + 0.5, strike + 0.5, price / 2


def _make_points(da: Any, share: float) -> tuple:
    side = int(4000 * share)
    return tuple(da.random.random((side, side), chunks=(side // 20, side)) * 3 - 2 for _ in range(2))


def _make_states(da: Any, share: float) -> tuple:
    count = int(4_000_000 * share)
    return tuple(da.random.random(count, chunks=count // 20) + 10 for _ in range(3))


def _make_samples(da: Any, share: float) -> tuple:
    count = int(1_000_000 * share)
    x = da.random.random((count, 64), chunks=(count // 80, 64))
    rng = np.random.default_rng(0)
    return {"in": rng.normal(size=(64, 512)) / 8, "out": rng.normal(size=512)}, x, x[:, 0]


@jit
def diffuse(u):
    """20 steps, for which a chunk takes 20 rows of each neighbour."""

    def step(_, u):
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].set(inner + 0.1 * (around - 4 * inner))

    return lax.fori_loop(0, 20, step, u)


@jit
def price(spot, strike, time):
    width = 0.3 * jnp.sqrt(time)
    d = (jnp.log(spot / strike) + 0.02 * time) / width
    calls = spot * _normal(d + width / 2) - strike * jnp.exp(-0.02 * time) * _normal(d - width / 2)
    return calls.mean(), calls.max()


def _normal(x):
    return 1 / (1 + jnp.exp(-1.5976 * x - 0.07056 * x**3))


@jit
def count_rounds(x, y):
    """Of the Mandelbrot set, 2,000 at most."""

    def step(_, state):
        a, b, rounds = state
        stays = a * a + b * b <= 4
        return (jnp.where(stays, a * a - b * b + x, a), jnp.where(stays, 2 * a * b + y, b),
                rounds + stays.astype(int))

    return lax.fori_loop(0, 2000, step, (x * 0, y * 0, (x * 0).astype(int)))[2]


@jit
def integrate(x, y, z):
    """8,000 steps of Lorenz' equations from many places."""

    def step(_, state):
        x, y, z = state
        return x + 0.05 * (y - x), y + 0.005 * (x * (28 - z) - y), z + 0.005 * (x * y - 8 / 3 * z)

    x, y, z = lax.fori_loop(0, 8000, step, (x, y, z))
    return jnp.sqrt(x * x + y * y + z * z)


@jit
def find_volatility(spot, strike, price):
    """Of options, from their prices, by 200 bisections."""

    def step(_, interval):
        low, high = interval
        middle = (low + high) / 2
        d = jnp.log(spot / strike) / middle
        is_low = spot * _normal(d + middle / 2) - strike * _normal(d - middle / 2) < price
        return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

    low, high = lax.fori_loop(0, 200, step, (spot * 0 + 0.01, spot * 0 + 2))
    return (low + high) / 2


@jit
@value_and_grad
def descend(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - y) ** 2)


@jit
def standardize(x):
    return ((x - x.mean(0)) / x.std(0)).max(0)


def standardize_plain(x):
    return ((x - x.mean(0)) / x.std(0)).max(0)


def price_plain(spot, strike, time):
    width = 0.3 * np.sqrt(time)
    d = (np.log(spot / strike) + 0.02 * time) / width
    normal = lambda x: 1 / (1 + np.exp(-1.5976 * x - 0.07056 * x**3))  # noqa: E731
    calls = spot * normal(d + width / 2) - strike * np.exp(-0.02 * time) * normal(d - width / 2)
    return calls.mean(), calls.max()


def diffuse_plain(u):
    for _ in range(20):
        u = u.map_overlap(_step_plain, depth=1, boundary="none", dtype=u.dtype)
    return u


def _step_plain(u):
    out = u.copy()
    inner = u[1:-1, 1:-1]
    out[1:-1, 1:-1] = inner + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner)
    return out


ROWS = {
    "20 steps of diffusion": Row(_make_grid, diffuse, diffuse_plain),
    "option prices, mean and maximum": Row(_make_options, price, price_plain),
    "Mandelbrot set": Row(_make_points, count_rounds, by_blocks=True),
    "an ensemble of Lorenz' equations": Row(_make_states, integrate, by_blocks=True),
    "implied volatilities": Row(_make_prices, find_volatility, by_blocks=True),
    "gradient of a loss": Row(_make_samples, descend),
    "standardized columns": Row(_make_grid, standardize, standardize_plain),
}


def list_names() -> list[str]:
    return list(ROWS)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures on two clusters. `show` is told the name of each row before it starts."""
    if importlib.util.find_spec("distributed") is None:
        return Section(TITLE, 'Dask is not installed: pip install "jitcore[interop]"')
    lines = [["row", "1 worker", "2 workers", "efficiency", "of two processes", "Dask alone, 2 workers"]]
    for name in names:
        show(name)
        seconds = _measure(ROWS[name], effort)
        efficiency = seconds["one"] / seconds["two"] / 2
        limit = seconds["alone"] / seconds["together"]
        plain = format_seconds(seconds["plain"]) if "plain" in seconds else ""
        lines.append([name, *(format_seconds(seconds[key]) for key in ("one", "two")), f"{efficiency:.2f}",
                      f"{limit:.2f}", plain])
    bar = f"The bar is an efficiency of {EFFICIENCY:g} on three rows."
    return Section(TITLE, f"{align_cells(lines)}\n\n{bar}")


def _measure(row: Row, effort: Effort) -> dict[str, float]:
    """Least seconds with one worker, with two, and of Dask alone; of one chunk, and of two at the same time.
    A first turn compiles."""
    import dask.array as da
    from distributed import Client, LocalCluster

    share, turns = (1.0, _TURNS) if effort.repeats else (0.25, 1)
    best: dict[str, float] = {}
    make = functools.partial(LocalCluster, threads_per_worker=1, dashboard_address=None)
    with make(n_workers=1) as single, Client(single) as one, make(n_workers=2) as double, \
            Client(double) as two:
        given = {}
        for client in (one, two):
            with client.as_current():
                given[client] = [_keep(value) if isinstance(value, da.Array) else value
                                 for value in row.make(da, share)]
        jitted = functools.partial(da.map_blocks, row.jitted, dtype=float) if row.by_blocks else row.jitted
        calls = {"one": (one, jitted), "two": (two, jitted), "plain": (two, row.plain)}
        for turn in range(turns + 1):
            for name, (client, function) in calls.items():
                if function is None:
                    continue
                with client.as_current():
                    start = perf_counter()
                    _keep(function(*given[client]))
                    seconds = perf_counter() - start
                best[name] = min(best.get(name, seconds), seconds) if turn > 1 else seconds
        with one.as_current():
            chunks = [value.blocks[(0,) * value.ndim].compute() if isinstance(value, da.Array) else value
                      for value in given[one]]
        for name, client in {"alone": one, "together": two}.items():
            best[name] = max(client.run(_time_chunk, row.jitted, chunks, 3 * turns).values())
    return best


def _time_chunk(function: Callable, chunks: list, times: int) -> float:
    """The least seconds of some calls in a row."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        block_until_ready(function(*chunks))
        seconds.append(perf_counter() - start)
    return min(seconds)


def _keep(lazy: Any) -> Any:
    """Computed: the results stay on the workers."""
    import dask
    from distributed import wait

    (kept,) = dask.persist(lazy)
    wait(kept)
    return kept
