"""Hooks: what rewritten code does in place of operations in which a traced value means something else.

In: operands from the stack, by `helper @ operand` or `value in guard` (`emission.py` says why). Out: the
result that plain Python would give, or a traced one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from jitcore.core.trace import JaxprTrace, context
from jitcore.rewrite.iterators import TracedIterator, as_traced_iterator
from jitcore.rewrite.journal import (
    AttributeLocation,
    CellLocation,
    GlobalLocation,
    ItemLocation,
    logs,
    record,
)
from jitcore.rewrite.values import Poison, as_predicate, is_traced, negate


class _Apply:
    """A function that is called by `self @ operand`."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def __matmul__(self, operand):
        return self.function(operand)


class _Guard:
    """`value in self` for a value on top of the stack."""

    __slots__ = ("test",)

    def __init__(self, test: Callable[[Any], bool]):
        self.test = test

    def __contains__(self, value) -> bool:
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
    guard: _Guard = _Guard(is_traced)
    iterator_guard: _Guard = _Guard(lambda value: isinstance(value, TracedIterator))
    poison_guard: _Guard = _Guard(lambda value: type(value) is Poison and value.raise_reason())


def _logical_not(value):
    return negate(as_predicate(value)) if is_traced(value) else not value


#: A loop over a longer range is compiled as a loop; over a shorter one, Python goes through it.
MAX_UNROLLED = 16


def _make_iterator(value):
    if is_traced(value) or type(value) is range and len(value) > MAX_UNROLLED and _is_recording():
        return as_traced_iterator(value)
    return iter(value)


def _is_recording() -> bool:
    """Whether a jaxpr is being recorded, so that it matters how long it gets."""
    trace = context.trace
    while trace is not None:
        if type(trace) is JaxprTrace:
            return True
        trace = trace.parent
    return False


def _contains(pair):
    """`value in container`; one traced comparison for each element where something is traced."""
    value, container = pair
    if is_traced(container):
        return (container == value).any()
    if not isinstance(container, (list, tuple)) or not any(map(is_traced, (value, *container))):
        return value in container
    found: Any = False
    for element in container:
        found = (value == element) | found
    return found


def _is_same(pair):
    for value in pair:
        if type(value) is Poison:
            value.raise_reason()
    one, other = pair
    return one is other


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
    if logs.stack and type(owner) in (list, dict) and not isinstance(index, slice) and not is_traced(index):
        record(ItemLocation(owner, index))
    owner[index] = value


def _store_slice(quadruple):
    value, owner, start, stop = quadruple
    owner[start:stop] = value


def make_hooks(resolve: Callable[[Any], Any]) -> Hooks:
    """The hooks, with the function that chooses what is called instead of a callable."""
    return Hooks(
        _Apply(resolve), _Apply(_logical_not), _Apply(_make_iterator), _Apply(_contains),
        _Apply(lambda pair: _logical_not(_contains(pair))), _Apply(_is_same),
        _Apply(lambda pair: not _is_same(pair)), _Apply(_store_cell), _Apply(_store_global),
        _Apply(_store_attribute), _Apply(_store_item), _Apply(_store_slice))  # fmt: skip
