"""jitcore: trace a Python function to a jaxpr, compile it once, call it many times.

Public names are imported when they are first used, so that `import jitcore` stays fast: it loads no compiler,
starts no thread and writes no file.

Modules:
    __main__            The command line: `python -m jitcore`, also installed as `jitcore`.
    ad_checkpoint       Checkpointing of derivatives: the names of `jax.ad_checkpoint`.
    api                 The public functions: those around `jit`, checked and handed over, and the
                        transformations by name.
    array               Arrays: the abstract `Array` and its concrete form, an immutable NumPy-backed buffer.
    autojitted/         `autojit`: functions of plain Python and NumPy, compiled with the semantics that they
                        have.
    chunked/            Jitted functions of Dask's arrays: a lazy array, whose chunks are calls.
    cli/                Commands of `python -m jitcore`, one module each.
    config              Every flag of jitcore, once: its name, type, default, meaning and whether it changes a
                        trace.
    core/               The tracer and its IR: primitives, avals, jaxprs and their specification, traces.
    custom_batching     Functions with a batching rule of their own: `custom_vmap`, and `sequential_vmap`,
                        whose rule is a loop.
    custom_derivatives  Functions with derivative rules of their own: the names of `jax.custom_derivatives`.
    debug               Looking into a program while it runs: `jitcore.debug.print` and
                        `jitcore.debug.callback`.
    device              Devices: which there are, and arrays that are made on several of them.
    dispatch/           From a call to a compiled program: signatures, caches, backends.
    distributed         Programs of several processes, on one machine or many: how they find each other.
    docstrings/         Docstrings of public functions: sections and examples, read from text files when
                        somebody asks for them.
    dtypes              Dtypes: the set jitcore knows, JAX's promotion lattice, and weak types.
    einops              Makes einops know Arrays and traced values: `import jitcore.einops`, once.
    errors/             Every error class with cause, example and fix; the layout of messages; the errors
                        about traced values.
    events/             Events: what jitcore does, published at the few places where it happens.
    experimental/       What JAX's programs import from `jax.experimental`: sparse arrays, checks, Taylor
                        series, equations.
    export              Programs as files: `export` writes what `jax.export` writes, `deserialize` reads it.
    extend/             What programs that read jaxprs import: the names of `jax.extend` that are here.
    flatten_util        A pytree of arrays as one vector, and back: what optimizers and `hessian` of whole
                        models work on.
    hypertext           HTML that notebooks show: tables, folded parts and texts, escaped and of bounded size,
                        without JavaScript.
    image               Images that are scaled (`jitcore.image`): resized, and moved by parts of a pixel.
    jax/                JAX's package under one name: `import jitcore.jax as jax`, and nothing of JAX's.
    jitted/             What `jit` returns, and its other uses.
    lax/                The primitives, one block each, and their public functions (`jitcore.lax`).
    loopir/             The loop program: loop nests over buffers, scalar expressions, native control flow,
                        library calls.
    nn/                 Functions of neural networks (`jitcore.nn`): activations, normalisation, attention,
                        initial weights.
    notebooks/          Notebooks: `%load_ext jitcore`.
    numpy/              The NumPy namespace on Arrays and tracers (`import jitcore.numpy as jnp`).
    numpy_semantics/    NumPy's semantics on traced values: arrays with memory and views, NumPy scalars,
                        Python numbers.
    ops                 Reductions of segments: rows of an array combined by the segment that a number beside
                        each names.
    passes/             Passes: programs in, smaller programs out.
    process/            The process around jitcore: locks and forks, processors, the cost of compiling,
                        pickles.
    profiler/           Looking into a running program: timelines of what jitcore does, and names of its code.
    random/             Random numbers from explicit keys (`jitcore.random`): a key always gives the same
                        numbers, those of JAX.
    ref                 Mutable references to arrays: `new_ref` makes one, whose elements are read and written
                        in place.
    rewriter/           The bytecode rewriter: plain Python control flow on traced values, compiled.
    schedule/           Scheduling: which values are stored, which loops fuse, where buffers lie.
    scipy/              The parts of SciPy that trace (`jitcore.scipy`): special functions, distributions,
                        linear algebra, solvers, signals.
    scripts/            Whole scripts: `python -m jitcore run`.
    sharding/           Shardings: how arrays are cut into parts for devices.
    stages              Ahead-of-time use of `jit`, stage by stage: `f.trace(x).lower().compile()(x)`.
    test_util           Checks of derivatives against finite differences, for tests of one's own functions.
    transforms/         Transformations of traced programs: one `Trace` each, and the rules that primitives
                        bring along for it.
    tree                Pytrees under both of JAX's spellings: `tree.map` beside `tree.tree_map`.
    tree_util/          Pytrees: nested containers as a list of leaves and a treedef, with JAX's rules, names
                        and printing.
    typing              Types for annotations: the names of `jax.typing`, and what else signatures of jitcore
                        consist of.
"""

