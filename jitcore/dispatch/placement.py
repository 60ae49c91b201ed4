"""Where a call runs: on which backend, on which of its devices, and how its arguments and results lie there.

In: the options of `jit`, the signature of a call, what was traced. Out: a backend and a sharding for
`CompileOptions`: a device, the sharding of one, a `Spread` over several, or None for the backend's choice.
Donated arguments, whose memory a program may overwrite, are copied where somebody else could still look at
the memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import errors, tree_util
from jitcore.array import ConcreteArray, copy_data
from jitcore.core.source import warn_user
from jitcore.dispatch.backend import Backend, find_backend
from jitcore.dispatch.options import UNSPECIFIED, JitOptions
from jitcore.dispatch.program import Program
from jitcore.dispatch.signature import CallSignature
from jitcore.dispatch.tracing import TracedFunction
from jitcore.errors import arguments
from jitcore.lax.parallel.partitioning import with_sharding_constraint
from jitcore.sharding import Sharding, Spread, resolve_sharding


def place_call(options: JitOptions, fun: Callable, call: CallSignature, find: Callable = find_backend
               ) -> tuple[Backend, Any]:
    """By options and arguments: where the options say, else where arrays lie that somebody placed, else where
    any lie, else on the default backend. find: the backend of a name.

    Raises: ValueError naming two arrays that lie on different devices."""
    chosen = None if options.backend is None else find(options.backend)
    if options.sharding is not None:
        return chosen, options.sharding if hasattr(chosen, "wrap") else None
    placed = [(i, sharding) for i, sharding, is_committed in call.shardings
              if is_committed and (chosen is None or sharding.backend == chosen.name)]
    if placed:
        (first, sharding), *others = placed
        for position, other in others:
            if other.device_set != sharding.device_set:
                raise arguments.devices_differ_error(_tell(fun, call, first), _tell(fun, call, position))
        place = sharding if sharding.num_devices == 1 else _spread_arguments(call, {})
        return find_backend(sharding.backend), place
    if chosen is None and call.shardings:
        return find_backend(call.shardings[0][1].backend), None
    return chosen or find(None), None


def place_program(options: JitOptions, fun: Callable, call: CallSignature, traced: TracedFunction,
                  backend: Backend, sharding: Any) -> tuple[Backend, Any]:
    """By the meshes, too, that options and the traced function name. backend, sharding: of `place_call`.

    Raises: ValueError for devices that differ from each other, for several of a backend that runs on one, and
    for an argument that lies otherwise than the options say."""
    ins, outs = spread_options(options, call, traced)
    named = [*ins.values(), *outs.values(), *traced.list_shardings()]
    if not named:
        return backend, sharding
    devices = named[0].device_set
    for other in named[1:]:
        if other.device_set != devices:
            raise arguments.meshes_differ_error(f"a sharding on {_show(named[0])}", _show(other))
    found = find_backend(named[0].backend)
    if len(devices) == 1:
        return found, named[0] if hasattr(found, "wrap") else None
    is_asked = options.backend is None or find_backend(options.backend) is found
    if not (is_asked and hasattr(found, "split")):
        raise arguments.mesh_backend_error(options.backend or found.name, len(devices))
    for i, placed, is_committed in call.shardings:
        if not is_committed or placed.backend != found.name:
            continue
        if placed.device_set != devices:
            raise arguments.meshes_differ_error(f"argument {_tell(fun, call, i)}", _show(named[0]))
        if i in ins and not placed.is_equivalent_to(ins[i], len(call.parts[i][0])):
            shown = call.name_leaves(fun)[i], call.avals[i].long()
            raise arguments.sharding_differs_error(*shown, str(ins[i]), str(placed))
    n_outs = len(traced.jaxpr.outvars)
    spread = tuple([outs.get(i) for i in range(n_outs)]) if outs else ()
    return found, Spread(_spread_arguments(call, ins).ins, spread)


def find_movable(call: CallSignature, sharding: Any) -> list[int]:
    """The arguments that lie on other devices than a program of this sharding, without anybody's asking."""
    if sharding is None:
        return []
    where = None if isinstance(sharding, Spread) else getattr(sharding, "device_set", {sharding})
    return [i for i, placed, is_committed in call.shardings
            if not is_committed and placed.device_set != where]


def _tell(fun: Callable, call: CallSignature, position: int) -> str:
    name, where = call.name_leaves(fun)[position], _show(call.leaves[position].sharding)
    return f"{name} of type {call.avals[position].long()} on {where}"


