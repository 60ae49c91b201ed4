"""Several operands in one frame, so that an operation on the frames is the operation on the arrays.

In: arrays, some of them padded, whose shapes broadcast. Out: plain arrays whose shapes broadcast, and the
items of the result; or values stored where such an array lies. Extents that are not known to be equal are
compared when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore import lax
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray
from jitcore.numpy_semantics.dynamic_extents.moving import move_elements
from jitcore.numpy_semantics.dynamic_extents.spans import Item, Pick, Whole, find_axes, join_masks
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import is_given
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw


def list_items(operand: Any) -> list[Item]:
    """The items of an array; a plain one has all elements along each axis, a scalar has no axes."""
    if isinstance(operand, PaddedArray):
        return list(operand.items)
    shape = getattr(operand, "shape", ())
    return [Whole(size) for size in shape] if type(shape) is tuple else []  # types have one too


def find_frame(operand: Any) -> NDArray:
    return operand.frame if isinstance(operand, PaddedArray) else operand


def align(operands: Sequence[Any]) -> tuple[list[Any], list[Item]]:
    """Operands in one frame; scalars stay as they are.

    Raises: ValueError where two extents are known to differ."""
    operands = [as_operand(x) if isinstance(x, (list, tuple)) else x for x in operands]
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
    first = min(items, key=lambda item: 0 if item.is_whole else 1 + isinstance(item, Pick))
    if not isinstance(first, Pick) or all(item.is_same(first) for item in items):
        return first
    return min(items, key=lambda item: item.capacity).as_span()


def require_equal(size, wanted) -> None:
    """Notes that two extents have to be equal. Raises: ValueError where they are known not to be."""
    difference = extents.find_difference(size, wanted)
    if difference == 0:
        return
    if difference is not None:
        raise ValueError(
            f"operands could not be broadcast together: an extent is {size} in one and {wanted} in another")
    error = ValueError("operands could not be broadcast together with their shapes")
    extents.fail(lax.ne(extents.to_array(size), extents.to_array(wanted)), error)


def adapt(operand: Any, items: Sequence[Item]) -> Any:
    """An operand in the frame of these items: a plain array that broadcasts to it, where items are single."""
    own = list_items(operand)
    if not own:
        return operand
    wanted = list(items[len(items) - len(own) :])
    if all(a.is_same(b) or a.is_whole and b.is_whole for a, b in zip(own, wanted)):
        return find_frame(operand)
    raw, axis = to_raw(find_frame(operand)), 0
    for item, target in zip(own, wanted):
        count = len(target.shape)
        if not is_single(item) and not (item.is_whole and target.is_whole):
            raw = move_elements(raw, axis, item, target)
        elif count > 1:
            raw = lax.reshape(raw, (*raw.shape[:axis], *[1] * count, *raw.shape[axis + 1 :]))
        axis += count
    return new_array(raw)


# -- stores -------------------------------------------------------------------------------------------------
def assign(target: Any, value: Any) -> None:
    """Writes values, which broadcast to them, into the elements of an array. Elements of its frame that are
    not its own keep their values, by a selection that writes back what was there: the compiler runs over the
    elements that change."""
    frame, items, values = find_frame(target), list_items(target), list_items(value)
    while len(values) > len(items):
        if not is_single(values[0]):
            raise ValueError("could not broadcast input array into a shape of fewer axes")
        value, values = value[0], values[1:]
    for own, item in zip(values[::-1], items[::-1]):
        if not is_single(own) and not own.is_same(item):
            require_equal(own.size, item.size)
    value = adapt(value, items)
    old = frame.read()
    mask = join_masks(items, find_axes(items), old.shape)
    if mask is None:
        frame[...] = value
        return
    new = new_array(old)
    new[...] = value  # casts and broadcasts
    frame.write(lax.select(mask, new.read(), old))


def finish(result: Any, out: Any = None) -> Any:
    """A result, or `out=` with the result in it."""
    (out,) = out if isinstance(out, tuple) else (out,)
    if not is_given(out):
        return result
    if not isinstance(out, NDArray):
        raise not_traceable(f"out= of type {type(out).__name__}")
    assign(out, result)
    return out
