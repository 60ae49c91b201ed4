"""JAX, as far as this backend needs it: its version, its devices, 64-bit types, arrays in and out.

In: names of platforms, ndarrays. Out: JAX's devices and arrays. JAX is imported at the first use, and only
its public interface is used; what differs between its versions is here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.config import config

#: The oldest version that this was made for.
OLDEST = (0, 6, 2)
#: What is used of it, and `import jax` does not bring.
_MODULES = ("jax.experimental.topologies", "jax.export", "jax.extend.mlir.dialects.stablehlo",
            "jax.scipy.special")


@functools.cache
def load_jax() -> Any:
    """The module. Raises: ImportError naming what to install, for none and for one that is too old."""
    try:
        for name in _MODULES:
            importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'the XLA bridge needs JAX: pip install "jitcore[xla]" ({error})') from None
    jax = importlib.import_module("jax")
    if jax.__version_info__ < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(f"the XLA bridge needs JAX {oldest} or later, this is {jax.__version__}: "
                          'pip install --upgrade "jitcore[xla]"')
    is_said = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if config.num_cpu_devices > 1 and not is_said:
        jax.config.update("jax_num_cpu_devices", config.num_cpu_devices)
    return jax


def allow_64_bits(is_allowed: bool = True) -> contextlib.AbstractContextManager:
    """Within, JAX keeps 64-bit types, or does not, whatever its own configuration says."""
    jax = load_jax()
    return (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64(is_allowed)


def list_devices(platform: str) -> list[Any]:
    """JAX's devices of a platform. Raises: RuntimeError where there is none."""
    return load_jax().devices(platform)


@functools.cache
def find_default_device() -> Any:
    """The device on which JAX runs what nothing else is said about."""
    return load_jax().devices()[0]


def put(value: Any, device: Any = None) -> Any:
    """An array on a device, or with a sharding; its type stays as it is."""
    with allow_64_bits():
        return load_jax().device_put(value, device)


def is_64_bits(dtype: Any) -> bool:
    """Whether JAX would narrow a type."""
    dtype = np.dtype(dtype)
    return dtype.itemsize == (16 if dtype.kind == "c" else 8) and dtype.kind in "iufc"


def list_avals(avals: Sequence[Any]) -> list[Any]:
    """jitcore's avals as JAX's types."""
    jax = load_jax()
    with allow_64_bits():
        return [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]


@functools.cache
def load_mlir() -> tuple[Any, Any, Any]:
    """MLIR, its dialect StableHLO, and the dialects with which texts are parsed."""
    load_jax()
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    try:
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext as dialects
    except ImportError:  # before 0.7
        from jaxlib.mlir._mlir_libs import register_jax_dialects as dialects

    registry = ir.DialectRegistry()
    dialects.register_dialects(registry)
    return ir, stablehlo, registry