def _show(sharding: Sharding) -> str:
    return ", ".join(sorted(map(str, sharding.device_set)))


def _spread_arguments(call: CallSignature, given: dict[int, Sharding]) -> Spread:
    """Arguments as they lie, and as the options say."""
    known = {i: sharding for i, sharding, is_committed in call.shardings if is_committed} | given
    return Spread(tuple([known.get(i) for i in range(len(call.parts))]) if known else (), ())


# -- the options --------------------------------------------------------------------------------------------
def spread_options(options: JitOptions, call: CallSignature, traced: TracedFunction
                   ) -> tuple[dict[int, Sharding], dict[int, Sharding]]:
    """The shardings that `jit` was given for leaves of the arguments, and for those of the result.

    Raises: ValueError for what is no prefix of them; for keyword arguments beside `in_shardings`."""
    ins: dict[int, Sharding] = {}
    outs: dict[int, Sharding] = {}
    if options.in_shardings is not UNSPECIFIED:
        args, kwargs = call.make_in_tree().children()
        if kwargs.num_leaves and options.in_shardings is not None:
            raise ValueError("jit does not support kwargs when in_shardings is specified.")
        given = options.in_shardings
        ins = _spread("jit in_shardings", args, tuple(given) if isinstance(given, list) else given)
        for i, sharding in ins.items():
            sharding.shard_shape(call.parts[i][0])
    if options.out_shardings is not UNSPECIFIED:
        outs = _spread("jit out_shardings", traced.make_out_tree(), options.out_shardings)
        for i, sharding in outs.items():
            sharding.shard_shape(traced.jaxpr.outvars[i].aval.shape)
    return ins, outs


def _spread(name: str, tree: tree_util.PyTreeDef, shardings: Any) -> dict[int, Sharding]:
    leaves = tree_util.flatten_axes(name, tree, shardings)
    return {i: resolve_sharding(leaf, name) for i, leaf in enumerate(leaves)
            if leaf is not None and leaf is not UNSPECIFIED}


def constrain_leaves(leaves: Sequence[Any], shardings: dict[int, Sharding]) -> list[Any]:
    """The arguments or results of a jitted function that is called while another is traced."""
    return [with_sharding_constraint(leaf, shardings[i]) if i in shardings else leaf
            for i, leaf in enumerate(leaves)]


# Who refers to an ndarray that only its Array knows, while `_has_other_users` looks at it: the Array, the
# list of values, and the argument of getrefcount.
_OWN_REFERENCES = 3


def claim_donated(positions: Sequence[int], leaves: Sequence[Any], values: list[np.ndarray]) -> None:
    """Replaces those `values` that must not be overwritten by copies: the caller's ndarrays, and Arrays whose
    memory is seen through a view or an export.

    Raises: JitcoreRuntimeError when an array is donated and passed once more in the same call."""
    if len(set(map(id, values))) < len(values):
        _refuse_repetition(positions, values)
    for i in positions:
        if not isinstance(values[i], np.ndarray):  # a buffer, which its runtime takes over or copies
            continue
        if leaves[i].__class__ is not ConcreteArray or _has_other_users(values, i):
            values[i] = copy_data(values[i])


def _refuse_repetition(positions: Sequence[int], values: list[np.ndarray]) -> None:
    first_use: dict[int, int] = {}
    for i in range(len(values)):
        j = first_use.setdefault(id(values[i]), i)
        if i != j and (i in positions or j in positions):
            raise errors.JitcoreRuntimeError(
                "Attempt to use a buffer that was previously donated in the same call (flattened arguments "
                f"{j} and {i} are the same array).\nTo fix: pass a copy, x.copy(), or do not donate it."
            )


def _has_other_users(values: list[np.ndarray], i: int) -> bool:
    # The item is not put into a variable, which would be one more reference in some versions of Python.
    return values[i].base is not None or sys.getrefcount(values[i]) > _OWN_REFERENCES


def delete_donated(positions: Sequence[int], leaves: Sequence[Any]) -> None:
    """Marks the Arrays whose memory was given away as deleted."""
    for i in positions:
        if isinstance(leaves[i], ConcreteArray):
            leaves[i].delete()


def warn_unusable(program: Program) -> None:
    """Warns, at the user's line, when a donated argument is read but no result can take over its memory."""
    if program.unusable:
        texts = ", ".join(aval.long() for aval in program.unusable)
        warn_user(f"Some donated buffers were not usable: {texts}.\n"
                  f"No result of {program.traced.fun_name} has that shape and dtype.")
