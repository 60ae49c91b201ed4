"""Several operands in one frame, so that an operation on the frames is the operation on the arrays.

In: arrays, some of them partial, whose shapes broadcast. Out: plain arrays whose shapes broadcast, and the
items of the result. Extents that are not known to be equal are compared when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore import lax
from jitcore.array import Array
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.array import PartialArray
from jitcore.numpy_semantics.dynamic_extents.moving import move_elements
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Whole
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array


def list_items(operand: Any) -> list[Item]:
    """The items of an array; a plain one has all elements along each axis, a scalar has no axes."""
    if isinstance(operand, PartialArray):
        return list(operand.items)
    return [Whole(size) for size in getattr(operand, "shape", ())]


def find_frame(operand: Any) -> NDArray:
    return operand.frame if isinstance(operand, PartialArray) else operand


def align(operands: Sequence[Any]) -> tuple[list[Any], list[Item]]:
    """Operands in one frame; scalars stay as they are.

    Raises: ValueError where two extents are known to differ."""
    items = join_items([list_items(operand) for operand in operands])
    return [adapt(operand, items) for operand in operands], items


def join_items(lists: Sequence[list[Item]]) -> list[Item]:
    """The items of what arrays with these items broadcast to."""
    rank = max(map(len, lists), default=0)
    joint = []
    for place in range(-rank, 0):
        joint.append(_join([items[place] for items in lists if len(items) >= -place]))
    return joint


def is_single(item: Item) -> bool:
    return item.is_whole and item.size == 1


def _join(items: list[Item]) -> Item:
    several = [item for item in items if not is_single(item)]
    if not several:
        return items[0]
    target = _choose(several)
    for item in several:
        if not item.is_same(target):
            require_equal(item.size, target.size)
    return target


def _choose(items: list[Item]) -> Item:
    """Whose frame is used: that of a plain array, because its extent is known; else the first, but masks only
    where all have the same."""
    whole = [item for item in items if item.is_whole]
    if whole:
        return whole[0]
    spans = [item for item in items if not isinstance(item, Pick)]
    if spans:
        return spans[0]
    first = items[0]
    if all(item.is_same(first) for item in items):
        return first
    return min(items, key=lambda item: item.capacity).as_span()


def require_equal(size, wanted) -> None:
    """Notes that two extents have to be equal. Raises: ValueError where they are known not to be."""
    difference = extents.find_difference(size, wanted)
    if difference == 0:
        return
    if difference is not None:
        raise ValueError(
            f"operands could not be broadcast together: an extent is {size} in one and {wanted} in another"
        )
    error = ValueError("operands could not be broadcast together with their shapes")
    extents.fail(lax.ne(extents.to_array(size), extents.to_array(wanted)), error)


def adapt(operand: Any, items: Sequence[Item]) -> Any:
    """An operand in the frame of these items: a plain array that broadcasts to it."""
    own = list_items(operand)
    if not own:
        return operand
    wanted = list(items[len(items) - len(own) :])
    if all(a.is_same(b) or a.is_whole and b.is_whole for a, b in zip(own, wanted)):
        return find_frame(operand)
    raw = find_frame(operand).read()
    return new_array(adapt_raw(raw, own, wanted))


def adapt_raw(raw: Array, own: Sequence[Item], wanted: Sequence[Item]) -> Array:
    shape: list[int] = []
    axis = 0
    for item, target in zip(own, wanted):
        count = len(item.shape)
        shape += [1] * len(target.shape) if is_single(item) else raw.shape[axis : axis + count]
        axis += count
    raw = lax.reshape(raw, shape) if tuple(shape) != raw.shape else raw
    axis = 0
    for item, target in zip(own, wanted):
        if not is_single(item) and not (item.is_whole and target.is_whole):
            raw = move_elements(raw, axis, item, target)
        axis += len(target.shape)
    return raw
