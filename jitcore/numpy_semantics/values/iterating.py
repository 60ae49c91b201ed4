"""Python's `map` and `filter`, and `min` and `max` of iterables, as loops that can be those of a program.

In: functions and iterables. Out: what the builtins give. What each of them does is written down in Python,
and rewritten as the user's own functions are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jitcore.numpy_semantics.values.lists import TracedList
from jitcore.rewriter.control_flow.iterators import (JointIterator, TracedIterable, TracedIterator,
                                                     as_traced_iterator)
from jitcore.rewriter.functions import find_fold, hook_generator, resolve, rewrite_source
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.operations.sequences import holds_traced
from jitcore.rewriter.values import is_traced

#: Elements up to which a container that is not traced is gone through by rewritten code.
_MANY = 256


def gather(iterable: Any) -> Any:
    """A generator as the list of its elements, where its loops are to be the program's; all else as it is."""
    fold = find_fold(iterable, list)
    return iterable if fold is None else fold(None)


def find_best(plain: Callable, given: Iterable, key: Callable | None) -> Any:
    """What `min(given, key=key)`, or `max`, gives; None where there is no element."""
    given = gather(given)
    find, best, value = rewrite_source(_find_least if plain is min else _find_greatest), None, None
    if isinstance(given, TracedList) and given.is_nested:  # a variable is no tuple or None
        best = given[0]
        value = best if key is None else resolve(key)(best)
    return find(given, key, best, value)


def is_loop(given: Any, key: Callable | None) -> bool:
    """Whether `min` and `max` of it have to be done by rewritten code."""
    if key is None:
        is_nested = isinstance(given, TracedList) and given.is_nested
        return is_nested or isinstance(given, (TracedIterable, TracedIterator))
    return not (isinstance(given, (list, tuple, dict, set, frozenset, str)) and len(given) > _MANY)


def _find_least(iterable: Iterable, key: Callable | None, best: Any, least: Any) -> Any:
    for x in iterable:
        value = x if key is None else key(x)
        if least is None or value < least:
            best, least = x, value
    return best


def _find_greatest(iterable: Iterable, key: Callable | None, best: Any, greatest: Any) -> Any:
    for x in iterable:
        value = x if key is None else key(x)
        if greatest is None or value > greatest:
            best, greatest = x, value
    return best


def _multiply(iterable: Iterable, start: Any) -> Any:
    for x in iterable:
        start = start * x
    return start


def multiply(iterable: Iterable, /, *, start: Any = 1) -> Any:
    """`math.prod(iterable, start=start)`."""
    fold = find_fold(iterable, math.prod)
    if fold is not None:
        return fold(start)
    kinds = (list, tuple, TracedIterable, TracedIterator, Handle)
    items = iterable if isinstance(iterable, kinds) else list(iterable)
    is_plain = isinstance(items, (list, tuple)) and not holds_traced((start, items))
    return math.prod(items, start=start) if is_plain else rewrite_source(_multiply)(items, start)


# -- map, filter --------------------------------------------------------------------------------------------
def _apply_each(function: Callable, iterator: Iterator) -> Iterator:
    for x in iterator:
        yield function(x)


def _apply_to_all(function: Callable, iterator: Iterator) -> Iterator:
    for arguments in iterator:
        yield function(*arguments)


def _keep(function: Callable, iterator: Iterator) -> Iterator:
    for x in iterator:
        if function(x):
            yield x


def _keep_true(iterator: Iterator) -> Iterator:
    for x in iterator:
        if x:
            yield x


def make_map(function: Callable, *iterables: Any, **options: Any) -> Iterator:
    """`map(function, *iterables)`."""
    iterators = [_find_iterator(given) for given in iterables]
    if options or not iterators or None in iterators:
        return map(resolve(function), *iterables, **options)
    if len(iterators) == 1:
        return hook_generator(_apply_each)(function, iterators[0])
    return hook_generator(_apply_to_all)(function, JointIterator(iterators))


def make_filter(function: Callable | None, iterable: Any) -> Iterator:
    """`filter(function, iterable)`."""
    is_decided = isinstance(iterable, (list, tuple)) and holds_traced(iterable)
    iterator = iter(iterable) if is_decided else _find_iterator(iterable)
    if iterator is None:
        return filter(None if function is None else resolve(function), iterable)
    if function is None:
        return hook_generator(_keep_true)(iterator)
    return hook_generator(_keep)(function, iterator)


def _find_iterator(given: Any) -> TracedIterator | None:
    """A traced iterator over what a loop of the program may go through."""
    if type(given) is range and len(given) > current.mode.unrolled or isinstance(given, TracedIterable):
        return as_traced_iterator(given)
    return as_traced_iterator(given) if is_traced(given) else None
