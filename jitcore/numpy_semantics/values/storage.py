"""Storages: the memory of arrays, which several views may share.

In: an Array. Out: a place that holds one, which stores replace. Stores are journalled, so that the sides of a
traced decision roll back and merge, and loops carry, what they write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitcore import lax
from jitcore.array import Array
from jitcore.core.trace import Trace, context
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.equality import is_visible
from jitcore.numpy_semantics.values.views import is_same_view, read_steps, write_steps
from jitcore.rewriter.handles import Alias, Handle, LeafType, current
from jitcore.rewriter.journal import Location, note_mark, record
from jitcore.rewriter.values import Poison


class Store(NamedTuple):
    """A store into a part of a storage: what that held before and behind it, which part, what went there, and
    the trace that was current."""

    before: Array
    after: Array
    steps: tuple
    value: Array
    trace: Trace


class Storage:
    """Memory of an array: an Array of the base shape, C order.

    Attributes:
        value: what it holds now; never weakly typed.
        trace: the trace that was current when it was made.
        source: which of the caller's arrays it is, or None.
        is_shared: whether it may share memory with another array; aliases: when, and with which, or None
            where that is not known.
        is_c_order: whether the memory that it stands for is C-contiguous, so that reshaping gives views.
        home: the steps that lead to the array that was made, where its axes lie in memory in another order.
        is_read_only: whether NumPy's array is not writeable.
        last_store: the last one; it tells what a part holds as long as its `after` is the value.
        is_observed: whether anything but the part of the last store was read since.
        stores: by the id of what the storage held behind them.
    """

    __slots__ = ("value", "trace", "source", "is_shared", "aliases", "is_c_order", "home", "is_read_only",
                 "last_store", "is_observed", "stores")

    def __init__(self, value: Array, source: Any = None, *, is_c_order: bool = True, is_read_only=False):
        self.value, self.trace, self.source = value, context.trace, source
        self.is_shared, self.is_c_order, self.is_read_only = False, is_c_order, is_read_only
        self.home: tuple = ()
        self.aliases: tuple[Alias, ...] | None = ()
        self.last_store: Store | None = None
        self.is_observed = False
        self.stores: dict[int, Store] = {}

    @property
    def shape(self) -> tuple:
        return self.value.shape

    @property
    def location(self) -> StorageLocation:
        return StorageLocation(self)

    def write(self, value: Array) -> None:
        """Raises: NotTraceable where other arrays may have to change too."""
        if self.is_read_only:
            raise ValueError("assignment destination is read-only")
        if self.is_shared and not self._fail_if_alias():
            raise not_traceable("an array is written that may share memory with another one")
        if value is not self.value:
            record(StorageLocation(self))
            self.value = value

    def mark_shared(self, alias: Alias | None) -> None:
        note_mark(functools.partial(self._unmark, self.is_shared, self.aliases))
        self.is_shared = True
        self.aliases = None if alias is None or self.aliases is None else (*self.aliases, alias)

    def _unmark(self, is_shared: bool, aliases: tuple[Alias, ...] | None) -> None:
        self.is_shared, self.aliases = is_shared, aliases

    @property
    def is_own(self) -> bool:
        """Whether it is in C order, writeable, and known to be no other array's memory."""
        return self.is_c_order and not self.is_read_only and not self.is_shared

    @property
    def may_be_other(self) -> bool:
        """Whether it may share memory with another storage. Raises: while that is carried by a loop."""
        if isinstance(self.value, Poison):
            self.value.raise_reason()
        return self.is_shared

    def find_object(self, one: Handle, other: Handle) -> Any:
        """Whether two handles, this memory's and another array's, are one object of Python's.

        Raises: NotTraceable where that is not known."""
        if not self.may_be_other and not other.memory.may_be_other:
            return False
        for handle in (one, other):
            aliases = handle.memory.aliases
            if aliases is None or not all(is_visible(alias.predicate) for alias in aliases):
                raise not_traceable("`is` of an array that may share memory with another one")
        found: Any = False
        for first in (Alias(True, one), *self.aliases):
            for second in (Alias(True, other), *other.memory.aliases):
                if first.handle is not None and first.handle is second.handle:
                    found = _either(found, _both(first.predicate, second.predicate))
        return found

    def _fail_if_alias(self) -> bool:
        """Leaves the call to plain Python where this memory is another array's after all. False where that
        is not known, or is to be expected."""
        if current.mode is None or self.aliases is None:
            return False
        if not all(alias.is_rare and is_visible(alias.predicate) for alias in self.aliases):
            return False
        for alias in self.aliases:
            current.mode.fail(alias.predicate, ValueError("an array has a second name"))
        return True

    def note_store(self, before: Array, steps: tuple, value: Array) -> None:
        """Remembers which part the store that was just made replaced, of which contents."""
        if len(self.stores) >= _MAX_STORES:
            self.stores.pop(next(iter(self.stores)))
        self.is_observed = False
        store = Store(before, self.value, steps, value, context.trace)
        self.last_store = self.stores[id(self.value)] = store

    def list_stores(self, after: Array, before: Array) -> list[Store] | None:
        """The stores of parts that lead from one contents to another; None where they are not known."""
        found: list[Store] = []
        while after is not before:
            store = self.stores.get(id(after))
            if store is None or store.after is not after or not store.steps or len(found) == _MAX_PARTS:
                return None
            found.append(store)
            after = store.before
        return found[::-1]


