"""Section C: what a warm call costs, on data so small that nothing else does.

In: the libraries that trace. Out: measured rows and their table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bars import BEST, FLAT_CALL, WIDE_CALL
from benchmarks.inputs import make_normal
from benchmarks.measured import Measured, Section, explain_error, measure_rows
from benchmarks.peers import TracingPeer
from benchmarks.programs import make_selu
from benchmarks.table import format_section
from benchmarks.timing import Call, Effort, time_in_turns

TITLE = "Dispatch: warm calls on tiny data"


class DispatchCall(NamedTuple):
    """(api, put) -> what is called without arguments; `put` makes an array of the library. And the bar."""

    make: Callable[[Any, Callable], Callable[[], Any]]
    bar: float


def call_one_array(api, put):
    function, x = api.jit(make_selu(api)), put(make_normal(10))
    return lambda: function(x).block_until_ready()


def call_ndarray(api, put):
    function, x = api.jit(make_selu(api)), make_normal(10)
    return lambda: function(x).block_until_ready()


def call_scalars(api, put):
    function = api.jit(lambda x, y: x * y + 1)
    return lambda: function(2.5, 3).block_until_ready()


def call_four_arrays(api, put):
    function, (a, b, c, d) = api.jit(lambda a, b, c, d: a * b + c * d), map(put, make_normal(4, 10))
    return lambda: function(a, b, c, d).block_until_ready()


def call_many_arrays(api, put):
    function, arrays = api.jit(lambda *arrays: sum(arrays)), [put(x) for x in make_normal(20, 10)]
    return lambda: function(*arrays).block_until_ready()


def call_dict(api, put):
    """A nested dict: ten of ten leaves."""
    function = api.jit(lambda tree: sum(sum(part.values()) for part in tree.values()))
    leaves = iter(make_normal(100, 10))
    tree = {f"layer{i}": {f"w{j}": put(next(leaves)) for j in range(10)} for i in range(10)}
    return lambda: function(tree).block_until_ready()


def call_static(api, put):
    function, x = partial(api.jit, static_argnums=1)(lambda x, power: x**power), put(make_normal(10))
    return lambda: function(x, 3).block_until_ready()


def call_method(api, put):
    class Scale:
        factor = 3.0

        @partial(api.jit, static_argnums=0)
        def apply(self, x):
            return x * self.factor

    scale, x = Scale(), put(make_normal(10))
    return lambda: scale.apply(x).block_until_ready()


def call_nested(api, put):
    inner = api.jit(lambda x: x * 2 + 1)
    function, x = api.jit(lambda x: inner(x) + inner(x * 3)), put(make_normal(10))
    return lambda: function(x).block_until_ready()


def call_eager(api, put):
    x = put(make_normal(10))
    return lambda: (x * 2 + 1).block_until_ready()


ROWS = {
    "1 array of 10": DispatchCall(call_one_array, FLAT_CALL),
    "1 ndarray of 10": DispatchCall(call_ndarray, FLAT_CALL),
    "2 Python scalars": DispatchCall(call_scalars, FLAT_CALL),
    "4 arrays": DispatchCall(call_four_arrays, FLAT_CALL),
    "20 arrays": DispatchCall(call_many_arrays, WIDE_CALL),
    "dict with 100 leaves": DispatchCall(call_dict, WIDE_CALL),
    "static argument": DispatchCall(call_static, FLAT_CALL),
    "method": DispatchCall(call_method, FLAT_CALL),
    "jitted inside jitted": DispatchCall(call_nested, FLAT_CALL),
    "eager x*2+1": DispatchCall(call_eager, BEST),
}


def run_section(
    names: Sequence[str], peers: Sequence[TracingPeer], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    measured = measure_rows(
        {name: partial(measure_dispatch, name, peers, effort) for name in names}, effort.repeats, show
    )
    return Section(TITLE, format_section(measured), any("jitcore" not in row.seconds for row in measured))


def measure_dispatch(name: str, peers: Sequence[TracingPeer], effort: Effort) -> Measured:
    """Times of the peers, the results of which are compared with the first one's."""
    row = ROWS[name]
    measured, calls, results = Measured(name, bar=row.bar), {}, {}
    for peer in peers:
        api = peer.load_api()
        try:
            run = row.make(api, api.device_put)
            results[peer.name] = np.asarray(run())
        except Exception as error:
            measured.problems[peer.name] = explain_error(error)
            continue
        if np.allclose(results[peer.name], next(iter(results.values())), rtol=1e-5):
            calls[peer.name] = Call(run)
        else:
            measured.problems[peer.name] = "WRONG: results differ"
    measured.seconds = time_in_turns(calls, effort)
    return measured
