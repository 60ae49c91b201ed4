"""Python's own functions on handles: `float(x)`, `isinstance(x, float)`, `min(x, y)`, `sorted(x)`.

In: handles and plain values, as rewritten code passes them. Out: what the functions give; without a handle
among the arguments they are called themselves.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.numpy_semantics.errors import exit_program, needs_value, not_traceable
from jitcore.numpy_semantics.values import arithmetic, mixed
from jitcore.numpy_semantics.values.arithmetic import fail, to_float, to_int
from jitcore.numpy_semantics.values.iterating import (find_best, gather, is_loop, make_filter, make_map,
                                                      multiply)
from jitcore.numpy_semantics.values.letters import Letter, TracedText, chr_of, int_of, ord_of
from jitcore.numpy_semantics.values.lists import ListHandle, TracedList
from jitcore.numpy_semantics.values.ndarray import FlatArray, NDArray
from jitcore.numpy_semantics.values.number_lists import NumberList
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES, Number
from jitcore.numpy_semantics.values.object_lists import Element
from jitcore.numpy_semantics.values.promotion import (SUPPORTED, as_operand, cast_raw, int_of_scalar, to_item,
                                                      to_raw)
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.sequences import for_handles
from jitcore.rewriter.bytecode.versions import IS_SUM_COMPENSATED
from jitcore.rewriter.control_flow.iterators import TracedIterable, TracedIterator
from jitcore.rewriter.functions import HOOKS, find_fold
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.journal import refuse_changes
from jitcore.rewriter.operations.sequences import holds_traced
from jitcore.rewriter.operations.texts import Text
from jitcore.rewriter.writing import folded

_BOOL = np.dtype(bool)


def to_python(x: Any) -> Any:
    """The Python number of a NumPy scalar or an array of one element."""
    if not isinstance(x, Handle) or type(x) is Number:
        return x
    if x.size != 1:
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    kind = dtypes.PYTHON_OF_KIND[x.dtype.kind]
    raw = lax.reshape(x.read(), ()) if x.shape else x.read()
    return int_of_scalar(raw) if kind is int else Number(kind, cast_raw(raw, NUMBER_DTYPES[kind]))


def _is_handle(x: Any) -> bool:
    return isinstance(x, Handle)


def _define_conversion(kind: type, convert: Callable) -> Callable:
    @for_handles(kind)
    def call(*args, **kwargs):
        if len(args) != 1 or kwargs:
            raise not_traceable(f"{kind.__name__}() of traced values with several arguments")
        if type(args[0]) is Text:
            raise not_traceable(f"a number made of a text by {kind.__name__}()")
        if isinstance(args[0], TracedText):
            if kind is int and type(args[0]) is Letter:
                return int_of(args[0])
            raise needs_value(args[0], f"{kind.__name__}()")
        if isinstance(args[0], NDArray) and args[0].ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if type(args[0]) is not Number and getattr(args[0], "dtype", _BOOL).kind == "c":
            raise not_traceable("complex numbers lose their imaginary part, of which NumPy warns")
        return convert(to_python(args[0]))

    return call


def bool_of(x: Any = False) -> Any:
    """`bool(x)`."""
    if not _is_handle(x):
        return bool(x)
    found = x.as_predicate()
    return found if isinstance(found, bool) else Number(bool, found)


@for_handles(complex)
def _complex_of(*args, **kwargs):
    parts = [to_python(x) for x in (*args, *kwargs.values())]
    if len(parts) == 1:
        return Number(complex, cast_raw(to_raw(parts[0]), dtypes.complex128))
    if any(arithmetic.kind_of(x) is complex for x in parts):
        return parts[0] + parts[1] * 1j
    real, imag = (to_raw(to_float(x)) for x in parts)
    return Number(complex, lax.complex(real, imag))


def round_handle(x: Any, digits: Any = None) -> Any:
    """`round(x)` and `round(x, digits)` of a NumPy scalar or array."""
    if isinstance(x, NDArray) or x.dtype.kind not in "fiu":
        name = "ndarray" if isinstance(x, NDArray) else x.dtype.type.__name__
        raise TypeError(f"type numpy.{name} doesn't define __round__ method")
    if digits is not None:
        return np.round(x, digits)
    return arithmetic.round_number(to_python(x))


# -- types --------------------------------------------------------------------------------------------------
class StandIn:
    """Stands for an object of Python's that is no value of a program; `__class__` is that object's."""


def type_of(x: Any) -> type:
    """The type that Python's object would have."""
    if isinstance(x, StandIn):
        return x.__class__
    if isinstance(x, TracedText):
        return str
    if isinstance(x, (NDArray, Text)):
        return str if type(x) is Text else np.flatiter if type(x) is FlatArray else np.ndarray
    if isinstance(x, ListHandle):
        return list
    if isinstance(x, Element):
        return x.stands_for
    if isinstance(x, TracedIterable):
        return x.kind
    return x.dtype.type if isinstance(x, Scalar) else x.python_type if type(x) is Number else type(x)


