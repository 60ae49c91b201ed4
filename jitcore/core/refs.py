"""Mutable references to arrays, as values: `Ref` is a cell that holds the newest array.

In: reads and writes of a cell. Out: reads of arrays and updates of copies, which compiled programs do in
place. A cell belongs to the trace in which it was made. Loops and branches lend the cells that their
functions use to the traces of these: `watch_refs` finds out which those are, `lend` lets them hold a value
inside, which the function then returns; so that jaxprs know of arrays alone. Jitted and mapped functions do
the same with cells that they get as arguments.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.core.trace import JaxprTrace, Trace, Tracer, context, eval_trace, set_current_trace, to_array
from jitcore.tree_util import PyTreeDef, tree_flatten

#: All cells that there are.
ALIVE: weakref.WeakSet = weakref.WeakSet()


class _Loans(threading.local):
    """The loans of this thread, the innermost last: the trace, and what each cell lent to it was before."""

    def __init__(self) -> None:
        self.open: list[tuple[Trace, dict[Ref, tuple[Trace, Any]]]] = []


_loans = _Loans()


class Ref:
    """A reference to an array whose elements are read by `ref[index]` and written by `ref[index] = value`.

    Values have the dtype of the array, and the shape of what they replace."""

    __slots__ = ("__weakref__", "_home", "_value")

    def __init__(self, value: Array):
        self._home = context.trace
        self._value = value if self._home is eval_trace else _make_strong(value)
        ALIVE.add(self)

    @property
    def value(self) -> Array:
        """What it holds."""
        return self._value

    @property
    def aval(self) -> ShapedArray:
        return self._value.aval

    @property
    def shape(self) -> tuple:
        return self._value.shape

    @property
    def dtype(self) -> Any:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self._value.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        self._come_here()
        return self._value[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._update(index, value, "swap", "set/swap", lambda place, new: place.set(new))

    def addupdate(self, index: Any, value: Any) -> None:
        """Adds a value to elements."""
        self._update(index, value, "addupdate", "addupdate", lambda place, new: place.add(new))

    def _update(self, index: Any, value: Any, name: str, words: str, change: Callable) -> None:
        home = self._come_here()
        old = self._value[index]
        new = self._convert(value, name, old)
        if home is context.trace:
            self._write(change(self._value.at[index], new))
            return
        if any(isinstance(x, Tracer) and not _is_within(home, x.owner) for x in (old, new)):
            raise Exception(  # as JAX does
                f"performing a {words} operation with a mapped or differentiated value on an array reference "
                f"that is neither: {self.aval}. Make the array reference inside of the function?")
        with set_current_trace(home):
            self._write(change(self._value.at[index], new))

    def read(self) -> Array:
        """What it holds, for the current trace."""
        return self._value if self._come_here() is context.trace else self[...]

    def replace(self, value: Array) -> None:
        """Lets the cell hold another array of its shape and dtype, which nobody else writes."""
        if self._come_here() is context.trace:
            self._write(value)
        else:
            self[...] = value

    def describe(self) -> str:
        """Its type, as messages show it."""
        return f"Ref{{{self.aval.update(weak_type=False).long()}}}"

    def _write(self, value: Array) -> None:
        self._value = _set_weak_type(value, self._value.aval.weak_type)

    def _convert(self, value: Any, name: str, old: Array) -> Array:
        aval = aval_of(value)
        yields = aval.weak_type and dtypes.kind_of(aval.dtype) == dtypes.kind_of(self.dtype)
        if aval.dtype != self.dtype and not yields:
            raise ValueError(f"Invalid dtype for `{name}`. Ref dtype: {self.dtype}. "
                             f"Value dtype: {aval.dtype}. ")
        if aval.shape != old.shape:
            raise ValueError(f"Invalid shape for `{name}`. Ref shape: {self.shape}. "
                             f"Expected shape: {old.shape}. Value shape: {aval.shape}. ")
        return to_array(value).astype(self.dtype)

    def _come_here(self) -> Trace:
        """Sees to it that the current trace may use the cell. Returns: the trace to which it belongs now.

        Raises: NotImplementedError where it would be lost: in a function that is traced to run later."""
        if self._home is context.trace or _is_within(context.trace, self._home, through=False):
            return self._home
        loan, kept = _loans.open[-1] if _loans.open else (None, {})
        if loan is None or not _is_within(context.trace, loan, through=False):
            raise NotImplementedError(
                f"an array reference, {self.aval}, is used in a traced function in which it was not made: "
                "pass ref[...], return the new value, and assign it")
        kept[self] = self._home, self._value
        self._home = loan
        return self._home

    def __repr__(self) -> str:
        text = repr(self._value)
        return f"Ref{text.removeprefix('Array')}" if text.startswith("Array(") else f"Ref<{text}>"


def _set_weak_type(value: Array, weak_type: bool) -> Array:
    if value.aval.weak_type == weak_type:
        return value
    return registry["convert_element_type"].bind(value, new_dtype=value.dtype, weak_type=weak_type)


def _make_strong(value: Array) -> Array:
    return _set_weak_type(value, False)


def _is_within(trace: Trace | None, outer: Trace | None, through: bool = True) -> bool:
    """Whether a trace is another one or opened in it. through: also in functions that are traced to run
    later."""
    while trace is not None and trace is not outer and (through or type(trace) is not JaxprTrace):
        trace = trace.parent
    return trace is outer


@contextlib.contextmanager
def lend(refs: Sequence[Ref] = (), values: Sequence[Array] = ()) -> Iterator[dict]:
    """Until it ends, cells belong to the current trace and hold these values; then they are as before.

    Gives the cells that were lent, among them those that are used without having been named."""
    kept: dict[Ref, tuple[Trace, Any]] = {}
    for ref, value in zip(refs, values):
        kept[ref] = ref._home, ref._value
        ref._home, ref._value = context.trace, value
    _loans.open.append((context.trace, kept))
    try:
        yield kept
    finally:
        _loans.open.pop()
        for ref, before in kept.items():
            ref._home, ref._value = before


def watch_refs(function: Callable, found: dict[Ref, None]) -> Callable:
    """The function, which notes the cells that it uses and has not made."""
    if not ALIVE:
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with lend() as kept:
            result = function(*args, **kwargs)
            found.update(dict.fromkeys(kept))
        return result

    return run


def enclose_refs(functions: Sequence[Callable], operands: tuple, name: str
                 ) -> tuple[tuple[Callable, ...], tuple]:
    """Functions of operands without the cells among them, which they use as variables around them, and these
    operands. Raises: ValueError for a cell that is there twice. name: of what gets them."""
    leaves, structure = flatten_arguments(operands) if ALIVE else ([], None)
    refs = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, Ref)}
    if not refs:
        return tuple(functions), operands
    refuse_repeated(list(refs.values()), f"among the operands of {name}")

    def enclose(function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*operands: Any) -> Any:
            given = flatten_arguments(operands)[0]
            return function(*structure.unflatten([refs.get(i, leaf) for i, leaf in enumerate(given)]))

        return run

    others = structure.unflatten([None if i in refs else leaf for i, leaf in enumerate(leaves)])
    return tuple(map(enclose, functions)), others


def flatten_arguments(arguments: Any) -> tuple[list, PyTreeDef]:
    """The leaves, None among them, which may stand in the place of a cell, and their structure."""
    return tree_flatten(arguments, lambda node: node is None)


def refuse_repeated(refs: Sequence[Ref], where: str) -> None:
    """Raises: ValueError where one cell has two names. where: it appears twice."""
    for number, ref in enumerate(refs):
        if ref in refs[:number]:
            raise ValueError("only one reference to a mutable array may be passed as an argument to a "
                             f"function, but the mutable array reference of type {ref.describe()} appeared "
                             f"twice {where}.")


def leave_out_same(values: Sequence[Array], before: Sequence[Array]) -> list[Array | None]:
    """The values, None for those that are the same as before."""
    return [None if value is old else value for value, old in zip(values, before)]


def read_refs(refs: Sequence[Ref]) -> list[Array]:
    """What the cells hold."""
    return [_make_strong(ref.read()) for ref in refs]


def write_refs(refs: Sequence[Ref], values: Sequence[Array]) -> None:
    """Lets the cells hold values."""
    for ref, value in zip(refs, values):
        ref[...] = value


def replace_refs(refs: Sequence[Ref], values: Sequence[Array | None]) -> None:
    """Lets the cells hold values of the current trace; a cell for which None stands is left as it is."""
    for ref, value in zip(refs, values):
        if value is not None:
            ref.replace(value)
