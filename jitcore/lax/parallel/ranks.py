"""Named axes with a process for each element: the ranks of an MPI communicator.

In: an array of this process and the name of an axis that `bind_ranks` gave to a communicator. Out: what the
collective, of which all processes run the same, gives this process. Programs call MPI in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.primitive import Effect
from jitcore.process.lazy import LazyModule

mpi = LazyModule("mpi4py.MPI")

#: Keeps collectives in the order of the program: each process runs all of them.
MESSAGES = frozenset({Effect("Messages", ordered=True)})


class RankAxis(NamedTuple):
    """size: how many processes there are; communicator: of mpi4py."""

    size: int
    name: Hashable
    communicator: Any


_bound: dict[Hashable, RankAxis] = {}


def bind_ranks(axis_name: Hashable, communicator: Any = None) -> RankAxis:
    """From now on collectives of this process know the axis.

    Raises: ImportError without mpi4py; ValueError for a name that another communicator has: programs know how
        many ranks there are."""
    try:
        communicator = mpi.COMM_WORLD if communicator is None else communicator
    except ImportError as error:
        raise ImportError(f'ranks need mpi4py and an MPI: pip install "jitcore[mpi]" ({error})') from None
    axis = RankAxis(communicator.Get_size(), axis_name, communicator)
    if _bound.setdefault(axis_name, axis) != axis:
        raise ValueError(f"axis {axis_name!r} is bound to another communicator: choose another name")
    return axis


def list_rank_axes() -> list[RankAxis]:
    return list(_bound.values())


def is_bound(name: Hashable) -> bool:
    return name in _bound


def find_effects(*, axes: tuple, **_: Any) -> frozenset:
    """Of a collective."""
    return MESSAGES if any(name in _bound for name in axes) else frozenset()


def run_over_ranks(run: Callable) -> Callable:
    """The implementation of a collective. run: of the communicator, for one axis."""

    def run_over_axes(*values: np.ndarray, axes: tuple, **params: Any) -> np.ndarray:
        for name in axes:
            if name not in _bound:
                raise NameError(f"unbound axis name: {name}")
            values = run(_bound[name].communicator, *values, **params),
        return values[0]

    return run_over_axes


# -- sums and extrema ---------------------------------------------------------------------------------------
def _all_reduce(communicator: Any, x: np.ndarray, operation: str) -> np.ndarray:
    kind = x.dtype
    if kind == np.bool_:
        sent = x.astype(np.uint8)
    else:  # MPI has no small floating-point numbers
        sent = x.astype(np.float32) if kind.itemsize <= 2 and dtypes.is_floating(kind) else x
    sent = np.array(sent, order="C")
    out = np.empty_like(sent)
    communicator.Allreduce(sent, out, getattr(mpi, operation))
    return out.astype(kind, copy=False)


@run_over_ranks
def run_sum(communicator, x):
    return _all_reduce(communicator, x, "SUM")


def _run_extremum(operation: str) -> Callable:
    def run(communicator, x):
        out = _all_reduce(communicator, x, operation)
        if not dtypes.is_inexact(x.dtype):
            return out
        # MPI does not say which it takes of a NaN and a number.
        is_nan = np.isnan(x)
        if _all_reduce(communicator, np.asarray(is_nan.any()), "MAX"):
            out = np.where(_all_reduce(communicator, is_nan, "MAX"), np.nan, out).astype(x.dtype)
        return out

    return run_over_ranks(run)


run_max, run_min = _run_extremum("MAX"), _run_extremum("MIN")


@run_over_ranks
def run_reduce_scatter(communicator, x, *, dimension, size, tiled):
    total = _all_reduce(communicator, x, "SUM")
    own = np.split(total, size, dimension)[communicator.Get_rank()]
    return own if tiled else own.squeeze(dimension)


# -- values of others ---------------------------------------------------------------------------------------
def _to_bytes(x: np.ndarray) -> np.ndarray:
    """What messages carry: MPI does not know each dtype."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


@run_over_ranks
def run_all_gather(communicator, x, *, dimension, size, tiled):
    out = np.empty((size, *x.shape), x.dtype)
    communicator.Allgather(_to_bytes(x), _to_bytes(out))
    return (np.concatenate if tiled else np.stack)(list(out), dimension)


@run_over_ranks
def run_ppermute(communicator, x, *, perm):
    rank, out = communicator.Get_rank(), np.zeros_like(x, order="C")
    sent = _to_bytes(x)
    waiting = [communicator.Irecv(_to_bytes(out), origin) for origin, target in perm if target == rank]
    waiting += [communicator.Isend(sent, target) for origin, target in perm if origin == rank]
    mpi.Request.Waitall(waiting)
    return out


@run_over_ranks
def run_all_to_all(communicator, x, *, split_axis, concat_axis, size):
    parts = np.stack(np.split(x, size, split_axis))
    out = np.empty_like(parts)
    communicator.Alltoall(_to_bytes(parts), _to_bytes(out))
    return np.concatenate(list(out), concat_axis)


@run_over_ranks
def run_index(communicator, *_):
    return np.asarray(communicator.Get_rank(), np.int32)