def _type(*args, **kwargs):
    return type_of(args[0]) if len(args) == 1 and not kwargs else type(*args, **kwargs)


def _isinstance(x: Any, kinds: Any) -> bool:
    if not _is_handle(x) and not isinstance(x, TracedIterable):
        return isinstance(x, kinds)
    return issubclass(type_of(x), kinds)


def _hasattr(x: Any, name: str) -> bool:
    return hasattr(type_of(x), name) if _is_handle(x) else hasattr(x, name)


def _len(x: Any, /) -> Any:
    has_traced_length = getattr(type(x), "is_padded", False) or hasattr(type(x), "to_array")
    return x.shape[0] if has_traced_length else len(x)


# -- selections ---------------------------------------------------------------------------------------------
def select(condition: Any, one: Any, other: Any) -> Any:
    """`one if condition else other` of two scalars, where neither can fail."""
    if isinstance(condition, bool):
        return one if condition else other
    predicate = condition.as_predicate()
    if isinstance(predicate, bool):
        return one if predicate else other
    return mixed.select(predicate, one, other)


_NOT_GIVEN = object()


def _define_extremum(plain: Callable, is_better: Any) -> Callable:
    def choose(*values, **options):
        key, default = options.get("key"), options.get("default", _NOT_GIVEN)
        given = values[0] if len(values) == 1 else values
        fold = find_fold(given, plain) if key is None else None
        if fold is not None or is_loop(given, key):
            return _find_best(plain, find_best(plain, given, key) if fold is None else fold(None), default)
        if isinstance(given, ListHandle) and not options:
            find = np.min if plain is builtins.min else np.max

            def reduce(array):
                return find(array) if array.dtype.kind == "i" else _find_first(array, find(array))

            return _reduce_list(values[0], reduce, plain.__name__)
        if len(values) == 1 and isinstance(values[0], Iterator) and not isinstance(values[0], TracedIterator):
            values = (list(values[0]),)
        items = values
        if len(values) == 1:
            items = tuple(values[0]) if isinstance(values[0], (list, tuple, NDArray)) else values[0]
        if not isinstance(items, (list, tuple)) or not holds_traced(items):
            return plain(*values, **options)
        if options.keys() - {"default"}:
            raise not_traceable(f"{plain.__name__}() of traced values with options")
        if len(values) == 1 and _is_vector(values[0]):
            return _extremum_of_array(plain, values[0])
        return functools.reduce(lambda best, x: select(_as_truth(is_better @ (x, best)), x, best), items)

    choose.__name__ = plain.__name__
    return choose


def _find_best(plain: Callable, best: Any, default: Any) -> Any:
    """What `min` and `max` give for a generator. best: of its elements, None where it has none."""
    if mixed.may_be_none(best):
        if default is _NOT_GIVEN:
            return mixed.narrow(best)
        return select(Number(bool, best.is_kind(0)), default, best.as_number())
    if best is not None:
        return best
    return plain((), **({} if default is _NOT_GIVEN else {"default": default}))


def _is_vector(x: Any) -> bool:
    return isinstance(x, NDArray) and not x.is_padded and x.ndim == 1


def _extremum_of_array(plain: Callable, array: NDArray) -> Any:
    """Of the elements in order, as Python compares them: NaN is taken only where it comes first."""
    if array.dtype.kind != "f":
        return (np.min if plain is min else np.max)(array)
    first = array[0]
    found = _find_first(array, (np.fmin if plain is min else np.fmax).reduce(array))
    return select(first != first, first, found)


def _find_first(array: NDArray, value: Any) -> Any:
    """The first element that is equal to a value: of 0.0 and -0.0 Python takes what it meets first."""
    return array[np.argmax(array == value)]


def _as_truth(x: Any) -> Any:
    if isinstance(x, NDArray) and x.size != 1:
        x.as_predicate()  # raises
    return x


