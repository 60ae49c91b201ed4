"""Where values vary: inside of `shard_map` each knows along which axes of the mesh it may differ from device
to device (`ShapedArray.varying`).

In: operands of an operation, or the types of its results. Out: the same, marked. The trait `varying` of a
primitive says how its results vary: a function of the axes of all operands and the params, or None where the
rule of types knows, as that of loops, branches and calls does; without it, as the operands do.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.core.jaxpr import ShapedArray, sub_jaxprs


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