from __future__ import annotations

import importlib
import sys
import types

TYPE_CHECKING = False  # as `typing` has it, which takes long to load
if TYPE_CHECKING:
    from typing import Any

    from jitcore.config import config as config

__version__ = "0.1.0"

#: Modules that are attributes of the package.
_MODULES = ("ad_checkpoint", "api", "custom_batching", "custom_derivatives", "debug", "distributed",
            "dtypes", "errors", "experimental", "export", "extend", "flatten_util", "image", "lax", "nn",
            "numpy", "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "test_util",
            "tree", "tree_util", "typing")

#: Module -> the public names that it defines.
_EXPORTS = {
    "jitcore.api": ("autojit", "block_until_ready", "checkpoint", "checkpoint_policies", "clear_caches",
                    "closure_convert", "copy_to_host_async", "custom_gradient", "custom_jvp", "custom_vjp",
                    "device_get",
                    "device_put", "ds", "effects_barrier", "eval_shape", "fwd_and_bwd", "grad", "hessian",
                    "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linear_transpose", "linearize",
                    "make_jaxpr", "named_call", "named_scope", "pmap", "remat", "reshard", "rewrite",
                    "typeof", "value_and_grad", "vjp", "vmap"),
    "jitcore.array": ("Array",),
    "jitcore.autojitted": ("AutojitWarning",),
    "jitcore.jitted.comparison": ("compare",),
    "jitcore.config": ("check_tracer_leaks", "checking_leaks", "debug_infs", "debug_nans",
                       "default_matmul_precision", "default_prng_impl", "disable_jit", "enable_checks",
                       "enable_custom_prng", "enable_x64", "explain_cache_misses", "log_compiles",
                       "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion",
                       "threefry_partitionable"),
    "jitcore.core.jaxpr": ("ShapeDtypeStruct",),
    "jitcore.core.trace": ("ensure_compile_time_eval",),
    "jitcore.device": ("Device", "Shard", "SingleDeviceSharding", "default_backend", "default_device",
                        "device_count", "devices", "host_count", "host_id", "host_ids",
                        "live_arrays", "local_device_count", "local_devices", "make_array_from_callback",
                        "make_array_from_process_local_data", "make_array_from_single_device_arrays",
                        "make_mesh", "print_environment_info", "process_count", "process_index",
                        "process_indices"),
    "jitcore.dtypes": ("float0",),
    "jitcore.notebooks.magics": ("load_ipython_extension", "unload_ipython_extension"),
    "jitcore.scripts.sessions.runner": ("run_path",),
    "jitcore.lax.control_flow.callback": ("pure_callback",),
    "jitcore.ref": ("Ref", "freeze", "new_ref"),
    "jitcore.lax.parallel.sharded": ("shard_map",),
    "jitcore.sharding": ("Mesh", "NamedSharding", "P", "set_mesh"),
}

