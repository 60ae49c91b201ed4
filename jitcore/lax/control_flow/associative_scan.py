"""`associative_scan`: all prefixes of an associative operation, in a number of steps that is logarithmic.

In: an operation on slices and arrays with a common axis. Out: arrays of the same shapes holding the prefixes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from jitcore.core.jaxpr import aval_of
from jitcore.core.trace import to_array
from jitcore.lax import shape
from jitcore.lax.control_flow import control
from jitcore.lax.indexing.slices import slice_in_dim
from jitcore.lax.joining import concatenate
from jitcore.tree_util import tree_flatten


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0):
    """Combines all elements up to each position along an axis.

    Same as (for a single array and axis 0):
        result = [elems[0]]
        for x in elems[1:]:
            result.append(fn(result[-1], x))
        return np.stack(result)

    Args:
        fn: associative (a, b) -> c on pytrees like elems. It gets many elements at once, stacked along the
            axis, and combines them one by one as elementwise operations do.
        elems: pytree of arrays with one extent along the axis.
        reverse: from the last element to the first.

    Returns: pytree like elems. Floats may differ from the loop by rounding: operations are grouped otherwise.
    Raises: TypeError when fn is not callable; ValueError when extents differ or fn changes the structure.
    Cost: about two applications of fn per element, in 2 log2(n) steps.
    Source: Blelloch, Prefix sums and their applications, CMU-CS-90-190."""
    control.check_callable("lax.associative_scan: fn argument should be callable.", fn)
    leaves, tree, avals = control.flatten_operands(elems)
    if not leaves:
        return elems
    axis = shape.canonicalize_axis(operator.index(axis), avals[0].ndim)
    shapes = [aval.shape for aval in avals]
    if any(len(extents) <= axis or extents[axis] != shapes[0][axis] for extents in shapes):
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {shapes})")
    leaves = [shape.rev(leaf, (axis,)) if reverse else to_array(leaf) for leaf in leaves]

    def combine(first: list, second: list) -> list:
        results, out_tree = tree_flatten(fn(tree.unflatten(first), tree.unflatten(second)))
        if out_tree != tree:
            raise ValueError(f"associative_scan: fn must return the structure {tree}, got {out_tree}")
        return results

    prefixes = _scan_prefixes(combine, leaves, axis)
    return tree.unflatten([shape.rev(leaf, (axis,)) if reverse else leaf for leaf in prefixes])


def _scan_prefixes(combine: Callable, leaves: list, axis: int) -> list:
    count = aval_of(leaves[0]).shape[axis]
    if count < 2:
        return leaves
    # Prefixes that end at odd positions are those of the pairs; one more step gives the even ones.
    pairs = combine(_cut(leaves, axis, 0, count - 1, 2), _cut(leaves, axis, 1, count, 2))
    odd = _scan_prefixes(combine, pairs, axis)
    first = _cut(leaves, axis, 0, 1)
    if count == 2:
        return [concatenate(parts, axis) for parts in zip(first, odd)]
    before = odd if count % 2 else _cut(odd, axis, 0, count // 2 - 1)
    later = combine(before, _cut(leaves, axis, 2, count, 2))
    even = [concatenate(parts, axis) for parts in zip(first, later)]
    return [_interleave(x, y, axis) for x, y in zip(even, odd)]


def _cut(leaves: list, axis: int, start: int, stop: int, stride: int = 1) -> list:
    return [slice_in_dim(leaf, start, stop, stride, axis) for leaf in leaves]


def _interleave(even, odd, axis: int):
    """even[0], odd[0], even[1], ... along the axis; `even` may have one element more."""
    extents = aval_of(odd).shape
    count = extents[axis]
    paired = [shape.expand_dims(slice_in_dim(part, 0, count, 1, axis), (axis + 1,)) for part in (even, odd)]
    merged = shape.reshape(concatenate(paired, axis + 1), (*extents[:axis], 2 * count, *extents[axis + 1 :]))
    if aval_of(even).shape[axis] == count:
        return merged
    return concatenate([merged, slice_in_dim(even, count, count + 1, 1, axis)], axis)
