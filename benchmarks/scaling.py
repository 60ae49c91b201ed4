"""Section D: sizes from 1e2 to 1e8 elements, one thread and all of them, as shares of the machine's limits.

In: programs and the libraries that trace. Out: a table, and a plot where Matplotlib is installed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bars import describe_bars
from benchmarks.inputs import make_normal
from benchmarks.machine import count_threads, find_free_memory, measure_bandwidth, measure_peak
from benchmarks.measured import Measured, Section, explain_error
from benchmarks.peers import JITCORE, TracingPeer, bind_call
from benchmarks.programs import make_jacobi, make_selu, make_softmax
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Call, Effort, time_in_turns

TITLE = "Scaling from 1e2 to 1e8 elements of float32"
SIZES = tuple(10**power for power in range(2, 9))
STEPS = 10


class Work(NamedTuple):
    """(elements) -> arguments; api -> function; elements -> bytes moved, or operations where `computes`; how
    the time grows when there are ten times as many elements."""

    make_inputs: Callable[[int], tuple]
    program: Callable[[Any], Callable]
    amount: Callable[[float], float]
    computes: bool = False
    growth: float = 10.0


def _make_vector(count: int) -> tuple:
    return (make_normal(count),)


def _make_square(count: int) -> tuple:
    side = math.isqrt(count)
    return (make_normal(side, side),)


def make_product(api: Any) -> Callable:
    return lambda x: x @ x


def make_sum(api: Any) -> Callable:
    return lambda x: api.numpy.sum(x)


WORK = {
    "selu": Work(_make_vector, make_selu, lambda n: 8 * n),
    "sum": Work(_make_vector, make_sum, lambda n: 4 * n),
    "softmax": Work(_make_square, make_softmax, lambda n: 8 * n),
    "matmul": Work(_make_square, make_product, lambda n: 2 * n**1.5, computes=True, growth=10**1.5),
    "Jacobi": Work(_make_square, lambda api: make_jacobi(api, STEPS), lambda n: 8 * STEPS * n),
}


@dataclass
class Point:
    """A size: seconds by series ("JAX", and jitcore with a number of threads), and shares of the limit."""

    work: str
    elements: int
    seconds: dict[str, float]
    shares: dict[str, float] = field(default_factory=dict)


def list_names() -> list[str]:
    return list(WORK)


def name_series(threads: int) -> str:
    return f"jitcore, {threads} thread{'s' * (threads > 1)}"


def run_section(
    names: Sequence[str], peers: Sequence[TracingPeer], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the work with these names. `show` is told the name of each before it starts."""
    points, problems = [], []
    for name in names:
        show(name)
        try:
            points += measure_work(name, peers, effort)
        except Exception as error:
            problems.append(f"- {name}: {explain_error(error)}")
    text = format_points(points)
    if problems:
        text = "\n\n".join((text, "Not measured:", "\n".join(problems)))
    return Section(TITLE, text, bool(problems), functools.partial(draw_points, points))


def measure_work(name: str, peers: Sequence[TracingPeer], effort: Effort) -> Iterator[Point]:
    """A point for each size that fits into memory and does not take too long."""
    work, longest = WORK[name], 0.0
    for elements in SIZES:
        if longest * work.growth > effort.longest or 20 * elements > find_free_memory():
            return
        point = Point(name, elements, time_in_turns(_make_calls(work, elements, peers), effort))
        for threads in {1, count_threads()}:
            series = name_series(threads)
            limit = (measure_peak("float32", threads) if work.computes
                     else measure_bandwidth(min(work.amount(elements), 8 * elements), threads))
            point.shares[series] = work.amount(elements) / point.seconds[series] / limit
        longest = max(point.seconds.values())
        yield point


def _make_calls(work: Work, elements: int, peers: Sequence[TracingPeer]) -> dict[str, Call]:
    inputs, calls = work.make_inputs(elements), {}
    for peer in peers:
        api = peer.load_api()
        run = bind_call(api, api.jit(work.program(api)), peer.read_inputs(inputs))
        if peer is JITCORE:
            for threads in sorted({1, count_threads()}):
                calls[name_series(threads)] = Call(run, functools.partial(_limit_jitcore, threads))
        else:
            calls[peer.name] = Call(run)
    return calls


@contextmanager
def _limit_jitcore(threads: int) -> Iterator[None]:
    from jitcore import config

    before = config.num_threads
    config.update("num_threads", threads)
    try:
        yield
    finally:
        config.update("num_threads", before)


def format_points(points: Sequence[Point]) -> str:
    """The table, and jitcore with all threads against the others."""
    series = list(dict.fromkeys(name for point in points for name in point.seconds))
    shared = [name for name in series if any(name in point.shares for point in points)]
    rows = [_compare_point(point) for point in points]
    others = [name for name in series if name not in shared]
    lines = [["work", "elements", *series, *(f"/ {name}" for name in others),
              *(f"of the limit: {name}" for name in shared)]]
    for point, row in zip(points, rows):
        lines.append([point.work, f"{point.elements:.0e}".replace("e+0", "e"),
                      *(format_seconds(point.seconds[name]) for name in series),
                      *(format_ratio(row.compare(name)) for name in others),
                      *(f"{point.shares[name]:.0%}" for name in shared)])
    return "\n\n".join((align_cells(lines), "\n".join(describe_bars(rows))))


def _compare_point(point: Point) -> Measured:
    seconds = {name: value for name, value in point.seconds.items() if name not in point.shares}
    name = f"{point.work} {point.elements:.0e}".replace("e+0", "e")
    return Measured(name, {"jitcore": point.seconds[name_series(count_threads())], **seconds})


def draw_points(points: Sequence[Point], path: Path) -> str:
    """Writes a plot of the shares of the limits over the sizes. Returns: Markdown that shows it, or says why
    there is none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "No plot: Matplotlib is not installed."
    names = list(dict.fromkeys(point.work for point in points))
    figure = Figure(figsize=(3.2 * len(names), 3), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names):
        chosen = [point for point in points if point.work == name]
        for series in chosen[0].seconds:
            limit = name_series(count_threads()) if series not in chosen[0].shares else series
            shares = [point.shares[limit] * point.seconds[limit] / point.seconds[series] for point in chosen]
            panel.loglog([point.elements for point in chosen], shares, marker="o", markersize=3, label=series)
        panel.axhline(1, color="black", linewidth=0.5)
        panel.set_title(f"{name}, {'multiply-adds' if WORK[name].computes else 'bandwidth'}")
        panel.set_xlabel("elements")
    panels[0].set_ylabel("share of the measured limit")
    panels[0].legend()
    figure.savefig(path, dpi=100)
    return f"![Shares of the limits over sizes]({path.name})"
