"""Hooks: what rewritten code does in place of operations in which a traced value means something else.

In: operands from the stack, by `helper @ operand` or `value in guard` (`emission.py` says why). Out: the
result that plain Python would give, or a traced one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitcore.core.trace import JaxprTrace, context
from jitcore.process.effort import spend
from jitcore.rewriter.bytecode.versions import REMAINDER, REMAINDER_IN_PLACE
from jitcore.rewriter.control_flow.iterators import TracedIterator, as_traced_iterator
from jitcore.rewriter.control_flow.raising import (
    choose_caught,
    choose_suppressed,
    enter_handler,
    negate,
    pass_refusal,
    read_variable,
)
from jitcore.rewriter.control_flow.rolling import ROLL_GUARD
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.journal import (
    ArrayLocation,
    AttributeLocation,
    CellLocation,
    GlobalLocation,
    ItemLocation,
    Location,
    logs,
    record,
)
from jitcore.rewriter.operations.special import SpecialMethods
from jitcore.rewriter.operations.texts import find_converter, find_formatter, join_parts, remainder
from jitcore.rewriter.user_code import LIBRARY_CLASSES, find_special
from jitcore.rewriter.values import (
    Poison,
    as_predicate,
    is_traced,
    is_undecided,
    wrap_predicate,
)
from jitcore.transforms.partial_eval import PartialTrace

#: Steps of asking a hook.
_HOOK = 0.5


class _Apply:
    """A function that is called by `self @ operand`."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def __matmul__(self, operand):
        spend(_HOOK)
        return self.function(operand)


class _Guard:
    """`value in self` for a value on top of the stack."""

    __slots__ = ("test",)

    def __init__(self, test: Callable[[Any], bool]):
        self.test = test

    def __contains__(self, value) -> bool:
        spend(_HOOK)
        return self.test(value)


class Hooks(NamedTuple):
    """What `emission.Template` puts into code."""

    resolve: _Apply
    logical_not: _Apply
    make_iterator: _Apply
    contains: _Apply
    not_contains: _Apply
    is_same: _Apply
    is_not: _Apply
    store_cell: _Apply
    note_deleted: _Apply
    store_global: _Apply
    delete_global: _Apply
    read_attribute: _Apply
    store_attribute: _Apply
    delete_attribute: _Apply
    read_item: _Apply
    store_item: _Apply
    store_slice: _Apply
    delete_item: _Apply
    append_item: _Apply
    read_variable: Callable[[str], _Apply]
    note_in_place: _Apply
    operate: Callable[[int], _Apply]
    compare: Callable[[str], _Apply]
    apply_unary: Callable[[str], _Apply]
    read_truth: _Apply
    enter_context: _Apply
    remainder: _Apply
    remainder_in_place: _Apply
    format_value: Callable[[int], _Apply] = functools.cache(lambda kind: _Apply(find_formatter(kind)))
    convert_value: Callable[[int], _Apply] = functools.cache(lambda kind: _Apply(find_converter(kind)))
    choose_caught: _Apply = _Apply(choose_caught)
    enter_handler: _Apply = _Apply(enter_handler)
    pass_refusal: _Apply = _Apply(pass_refusal)
    choose_suppressed: _Apply = _Apply(choose_suppressed)
    join_parts: _Apply = _Apply(join_parts)
    guard: _Guard = _Guard(is_undecided)
    roll_guard: Any = ROLL_GUARD
    iterator_guard: _Guard = _Guard(lambda value: isinstance(value, TracedIterator))
    poison_guard: _Guard = _Guard(lambda value: type(value) is Poison and value.raise_reason())


def _logical_not(value):
    return wrap_predicate(negate(as_predicate(value))) if is_traced(value) else not value


#: A loop over a longer range is compiled as a loop; over a shorter one, Python goes through it.
MAX_UNROLLED = 16


def _make_iterator(value):
    if is_traced(value):
        found = as_traced_iterator(value)
        return iter(value) if found is None else found
    if type(value) is range and _is_recording():
        limit = MAX_UNROLLED if current.mode is None else current.mode.unrolled
        return as_traced_iterator(value) if len(value) > limit else iter(value)
    return iter(value)


def _is_recording() -> bool:
    """Whether a jaxpr is being recorded, so that it matters how long it gets."""
    trace = context.trace
    while trace is not None:
        if isinstance(trace, JaxprTrace) and not isinstance(trace, PartialTrace):
            return True
        trace = trace.parent
    return False


def _contains(pair):
    """`value in container`; one traced comparison for each element where something is traced."""
    value, container = pair
    if is_traced(container):
        return wrap_predicate(as_predicate((container == value).any()))
    if not isinstance(container, (list, tuple)) or not any(map(is_traced, (value, *container))):
        return value in container
    found: Any = False
    for element in container:
        if value is element:
            return True
        is_equal = value == element
        found = (as_predicate(is_equal) if is_traced(is_equal) else is_equal) | found
    return wrap_predicate(found) if is_traced(found) else found


def _is_same(pair):
    for value in pair:
        if type(value) is Poison:
            value.raise_reason()
    one, other = pair
    # their types, as `__class__` may be the user's code
    if issubclass(type(one), Handle):
        return wrap_predicate(one.is_object(other))
    if issubclass(type(other), Handle):
        return wrap_predicate(other.is_object(one))
    if current.mode is not None and one is not other and _may_be_one(one, other):
        raise current.mode.refuse_identity(type(one))
    return one is other


def _may_be_one(one, other) -> bool:
    """Whether two values that cannot change stand for what may be one object of the caller's."""
    if one is other or type(one) is not type(other):
        return one is other
    if issubclass(type(one), tuple):
        return len(one) == len(other) and all(map(_may_be_one, one, other))
    if issubclass(type(one), Handle):
        return one.leaf_type == other.leaf_type
    return type(one) in (int, float, complex, str, bytes) and repr(one) == repr(other)


