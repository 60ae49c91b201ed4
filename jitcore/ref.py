"""Mutable references to arrays: `new_ref` makes one, whose elements are read and written in place.

In: arrays, indices, values. Out: `Ref`s and what they hold. Inside of jitted functions each write is an
update of a copy, and of the memory itself in what is compiled; jitted and mapped functions may get references
as arguments, or use those around them. Names and rules are those of `jax.ref`.
"""

from __future__ import annotations

import sys
from typing import Any

from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.core.refs import Ref
from jitcore.core.trace import to_array
from jitcore.docstrings import document

__all__ = ["Ref", "addupdate", "freeze", "get", "new_ref", "set", "swap"]

_KINDS = (None, "no_grad_no_remat")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a copy of an array.

    Args:
        init_val: what it holds at first, of any shape and dtype.
        memory_space, kind: change nothing.
    Returns: the reference, of the same shape and dtype.
    Raises: TypeError for what is no array, and for a reference; ValueError for another kind."""
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, got {kind!r}")
    try:
        aval_of(init_val)
    except TypeError:
        raise TypeError("Error interpreting argument to new_ref as an array. The problematic value is of "
                        f"type {type(init_val)} and was passed to new_ref at position 0.") from None
    return Ref(to_array(init_val))


def get(ref: Ref, idx: Any = None) -> Array:
    """`ref[idx]`; all of it without an index.

    Returns: an array.
    Raises: IndexError for an index out of range that is known."""
    return ref[_index(idx)]


def set(ref: Ref, idx: Any, value: Any) -> None:  # noqa: A001  JAX's name
    """`ref[idx] = value`.

    Returns: None.
    Raises: ValueError for a value of another shape or dtype."""
    ref[_index(idx)] = value


def swap(ref: Ref, idx: Any, value: Any) -> Array:
    """Writes a value to elements, those that `idx` names.

    Returns: what stood there.
    Raises: ValueError for a value of another shape or dtype."""
    old = ref[_index(idx)]
    ref[_index(idx)] = value
    return old


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """Adds a value to elements: `ref[idx] += x`.

    Returns: None.
    Raises: ValueError for a value of another shape or dtype."""
    ref.addupdate(_index(idx), x)


def freeze(ref: Ref) -> Array:
    """The array that a reference holds, which is written no more.

    Returns: an array.
    Raises: NotImplementedError for a reference of another traced function."""
    return ref[...]


def _index(idx: Any) -> Any:
    return ... if idx is None else idx


document(sys.modules[__name__], __all__)