def _reduce_list(values: ListHandle, reduce: Callable, text: str) -> Any:
    """What NumPy's reduction gives, of the type of an element; without elements, Python's own answer."""
    array = values.to_array()
    fail(bool_of(values.shape[0] == 0), ValueError(f"{text} of an empty list"))
    fail(bool_of(np.isnan(array).any()), ValueError(f"{text} of NaN"))
    if array.dtype.kind not in "if":
        raise not_traceable(f"{text}() of a list of traced length of {array.dtype.name}")
    found = reduce(array)
    is_python = type(values) is NumberList or type(values.template.leaves[0]) in (Number, int, float)
    return to_python(found) if is_python else found


def _sum_array(array: NDArray) -> Any:
    """The sum as Python adds up elements: of their dtype. An int that leaves it is Python's to make."""
    if array.dtype.kind == "i":
        bound = np.sum(np.abs(array.astype(float)))
        fail(bool_of(bound >= 0.99 * np.iinfo(array.dtype).max), OverflowError("the sum of a list"))
    return np.sum(array, dtype=array.dtype)


def _sum(iterable: Any, /, start: Any = 0) -> Any:
    if (fold := find_fold(iterable, sum)) is not None:
        return fold(start)
    if isinstance(iterable, ListHandle):
        return start + _reduce_list(iterable, _sum_array, "sum")
    if _is_vector(iterable) and iterable.dtype.kind in "fc":
        return np.sum(iterable) + start if iterable.size else start
    items = iterable if isinstance(iterable, (list, tuple)) else list(iterable)
    if not IS_SUM_COMPENSATED or not any(map(_is_handle, items)):
        return sum(items, start)
    return _finish_sum(*functools.reduce(lambda found, x: _add_kinds(*found, x), items, (start, 0.0)))


def _add(total: Any, lost: Any, x: Any) -> tuple[Any, Any]:
    """A step of `sum` that carries along what additions of Python's floats lose.

    Source: A. Neumaier, Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen, 1974."""
    found = total + x
    if type_of(total) is not float or type_of(x) is not float:
        return found, lost
    smaller = select(abs(total) >= abs(x), (total - found) + x, (x - found) + total)
    return found, lost + smaller


def _add_kinds(total: Any, lost: Any, x: Any) -> tuple[Any, Any]:
    return mixed.distribute(lambda total, x: _add(total, lost, x), total, x)


def _finish_sum(total: Any, lost: Any) -> Any:
    if type_of(total) is not float or isinstance(lost, float) and not lost:
        return total
    return select(abs(lost) < math.inf, total + lost, total)


def _list(*args, **kwargs):
    """`list(x)`."""
    if len(args) != 1 or kwargs:
        return list(*args, **kwargs)
    if isinstance(args[0], TracedList):
        return args[0].copy()
    found = gather(args[0])
    return found if found is not args[0] else list(found)


#: References of an argument that nobody but the call of a function has: what is left of a generator, behind
#: the element that decides, is not asked for.
_ONLY_PASSED = (lambda x: sys.getrefcount(x))(object())


def _define_quantifier(plain: Callable, joint: Callable) -> Callable:
    def call(iterable):
        is_last = sys.getrefcount(iterable) <= _ONLY_PASSED + 1  # one more: of `distributing`
        if (fold := find_fold(iterable, plain) if is_last else None) is not None:
            return fold(plain is all)
        if _is_vector(iterable):
            return bool_of((np.any if plain is any else np.all)(iterable))
        if isinstance(iterable, TracedIterator) or not isinstance(iterable, Iterable):
            return plain(iterable)
        iterator = iter(iterable)
        for x in iterator:
            if _is_handle(x):
                return _join_rest(bool_of(x), iterator, joint, plain)
            if bool(x) is (plain is any):
                return plain is any
        return plain is all

    call.__name__ = plain.__name__
    return call


def define_next(otherwise: Callable) -> Callable:
    """`next`: the first element of a generator is found by a loop that ends there. otherwise: for generators
    of which more is asked for, and all else."""

    def call(iterator, default=_NOT_GIVEN, /):
        is_last = sys.getrefcount(iterator) <= _ONLY_PASSED
        fold = find_fold(iterator, next) if is_last else None
        if fold is None:
            return otherwise(iterator) if default is _NOT_GIVEN else otherwise(iterator, default)
        if default is not _NOT_GIVEN:
            return fold(default)
        found = fold(None)
        if found is None:
            raise StopIteration
        if mixed.may_be_none(found):
            fail(Number(bool, found.is_kind(0)), StopIteration())
            return found.as_number()
        return found

    call.__name__ = "next"
    return call