# The same names for type checkers; a test compares them with the table.
# isort: off
if TYPE_CHECKING:
    from jitcore import (
        ad_checkpoint as ad_checkpoint, api as api, custom_batching as custom_batching,
        custom_derivatives as custom_derivatives, debug as debug,
        distributed as distributed, dtypes as dtypes, errors as errors, experimental as experimental,
        export as export, extend as extend, flatten_util as flatten_util, image as image, lax as lax,
        nn as nn, numpy as numpy, ops as ops, profiler as profiler, random as random, ref as ref,
        scipy as scipy, sharding as sharding, stages as stages, test_util as test_util, tree as tree,
        tree_util as tree_util, typing as typing,
    )
    from jitcore.api import (
        autojit as autojit, block_until_ready as block_until_ready, checkpoint as checkpoint,
        checkpoint_policies as checkpoint_policies, clear_caches as clear_caches,
        closure_convert as closure_convert, copy_to_host_async as copy_to_host_async,
        custom_gradient as custom_gradient, custom_jvp as custom_jvp,
        custom_vjp as custom_vjp, device_get as device_get, device_put as device_put, ds as ds,
        effects_barrier as effects_barrier, eval_shape as eval_shape, fwd_and_bwd as fwd_and_bwd,
        grad as grad, hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
        jit as jit, jvp as jvp, linear_transpose as linear_transpose, linearize as linearize,
        make_jaxpr as make_jaxpr, named_call as named_call, named_scope as named_scope, pmap as pmap,
        remat as remat, reshard as reshard, rewrite as rewrite, typeof as typeof,
        value_and_grad as value_and_grad, vjp as vjp, vmap as vmap,
    )
    from jitcore.array import Array as Array
    from jitcore.autojitted import AutojitWarning as AutojitWarning
    from jitcore.jitted.comparison import compare as compare
    from jitcore.config import (
        check_tracer_leaks as check_tracer_leaks, checking_leaks as checking_leaks, debug_infs as debug_infs,
        debug_nans as debug_nans, default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl, disable_jit as disable_jit, enable_checks as enable_checks,
        enable_custom_prng as enable_custom_prng, enable_x64 as enable_x64,
        explain_cache_misses as explain_cache_misses, log_compiles as log_compiles, no_tracing as no_tracing,
        numpy_dtype_promotion as numpy_dtype_promotion, numpy_rank_promotion as numpy_rank_promotion,
        threefry_partitionable as threefry_partitionable,
    )
    from jitcore.core.jaxpr import ShapeDtypeStruct as ShapeDtypeStruct
    from jitcore.core.trace import ensure_compile_time_eval as ensure_compile_time_eval
    from jitcore.device import (
        Device as Device, Shard as Shard, SingleDeviceSharding as SingleDeviceSharding,
        default_backend as default_backend, default_device as default_device, device_count as device_count,
        devices as devices, host_count as host_count, host_id as host_id, host_ids as host_ids,
        live_arrays as live_arrays, local_device_count as local_device_count, local_devices as local_devices,
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
        make_mesh as make_mesh, print_environment_info as print_environment_info,
        process_count as process_count, process_index as process_index, process_indices as process_indices,
    )
    from jitcore.dtypes import float0 as float0
    from jitcore.lax.control_flow.callback import pure_callback as pure_callback
    from jitcore.lax.parallel.sharded import shard_map as shard_map
    from jitcore.notebooks.magics import (
        load_ipython_extension as load_ipython_extension,
        unload_ipython_extension as unload_ipython_extension,
    )
    from jitcore.scripts.sessions.runner import run_path as run_path
    from jitcore.ref import Ref as Ref, freeze as freeze, new_ref as new_ref
    from jitcore.sharding import Mesh as Mesh, NamedSharding as NamedSharding, P as P, set_mesh as set_mesh
# isort: on

_MODULE_OF_NAME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = ["config", *_MODULES, *_MODULE_OF_NAME]


class _Package(types.ModuleType):
    """As in JAX, `jitcore.config` is the object, and hides the module of that name, which imports bind."""

    @property
    def config(self) -> Any:
        return importlib.import_module("jitcore.config").config

    @config.setter
    def config(self, module: types.ModuleType) -> None:
        pass

    def __reduce__(self):
        return importlib.import_module, (__name__,)  # cloudpickle knows modules by their exact type


sys.modules[__name__].__class__ = _Package


if not TYPE_CHECKING:  # they would take every name for one of the package

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            value = importlib.import_module(f"jitcore.{name}")
        elif name in _MODULE_OF_NAME:
            value = getattr(importlib.import_module(_MODULE_OF_NAME[name]), name)
        else:
            raise AttributeError(f"module 'jitcore' has no attribute {name!r}")
        globals()[name] = value
        importlib.import_module("jitcore.docstrings").document(sys.modules[__name__], [name])
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