@functools.cache
def _make_reader(name: str) -> _Apply:
    """What is applied to a variable's value where it may not be bound."""
    return _Apply(lambda value: read_variable(value, name))


def _has_handle(index) -> bool:
    if type(index) is tuple:
        return any(map(_has_handle, index))
    if type(index) is slice:
        return _has_handle((index.start, index.stop, index.step))
    return isinstance(index, Handle)


def _note_in_place(pair):
    """Before `value += operand`."""
    if logs.stack and type(pair[0]) is np.ndarray:
        record(ArrayLocation(pair[0]))


# -- stores -------------------------------------------------------------------------------------------------
def _store_cell(pair):
    value, cell = pair
    record(CellLocation(cell))
    cell.cell_contents = value


def _note_deleted(cell):
    """Before a variable in a cell is deleted."""
    location = CellLocation(cell)
    check_there(location)
    record(location)


def _store_global(pair):
    value, name = pair
    namespace = sys._getframe(2).f_globals
    record(GlobalLocation(namespace, name))
    namespace[name] = value


def _read_attribute(pair):
    mode = current.mode
    return getattr(*pair) if mode is None else mode.read_attribute(*pair)


def _store_attribute(triple):
    value, owner, name = triple
    if current.mode is not None:
        current.mode.store_attribute(owner, name, value)
        return
    record(AttributeLocation(owner, name))
    setattr(owner, name, value)


def _delete_attribute(pair):
    if current.mode is not None:
        current.mode.delete_attribute(*pair)
    else:
        check_there(AttributeLocation(*pair))
        delattr(*pair)


def _append_item(pair):
    """What a comprehension does with an element."""
    value, target = pair
    target.append(value)


def _delete_global(name):
    namespace = sys._getframe(2).f_globals
    location = GlobalLocation(namespace, name)
    check_there(location)
    record(location)
    del namespace[name]


def check_there(location: Location) -> None:
    """Before something is deleted. Raises: ControlFlowError where it is there on one way only."""
    found = location.read()
    if isinstance(found, Poison):
        found.raise_reason()


class _Items:
    """`owner[index]`, read, stored and deleted."""

    def __init__(self, special: SpecialMethods):
        self.special = special

    def read(self, pair):
        """An ndarray cannot be indexed by handles itself."""
        owner, index = pair
        if type(owner) is np.ndarray:
            if current.mode is not None and _has_handle(index):
                owner = current.mode.adopt(owner)
        elif type(owner) not in LIBRARY_CLASSES and find_special(owner, "__getitem__"):
            return self.special.call(owner, "getitem", index)
        return owner[index]

    def store(self, triple):
        value, owner, index = triple
        kind = type(owner)
        if kind is np.ndarray:
            if current.mode is not None and (_has_handle(index) or _has_handle(value)):
                owner = current.mode.adopt(owner)
            elif logs.stack:
                record(ArrayLocation(owner))
        elif kind not in LIBRARY_CLASSES and find_special(owner, "__setitem__"):
            self.special.call(owner, "setitem", index, value)
            return
        elif logs.stack and kind in (list, dict) and type(index) is not slice and not is_traced(index):
            record(ItemLocation(owner, index))
        owner[index] = value

    def store_slice(self, quadruple):
        value, owner, start, stop = quadruple
        self.store((value, owner, slice(start, stop)))

    def delete(self, pair):
        owner, index = pair
        if find_special(owner, "__delitem__"):
            self.special.call(owner, "delitem", index)
        else:
            del owner[index]


def make_hooks(resolve: Callable[[Any], Any]) -> Hooks:
    """The hooks, with the function that chooses what is called instead of a callable."""
    special = SpecialMethods(resolve)
    items = _Items(special)
    binary = functools.cache(special.define_binary)

    def make_iterator(value):
        found = special.make_iterator(value)
        return _make_iterator(value) if found is None else found

    def contains(pair):
        value, container = pair
        if find_special(container, "__contains__"):
            found = special.call(container, "contains", value)
            return wrap_predicate(as_predicate(found)) if is_traced(found) else bool(found)
        return _contains(pair)

    def define_remainder(number: int) -> _Apply:
        operate = binary(number)
        return _Apply(lambda pair: remainder(pair, lambda one, other: operate((one, other))))

    return Hooks(
        resolve=_Apply(resolve), logical_not=_Apply(_logical_not), make_iterator=_Apply(make_iterator),
        contains=_Apply(contains), not_contains=_Apply(lambda pair: _logical_not(contains(pair))),
        is_same=_Apply(_is_same), is_not=_Apply(lambda pair: _logical_not(_is_same(pair))),
        store_cell=_Apply(_store_cell), note_deleted=_Apply(_note_deleted),
        store_global=_Apply(_store_global),
        delete_global=_Apply(_delete_global), read_attribute=_Apply(_read_attribute),
        store_attribute=_Apply(_store_attribute), delete_attribute=_Apply(_delete_attribute),
        read_item=_Apply(items.read),
        store_item=_Apply(items.store), store_slice=_Apply(items.store_slice),
        delete_item=_Apply(items.delete), append_item=_Apply(_append_item), read_variable=_make_reader,
        note_in_place=_Apply(_note_in_place), operate=functools.cache(lambda number: _Apply(binary(number))),
        compare=functools.cache(lambda text: _Apply(special.define_comparison(text))),
        apply_unary=functools.cache(lambda name: _Apply(special.define_unary(name))),
        read_truth=_Apply(special.read_truth), enter_context=_Apply(special.enter_context),
        remainder=define_remainder(REMAINDER), remainder_in_place=define_remainder(REMAINDER_IN_PLACE),
    )
