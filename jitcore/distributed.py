"""Programs of several processes, on one machine or many: how they find each other.

In: the address of one of them. Out: devices of all of them (`jitcore.devices("xla")`), of which each process
feeds its own; the service is JAX's. Or a communicator of MPI, whose ranks become a named axis of collectives.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from jitcore.core.source import api_boundary
from jitcore.lax.parallel import ranks
from jitcore.sharding.mesh import processes

__all__ = ["bind_ranks", "initialize", "is_initialized", "shutdown"]


def _load_jax() -> Any:
    try:
        # An optional package.
        import jax
    except ImportError as error:
        raise ImportError(f'jitcore.distributed needs JAX: pip install "jitcore[xla]" ({error})') from None
    return jax


@api_boundary
def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               **options: Any) -> None:
    """Joins this process with others; to be called by each of them, before the first use of a device.

    Args:
        coordinator_address: "host:port" of process 0.
        num_processes, process_id: how many there are, and which this is. These three are found by themselves
            on clusters that JAX knows.
        local_device_ids: numbers of the devices that this process uses, of all without.
        options: others of `jax.distributed.initialize`.

    Raises: ImportError without JAX; RuntimeError when devices are in use already, or others do not come."""
    jax = _load_jax()
    jax.distributed.initialize(coordinator_address, num_processes, process_id, local_device_ids, **options)
    processes.index, processes.count = jax.process_index(), jax.process_count()


@api_boundary
def shutdown() -> None:
    """Leaves the others."""
    _load_jax().distributed.shutdown()


def is_initialized() -> bool:
    """Whether `initialize` has joined this process with others."""
    return _load_jax().distributed.is_initialized()


@api_boundary
def bind_ranks(axis_name: Hashable = "ranks", communicator: Any = None) -> tuple[int, int]:
    """Names the ranks of an MPI communicator: from now on `lax.psum`, `pmean`, `pmax`, `pmin`, `all_gather`,
    `psum_scatter`, `ppermute`, `all_to_all` and `axis_index` of this process know the axis, inside of jitted
    functions and outside, on the CPU. All ranks have to run the same collectives in the same order.

    Derivatives: the result of `psum` is one value that all ranks have, so that `grad` of a loss that is
    summed gives each rank the derivative by its own arrays. Arrays that all ranks have too, such as weights,
    go through `lax.pvary(w, axis_name)`: their derivative is then the sum over all ranks.

    Args:
        communicator: of mpi4py; all processes (`MPI.COMM_WORLD`) without.

    Returns: the rank of this process, and how many there are.
    Raises: ImportError without mpi4py; ValueError for a name that another communicator has."""
    axis = ranks.bind_ranks(axis_name, communicator)
    return axis.communicator.Get_rank(), axis.size