def _join_rest(first: Any, rest: Iterator, joint: Callable, plain: Callable) -> Any:
    """Of an element that is traced and those behind it, which Python may not ask for."""
    with refuse_changes([rest], f"{plain.__name__}() goes on behind a traced element, and changes something"):
        return functools.reduce(joint, map(bool_of, rest), first)


def _refuse(plain: Callable) -> Callable:
    """A function that needs to know its arguments."""

    @for_handles(plain, inside=True)
    def call(*args):
        parts = [part for x in args for part in (x if isinstance(x, (list, tuple)) else (x,))]
        raise needs_value(next(filter(_is_handle, parts), args[0]), f"{plain.__name__}()")

    return call


def _define_error_state(plain: Any) -> Callable:
    """`np.errstate` and `np.seterr`: compiled code is silent about floating-point errors."""

    def call(*args, **kwargs):
        if {*args, *kwargs.values()} - {"ignore", "warn", None}:
            raise not_traceable(f"np.{plain.__name__} that makes floating-point errors more than warnings")
        return plain(*args, **kwargs)

    return call


#: Elements up to which a list is sorted.
_MAX_SORTED = 256


def _sorted(iterable, /, *, key=None, reverse=False):
    """`sorted`, of numbers of one type: what it does with NaN depends on where they stand."""
    iterable = gather(iterable)
    if isinstance(iterable, TracedList):
        found = iterable.copy()
        found.sort(key=key, reverse=reverse)
        return found
    is_array = isinstance(iterable, NDArray)
    items = iterable if is_array else list(iterable)
    if not is_array and not any(map(_is_handle, items)):
        return sorted(items, key=key, reverse=reverse)
    if key is not None or _is_handle(reverse):
        raise needs_value(iterable if is_array else next(filter(_is_handle, items)), "sorted()")
    kinds = {"NumPy"} if is_array else {type_of(item) for item in items}
    array = iterable if is_array else as_operand(items)
    if array.ndim != 1 or len(kinds) > 1 or array.is_padded or not 0 < array.size <= _MAX_SORTED:
        raise not_traceable("sorted() of traced values of several types, or of many")
    if array.dtype.kind not in "biuf":
        raise TypeError("'<' not supported between instances of 'complex' and 'complex'")
    fail(bool_of(np.isnan(array).any()), ValueError("sorted() of NaN"))
    found = np.sort(array)
    found = list(found[::-1] if reverse else found)
    is_python = next(iter(kinds)) in (bool, int, float)
    return [item.item() for item in found] if is_python else found


def _define_dtype_call(kind: type) -> Callable:
    """`np.float32(x)`: a scalar; for an array an array, which is x itself where it has that dtype."""

    def call(*args, **kwargs):
        if len(args) != 1 or kwargs or not (_is_handle(args[0]) or isinstance(args[0], (list, tuple))):
            return kind(*args, **kwargs)
        x = args[0]
        if isinstance(x, (list, tuple)) or isinstance(x, NDArray) and x.ndim:
            return np.asarray(x, kind)
        return Scalar(to_item(x, np.dtype(kind)))

    call.__name__ = kind.__name__
    return call


REDIRECTS: dict[Any, Callable] = {
    int: _define_conversion(int, to_int), float: _define_conversion(float, to_float), complex: _complex_of,
    bool: bool_of, isinstance: _isinstance, len: _len, type: _type, hasattr: _hasattr,
    min: _define_extremum(builtins.min, HOOKS.compare("<")),
    max: _define_extremum(builtins.max, HOOKS.compare(">")),
    any: _define_quantifier(builtins.any, operator.or_), all: _define_quantifier(builtins.all, operator.and_),
    sum: _sum, folded.add: _add_kinds, folded.finish_sum: _finish_sum, math.prod: multiply, list: _list,
    map: make_map, filter: make_filter, ord: ord_of, chr: chr_of,
    sys.exit: exit_program,
    np.errstate: _define_error_state(np.errstate), np.seterr: _define_error_state(np.seterr),
    hash: _refuse(hash), sorted: _sorted,
    **{dtype.type: _define_dtype_call(dtype.type) for dtype in SUPPORTED}}

__all__ = ["REDIRECTS", "bool_of", "define_next", "round_handle", "select", "to_python", "type_of"]
