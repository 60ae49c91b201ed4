"""The public functions: those around `jit`, checked and handed over, and the transformations by name.

In: Python functions and arguments. Out: jitted functions, jaxprs, shapes, transferred arrays.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, overload

import numpy as np

from jitcore import dtypes, tree_util
from jitcore.array import Array, ConcreteArray, DeviceArray, copy_data
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, ShapeDtypeStruct, aval_of
from jitcore.core.source import api_boundary, locate_function
from jitcore.core.trace import Tracer
from jitcore.device import check_served
from jitcore.dispatch import function as functions
from jitcore.dispatch.backend import adopt_array, clear_backends, find_backend, preload_backend
from jitcore.dispatch.options import (DEFAULT_OPTIONS, UNSPECIFIED, JitKeywords, JitOptions, plan_arguments,
                                      read_argnames, read_argnums, read_compiler_options, read_placement)
from jitcore.dispatch.program import executables, with_dtype
from jitcore.dispatch.signature import read_call, read_leaf, read_value
from jitcore.dispatch.tracing import abstract_avals, trace_call
from jitcore.jitted.wrapper import JitWrapped
from jitcore.lax.parallel.partitioning import with_sharding_constraint
from jitcore.passes.keys import to_carriers
from jitcore.sharding import Device, resolve_sharding
from jitcore.transforms.flat_function import (check_callable, choose_arguments,
                                              read_argnums as differentiated_argnums)
from jitcore.transforms.vmap import vmap as vmap

# isort: off
from jitcore.transforms.autodiff import (grad as grad, hessian as hessian, jacfwd as jacfwd,
                                         jacobian as jacobian, jacrev as jacrev, jvp as jvp,
                                         linear_transpose as linear_transpose, linearize as linearize,
                                         value_and_grad as value_and_grad, vjp as vjp)
from jitcore.transforms import checkpoint_policies as checkpoint_policies
from jitcore.transforms.checkpoint import checkpoint as checkpoint, remat as remat
from jitcore.transforms.custom_derivatives import (closure_convert as closure_convert,
                                                   custom_gradient as custom_gradient,
                                                   custom_jvp as custom_jvp, custom_vjp as custom_vjp)
# isort: on

P = ParamSpec("P")
R = TypeVar("R")
UnspecifiedValue = UNSPECIFIED


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitKeywords]) -> JitWrapped[P, R]: ...
@overload
def jit(**options: Unpack[JitKeywords]) -> Callable[[Callable[P, R]], JitWrapped[P, R]]: ...
@api_boundary
def jit(fun: Callable = UNSPECIFIED,  # type: ignore[assignment]
        /, *, in_shardings: Any = UNSPECIFIED, out_shardings: Any = UNSPECIFIED,
        static_argnums: int | Sequence[int] | None = None, static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Iterable[str] | None = None,
        keep_unused: bool = False, device: Device | None = None, backend: str | None = None,
        inline: bool = False, abstracted_axes: Any = None, compiler_options: Mapping[str, Any] | None = None,
        rewrite: bool = False) -> Any:
    """A compiled form of `fun`: traced once for each signature of its arguments, then run as native code.

    Args:
        fun: a pure function of arrays, scalars and containers of them. Without it, a decorator is returned.
        in_shardings, out_shardings: how the positional arguments and the result lie on devices: a sharding,
            or a pytree of them, as far down as they differ; None where arguments and the compiler decide. A
            `PartitionSpec` refers to the current mesh.
        static_argnums, static_argnames: arguments that are constants of the trace, hashable and comparable;
            each new value is a new signature. When only one of the two is given, the signature of `fun`
            tells the other.
        donate_argnums, donate_argnames: arguments whose memory a result may take over; a donated Array is
            deleted by the call if its memory was used. The two are completed as the static ones.
        keep_unused: also hand arguments to the executable that it does not read.
        device, backend: where to run: a device, or the name of a backend or platform.
        inline: when called while tracing, record the operations themselves instead of one `jit` equation.
        abstracted_axes: names of axes whose extent stays open, so that one trace serves all sizes: for each
            positional argument a tuple of names (None for a fixed axis) or a dict axis -> name.
        compiler_options: 'fastmath', 'contract', 'parallel' (bool), 'opt_level' (0 to 3), 'num_threads',
            'thread_work' (int).
        rewrite: compile plain Python if/while/for on traced values.

    Raises: TypeError when `fun` is not callable; StaticArgumentError for positions and names it does not
        have; UnknownCompilerOptionError; ValueError for contradictory devices. A call raises
        BackendNotFoundError when the backend is absent."""
    if fun is UNSPECIFIED:
        given = {name: value for name, value in locals().items() if name != "fun"}
        return functools.partial(jit, **given)
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if getattr(getattr(fun, "__code__", None), "co_flags", 0) & inspect.CO_GENERATOR:
        raise TypeError(f"Expected a function, got a generator function: {fun}")
    if (static_argnums is static_argnames is donate_argnums is donate_argnames is device is backend
            is abstracted_axes is compiler_options is None and in_shardings is out_shardings is UNSPECIFIED
            and not (keep_unused or inline or rewrite)):
        return JitWrapped(fun, DEFAULT_OPTIONS)
    return JitWrapped(fun, JitOptions(
        read_argnums(static_argnums), read_argnames(static_argnames, "static_argnames"),
        read_argnums(donate_argnums), read_argnames(donate_argnames, "donate_argnames"),
        bool(keep_unused), inline=bool(inline), abstracted_axes=abstracted_axes,
        compiler_options=read_compiler_options(compiler_options), rewrite=bool(rewrite),
        **read_placement(device, backend, in_shardings, out_shardings)))


@overload
def autojit(fun: Callable[P, R], /, *, strict: bool = False,
            static_argnames: str | Iterable[str] | None = None, verbose: bool = False,
            contract: bool = False, fastmath: bool = False, device: Any = None) -> Callable[P, R]: ...
@overload
def autojit(*, strict: bool = False, static_argnames: str | Iterable[str] | None = None,
            verbose: bool = False, contract: bool = False, fastmath: bool = False,
            device: Any = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@api_boundary
def autojit(fun: Callable = UNSPECIFIED,  # type: ignore[assignment]
            /, *, strict: bool = False, static_argnames: str | Iterable[str] | None = None,
            verbose: bool = False, contract: bool = False, fastmath: bool = False, device: Any = None) -> Any:
    """A compiled form of a function of plain Python and NumPy, which does what the function does.

    Values, dtypes, types of results, arrays changed in place and views of arguments are those of Python and
    NumPy. Types and shapes of arguments, and the values of ints, bools and strings among them, select a
    program; an int that has had three values is an input of the program where that works. What cannot be
    traced is compiled by Numba where it is slow and Numba gives the same, and runs in plain Python otherwise,
    with one `AutojitWarning` that says where and why. `+ - * /`, roots, comparisons and conversions round as
    NumPy's and Python's do; sums over arrays and elementary functions may differ in the last places.

    Args:
        fun: a function, method or partial. Without it, a decorator is returned.
        strict: raise NotTraceable instead of running in a lower tier.
        static_argnames: parameters whose values are always constants of the program.
        verbose: tell on the error stream what is compiled.
        contract: a product may stay unrounded on its way into a sum, which takes less time.
        fastmath: that, and sums may be reordered and quotients become products.
        device: where programs run: "gpu", another backend's name, or one of `devices()`. Arrays go there and
            results come back in each call, which pays for much work on few bytes (docs/cuda.md).

    Returns: a function with the same parameters. `report()` tells what is compiled and what is not,
        `cache_info()` counts, `inspect()` shows the stages of the program compiled last.
    Raises: TypeError when `fun` is no function; BackendNotFoundError for a device that is not there."""
    if fun is UNSPECIFIED:
        return functools.partial(autojit, strict=strict, static_argnames=static_argnames, verbose=verbose,
                                 contract=contract, fastmath=fastmath, device=device)
    # It reads bytecode, and is loaded where it is asked for.
    from jitcore.autojitted import Options, decorate

    names = read_argnames(static_argnames, "static_argnames") or ()
    if device is not None and not isinstance(device, (str, Device)):
        wanted = "one of `devices()`, or a name such as 'gpu'"
        raise TypeError(f"autojit: device must be {wanted}, got {device!r}")
    place = (None, device) if isinstance(device, str) else (device, None)
    placement = read_placement(*place, UNSPECIFIED, UNSPECIFIED)
    if device is not None:
        find_backend(placement["backend"])
    flags = bool(verbose), bool(fastmath), bool(contract)
    return decorate(fun, Options(bool(strict), names, *flags, tuple(placement.items())))


@api_boundary
def rewrite(fun: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose `if`, `while` and `for` also work on traced values.

    Inside `jit`, `grad`, `vmap` and so on, control flow that a traced value decides is traced, as `cond` and
    `while_loop`; what Python can decide runs as it always did, and so does a plain call.
    `jit(fun, rewrite=True)` is `jit(rewrite(fun))`. A generator, a coroutine or a builtin is returned
    unchanged, with a RuntimeWarning.

    Raises: TypeError when `fun` is not callable; ControlFlowError while tracing, for control flow that cannot
        be compiled."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    # It reads bytecode, and is loaded where it is asked for.
    from jitcore.rewriter.functions import rewrite_function

    return rewrite_function(fun)


@api_boundary
def make_jaxpr(fun: Callable, static_argnums: int | Iterable[int] = (),
               axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: bool = False,
               abstracted_axes: Any = None) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for given arguments.

    Args:
        fun: as for `jit`.
        static_argnums: positional arguments that are constants of the trace.
        axis_env: sizes of named axes; there are none, so it must be empty.
        return_shape: return (jaxpr, result with `ShapeDtypeStruct` leaves).
        abstracted_axes: as for `jit`.

    Returns: function of the arguments (which may be `ShapeDtypeStruct`s), giving a `ClosedJaxpr`."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if axis_env:
        raise ValueError("make_jaxpr: named axes are not supported, axis_env must be empty")
    options = JitOptions(static_argnums=read_argnums(static_argnums))
    plan = plan_arguments(fun, options)

    @api_boundary
    def make(*args, **kwargs):
        call = read_call(fun, plan, args, kwargs, abstract=True)
        traced = trace_call(fun, call, abstract_avals(call, abstracted_axes), transform="make_jaxpr")
        closed = ClosedJaxpr(traced.jaxpr, traced.consts)
        if not return_shape:
            return closed
        return closed, traced.unflatten([_describe_aval(aval) for aval in closed.out_avals])

    make.__module__ = "jitcore"
    make.__name__ = make.__qualname__ = f"make_jaxpr({locate_function(fun)[0]})"
    make.__wrapped__ = fun
    return make


@api_boundary
def fwd_and_bwd(fun: Callable, argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable, Callable]:
    """The two halves of `vjp` as functions that are compiled once each.

    Args:
        fun, has_aux: as for `vjp`.
        argnums: position of the argument to differentiate by, or several.
        jitted: whether both are jitted; otherwise Python control flow in `fun` may read values.

    Returns: (fwd, bwd). `fwd(*args)` gives (value, residuals), or (value, residuals, aux); `bwd(residuals,
        cotangent)` gives the cotangent of the argument, or a tuple for several.
    Raises: when called, as `vjp`."""
    check_callable(fun)
    numbers = differentiated_argnums(argnums)

    def forward(*args):
        partial, chosen = choose_arguments(fun, numbers, args, {})
        return vjp(partial, *chosen, has_aux=has_aux)

    def backward(residuals, cotangent):
        found = residuals(cotangent)
        return found[0] if isinstance(numbers, int) else found

    return (jit(forward), jit(backward)) if jitted else (forward, backward)


@api_boundary
def eval_shape(fun: Callable, *args, **kwargs) -> Any:
    """The result of `fun` with a `ShapeDtypeStruct` in place of each array; computes nothing.

    Arguments may be any objects that have a `shape` and a `dtype`."""
    args, kwargs = tree_util.tree_map(_read_description, (args, kwargs))
    if isinstance(fun, JitWrapped):
        return fun.eval_shape(*args, **kwargs)
    call = read_call(fun, plan_arguments(fun, DEFAULT_OPTIONS), args, kwargs, abstract=True)
    traced = trace_call(fun, call, transform="eval_shape")
    return traced.unflatten([_describe_aval(aval) for aval in traced.jaxpr.out_avals])


def _read_description(x: Any) -> Any:
    """A `ShapeDtypeStruct` for an object that has only what that has; else the object."""
    is_known = isinstance(x, (Array, np.ndarray, np.generic, ShapeDtypeStruct, type))
    if is_known or not isinstance(getattr(x, "shape", None), (tuple, list)) or not hasattr(x, "dtype"):
        return x
    try:
        return ShapeDtypeStruct(x.shape, x.dtype)
    except TypeError:  # of a dtype that is no array's, such as that of keys
        return x


def _describe_aval(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def typeof(x: Any) -> ShapedArray:
    """Shape, dtype and weak type of an array, tracer or scalar. Raises: TypeError for anything else."""
    return aval_of(x)


def clear_caches() -> None:
    """Forgets every signature of every jitted function and every compiled program."""
    functions.clear_functions()
    if autojitted := sys.modules.get("jitcore.autojitted.function"):  # loaded when it is first used
        autojitted.clear_functions()
    executables.clear()
    clear_backends()


# -- transfer ------------------------------------------------------------------------------------------------


@api_boundary
def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """The pytree with its leaves as Arrays on devices. ndarrays are copied.

    Args:
        device: a device or sharding, or a pytree of them, as far down as they differ; None is the default
            backend's choice, and leaves Arrays where they are.
    Raises: BackendNotFoundError for a device that is not there; TypeError for what is not an array;
        ValueError for an array that a sharding cannot cut into equal parts, and for several devices of a
        backend that runs on one."""
    leaves, treedef = tree_util.tree_flatten(x)
    targets = tree_util.flatten_axes("device_put device", treedef, device)
    return treedef.unflatten([_put_leaf(leaf, target) for leaf, target in zip(leaves, targets)])


def _put_leaf(leaf: Any, device: Any) -> Array:
    if read_leaf(leaf) is None:
        leaf = adopt_array(leaf)
    if isinstance(leaf, Array) and device is None:
        return leaf
    if device is not None and not isinstance(device, Device):
        device = resolve_sharding(device, "device_put")
        check_served(device.device_set)
        device.shard_shape(np.shape(leaf))
    if isinstance(leaf, Tracer):
        return leaf if isinstance(device, Device) else with_sharding_constraint(leaf, device)
    backend = find_backend(None if device is None else device.backend)
    part = read_leaf(leaf)
    if part is None:
        raise TypeError(f"Value {leaf!r} with type {type(leaf)} is not a valid jitcore type")
    if hasattr(backend, "put"):
        is_own = isinstance(leaf, DeviceArray) and leaf.sharding.backend == backend.name
        value = leaf.buffer if is_own else to_carriers(read_value(leaf, part[1]))
        return with_dtype(backend.wrap(backend.put(value, device, isinstance(leaf, Array)), part[2]), part[1])
    if leaf.__class__ is ConcreteArray:
        return leaf
    value = read_value(leaf, part[1])
    return ConcreteArray(copy_data(value) if value is leaf else value, part[2])


@api_boundary
def device_get(x: Any) -> Any:
    """The pytree with its Arrays as ndarrays, but for those of keys; other leaves stay as they are."""
    return tree_util.tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array)
                              and not dtypes.is_key(leaf.dtype) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits until every Array of the pytree is computed; returns the pytree."""
    if type(x) is ConcreteArray:  # no need to take it apart
        return x.block_until_ready()
    for leaf in tree_util.tree_leaves(x):
        if isinstance(leaf, Array) and not isinstance(leaf, Tracer):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Begins to bring the Arrays of the pytree to the host; here they are brought when they are read.

    Returns: the pytree. Example: `copy_to_host_async(x)`. Source: jax.copy_to_host_async."""
    return x


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The pytree with its arrays cut as shardings say; inside of traces the compiler is told.

    Args:
        xs: pytree of arrays. out_shardings: a sharding, or a pytree of them as far down as they differ.

    Returns: the pytree. Raises: as `device_put`. Source: jax.reshard."""
    return device_put(xs, out_shardings)


