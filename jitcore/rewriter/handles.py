"""Handles: traced values that stand for Python and NumPy objects with rules of their own.

In: nothing. Out: what the driver asks of such values (`Handle`), of their types (`LeafType`, `Kind`), and of
the meaning that plain numbers and library functions have (`Mode`). Without a mode the rewriter has JAX's
semantics: what is traced is an `Array`. A mode gives others (`jitcore.numpy_semantics`: those of NumPy).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitcore.array import Array
from jitcore.core.jaxpr import DebugInfo, ShapedArray
from jitcore.core.source import SourcePosition
from jitcore.core.trace import JaxprTrace, Trace


class Undefined:
    """Stands for a variable that is not bound."""

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED = Undefined()


class ConflictError(Exception):
    """Two values cannot become one. The text is the middle of a sentence."""


class Kind:
    """What the values of a leaf type are to Python. Kinds are compared by `==`."""

    def join(self, aval: ShapedArray, other: LeafType) -> LeafType:
        """The type of a value that may be of either type. Raises: ConflictError."""
        raise NotImplementedError

    def wrap(self, raw: Array, aval: ShapedArray) -> Any:
        """The value of this kind that an Array holds."""
        raise NotImplementedError


class LeafType(NamedTuple):
    """Type of a value that a `cond` or a loop may carry. kind: None for an Array itself."""

    aval: ShapedArray
    kind: Kind | None = None


class Alias(NamedTuple):
    """When memory is another handle's.

    predicate: True where it is; otherwise it is not that handle's. handle: None where it need not be known.
    is_rare: whether that is not to be expected: a loop without an iteration."""

    predicate: Any
    handle: Handle | None
    is_rare: bool = False


class Compound:
    """What several values are carried for, as for a tuple: an array and the number of its elements, an
    iterator and its position."""

    __slots__ = ()

    def children(self) -> list:
        """The values that it is made of."""
        raise NotImplementedError

    def structure(self) -> Any:
        """Equal for those that are put together alike."""
        raise NotImplementedError

    def rebuild(self, children: Sequence) -> Any:
        raise NotImplementedError


class Handle:
    """A traced value that is no bare Array: an ndarray with memory, a NumPy scalar, a Python number.

    Attributes:
        memory: what handles on the same mutable memory have in common (compared by identity); its `location`,
            if it has one, is that of its contents (`journal.Location`). None where the value cannot change.
        is_shared: whether the memory may be that of another handle; is_given: whether it is the caller's, who
            sees it under names of his own.
        is_whole: whether it is all of its memory, in order, which is known to be no other handle's and may be
            written.
        defers: whether its operators leave an operand that they do not know to that, as Python's numbers do.
    """

    __slots__ = ()
    memory: Any = None
    is_shared = is_given = is_whole = defers = False

    @property
    def leaf_type(self) -> LeafType:
        raise NotImplementedError

    def read(self) -> Array:
        """The value as an Array under the current trace."""
        raise NotImplementedError

    def is_same(self, other: Handle) -> bool:
        """Whether both are one value, now and later."""
        raise NotImplementedError

    def is_made_in(self, trace) -> bool:
        """Whether the value was computed while a trace was being recorded."""
        raise NotImplementedError

    def as_predicate(self) -> Array | bool:
        """Its truth as a traced bool scalar, or as a bool where it is known."""
        raise NotImplementedError

    def preview(self) -> str:
        """How messages show it before the program runs."""
        return repr(self)

    def choose_object(self, predicate: Any, other: Handle) -> Handle:
        """The handle that is this Python object where a predicate holds, else another one, which is the same
        value."""
        return self

    def is_object(self, other: Any) -> Any:
        """Whether it and another value stand for one Python object: a bool, or a traced predicate. Raises:
        where that is not known."""
        return self is other

    def mark_shared(self, alias: Alias | None = None) -> None:
        """From now on the memory may be that of another handle, depending on the way that was taken: what
        would have to be seen through both raises. alias: when it is, and whose; None where that is not
        known."""


class CompoundHandle(Compound, Handle):
    """A handle that several values are carried for."""

    __slots__ = ()

    def join_structure(self, other: Any) -> Callable[[Any], CompoundHandle] | None:
        """A function that gives this handle and another value the same structure, in memory of their own;
        None where that cannot be."""
        return None

    def as_index(self) -> Handle:
        """As an operand of `range`."""
        raise TypeError(f"'{type(self).__name__}' object cannot be interpreted as an integer")

    def settle(self) -> CompoundHandle:
        """The handle as it is best handed on by a branch in which it was made."""
        return self

    def changes_places(self, other: CompoundHandle) -> bool:
        """Whether a loop that begins an iteration with this handle, and ends it with another one of its
        structure, had better carry what `join_structure` makes of them."""
        return False


class Mode:
    """The semantics under which rewritten code is traced.

    Attributes:
        redirects: what rewritten code calls instead of a function, by `get`.
        failure: the location (`journal.Location`) of the flag that `fail` sets, or None: a loop that need not
            end otherwise ends with the iteration that sets it.
        grows: whether lists may be arrays, or of traced length; has_grown: whether there is one.
        unrolled: Python goes through ranges up to this length; longer ones are compiled as loops.
    """

    redirects: Any = {}
    failure: Any = None
    unrolled: int = 2
    grows: bool = True
    has_grown: bool = False

    def express(self, handle: Handle) -> tuple[list[Array], Any]:
        """What a text needs of a handle: Arrays, and what makes the Python object of them (`texts.Leaf`)."""
        raise NotImplementedError

    def refuse(self, reason: str, value: Any = None) -> Exception:
        """The error for what cannot be traced. value: that of which Python needs the value, if that is it."""
        raise NotImplementedError

    def refuse_identity(self, kind: type) -> Exception:
        """The error where it matters which of several equal values of a type the caller has."""
        raise NotImplementedError

    def repeat(self, items: list, count: Any) -> Any:
        """`items * count`, if that is an array with the methods of a list; None for a list."""
        return None

    #: Whether programs print; else where they would they fail, if that is not certain.
    prints = True

    def find_failed(self) -> Array | None:
        """Whether the program has failed up to here; None where that is known not to be so."""
        return None

    def type_of(self, leaf: Any) -> LeafType | None:
        """The type of a plain value (no Handle) when it is carried; None for what cannot be."""
        raise NotImplementedError

    def convert(self, leaf: Any, aval: ShapedArray) -> Array:
        """A plain value or a Handle as an Array of this type."""
        raise NotImplementedError

    def equality_key(self, value: Any) -> Hashable | None:
        """The same for Arrays or Handles that are known to be equal and cannot change, as long as they live;
        None for what can, and for plain values."""
        return id(value) if isinstance(value, Array) else None

    def is_equal(self, one: Any, other: Any) -> bool:
        """Whether two values are known to be equal, and cannot change."""
        key = self.equality_key(one)
        return one is other or key is not None and key == self.equality_key(other)

    def find_joint(self, one: Any, other: Any) -> Callable[[Any], Any] | None:
        """What gives two leaves of other types a common form that says which type it has; None where there is
        none."""
        return None

    def as_bound(self, value: Any) -> Any:
        """What bounds a range, as an int."""
        return value

    def bound_index(self, element: Any, low: Any, high: Any) -> Any:
        """An element of a range, of which it is known that low <= element <= high."""
        return element

    def follow_index(self, place: Any) -> Any:
        """The position behind one that a loop has come to."""
        return place + 1

    def fail(self, predicate: Any, error: BaseException) -> bool:
        """Notes that Python would raise where a predicate holds (True: whenever this code is reached).

        Returns: whether that can be found out when the program runs; else the error is raised now."""
        return False

    def note_unrolled(self, position: SourcePosition, error: Exception) -> None:
        """Notes that Python goes through a loop, and what stood in the way of a compiled one."""

    def make_trace(self, info: DebugInfo, parent: Trace) -> JaxprTrace:
        """The trace of a side of a decision, or of a loop's body."""
        return JaxprTrace(info, parent)

    def make_list(self, items: Sequence, item: Any, capacity: int) -> Any:
        """What stands for a list of traced length, with room for so many elements; None where there is none.

        items: that it has; item: one that it gets."""

    def take_element(self, stack: Array, index: int) -> Array:
        """A row of what the iterations of a loop gave."""
        raise NotImplementedError

    def adopt(self, array: np.ndarray) -> Any:
        """What stands for an ndarray of the program's that meets a handle."""
        return array

    def pick(self, values: list | tuple, place: Handle) -> Any:
        """`values[place]`."""
        return values[place]

    def select(self, predicate: Array, one: Any, other: Any) -> Any:
        """`one if predicate else other` of values that cannot change."""
        raise NotImplementedError

    def read_attribute(self, owner: Any, name: str) -> Any:
        """`owner.name`."""
        return getattr(owner, name)

    def store_attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`, noted in the journal."""
        raise NotImplementedError

    def delete_attribute(self, owner: Any, name: str) -> None:
        """`del owner.name`."""
        delattr(owner, name)

    def is_given(self, container: Any) -> bool:
        """Whether a list or dict stands for one that others see under names of their own."""
        return False

    def mark_given(self, container: Any) -> None:
        """From now on a list or dict stands for such a one."""

    def refuse_unhooked(self, function: FunctionType, reason: str) -> None:
        """Raises: where a function of the user's must not run as it is, and no other form of it can be
        made."""

    def namespace_of(self, function: FunctionType) -> dict[str, Any]:
        """The global names that a function sees; a subclass of dict may note what is read."""
        return function.__globals__

    def list_captured(self) -> list:
        """What traced functions have read from global names."""
        return []


class _Current(threading.local):
    mode: Mode | None = None


current = _Current()
