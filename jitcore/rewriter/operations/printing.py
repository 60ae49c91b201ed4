"""`print` in rewritten functions: the program prints, in the order and as often as Python would.

In: the arguments of a call of `print` while something is traced. Out: a `debug_callback` with an ordered
effect, which makes the Python objects and hands them to `print`. Without a traced argument a
function under `jit` prints while it is traced, as everything there runs that Python can run; under a traced
condition, and in a traced loop, what it prints belongs to the program.
"""

from __future__ import annotations

import builtins
import io
import sys
import threading
import weakref
from collections import Counter
from typing import Any

from jitcore.core.primitive import Effect
from jitcore.core.trace import to_array
from jitcore.lax.control_flow.callback import debug_callback
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import logs
from jitcore.rewriter.operations.texts import Code, Items, Text, express, holds_traced

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
        code.names |= {"print": builtins.print, "sys": sys, "written": written}
        lines = ["if a0: return"] if is_checked else []
        file = f"sys.{stream}" if type(stream) is str else code.add(stream)
        lines.append(f"values, sep, end = {code.write(recipe)}, {code.write(separator)}, {code.write(end)}")
        if type(stream) is str:  # from here on nothing fails that plain Python would not print either
            count = max(1, 2 * len(recipe.parts))  # each argument, what separates them, the end
            lines.append(f"if written.counts is not None: written.counts[{stream!r}] += {count}")
        self._run = code.define([*lines, f"print(*values, sep=sep, end=end, file={file}, flush={flush})"])

    def __call__(self, *values: Any) -> list:
        self._run(*values)
        return []

    def __repr__(self) -> str:
        return "print"


_printers: weakref.WeakValueDictionary[Any, Printer] = weakref.WeakValueDictionary()


def print_values(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> None:
    """`print` of values that may be traced."""
    is_program = current.mode is not None or bool(logs.stack)
    if not is_program and not any(map(holds_traced, (*values, sep, end))):
        return builtins.print(*values, sep=sep, end=end, file=file, flush=flush)
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
