"""Values as the driver sees them: which are traced, which leaves containers have, how two join in one.

In: whatever variables of the user's function hold. Out: leaves and how to put them together again.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.core.aval import ShapedArray, aval_of, is_array_like
from jitcore.core.trace import Tracer
from jitcore.lax import elementwise
from jitcore.lax.define import cast
from jitcore.rewrite.emission import UNDEFINED
from jitcore.rewrite.iterators import TracedIterator, is_same_position
from jitcore.transforms.jvp import JvpTracer
from jitcore.transforms.tangents import fill


class ControlFlowError(TypeError):
    """Python control flow on traced values that cannot be compiled."""


class ConflictError(Exception):
    """Two values cannot become one. The text is the middle of a sentence."""


def is_traced(value) -> bool:
    """Whether Python cannot read the value now."""
    while isinstance(value, JvpTracer):
        value = value.primal
    return isinstance(value, Tracer)


def as_predicate(value):
    """A traced value as a traced bool scalar. Raises: ControlFlowError for an array of several elements."""
    aval = aval_of(value)
    if aval.size != 1:
        raise ControlFlowError(f"the truth value of a traced array of shape {aval.shape} is ambiguous; "
                               "use jnp.any or jnp.all")  # fmt: skip
    if aval.shape:
        value = value.reshape(())
    return value if aval.dtype == dtypes.bool_ else elementwise.ne(value, aval.dtype.type(0))


def negate(value):
    return elementwise.eq(value, False) if is_traced(value) else not value


def join_avals(one: ShapedArray, other: ShapedArray) -> ShapedArray:
    """The type of a value that may be of either type. Raises: ConflictError for two shapes."""
    if one.shape != other.shape:
        raise ConflictError(f"shape {one.shape} and {other.shape}")
    dtype, weak = dtypes.join_types((one.dtype, one.weak_type), (other.dtype, other.weak_type))
    return ShapedArray(one.shape, dtype, weak)


def convert(value, aval: ShapedArray):
    """The value with this dtype."""
    return cast(value, aval_of(value), aval.dtype, aval.weak_type)


def make_zeros(aval: ShapedArray):
    return fill(aval, 0)


class Poison:
    """Stands for a value that cannot be known; every use of it raises, with the reason."""

    def __init__(self, reason: str):
        object.__setattr__(self, "reason", reason)

    def raise_reason(self, *args: Any, **kwargs: Any):
        raise ControlFlowError(object.__getattribute__(self, "reason"))

    __hash__ = object.__hash__


_USES = """getattr setattr call iter bool len getitem setitem contains index int float complex array
    eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul
    rmatmul neg pos abs and rand or ror xor rxor invert"""
for _name in _USES.split():
    setattr(Poison, f"__{_name}__", Poison.raise_reason)


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
    if isinstance(value, TracedIterator):
        return value.children(), value.structure(), value.rebuild
    return [value], "*", lambda items: items[0]


def _flatten_sequence(values: list, name: str, make: Callable) -> Parts:
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
    if isinstance(one, Tracer) or isinstance(other, Tracer) or type(one) is not type(other):
        return False
    return isinstance(one, _SCALARS) and (one == other or one != one and other != other)


def is_numeric(leaf) -> bool:
    return leaf is not UNDEFINED and not isinstance(leaf, Poison) and is_array_like(leaf)
