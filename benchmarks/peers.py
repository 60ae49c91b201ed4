"""The libraries that are compared: how each one gets from a workload to a call.

In: a `Workload` and its inputs. Out: a `Call` that computes the result and waits for it, or None where the
library has no part in the workload. Each has inputs of its own: none finds in the processor's cache what
another one has just read.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import string
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

from benchmarks.agreement import find_numpy_function
from benchmarks.timing import Call
from benchmarks.workload import WIDE_DTYPES, Inputs, Workload

#: What programs use of an api. A library without one of them cannot run the rows that need it.
MODULES = ("numpy", "lax", "nn", "ops", "random", "scipy.special")


class TracingPeer:
    """jitcore or JAX: compiles the program that is written against its own modules."""

    def __init__(self, name: str, package: str, widens: Callable[[Any], Any] | None = None):
        """widens: api -> context in which rows of double precision run, where the library needs one."""
        self.name, self._package, self._widens = name, package, widens

    def load_api(self, modules: Iterable[str] = MODULES) -> Any:
        """The package with the modules that programs use."""
        for module in modules:
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{self._package}.{module}")
        return importlib.import_module(self._package)

    def start(self) -> None:
        """Compiles something, so that no measured call pays for what a process pays once."""
        api = self.load_api()
        api.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32)).block_until_ready()

    def forget(self) -> None:
        """Drops compiled programs and memory kept for later arrays: what comes next lies elsewhere."""
        self.load_api(()).clear_caches()

    def read_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs with ndarrays as arrays of the library."""
        api = self.load_api(())
        return api.tree.map(lambda x: api.device_put(x) if isinstance(x, np.ndarray) else x, inputs)

    def make_call(self, workload: Workload, inputs: Inputs) -> Call:
        api = self.load_api()
        wide = self._widens is not None and workload.dtype in WIDE_DTYPES

        def scope():
            return self._widens(api) if wide else nullcontext()

        with scope():
            function, arguments = api.jit(workload.program(api)), self.read_inputs(inputs)
            return Call(bind_call(api, function, arguments), scope)


def bind_call(api: Any, function: Callable, inputs: Inputs) -> Callable[[], Any]:
    """The call, its result awaited. Written out for few inputs: it is part of what is timed."""
    if not hasattr(function(*inputs), "block_until_ready"):
        wait = api.block_until_ready
        return lambda: wait(function(*inputs))
    if len(inputs) == 1:
        (x,) = inputs
        return lambda: function(x).block_until_ready()
    return lambda: function(*inputs).block_until_ready()


class PlainPeer:
    """A library that needs nothing before it is measured, and keeps no memory of its own."""

    def start(self) -> None:
        pass

    def forget(self) -> None:
        pass


class NumpyPeer(PlainPeer):
    """NumPy and SciPy, uncompiled."""

    name = "NumPy"

    def make_call(self, workload: Workload, inputs: Inputs) -> Call | None:
        if workload.numpy is None and workload.reference is not None:
            return None
        function, inputs = find_numpy_function(workload), copy.deepcopy(inputs)
        return Call(lambda: function(*inputs), lambda: np.errstate(all="ignore"))


class NumbaPeer(PlainPeer):
    """Loops written by hand for `numba.njit`, whose compile times are not measured."""

    name = "Numba"

    def make_call(self, workload: Workload, inputs: Inputs) -> Call | None:
        function = workload.numba
        if function is None:
            return None
        inputs = copy.deepcopy(inputs)
        return Call(lambda: function(*inputs))


class NumexprPeer(PlainPeer):
    """numexpr: an expression over ndarrays, evaluated in blocks."""

    name = "numexpr"

    def start(self) -> None:
        import numexpr

        numexpr.evaluate("a + 1", {"a": np.ones(3)})

    def make_call(self, workload: Workload, inputs: Inputs) -> Call | None:
        if workload.numexpr is None:
            return None
        import numexpr

        names = dict(zip(string.ascii_lowercase, copy.deepcopy(inputs)))
        return Call(lambda: numexpr.evaluate(workload.numexpr, names, truediv=True))


Peer = TracingPeer | NumpyPeer | NumbaPeer | NumexprPeer

JITCORE = TracingPeer("jitcore", "jitcore")
JAX = TracingPeer("JAX", "jax", widens=lambda jax: jax.enable_x64(True))
PEER_NAMES = (JITCORE.name, NumpyPeer.name, NumbaPeer.name, NumexprPeer.name, JAX.name)


def find_peers(names: Iterable[str] = ()) -> list[Peer]:
    """The peers that are installed, jitcore first; of the others those with one of the names, if there are
    any.

    Raises: ValueError for a name that no installed peer has."""
    peers: list[Peer] = [JITCORE, NumpyPeer(), NumbaPeer()]
    if importlib.util.find_spec("numexpr"):
        peers.append(NumexprPeer())
    if importlib.util.find_spec("jax"):
        peers.append(JAX)
    wanted = {name.lower() for name in names}
    if unknown := wanted - {peer.name.lower() for peer in peers}:
        raise ValueError(f"not installed or unknown: {', '.join(sorted(unknown))}")
    return [peer for peer in peers if not wanted or peer is JITCORE or peer.name.lower() in wanted]


def find_tracing_peers(names: Iterable[str] = ()) -> list[TracingPeer]:
    """Of the peers those that compile Python functions by tracing them."""
    return [peer for peer in find_peers(names) if isinstance(peer, TracingPeer)]
