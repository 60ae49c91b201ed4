"""Where values vary: inside of `shard_map` each knows along which axes of the mesh it may differ from device
to device (`ShapedArray.varying`).

In: operands of an operation, or the types of its results. Out: the same, marked. The trait `varying` of a
primitive says how its results vary: a function of the axes of all operands and the params, or None where the
rule of types knows, as that of loops, branches and calls does; without it, as the operands do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.core.aval import ShapedArray, aval_of
from jitcore.core.jaxpr import sub_jaxprs


def mark(x: Any, wanted: frozenset) -> Any:
    """A value as one that varies along these axes too."""
    from jitcore.core.primitive import registry

    missing = wanted - aval_of(x).varying
    return registry["pvary"].bind(x, axes=tuple(sorted(missing, key=str))) if missing else x


def mark_operands(primitive, args: Sequence, params: dict) -> Sequence:
    """Operands of one operation: those that vary along fewer axes than others are marked. Constants stay:
    nothing asks for their derivatives. Loops, branches and calls take operands as they are: operations inside
    look at them."""
    from jitcore.core.trace import Tracer

    if "varying" in primitive.traits or sub_jaxprs(params):
        return args
    found = [x.aval.varying for x in args if isinstance(x, Tracer)]
    if len(found) < 2 or all(varying == found[0] for varying in found):
        return args
    wanted = frozenset().union(*found)
    return [mark(x, wanted) if isinstance(x, Tracer) else x for x in args]


def mark_results(primitive, atoms: Sequence, out_avals: Sequence[ShapedArray],
                 params: dict) -> list[ShapedArray]:
    """The types of what is made of these atoms."""
    if "varying" not in primitive.traits and sub_jaxprs(params):
        return list(out_avals)
    rule = primitive.traits.get("varying", _join)
    if rule is None:
        return list(out_avals)
    varying = rule(frozenset().union(*(atom.aval.varying for atom in atoms)), **params)
    return [aval if aval.varying == varying else aval.update(varying=varying) for aval in out_avals]


def _join(varying: frozenset, /, **params) -> frozenset:
    return varying