def _both(one: Any, other: Any) -> Any:
    if one is True or other is True:
        return other if one is True else one
    return lax.bitwise_and(one, other)


def _either(one: Any, other: Any) -> Any:
    if one is False or other is True:
        return other
    return True if one is True else lax.bitwise_or(one, other)


_MAX_STORES, _MAX_PARTS = 256, 4


class StorageLocation(Location):
    """The contents of a storage, for the journal."""

    name = "array contents"

    def __init__(self, storage: Storage):
        self.storage = self.memory = storage
        self.key = "storage", id(storage)

    def read(self) -> Array:
        return self.storage.value

    def write(self, value: Array) -> None:
        self.storage.value = value

    def is_new_in(self, trace: Trace) -> bool:
        """Whether the storage was made while a trace was recorded: it is neither merged nor rolled back."""
        return self.storage.trace is trace

    def merge_parts(self, arms: Sequence, values: Sequence[Array], add_output: Callable) -> Callable | None:
        """The merge of two contents that differ in few parts, so that only these leave the arms.

        arms: whose `resume()` makes their trace current; add_output(one, other, type): names what both
            return.
        Returns: a function from the results to the contents; None where whole arrays have to leave."""
        storage, before = self.storage, self.storage.value
        first, second = (storage.list_stores(value, before) for value in values)
        if first is None or second is None or not all(map(_is_place_visible, (*first, *second))):
            return None
        parts: list[tuple[tuple, Callable]] = []
        if len(first) == len(second) == 1 and is_same_view(first[0].steps, second[0].steps):
            pairs = [(first[0].steps, first[0].value, second[0].value)]
        else:
            with arms[1].resume():
                pairs = [(store.steps, store.value, read_steps(store.steps, before)) for store in first]
            with arms[0].resume():
                pairs += [(store.steps, read_steps(store.steps, values[0]), store.value) for store in second]
        for steps, one, other in pairs:
            parts.append((steps, add_output(one, other, LeafType(one.aval))))

        def read(results):
            for steps, read_part in parts:
                held, value = storage.value, read_part(results)
                storage.value = write_steps(steps, held, value)
                storage.note_store(held, steps, value)
            return storage.value

        return read


def _is_place_visible(store: Store) -> bool:
    numbers = (number for step in store.steps for number in step.list_values())
    return all(is_visible(term.raw) for number in numbers for term, _ in number.form.terms)
