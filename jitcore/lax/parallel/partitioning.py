"""Values of a program on several devices: how they lie there is said, or asked.

In: arrays, shardings. Out: the same arrays. The partitioner of a backend obeys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore.core.jaxpr import aval_of
from jitcore.core.primitive import Effect
from jitcore.lax.define import define
from jitcore.sharding import NamedSharding, Sharding, resolve_sharding
from jitcore.sharding.mesh import UNCONSTRAINED, PartitionSpec
from jitcore.transforms.batch_rules import rebind
from jitcore.transforms.derivative_rules import jvp_linear, transpose_unary
from jitcore.tree_util import flatten_axes, tree_flatten


def _keep(x, **_):
    return x


def add_axis_to_spec(spec: PartitionSpec, entry: Any = None) -> PartitionSpec:
    """The spec of an array with a new first axis."""
    return PartitionSpec(entry, *spec)


def _batch_constraint(primitive, axis, values, batched, *, sharding):
    if not isinstance(sharding, NamedSharding):
        return values[0]  # it says nothing of arrays with one more axis
    return primitive.bind(
        values[0], sharding=NamedSharding(sharding.mesh, add_axis_to_spec(sharding.spec, UNCONSTRAINED)))


def _refuse(*values, **_):
    raise NotImplementedError("an array on several devices needs backend='xla'")


@define(
    "sharding_constraint",
    impl=_refuse,
    aval=_keep,
    jvp=jvp_linear(),
    batch=_batch_constraint,
    transpose=transpose_unary(
        lambda ct, x, *, sharding: with_sharding_constraint.primitive.bind(ct, sharding=sharding)),
    mesh=lambda *, sharding: sharding)
def with_sharding_constraint(x: Any, shardings: Any):
    """The arrays, cut over devices as the shardings say.

    Args:
        x: pytree of arrays.
        shardings: a sharding, or a pytree of them, as far down as they differ; None leaves an array to the
            partitioner. A `PartitionSpec` refers to the current mesh.

    Raises: ValueError for an array that cannot be cut into equal parts; RuntimeError for a `PartitionSpec`
        without a mesh."""
    leaves, treedef = tree_flatten(x)
    if isinstance(shardings, list) and not isinstance(x, list):
        shardings = tuple(shardings)
    given = flatten_axes("with_sharding_constraint shardings", treedef, shardings)
    return treedef.unflatten(
        [leaf if one is None else _constrain(leaf, one) for leaf, one in zip(leaves, given)])


def _constrain(x, sharding):
    sharding = resolve_sharding(sharding, "with_sharding_constraint")
    sharding.shard_shape(aval_of(x).shape)
    return x if sharding.num_devices == 1 else with_sharding_constraint.primitive.bind(x, sharding=sharding)


def place(x, device: Any):
    """An array that was made for a device or sharding: cut where several devices are meant."""
    return _constrain(x, device) if isinstance(device, Sharding) else x


# -- questions ----------------------------------------------------------------------------------------------
INSPECTION = Effect("InspectSharding", ordered=False)


@define("inspect_sharding", impl=lambda x, *, callback: [], aval=lambda x, *, callback: [],
        lower=lambda builder, x, *, callback: [], batch=rebind(), jvp=lambda primitive, primals, tangents,
        **params: (primitive.bind(*primals, **params), []), multiple_results=True,
        effects=frozenset({INSPECTION}))
def inspect_sharding(x: Any, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback(sharding)` once the partitioner has decided how an array of a program lies."""
    inspect_sharding.primitive.bind(x, callback=callback)
