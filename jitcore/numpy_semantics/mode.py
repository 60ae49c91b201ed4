"""NumPy's semantics as a mode of the rewriter: what plain values are, what is called instead, what fails.

In: the values and calls that rewritten code meets. Out: their types for carries, redirects, and a flag, which
the program returns: whether Python would have raised, so that the call has to be run by Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from jitcore import lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.aval import ShapedArray
from jitcore.core.trace import context
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.errors import NeedsValue, needs_identity, not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.functions.scipy_table import find_scipy
from jitcore.numpy_semantics.functions.ufuncs import KERNELS
from jitcore.numpy_semantics.values import sequences
from jitcore.numpy_semantics.values.arithmetic import bound_size, fail
from jitcore.numpy_semantics.values.conversions import REDIRECTS
from jitcore.numpy_semantics.values.equality import find_first
from jitcore.numpy_semantics.values.lists import Element, make_list
from jitcore.numpy_semantics.values.mixed import distributing, join_kinds
from jitcore.numpy_semantics.values.numbers import Number, bound_int, is_large, number_type
from jitcore.numpy_semantics.values.printed import express_handle
from jitcore.numpy_semantics.values.promotion import SUPPORTED, cast_raw, is_python_number, to_raw
from jitcore.numpy_semantics.values.scalars import SCALAR
from jitcore.numpy_semantics.values.storage import Storage, StorageLocation
from jitcore.rewriter.handles import Handle, LeafType, Mode, current
from jitcore.rewriter.journal import AttributeLocation, record
from jitcore.rewriter.objects import find_owner
from jitcore.rewriter.operations.redirects import TEXT_REDIRECTS


class NumpyMode(Mode):
    """Plain Python and NumPy: 64 bits, NEP 50, mutable arrays.

    Attributes:
        flag: a storage that holds whether anything has failed; failures: the errors, in the order of tracing.
        checked: positions that were found inside of their axes, with the trace of that (`items`).
        guards: what has to hold for that which is computed now to count (`mixed`).
        elements: of the rows that loops gave, by id (`stacks`).
        loops: that are being traced, the outer ones first."""

    unrolled = 1  # nests of short loops would multiply

    def __init__(self):
        self.flag = Storage(ConcreteArray(np.asarray(False)))
        self.root = context.trace
        self.failures: list[BaseException] = []
        self.checked: dict[tuple, list] = {}
        self.guards: list[Array] = []
        self.elements: dict[int, Element] = {}

    @property
    def redirects(self) -> Redirects:
        return FORMS

    @property
    def failure(self) -> StorageLocation:
        return StorageLocation(self.flag)

    @property
    def failed(self) -> Array:
        """The flag's value, a bool scalar: an output of the program."""
        return self.flag.value

    @property
    def can_fail(self) -> bool:
        return not isinstance(self.flag.value, ConcreteArray)

    def type_of(self, leaf: Any) -> LeafType | None:
        if isinstance(leaf, Array):
            return LeafType(leaf.aval, None)
        if is_python_number(leaf):
            kind = next(kind for kind in (bool, int, float, complex) if isinstance(leaf, kind))
            if kind is int:
                return number_type(int, is_large((leaf, leaf))) if -(2**63) <= leaf < 2**63 else None
            return number_type(kind)
        if isinstance(leaf, np.generic) and leaf.dtype in SUPPORTED:
            return LeafType(ShapedArray((), leaf.dtype), SCALAR)
        return None

    def convert(self, leaf: Any, aval: ShapedArray) -> Array:
        if isinstance(leaf, (Handle, Array)):
            return cast_raw(leaf.read() if isinstance(leaf, Handle) else leaf, aval.dtype)
        return to_raw(leaf, aval.dtype)

    def express(self, handle: Handle) -> tuple[list[Array], Any]:
        found = express_handle(handle)
        if found is None:
            raise not_traceable(f"the text of a {type(handle).__name__} is made")
        return found

    def store_attribute(self, owner: Any, name: str, value: Any) -> None:
        record(AttributeLocation(owner, name))
        setattr(owner, name, value)

    def refuse(self, reason: str, value: Any = None) -> Exception:
        return not_traceable(reason) if value is None else NeedsValue(str(not_traceable(reason)), value)

    def refuse_identity(self, kind: type) -> Exception:
        return needs_identity(kind)

    def find_failed(self) -> Array | None:
        return self.flag.value if self.can_fail else None

    def equality_key(self, value: Any) -> Hashable | None:
        if isinstance(value, Array):
            return id(find_first(value))
        is_int = type(value) is Number and value.python_type is int
        return extents.unify(value).form.key if is_int else None

    def find_joint(self, one: Any, other: Any) -> Callable[[Any], Any] | None:
        return join_kinds(one, other)

    def take_element(self, stack: Array, index: int) -> Array:
        found = lax.index_in_dim(stack, index, 0, keepdims=False)
        self.elements[id(found)] = Element(found, stack, index)
        return found

    def make_list(self, items: Sequence, item: Any, capacity: int) -> Any:
        return make_list(items, item, capacity)

    def as_bound(self, value: Any) -> Any:
        return bound_size(self.redirects.get(int, int)(value))

    def bound_index(self, element: Any, low: Any, high: Any) -> Any:
        return bound_int(element, low, high)

    def fail(self, predicate: Any, error: BaseException) -> bool:
        if isinstance(predicate, Handle):
            predicate = predicate.as_predicate()
        if isinstance(predicate, (bool, np.bool_)):
            if not predicate:
                return True
            if context.trace is self.root and not self.guards:
                return False  # nothing decides whether this is reached
            predicate = ConcreteArray(np.asarray(True))
        for guard in self.guards:
            predicate = lax.bitwise_and(guard, predicate)
        self.failures.append(error)
        before = self.flag.value
        is_first = isinstance(before, ConcreteArray) and not before.data
        self.flag.write(predicate if is_first else lax.bitwise_or(before, predicate))
        return True


#: Libraries whose functions have implementations over handles.
LIBRARIES = frozenset(("itertools", "math", "numpy", "scipy"))


class Redirects(dict):
    """What is called instead of functions, by function: each is found when code first calls it, and nothing
    of a library's functions is loaded before code calls one."""

    def get(self, callee: Any, default: Any = None) -> Any:
        found = super().get(callee)
        if found is None:
            found = _find_form(callee)
            if found is None:
                return default
            self[callee] = found
        return found


FORMS = Redirects(TEXT_REDIRECTS)


def _find_form(callee: Any) -> Callable | None:
    """What rewritten code calls instead of a function of Python's, NumPy's or SciPy's; None for others."""
    form = REDIRECTS.get(callee)
    if form is not None:
        return distributing(form)
    owner, module = find_owner(callee)
    library = module.partition(".")[0]
    if library not in LIBRARIES:
        return None
    tables.load()
    if library == "scipy":
        return find_scipy(callee)
    is_reduction = isinstance(owner, np.ufunc) and owner in KERNELS and callee == owner.reduce
    form = tables.CREATION.get(callee)
    if form is None and (callee in tables.FUNCTIONS or callee in KERNELS
                         or is_reduction and (owner.nin, owner.nout) == (2, 1)):
        form = sequences.define_form(callee)  # handles reach it as arguments, but not as elements of a list
    return form and distributing(form)


@contextlib.contextmanager
def numpy_mode() -> Iterator[NumpyMode]:
    """The mode while code is traced; the current trace is that of the program."""
    previous, current.mode = current.mode, NumpyMode()
    try:
        yield current.mode
    finally:
        current.mode = previous


__all__ = ["Number", "NumpyMode", "fail", "numpy_mode"]
