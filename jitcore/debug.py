"""Looking into a program while it runs: `jitcore.debug.print` and `jitcore.debug.callback`.

In: values of a traced function. Out: text or a call of a Python function each time the program gets there,
also inside compiled loops; and how arrays lie on devices.
"""

from __future__ import annotations

import builtins
import code
import dataclasses
import logging
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitcore.core.jaxpr import aval_of
from jitcore.core.source import api_boundary
from jitcore.core.trace import Tracer
from jitcore.docstrings import document
from jitcore.lax.control_flow.callback import DEBUG, ORDERED_DEBUG, debug_callback
from jitcore.lax.parallel.partitioning import inspect_sharding
from jitcore.sharding import Sharding

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
           "print",
           "visualize_array_sharding", "visualize_sharding"]

_logger = logging.getLogger("jitcore.debug")


class _CheckingFormatter(string.Formatter):
    """Formats, and raises when an argument is not used by the format."""

    def check_unused_args(self, used_args, args: Sequence, kwargs: Mapping) -> None:
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `jitcore.debug.print`: {unused}")
        unused = [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"Unused keyword arguments to `jitcore.debug.print`: {unused}. You may be passing an "
                'f-string (i.e, `f"{x}"`) into `jitcore.debug.print` and instead should pass in a '
                "regular string.")

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""  # the values are not known yet: only the names are checked


@dataclasses.dataclass(frozen=True)
class _Printer:
    """Prints its arguments in a format. Equal formats are equal, so tracing again gives an equal program."""

    fmt: str
    is_logged: bool = False

    def __call__(self, *args, **kwargs) -> None:
        text = self.fmt.format(*args, **kwargs)
        if self.is_logged:
            _logger.info(text)
        else:
            builtins.print(text, flush=True)


@api_boundary
def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Prints values when the program computes them.

    >>> debug.print("x = {x}, y = {}", y, x=x)

    Args:
        fmt: a format as of `str.format`. Braces are filled when the program runs, so write no f-string.
        args, kwargs: arrays, pytrees of arrays, or other objects.
        ordered: ordered prints appear in the order of the program.

    Raises: TypeError when fmt is no str; ValueError for an argument that the format does not use; IndexError
        or KeyError for one that it lacks."""
    _write(fmt, args, kwargs, ordered, False)


@api_boundary
def log(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """As `print`, to the logger `jitcore.debug` of `logging`, at the level INFO.

    >>> debug.log("x = {x}", x=x)

    Args and Raises: as of `print`. Source: jax.debug.log."""
    _write(fmt, args, kwargs, ordered, True)


def _write(fmt: str, args: tuple, kwargs: dict, ordered: bool, is_logged: bool) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"expected str, got {type(fmt).__name__}")
    _CheckingFormatter().format(fmt, *args, **kwargs)
    debug_callback(_Printer(fmt, is_logged), *args, ordered=ordered, **kwargs)


class _EffectType(type):
    """The class of an effect of equations: `isinstance(effect, DebugEffect)`."""

    def __instancecheck__(cls, effect: object) -> bool:
        return effect is cls.effect


class DebugEffect(metaclass=_EffectType):
    """What an equation of `print` or `callback` does besides computing. Source: jax.debug.DebugEffect."""

    effect = DEBUG


class OrderedDebugEffect(metaclass=_EffectType):
    """The same of ordered ones. Source: jax.debug.OrderedDebugEffect."""

    effect = ORDERED_DEBUG


@dataclasses.dataclass(frozen=True)
class _Console:
    """Reads and runs lines of Python, with the values by their names, until the input ends or says
    `exit()`."""

    place: str

    def __call__(self, values: dict) -> None:
        try:
            code.interact(f"breakpoint at {self.place}; names: {', '.join(sorted(values))}",
                          local=dict(values))
        except SystemExit:
            pass


@api_boundary
def breakpoint(*, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None,
               ordered: bool = False, token: Any = None, **kwargs: Any) -> None:
    """Opens a Python console when the program gets here, with the values that the variables of the function
    have.

    Args:
        ordered: whether it keeps its order among ordered effects. backend, filter_frames, num_frames, token:
            accepted for JAX's signature, without effect.

    The end of the input, or `exit()`, goes on. Example: `debug.breakpoint()` inside of a jitted function.
    Source: jax.debug.breakpoint."""
    frame = sys._getframe(2)
    values = {}
    for name, value in frame.f_locals.items():
        try:
            aval_of(value)
        except TypeError:
            continue  # no array: what a console may show of it is not known to be of this run
        values[name] = value
    debug_callback(_Console(f"{frame.f_code.co_filename}:{frame.f_lineno}"), values, ordered=ordered)


@api_boundary
def callback(callback: Callable, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Calls `callback(*args, **kwargs)` when the program gets here, and ignores what it returns.

    Args:
        callback: gets an Array for each array among the leaves of args and kwargs, other leaves as they are.
        ordered: ordered callbacks happen in the order of the program."""
    debug_callback(callback, *args, ordered=ordered, **kwargs)


# -- how arrays lie -----------------------------------------------------------------------------------------
@api_boundary
def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback(sharding)` for an array: now, or for one that is traced when the compiler has decided
    how it lies."""
    if isinstance(value, Tracer):
        inspect_sharding(value, callback)
    else:
        callback(value.sharding)


@api_boundary
def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Prints which devices have which part of an array with one or two axes."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **options))


def visualize_sharding(shape: Sequence[int], sharding: Sharding, **options: Any) -> None:
    """Prints which devices have which part of an array of this shape: a cell for each part, with their
    numbers.

    Raises: ValueError for shapes of no or more than two axes."""
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    cells = sharding.list_cells(len(shape))
    width = max(len(cell) for line in cells for cell in line) + 2
    edges = ["─" * width] * len(cells[0])
    borders = [left + middle.join(edges) + right for left, middle, right in ("┌┬┐", "├┼┤", "└┴┘")]
    lines = [f"│{'│'.join(cell.center(width) for cell in line)}│" for line in cells]
    builtins.print("\n".join([borders[0], f"\n{borders[1]}\n".join(lines), borders[2]]), flush=True)


document(sys.modules[__name__], __all__)
