"""The libraries that are compared: how each one gets from a workload to a callable.

In: a `Workload` and its inputs. Out: a function without arguments that computes the result and waits for it,
or None where the library has no part in the workload.
"""

from __future__ import annotations

import importlib
import importlib.util
import string
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Workload

Call = Callable[[], Any]


class TracingPeer:
    """jitcore or JAX: compiles the program that is written against its own modules."""

    def __init__(self, name: str, package: str, widens: Callable[[Any], Any] | None = None):
        """widens: api -> context in which 64-bit inputs stay so, where the library cuts them otherwise."""
        self.name, self._package, self._widens = name, package, widens

    def load_api(self) -> Any:
        """The package with the modules that programs use."""
        for module in ("numpy", "lax", "nn", "scipy.special"):
            importlib.import_module(f"{self._package}.{module}")
        return importlib.import_module(self._package)

    def start(self) -> None:
        """Compiles something, so that no measured call pays for what a process pays once."""
        api = self.load_api()
        api.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32)).block_until_ready()

    def read_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs with ndarrays as arrays of the library."""
        api = self.load_api()
        return tuple(api.device_put(x) if isinstance(x, np.ndarray) else x for x in inputs)

    def make_call(self, workload: Workload, inputs: Inputs) -> Call:
        api = self.load_api()
        function = workload.program(api)
        if workload.jitted:
            function = api.jit(function)
        if self._widens is None or not any(is_wide(x) for x in inputs):
            return bind_call(function, inputs if workload.from_ndarrays else self.read_inputs(inputs))

        with self._widens(api):
            call = bind_call(function, self.read_inputs(inputs))

        def call_wide():
            with self._widens(api):
                return call()

        return call_wide


def is_wide(x: Any) -> bool:
    """Whether x is an ndarray with elements of 64 bits."""
    return isinstance(x, np.ndarray) and x.dtype.itemsize == 8


def bind_call(function: Callable, inputs: Inputs) -> Call:
    """The call with one result, awaited. Written out for few inputs: it is part of what is timed."""
    if len(inputs) == 1:
        (x,) = inputs
        return lambda: function(x).block_until_ready()
    return lambda: function(*inputs).block_until_ready()


class NumpyPeer:
    """NumPy and SciPy, uncompiled."""

    name = "NumPy"

    def start(self) -> None:
        pass

    def make_call(self, workload: Workload, inputs: Inputs) -> Call:
        scipy = SimpleNamespace(special=importlib.import_module("scipy.special"))
        function = workload.numpy or workload.program(SimpleNamespace(numpy=np, scipy=scipy))
        return lambda: function(*inputs)


class NumbaPeer:
    """Loops written by hand for `numba.njit`."""

    name = "Numba"

    def start(self) -> None:
        import numba

        numba.njit(lambda x: x + 1)(1.0)

    def make_call(self, workload: Workload, inputs: Inputs) -> Call | None:
        if workload.numba is None:
            return None
        function = workload.numba()
        return lambda: function(*inputs)


class NumexprPeer:
    """numexpr: an expression over ndarrays, evaluated in blocks."""

    name = "numexpr"

    def start(self) -> None:
        import numexpr

        numexpr.evaluate("a + 1", {"a": np.ones(3)})

    def make_call(self, workload: Workload, inputs: Inputs) -> Call | None:
        if workload.numexpr is None:
            return None
        import numexpr

        names = dict(zip(string.ascii_lowercase, inputs))
        return lambda: numexpr.evaluate(workload.numexpr, names)


Peer = TracingPeer | NumpyPeer | NumbaPeer | NumexprPeer


def find_peers() -> list[Peer]:
    """The peers that are installed, jitcore first."""
    peers = [TracingPeer("jitcore", "jitcore"), NumpyPeer(), NumbaPeer()]
    if importlib.util.find_spec("numexpr"):
        peers.append(NumexprPeer())
    if importlib.util.find_spec("jax"):
        peers.append(TracingPeer("JAX", "jax", widens=lambda jax: jax.enable_x64(True)))
    return peers
