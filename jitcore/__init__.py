"""jitcore: trace a Python function to a jaxpr, compile it once, call it many times.

Public names are imported when they are first used, so that `import jitcore` stays fast: it loads no compiler,
starts no thread and writes no file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# As in JAX, `jitcore.config` is the object; bound here, it hides the module of that name.
from jitcore.config import config

__version__ = "0.1.0"

#: Modules that are attributes of the package.
_MODULES = ("ad_checkpoint", "api", "custom_derivatives", "debug", "distributed", "dtypes",
            "errors", "experimental", "export", "flatten_util", "lax", "nn", "numpy", "ops", "random",
            "scipy", "sharding", "stages", "test_util", "tree", "tree_util")

#: Module -> the public names that it defines.
_EXPORTS = {
    "jitcore.api": ("autojit", "block_until_ready", "checkpoint", "checkpoint_policies", "clear_caches",
                    "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp", "device_get",
                    "device_put", "effects_barrier", "eval_shape", "fwd_and_bwd", "grad", "hessian",
                    "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linear_transpose", "linearize",
                    "make_jaxpr", "named_call", "named_scope", "remat", "rewrite", "typeof",
                    "value_and_grad", "vjp", "vmap"),
    "jitcore.array": ("Array",),
    "jitcore.autojitted": ("AutojitWarning",),
    "jitcore.comparison": ("compare",),
    "jitcore.config": ("check_tracer_leaks", "checking_leaks", "debug_nans", "disable_jit", "enable_checks",
                       "enable_x64", "threefry_partitionable"),
    "jitcore.core.aval": ("ShapeDtypeStruct",),
    "jitcore.core.trace": ("ensure_compile_time_eval",),
    "jitcore.device": ("Device", "SingleDeviceSharding", "default_backend", "device_count", "devices",
                        "local_device_count", "local_devices", "make_array_from_callback",
                        "make_array_from_process_local_data", "make_array_from_single_device_arrays",
                        "make_mesh", "process_count", "process_index"),
    "jitcore.lax.callback": ("pure_callback",),
    "jitcore.lax.sharded": ("shard_map",),
    "jitcore.sharding": ("Mesh", "NamedSharding", "P", "set_mesh"),
}

# The same names for type checkers; a test compares them with the table.
# isort: off
if TYPE_CHECKING:
    from jitcore.api import (
        autojit as autojit, block_until_ready as block_until_ready, checkpoint as checkpoint,
        checkpoint_policies as checkpoint_policies, clear_caches as clear_caches,
        closure_convert as closure_convert, custom_gradient as custom_gradient, custom_jvp as custom_jvp,
        custom_vjp as custom_vjp, device_get as device_get, device_put as device_put,
        effects_barrier as effects_barrier, eval_shape as eval_shape, fwd_and_bwd as fwd_and_bwd,
        grad as grad, hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
        jit as jit, jvp as jvp, linear_transpose as linear_transpose, linearize as linearize,
        make_jaxpr as make_jaxpr, named_call as named_call, named_scope as named_scope, remat as remat,
        rewrite as rewrite, typeof as typeof, value_and_grad as value_and_grad, vjp as vjp, vmap as vmap,
    )
    from jitcore.array import Array as Array
    from jitcore.autojitted import AutojitWarning as AutojitWarning
    from jitcore.comparison import compare as compare
    from jitcore.config import (
        check_tracer_leaks as check_tracer_leaks, checking_leaks as checking_leaks,
        debug_nans as debug_nans, disable_jit as disable_jit, enable_checks as enable_checks,
        enable_x64 as enable_x64, threefry_partitionable as threefry_partitionable,
    )
    from jitcore.core.aval import ShapeDtypeStruct as ShapeDtypeStruct
    from jitcore.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
    from jitcore.device import (
        Device as Device, SingleDeviceSharding as SingleDeviceSharding,
        default_backend as default_backend, device_count as device_count, devices as devices,
        local_device_count as local_device_count, local_devices as local_devices,
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
        make_mesh as make_mesh, process_count as process_count, process_index as process_index,
    )
    from jitcore.lax.callback import pure_callback as pure_callback
    from jitcore.lax.sharded import shard_map as shard_map
    from jitcore.sharding import Mesh as Mesh, NamedSharding as NamedSharding, P as P, set_mesh as set_mesh
# isort: on

_MODULE_OF_NAME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = ["config", *_MODULES, *_MODULE_OF_NAME]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(f"jitcore.{name}")
    elif name in _MODULE_OF_NAME:
        value = getattr(importlib.import_module(_MODULE_OF_NAME[name]), name)
    else:
        raise AttributeError(f"module 'jitcore' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
