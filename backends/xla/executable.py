"""Programs that XLA compiles and runs.

In: a jaxpr, options, the platform. Out: an executable: functions that `jax.jit` compiles, one for each
combination of sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.backends.xla.bridge import make_function
from jitcore.backends.xla.client import (allow_64_bits, find_default_device, is_64_bits, list_avals,
                                         list_devices, load_jax)
from jitcore.backends.xla.devices import to_device, to_jax_sharding
from jitcore.backends.xla.equations import calls_host, failures, has_long
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.source import raise_interruption
from jitcore.dispatch.backend import CompileOptions
from jitcore.dispatch.tracing import specialize_jaxpr
from jitcore.sharding import Spread


class XlaExecutable:
    """Args: the jaxpr of the program; what `jit` was told; the platform, "cpu" or "tpu"."""

    def __init__(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions, platform: str):
        self.closed_jaxpr, self.options, self.platform = closed_jaxpr, options, platform
        self.compiles = 0
        self._last: Callable[[], Any] | None = None

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., Sequence]:
        """A function of ndarrays and JAX's arrays, giving JAX's arrays. What JAX calls is what it returns:
        nothing of ours stands between a call and the program unless types or errors ask for it."""
        closed_jaxpr = specialize_jaxpr(self.closed_jaxpr, in_avals)
        donated = tuple(i for i, given in enumerate(self.options.donated) if given)
        place = self.options.sharding or to_device(list_devices(self.platform)[0])
        placed = place_all(place, len(in_avals), len(closed_jaxpr.out_avals))
        with allow_64_bits():
            run = load_jax().jit(make_function(closed_jaxpr, self.platform), donate_argnums=donated, **placed)
        self.compiles += 1
        self._last = functools.partial(run.lower, *list_avals(in_avals))
        if has_long(closed_jaxpr) or any(is_64_bits(aval.dtype) for aval in closed_jaxpr.out_avals):
            run = _keep_64_bits(run)
        return _surface_errors(run) if calls_host(closed_jaxpr) else run

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        return {"stablehlo": lambda: self._lower().as_text("stablehlo"),
                "hlo": lambda: self._compile().as_text()}

    def cost(self) -> dict[str, float]:
        """What XLA says: operations, bytes, seconds where it knows them."""
        found = self._compile().cost_analysis() or {}
        found = found[0] if isinstance(found, list) else found
        names = "flops", "transcendentals", "bytes accessed", "optimal_seconds"
        return {name: found[name] for name in names if found.get(name, -1) >= 0}

    def memory(self) -> dict[str, int]:
        """Bytes of arguments, outputs, what is needed in between, and code; {} where XLA does not tell."""
        found = self._compile().memory_analysis()
        parts = "argument", "output", "alias", "temp", "generated_code"
        names = [f"{part}_size_in_bytes" for part in parts]
        return {name: getattr(found, name) for name in names if hasattr(found, name)}

    def _lower(self) -> Any:
        """JAX's `Lowered` for the last sizes."""
        if self._last is None:
            self.bind(self.closed_jaxpr.in_avals)
        with allow_64_bits():
            return self._last()

    def _compile(self) -> Any:
        """JAX's `Compiled` for the last sizes."""
        return self._lower().compile()


def place_all(sharding: Any, n_ins: int, n_outs: int) -> dict[str, Any]:
    """What tells `jax.jit` where a program runs, unless it would run there anyway."""
    if isinstance(sharding, Spread):
        given = {"in_shardings": sharding.ins, "out_shardings": sharding.outs}
        return {name: tuple([None if one is None else to_jax_sharding(one) for one in all_of_them])
                for name, all_of_them in given.items() if any(all_of_them)}
    target = to_jax_sharding(sharding)
    if target.device_set == {find_default_device()}:
        return {}
    return {"in_shardings": (target,) * n_ins, "out_shardings": (target,) * n_outs}


def _keep_64_bits(run: Callable) -> Callable:
    """A program with types that JAX narrows unless it is told not to: while it is traced, and where ndarrays
    are among the arguments."""
    is_traced = False

    def run_wide(*values):
        nonlocal is_traced
        if is_traced and not any(value.__class__ is np.ndarray for value in values):
            return run(*values)
        with allow_64_bits():
            outs = run(*values)
        is_traced = True
        return outs

    return run_wide


def _surface_errors(run: Callable) -> Callable:
    """A program that calls Python functions, which may raise: it has ended when its call returns."""

    def run_to_the_end(*values):
        jax = load_jax()
        try:
            outs = jax.block_until_ready(run(*values))
            jax.effects_barrier()
        except Exception as error:
            raise_interruption(error)
            if not failures:
                raise
            first = failures[0]
            failures.clear()
            raise first from None
        return outs

    return run_to_the_end
