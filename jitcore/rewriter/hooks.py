"""Hooks: what rewritten code does in place of operations in which a traced value means something else.

In: operands from the stack, by `helper @ operand` or `value in guard` (`emission.py` says why). Out: the
result that plain Python would give, or a traced one.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitcore.core.trace import JaxprTrace, context
from jitcore.effort import spend
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.iterators import TracedIterator, as_traced_iterator
from jitcore.rewriter.journal import (
    ArrayLocation,
    AttributeLocation,
    CellLocation,
    GlobalLocation,
    ItemLocation,
    logs,
    record,
)
from jitcore.rewriter.raising import (
    choose_caught,
    choose_suppressed,
    negate,
    pass_refusal,
    read_variable,
)
from jitcore.rewriter.rolling import ROLL_GUARD
from jitcore.rewriter.texts import find_converter, find_formatter, join_parts, remainder
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
    store_global: _Apply
    store_attribute: _Apply
    store_item: _Apply
    store_slice: _Apply
    append_item: _Apply
    read_variable: Callable[[str], _Apply]
    read_item: _Apply
    note_in_place: _Apply
    format_value: Callable[[int], _Apply] = functools.cache(lambda kind: _Apply(find_formatter(kind)))
    convert_value: Callable[[int], _Apply] = functools.cache(lambda kind: _Apply(find_converter(kind)))
    choose_caught: _Apply = _Apply(choose_caught)
    pass_refusal: _Apply = _Apply(pass_refusal)
    choose_suppressed: _Apply = _Apply(choose_suppressed)
    join_parts: _Apply = _Apply(join_parts)
    remainder: _Apply = _Apply(remainder)
    remainder_in_place: _Apply = _Apply(lambda pair: remainder(pair, operator.imod))
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
    if issubclass(type(one), Handle) and issubclass(type(other), Handle):
        return wrap_predicate(one.is_object(other))
    return one is other


@functools.cache
def _make_reader(name: str) -> _Apply:
    """What is applied to a variable's value where it may not be bound."""
    return _Apply(lambda value: read_variable(value, name))


def _read_item(pair):
    """`owner[index]`; an ndarray cannot be indexed by handles itself."""
    owner, index = pair
    if type(owner) is np.ndarray and current.mode is not None and _has_handle(index):
        owner = current.mode.adopt(owner)
    return owner[index]


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


def _store_global(pair):
    value, name = pair
    namespace = sys._getframe(2).f_globals
    record(GlobalLocation(namespace, name))
    namespace[name] = value


def _store_attribute(triple):
    value, owner, name = triple
    if logs.stack:
        record(AttributeLocation(owner, name))
    setattr(owner, name, value)


def _store_item(triple):
    value, owner, index = triple
    if type(owner) is np.ndarray and current.mode is not None and (_has_handle(index) or _has_handle(value)):
        owner = current.mode.adopt(owner)
    if logs.stack and type(owner) in (list, dict) and not isinstance(index, slice) and not is_traced(index):
        record(ItemLocation(owner, index))
    elif logs.stack and type(owner) is np.ndarray:
        record(ArrayLocation(owner))
    owner[index] = value


def _append_item(pair):
    """What a comprehension does with an element."""
    value, target = pair
    target.append(value)


def _store_slice(quadruple):
    value, owner, start, stop = quadruple
    owner[start:stop] = value


def make_hooks(resolve: Callable[[Any], Any]) -> Hooks:
    """The hooks, with the function that chooses what is called instead of a callable."""
    return Hooks(
        _Apply(resolve), _Apply(_logical_not), _Apply(_make_iterator), _Apply(_contains),
        _Apply(lambda pair: _logical_not(_contains(pair))), _Apply(_is_same),
        _Apply(lambda pair: _logical_not(_is_same(pair))), _Apply(_store_cell), _Apply(_store_global),
        _Apply(_store_attribute), _Apply(_store_item), _Apply(_store_slice), _Apply(_append_item),
        _make_reader, _Apply(_read_item),
        _Apply(_note_in_place))  # fmt: skip
