"""Redirects: functions of Python's that rewritten code calls in another form, for traced arguments.

In: a builtin or a function of `math`. Out: a function that does the same on ordinary values, and its array
form on traced ones.
"""

from __future__ import annotations

import builtins
import functools
import math
from builtins import bool, isinstance, len, range, sum  # themselves, whatever has their names later
from collections.abc import Callable
from typing import Any

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.lax.elementwise import convert_element_type
from jitcore.rewriter.control_flow.iterators import (
    CountIterator,
    JointIterator,
    TracedIterable,
    as_traced_iterator,
)
from jitcore.rewriter.errors import traced_length_error
from jitcore.rewriter.handles import CompoundHandle, current
from jitcore.rewriter.operations.printing import print_values
from jitcore.rewriter.operations.texts import Text, find_formatter, holds_traced, make_now, make_text
from jitcore.rewriter.values import as_predicate, is_traced, type_of, wrap_predicate


def _range(*bounds):
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    bounds = tuple([bound.as_index() if isinstance(bound, CompoundHandle) else bound for bound in bounds])
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
    for bound in (start, stop, step):
        aval = type_of(bound).aval if is_traced(bound) else None
        if aval is not None and (aval.shape or not dtypes.is_integer(aval.dtype)):
            raise TypeError(f"'{aval.long()}' object cannot be interpreted as an integer")
    if current.mode is not None:  # the elements are Python's ints, whatever the bounds are
        start, stop, step = map(current.mode.as_bound, (start, stop, step))
    if not is_traced(step) and step in (1, -1):
        count = stop - start if step == 1 else start - stop
    elif is_traced(step):
        up = _find_sign(step > 0)
        count = (stop - start + step - up) // step
    elif step == 0:
        raise ValueError("range() arg 3 must not be zero")
    else:
        count = (stop - start + (step - 1 if step > 0 else step + 1)) // step
    return TracedIterable(range, lambda: CountIterator(start, step, count, 0, stop))


def _find_sign(is_positive):
    """1 or -1."""
    if isinstance(is_positive, bool):
        return 1 if is_positive else -1
    if current.mode is not None:
        return 2 * current.mode.redirects.get(int)(is_positive) - 1
    return jnp.where(is_positive, 1, -1)


def _is_traced_iterable(value) -> bool:
    return isinstance(value, TracedIterable) or is_traced(value)


def _enumerate(iterable, start=0):
    if not (_is_traced_iterable(iterable) or is_traced(start)):
        return enumerate(iterable, start)
    count = CountIterator(start, 1, None)
    return TracedIterable(enumerate, lambda: JointIterator([count, as_traced_iterator(iterable)]))


def _zip(*iterables, strict: bool = False):
    if any(map(_is_traced_iterable, iterables)):
        parts = list(map(as_traced_iterator, iterables))
        if all(part is not None for part in parts):
            return TracedIterable(zip, lambda: JointIterator(list(map(as_traced_iterator, iterables))))
    return zip(*iterables, strict=strict)


def _extremum(name: str) -> Callable:
    plain = getattr(builtins, name)

    def choose(*values, **options):
        items = values
        if len(values) == 1 and (isinstance(values[0], (list, tuple)) or is_traced(values[0])):
            items = tuple(values[0])
        if options or not any(map(is_traced, items)):
            return plain(*values, **options)
        return functools.reduce(jnp.minimum if name == "min" else jnp.maximum, items)

    return choose


def _sum(iterable, /, start=0):
    if is_traced(iterable):
        return iterable.sum(0) + start
    return sum(iterable, start)


def _convert(kind: Callable, dtype) -> Callable:
    def convert(*args, **options):
        if len(args) != 1 or options or not is_traced(args[0]):
            return kind(*args, **options)
        if args[0].size != 1:
            raise TypeError(f"only length-1 arrays can be converted to Python scalars, got {args[0].shape}")
        return convert_element_type(args[0].reshape(()), dtype)

    return convert


def _bool(value=False):
    return wrap_predicate(as_predicate(value)) if is_traced(value) else bool(value)


def _len(value):
    if isinstance(value, TracedIterable) and current.mode is None:
        raise traced_length_error()
    return len(value)


def _isinstance(value, kinds):
    """A traced scalar counts as an int, float or bool where its dtype is one."""
    if type(value) is Text or isinstance(value, TracedIterable):
        return issubclass(str if type(value) is Text else value.kind, kinds)
    if not is_traced(value) or isinstance(value, kinds):
        return isinstance(value, kinds)
    return not value.shape and issubclass(dtypes.PYTHON_OF_KIND[dtypes.kind_of(value.dtype)], kinds)


def _show(function: Callable) -> Callable:
    def show(*args, **options):
        if len(args) == 1 and not options and holds_traced(args[0]):
            return make_text(function, *args)
        return make_now(function, *args) if not options else function(*args, **options)

    return show


def _format(value, spec="", /):
    return find_formatter(0)((value, spec))


def _math(name: str) -> Callable:
    plain = getattr(math, name)

    def compute(*args):
        if not any(map(is_traced, args)):
            return plain(*args)
        result = getattr(jnp, name)(*args)
        return result.astype(int) if name in _ROUNDINGS else result

    return compute


#: Functions of `math` that NumPy has too, as ufuncs of the same names.
MATH_FUNCTIONS = """sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log2
    log10 log1p sqrt cbrt pow fabs fmod copysign isfinite isinf isnan degrees radians""".split()
_ROUNDINGS = ("floor", "ceil", "trunc")

#: What makes and prints texts, whatever the semantics of numbers.
TEXT_REDIRECTS: dict[Any, Callable] = {
    print: print_values, str: _show(str), repr: _show(repr), ascii: _show(ascii), format: _format,
}

REDIRECTS: dict[Any, Callable] = {
    range: _range, enumerate: _enumerate, zip: _zip, min: _extremum("min"), max: _extremum("max"), sum: _sum,
    float: _convert(float, float), int: _convert(int, int), bool: _bool, len: _len, isinstance: _isinstance,
    **TEXT_REDIRECTS,
    **{getattr(math, name): _math(name) for name in (*MATH_FUNCTIONS, *_ROUNDINGS, "log", "hypot")},
}
