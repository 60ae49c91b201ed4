"""Redirects: functions of Python's that rewritten code calls in another form, for traced arguments.

In: a builtin or a function of `math`. Out: a function that does the same on ordinary values, and its array
form on traced ones.
"""

from __future__ import annotations

import builtins
import functools
import io
import math
import sys
import threading
import weakref
from builtins import bool, isinstance, len, range, sum  # themselves, whatever has their names later
from collections import Counter
from collections.abc import Callable
from typing import Any

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.core.primitive import Effect
from jitcore.core.trace import to_array
from jitcore.lax.control_flow.callback import debug_callback
from jitcore.lax.elementwise import convert_element_type
from jitcore.rewriter.control_flow.iterators import (TracedIterable, find_length, make_enumerate, make_range,
                                                     make_zip)
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import logs
from jitcore.rewriter.operations.texts import (Code, Items, Text, express, find_formatter, holds_traced,
                                               make_now, make_text)
from jitcore.rewriter.values import as_predicate, is_traced, wrap_predicate

# -- print ---------------------------------------------------------------------------------------------------
PRINT = Effect("Print", ordered=True)


class _Written(threading.local):
    """How often programs have called `write` of each stream, as long as somebody counts."""

    counts: Counter[str] | None = None


written = _Written()


class Printer:
    """Prints objects that it makes of ndarrays.

    Args:
        recipe: of the tuple of what is printed; separator, end: recipes of str.
        stream: "stdout" or "stderr" of `sys` when it prints, or a file.
        is_checked: whether the first ndarray says that the program has failed: then nothing is printed.
    """

    def __init__(self, recipe: Items, separator: Any, end: Any, stream: Any, flush: bool, is_checked: bool):
        code = Code(int(is_checked))
        lines = ["if a0: return"] if is_checked else []
        file = f"sys.{stream}" if type(stream) is str else code.add(stream)
        lines.append(f"values, sep, end = {code.write(recipe)}, {code.write(separator)}, {code.write(end)}")
        if type(stream) is str:  # from here on nothing fails that plain Python would not print either
            count = max(1, 2 * len(recipe.parts))  # each argument, what separates them, the end
            lines.append(f"if written.counts is not None: written.counts[{stream!r}] += {count}")
        lines.append(f"print(*values, sep=sep, end=end, file={file}, flush={flush})")
        self._run = code.define_on_operands(lines, print=builtins.print, sys=sys, written=written)

    def __call__(self, *values: Any) -> list:
        self._run(*values)
        return []

    def __repr__(self) -> str:
        return "print"


_printers: weakref.WeakValueDictionary[Any, Printer] = weakref.WeakValueDictionary()


class Unprinted(Exception):
    """Plain Python prints this."""


def print_values(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
    """`print` of values that may be traced."""
    is_program = current.mode is not None or bool(logs.stack)
    if not is_program and not any(map(holds_traced, (*values, sep, end))):
        return builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
    if current.mode is not None and not current.mode.prints and current.mode.fail(True, Unprinted()):
        return None
    ends = [default if given is None else given for given, default in ((sep, " "), (end, "\n"))]
    if not any(type(given) is Text for given in ends):
        builtins.print(sep=sep, end=end, file=io.StringIO())  # raises where one is no str
    operands: list = []
    failed = None if current.mode is None else current.mode.find_failed()
    if failed is not None:
        operands.append(failed)
    recipe = Items(tuple, tuple([express(value, operands) for value in values]))
    texts = [express(given, operands) for given in ends]
    printer = _find_printer(recipe, *texts, _find_stream(file), bool(flush), failed is not None)
    debug_callback.primitive.bind(*map(to_array, operands), callback=printer, effect=PRINT)
    return None


def _find_stream(file: Any) -> Any:
    """As `Printer` takes it."""
    if file is None or file is sys.stdout:
        return "stdout"
    if file is sys.stderr:
        return "stderr"
    if current.mode is not None:
        raise current.mode.refuse("print() is called with a file")
    return file


def _find_printer(*key: Any) -> Printer:
    """One `Printer` for equal arguments, so that tracing again gives a program with the same key."""
    try:
        printer = _printers.get(key)
    except TypeError:  # a file that is not hashable
        return Printer(*key)
    if printer is None:
        printer = _printers[key] = Printer(*key)
    return printer


# -- other functions -----------------------------------------------------------------------------------------
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
    print: print_values, str: _show(str), repr: _show(repr), ascii: _show(ascii), format: _format}

REDIRECTS: dict[Any, Callable] = {
    range: make_range, enumerate: make_enumerate, zip: make_zip, len: find_length, isinstance: _isinstance,
    min: _extremum("min"), max: _extremum("max"), sum: _sum,
    float: _convert(float, float), int: _convert(int, int), bool: _bool,
    **TEXT_REDIRECTS,
    **{getattr(math, name): _math(name) for name in (*MATH_FUNCTIONS, *_ROUNDINGS, "log", "hypot")}}
