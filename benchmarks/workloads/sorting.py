"""Order: sort, argsort, top_k, unique, searchsorted."""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.inputs import make_distinct, make_integers
from benchmarks.numba_loops import loop, parallel_loop
from benchmarks.workload import Workload
from benchmarks.workloads.elementwise import count_in_and_out

SORTED_DTYPES = {"f32": "float32", "i32": "int32", "f64": "float64"}
DISTINCT = 1000
TABLE = 1000

run_sort = loop(lambda x: np.sort(x))
run_argsort = loop(lambda x: np.argsort(x))
run_unique = loop(lambda x: np.unique(x))


@parallel_loop
def run_searchsorted(table, queries):
    out = np.empty(queries.size, np.int32)
    for i in numba.prange(queries.size):
        low, high = 0, table.size
        while low < high:
            middle = (low + high) // 2
            if table[middle] < queries[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


@loop
def run_top_k(x, k):
    """The k largest, kept in a heap whose root is the smallest of them; then sorted."""
    values, places = x[:k].copy(), np.arange(k)
    order = np.argsort(values)
    values, places = values[order], places[order]
    for i in range(k, x.size):
        if x[i] > values[0]:
            node = 0
            while 2 * node + 1 < k:
                child = 2 * node + 1
                if child + 1 < k and values[child + 1] < values[child]:
                    child += 1
                if values[child] >= x[i]:
                    break
                values[node], places[node] = values[child], places[child]
                node = child
            values[node], places[node] = x[i], i
    order = np.argsort(values)[::-1]
    return values[order], places[order].astype(np.int32)


def find_top_k(x, k):
    places = np.argpartition(x, x.size - k)[x.size - k :]
    places = places[np.argsort(x[places])[::-1]]
    return x[places], places


def _make_order_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    def make_inputs(size):
        return (make_distinct(size, dtype),)

    return (
        Workload(f"sort 1e6 {name}", make_inputs, lambda api: api.numpy.sort, numba=run_sort,
                 bytes_moved=count_in_and_out),
        Workload(f"argsort 1e6 {name}", make_inputs, lambda api: api.numpy.argsort, numba=run_argsort),
    )


def _make_top_k_row(name: str, k: int) -> Workload:
    return Workload(
        f"top_k 1e6, k {k} {name}", lambda size: (make_distinct(size, SORTED_DTYPES[name]),),
        lambda api: lambda x: api.lax.top_k(x, k), tiny=2000, numpy=lambda x: find_top_k(x, k),
        numba=lambda x: run_top_k(x, k), bytes_moved=lambda x: x.nbytes,
    )


def _make_unique_row(name: str) -> Workload:
    def make_inputs(size):
        return (make_integers(DISTINCT, size).astype(SORTED_DTYPES[name]),)

    return Workload(
        f"unique 1e6, {DISTINCT} distinct {name}", make_inputs,
        lambda api: lambda x: api.numpy.unique(x, size=DISTINCT), tiny=30_000,
        numpy=lambda x: np.unique(x), numba=run_unique,
    )


def _make_search_row(name: str, count: str) -> Workload:
    def make_inputs(size):
        table = np.sort(make_distinct(TABLE if count == "1e3" else size, SORTED_DTYPES[name]))
        return table, make_distinct(size, SORTED_DTYPES[name], seed=1)

    return Workload(f"searchsorted 1e6 in {count} {name}", make_inputs, lambda api: api.numpy.searchsorted,
                    numba=run_searchsorted)


ROWS = (
    *(row for name, dtype in SORTED_DTYPES.items() for row in _make_order_rows(name, dtype)),
    *(_make_top_k_row(name, k) for name, k in (("f32", 10), ("f32", 1000), ("i32", 1000))),
    *(_make_unique_row(name) for name in ("i32", "f32")),
    *(_make_search_row(name, count) for name in ("f32", "i32") for count in ("1e3", "1e6")),
)