def ds(start: Any, size: int | None = None, stride: int | None = None) -> slice:
    """The slice of `size` elements from `start` on, every `stride`-th; of one number, that many from the
    first on.

    Returns: slice. Example: `x[ds(1, 3)]` is `x[1:4]`. Source: jax.ds."""
    if size is None:
        start, size = 0, start
    return slice(start, start + size * (stride or 1), stride)


def effects_barrier() -> None:
    """Waits for the effects of calls that were made, callbacks and prints: here they end with their call."""


# -- names ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Names a region of code. The name is checked and otherwise unused."""
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}")
    yield


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` run inside `named_scope(name)`, its own name by default."""
    name = name or locate_function(fun)[0]

    @functools.wraps(fun)
    def call_named(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(name):
            return fun(*args, **kwargs)

    return call_named


def pmap(fun: Callable[P, R], axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Device] | None = None,
         backend: str | None = None, axis_size: int | None = None,
         donate_argnums: int | Sequence[int] = ()) -> Callable[P, R]:
    """`fun` on each element of a batch, compiled: `jit(vmap(fun))`, for programs that cut their arrays into a
    part for each device.

    All parts are computed on one device, however many there are; `shard_map` uses several.

    Args:
        fun: a function of pytrees of arrays.
        axis_name: by which collectives such as `lax.psum` refer to the mapped axis.
        in_axes, out_axes, axis_size: as of `vmap`.
        static_broadcasted_argnums: arguments that are constants of the trace, the same for all parts.
        devices: only how many there are counts, for `axis_size`.
        backend, donate_argnums: as of `jit`.

    Returns: a function of the same arguments.
    Raises: as `jit` and `vmap`.
    Source: jax.pmap."""
    fixed = read_argnums(static_broadcasted_argnums) or ()
    size = len(devices) if axis_size is None and devices is not None else axis_size

    @functools.wraps(fun)
    def map_parts(*args, **kwargs):
        axes = tuple(in_axes) if isinstance(in_axes, (list, tuple)) else (in_axes,) * len(args)
        places = [position for position in range(len(args))
                  if position not in fixed and position - len(args) not in fixed]
        axes = tuple(axes[position] for position in places)

        def run_part(*mapped, **mapped_kwargs):
            whole = list(args)
            for position, value in zip(places, mapped):
                whole[position] = value
            return fun(*whole, **mapped_kwargs)

        batched = vmap(run_part, axes, out_axes, axis_name=axis_name, axis_size=size)
        return batched(*(args[position] for position in places), **kwargs)

    return jit(map_parts, static_argnums=fixed, donate_argnums=donate_argnums, backend=backend)


preload_backend()
