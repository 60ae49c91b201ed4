"""Values as the driver sees them: which are traced, which leaves containers have, how two join in one.

In: whatever variables of the user's function hold. Out: leaves and how to put them together again.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of, is_array_like
from jitcore.core.trace import JaxprTrace, Tracer, context, to_array, user_snippet
from jitcore.errors import bool_conversion_error
from jitcore.lax import elementwise
from jitcore.lax.define import cast
from jitcore.process.effort import spend
from jitcore.rewriter.control_flow.raising import MaybeUnbound
from jitcore.rewriter.handles import (UNDEFINED, Compound, CompoundHandle, ConflictError, Handle, LeafType,
                                      current)
from jitcore.rewriter.journal import Location, Unknown
from jitcore.rewriter.objects import MAX_DEPTH, Place, is_same_position, list_children, read_variables
from jitcore.transforms.jvp import JvpTracer
from jitcore.transforms.partial_eval import PartialTrace
from jitcore.transforms.tangents import fill


def is_traced(value) -> bool:
    """Whether Python cannot read the value now. Asks its type: `__class__` may be the code of a user."""
    if issubclass(type(value), Handle):
        return True
    while issubclass(type(value), JvpTracer):
        value = value.primal
    return issubclass(type(value), Tracer)


def is_undecided(value) -> bool:
    """Whether Python cannot tell now if the value is true."""
    return not isinstance(value.as_predicate(), bool) if isinstance(value, Handle) else is_traced(value)


def as_predicate(value, place: Place | None = None) -> Array | bool:
    """A traced value as a traced bool scalar, or as a bool where it is known. place: where it decides.

    Raises: ValueError for an array of several elements."""
    if isinstance(value, Handle):
        return value.as_predicate()
    if isinstance(value, bool):
        return value
    aval = aval_of(value)
    if aval.size != 1:
        raise bool_conversion_error(aval.long(), where=place.lines if place else user_snippet())
    if aval.shape:
        value = value.reshape(())
    return value if aval.dtype == dtypes.bool_ else elementwise.ne(value, aval.dtype.type(0))


def as_flag(predicate: Array | bool) -> Array:
    """A predicate as a value that is carried as it is."""
    return to_array(predicate) if isinstance(predicate, bool) else predicate


def wrap_predicate(predicate: Array | bool) -> Any:
    """A predicate as the value that Python code sees: under a mode, what stands for a Python bool there."""
    mode = current.mode
    if mode is None or isinstance(predicate, bool):
        return predicate
    found = mode.type_of(True)
    return predicate if found is None else wrap(predicate, found)


# -- types --------------------------------------------------------------------------------------------------
def type_of(leaf) -> LeafType | None:
    """The type with which a value is carried; None for what can not be."""
    if isinstance(leaf, Handle):
        return leaf.leaf_type
    if leaf is UNDEFINED or isinstance(leaf, Poison):
        return None
    if current.mode is not None and not isinstance(leaf, Array):
        return current.mode.type_of(leaf)
    return LeafType(aval_of(leaf)) if is_array_like(leaf) else None


def join_types(one: LeafType, other: LeafType) -> LeafType:
    """The type of a value that may be of either type. Raises: ConflictError."""
    if one.kind is not None:
        return one.kind.join(one.aval, other)
    if other.kind is not None:
        return other.kind.join(other.aval, one)
    return LeafType(join_avals(one.aval, other.aval))


def join_avals(one: ShapedArray, other: ShapedArray) -> ShapedArray:
    """The type of an Array that may be of either type. Raises: ConflictError for two shapes."""
    if one.shape != other.shape:
        raise ConflictError(f"shape {one.shape} and {other.shape}")
    dtype, weak = dtypes.join_types((one.dtype, one.weak_type), (other.dtype, other.weak_type))
    return ShapedArray(one.shape, dtype, weak)


def convert(value, leaf_type: LeafType) -> Array:
    """The value as an Array of this type."""
    aval = leaf_type.aval
    if leaf_type.kind is not None or isinstance(value, Handle):
        return current.mode.convert(value, aval)
    return cast(value, aval_of(value), aval.dtype, aval.weak_type)


def wrap(raw: Array, leaf_type: LeafType) -> Any:
    """The value of a type that an Array holds."""
    return raw if leaf_type.kind is None else leaf_type.kind.wrap(raw, leaf_type.aval)


def make_zeros(aval: ShapedArray) -> Array:
    return fill(aval, 0)


def is_made_in(leaf, trace: JaxprTrace) -> bool:
    """Whether a value was computed while a trace was being recorded."""
    return leaf.is_made_in(trace) if isinstance(leaf, Handle) else trace.owns(leaf)


def memory_of(leaf) -> Any:
    """What handles on the same mutable memory have in common, or None."""
    return leaf.memory if isinstance(leaf, Handle) else None


class Poison(Unknown):
    """Stands for a value that cannot be known; every use of it raises what `make_error` returns."""

    def __init__(self, make_error: Callable[[], Exception]):
        object.__setattr__(self, "make_error", make_error)

    def raise_reason(self, *args: Any, **kwargs: Any):
        raise object.__getattribute__(self, "make_error")()

    __hash__ = object.__hash__


_USES = """getattr setattr call iter next bool len getitem setitem contains index int float complex
    array eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow
    matmul rmatmul neg pos abs and rand or ror xor rxor invert"""
for _name in _USES.split():
    setattr(Poison, f"__{_name}__", Poison.raise_reason)


class PoisonedAttribute(Poison):
    """An attribute that is there if one way was taken. Behind it stand attributes that were made later."""

    def note_store(self, location: Location) -> None:
        """Raises: as a use, where the order of the object's attributes would not be known."""
        variables = read_variables(location.owner) if hasattr(location, "owner") else None
        if type(variables) is dict and next(reversed(variables), None) != location.name:
            self.raise_reason()


