"""Ahead of time: programs for TPUs, compiled where there is none.

In: a target such as "v5e" or "v6e:2x4", a jaxpr. Out: an executable that tells what it costs and, called
without such a TPU, says so. The compiler is libtpu, which the extra `jitcore[tpu]` brings; of it only the
compiler is started, and environment variables are as before afterwards. """

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitcore.backends.xla.bridge import make_function
from jitcore.backends.xla.client import allow_64_bits, list_avals, list_devices, load_jax
from jitcore.backends.xla.devices import standing_in
from jitcore.backends.xla.equations import has_long
from jitcore.backends.xla.executable import XlaExecutable, place_all
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, find_shardings
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.tracing import specialize_jaxpr
from jitcore.sharding import Device, Spread

#: Generations: how libtpu calls them, and the number of dimensions of their networks.
GENERATIONS = {"v5e": ("v5e", 2), "v5p": ("v5p", 3), "v6e": ("v6e", 2), "v7x": ("tpu7x", 3), "v4": ("v4", 3),
               "v3": ("v3", 2), "v2": ("v2", 2)}
#: What libtpu reads when it is loaded: that it asks no server what this machine is, and that other processes
#: of this machine may load it too.
_ENVIRONMENT = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-1", "TPU_WORKER_ID": "0",
                "TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
#: Chips of the largest host; more of them are several hosts of libtpu's own choice.
_CHIPS_OF_HOST = 8


def find_devices(machine: str, count: int = 1) -> list[Any]:
    """JAX's devices of a TPU that need not be there: at least so many, as many as its topology has.

    Raises: ValueError for a name that is none; ImportError naming what to install."""
    name, _, topology = machine.partition(":")
    if name not in GENERATIONS or not re.fullmatch(r"(\d+(x\d+)*)?", topology):
        raise ValueError(f"unknown target 'tpu:{machine}': targets are "
                         f"{', '.join(f'tpu:{known}' for known in GENERATIONS)}, and topologies of these "
                         "such as tpu:v5e:2x4")
    dims = tuple(map(int, topology.split("x"))) if topology else _choose_dims(count, GENERATIONS[name][1])
    if math.prod(dims) < count:
        chips = math.prod(dims)
        raise ValueError(f"tpu:{machine} has {chips} chips, and the program runs on {count} devices")
    return list(_describe_topology(GENERATIONS[name][0], dims))


def _choose_dims(count: int, ndim: int) -> tuple[int, ...]:
    """The extents of the smallest network of at least so many chips: powers of two, as even as possible."""
    dims = [1] * ndim
    for number in range(max(count - 1, 0).bit_length()):
        dims[-1 - number % 2 if ndim == 2 else number % 3] *= 2
    return tuple(dims)


@functools.cache
def _describe_topology(name: str, dims: tuple[int, ...]) -> tuple[Any, ...]:
    jax = load_jax()
    if importlib.util.find_spec("libtpu") is None:
        raise ImportError('compiling for TPUs needs libtpu: pip install "jitcore[tpu]"')
    one_host = {"chips_per_host_bounds": (*dims, 1, 1)[:3]} if math.prod(dims) <= _CHIPS_OF_HOST else {}
    full = f"{name}:{'x'.join(map(str, dims))}"
    with contextlib.suppress(RuntimeError):
        list_devices("tpu")  # a TPU that is here starts by its own settings
    with _set_environment():
        try:
            get_topology = jax.experimental.topologies.get_topology_desc
            return tuple(get_topology(full, platform="tpu", **one_host).devices)
        except jax.errors.JaxRuntimeError as error:
            raise ValueError(f"there is no TPU topology {full!r}: {error}") from None


@contextlib.contextmanager
def _set_environment() -> Iterator[None]:
    """Within, variables that nobody has set are as libtpu needs them."""
    added = {key: value for key, value in _ENVIRONMENT.items() if key not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for key in added:
            os.environ.pop(key, None)


class AheadBackend:
    """A backend that compiles for TPUs of a kind. base: the one that runs programs where such a TPU is."""

    def __init__(self, machine: str, base: Any):
        find_devices(machine)
        self.name, self.machine, self.passes, self.check = f"tpu:{machine}", machine, base.passes, base.check

    def devices(self) -> list:
        return find_devices(self.machine)

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> AheadExecutable:
        return AheadExecutable(closed_jaxpr, options, self.machine)

    def clear(self) -> None:
        """Nothing is shared."""


class AheadExecutable(XlaExecutable):
    """A program compiled for a machine that need not be there."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions, machine: str):
        super().__init__(closed_jaxpr, options, "tpu")
        self.machine = machine

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., Any]:
        """Compiles. Returns: what says that there is no such machine."""
        jax = load_jax()
        closed_jaxpr = specialize_jaxpr(self.closed_jaxpr, in_avals)
        donated = tuple(i for i, given in enumerate(self.options.donated) if given)
        sharding, pairs = self._find_places(closed_jaxpr)
        # Where a program has none, JAX's own decompositions are to have none: with indices of 64 bits libtpu
        # crashes.
        with allow_64_bits(has_long(closed_jaxpr)), standing_in(pairs):
            placed = place_all(sharding, len(in_avals), len(closed_jaxpr.out_avals))
            run = make_function(closed_jaxpr, "tpu")
            run = jax.jit(run, donate_argnums=donated, keep_unused=True, **placed)
            self._lowered = run.trace(*list_avals(in_avals)).lower(lowering_platforms=("tpu",))
            self._compiled = self._lowered.compile()
        self.compiles += 1
        return self._refuse

    def _find_places(self, closed_jaxpr: ClosedJaxpr) -> tuple[Any, list[tuple[Device, Any]]]:
        """The sharding of the program, and a device of the machine for each of its devices."""
        sharding = self.options.sharding
        if not isinstance(sharding, Spread):
            device = Device("tpu", 0)
            return device, [(device, find_devices(self.machine)[0])]
        named = [one for one in (*sharding.ins, *sharding.outs) if one is not None]
        named += find_shardings(closed_jaxpr.jaxpr)
        devices = sorted(named[0].device_set, key=lambda device: (device.process_index, device.id))
        return sharding, list(zip(devices, find_devices(self.machine, len(devices))))

    def _refuse(self, *values: Any) -> Any:
        raise RuntimeError(f"this program was compiled for tpu:{self.machine} ahead of time and does not run "
                           'here: call the function under jit(backend="tpu") where a TPU is')

    def _lower(self) -> Any:
        return self._lowered

    def _compile(self) -> Any:
        return self._compiled