#: Steps that a leaf costs wherever values are taken apart, or an object where they are searched.
LEAF = 4


def count_memory(values: Iterable[Any], *, by_place: bool = False) -> Counter[int]:
    """How many handles see each memory (by id) that can be reached from some values. by_place: from how many
    places it is reached, values, elements and attributes: a handle under two names counts twice."""
    found: Counter[int] = Counter()
    waiting, seen = list(values), {}
    while waiting:
        value = waiting.pop()
        memory = memory_of(value)
        if id(value) in seen and not (by_place and memory is not None):
            continue
        seen[id(value)] = value
        if memory is not None:
            found[id(memory)] += 1
        else:
            waiting += list_children(value) or ()
    spend(LEAF * len(seen))
    return found


def count_containers(values: Iterable[Any]) -> Counter[int]:
    """From how many places each list or dict (by id) can be reached."""
    found: Counter[int] = Counter()
    waiting, seen = [(value, 0) for value in values], {}
    while waiting:
        value, depth = waiting.pop()
        if type(value) is MaybeUnbound:
            value = value.value
        is_known = id(value) in seen
        if type(value) in (list, dict):
            found[id(value)] += 1
        if not is_known or type(value) is tuple and depth < MAX_DEPTH:
            seen[id(value)] = value
            waiting += [(child, depth + 1) for child in list_children(value) or ()]
    spend(LEAF * len(seen))
    return found


def list_containers(value: Any) -> list:
    """The lists and dicts that a variable's value is put together from."""
    if type(value) is MaybeUnbound:
        value = value.value
    if type(value) not in (tuple, list, dict):
        return []
    items = value.values() if type(value) is dict else value
    inner = [container for item in items for container in list_containers(item)]
    return inner if type(value) is tuple else [value, *inner]


# -- leaves -------------------------------------------------------------------------------------------------
class Flat:
    """A value taken apart: lists, tuples, dicts and traced iterators have leaves, all else is one.

    Attributes:
        value: itself; leaves; structure: equal for values that are put together alike.
    """

    __slots__ = ("value", "leaves", "structure", "rebuild")

    def __init__(self, value: Any):
        self.value = value
        self.leaves, self.structure, self.rebuild = _flatten(value)


Parts = tuple[list, Any, Callable[[Sequence], Any]]


def _flatten(value: Any) -> Parts:
    if type(value) in (tuple, list):
        return _flatten_sequence(list(value), type(value).__name__, type(value))
    if type(value) is dict:
        keys = list(value)
        leaves, structure, rebuild = _flatten_sequence(list(value.values()), "dict", list)
        return leaves, (tuple(keys), structure), lambda items: dict(zip(keys, rebuild(items)))
    if isinstance(value, Compound):
        return value.children(), value.structure(), value.rebuild
    if type(value) is MaybeUnbound:
        parts = _flatten(value.value)
        return [*parts[0], as_flag(value.is_unbound)], ("maybe", parts[1]), lambda items: MaybeUnbound(
            parts[2](items[:-1]), items[-1])
    return [value], "*", lambda items: items[0]


def find_joint(one: Any, other: Any) -> Callable[[Any], Any] | None:
    """What gives two values of other structures a common one, or None."""
    if one is other:
        return None
    if isinstance(one, CompoundHandle):
        return one.join_structure(other)
    if isinstance(other, CompoundHandle):
        return other.join_structure(one)
    if type(one) is MaybeUnbound and type(other) is MaybeUnbound:
        convert = find_joint(one.value, other.value)
        return convert and (lambda value: MaybeUnbound(convert(value.value), value.is_unbound))
    if type(one) is type(other) and type(one) in (tuple, list, dict):
        return _find_joint_items(one, other)
    return None if current.mode is None else current.mode.find_joint(one, other)


def _find_joint_items(one: Any, other: Any) -> Callable[[Any], Any] | None:
    """As `find_joint` for containers; None where no item needs another form, or one has none."""
    if len(one) != len(other) or isinstance(one, dict) and list(one) != list(other):
        return None
    keys = list(one) if isinstance(one, dict) else range(len(one))
    makers = {}
    for key in keys:
        makers[key] = find_joint(one[key], other[key])
        if makers[key] is None and Flat(one[key]).structure != Flat(other[key]).structure:
            return None
    if not any(makers.values()):
        return None

    def convert(value: Any) -> Any:
        items = {key: make(value[key]) if make else value[key] for key, make in makers.items()}
        return items if isinstance(one, dict) else type(one)(items.values())

    return convert


def have_other_kinds(types: Sequence, before: Sequence, behind: Sequence) -> bool:
    """Whether leaves are of other types than the ones that are carried, and need a common form. types: those;
    before, behind: leaves that are carried, and what they become; None is a kind of its own."""
    if current.mode is None:
        return False
    return any(one != (other := type_of(new)) and (None not in (one, other) or old is None or new is None)
               for one, old, new in zip(types, before, behind))


def _flatten_sequence(values: list, name: str, make: Callable) -> Parts:
    spend(LEAF * len(values))
    parts = list(map(_flatten, values))

    def rebuild(leaves: Sequence):
        items, first = [], 0
        for own, _, make_item in parts:
            items.append(make_item(leaves[first : first + len(own)]))
            first += len(own)
        return make(items)

    return [leaf for own, _, _ in parts for leaf in own], (name, *(part[1] for part in parts)), rebuild


_SCALARS = (int, float, complex, str, bytes, types.NoneType)


def is_same_leaf(one, other) -> bool:
    """Whether two leaves are one value whichever way was taken."""
    if one is other:
        return True
    if isinstance(one, Iterator) and isinstance(other, Iterator):
        return is_same_position(one, other)
    if isinstance(one, Handle) and isinstance(other, Handle):
        return one.is_same(other)
    if isinstance(one, Tracer) or isinstance(other, Tracer) or type(one) is not type(other):
        return False
    return isinstance(one, _SCALARS) and (one == other or one != one and other != other)


def find_recording() -> JaxprTrace | None:
    """The trace whose equations become part of a program."""
    trace: Any = context.trace
    while trace is not None and (not isinstance(trace, JaxprTrace) or isinstance(trace, PartialTrace)):
        trace = trace.parent
    return trace
