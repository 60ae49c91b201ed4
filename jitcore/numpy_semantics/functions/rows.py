"""NumPy's and SciPy's functions as rows of a table: those that only unwrap their operands, call a function of
Arrays, mostly their namesake in `jitcore.numpy`, and wrap what it gives.

In: handles and plain values as users give them. Out: handles.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore.array import Array
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import NO_VALUE, as_axis, finish, to_mask, to_own, unpack
from jitcore.numpy_semantics.functions.scipy_table import implements_scipy
from jitcore.numpy_semantics.functions.tables import implements
from jitcore.numpy_semantics.values.promotion import cast_raw

#: Options that say how something is computed, and not what.
WAYS = frozenset("""overwrite_input overwrite_a overwrite_b overwrite_x casting subok device kind stable
    workers plan lwork""".split())
#: Parameters of functions written in C, which NumPy before 2.4 does not tell.
IN_C = {"dot": "a b out", "vdot": "a b", "inner": "a b", "concatenate": "arrays axis out dtype casting",
        "lexsort": "keys axis", "putmask": "a mask values", "unpackbits": "a axis count bitorder"}
#: Methods that change the array, where the functions of these names give a new one.
_IN_PLACE = frozenset(["partition", "resize", "sort"])
_PLAIN = (str, int, float, np.generic)
ROWS: list[Row] = []


@dataclasses.dataclass
class Row:
    """The implementation of a function by one of Arrays, which gets the operands in order, and by name the
    options that were given.

    Attributes:
        function: NumPy's, or the path of SciPy's: its signature is that of the row.
        compute: the one of Arrays, or other values to be wrapped; what it gives that is no Array is returned.
        count: how many of the first parameters are operands; 0: the first one is a sequence of operands.
        convert: operands -> values to compute with.
        also: options that are operands too, where they are given; they are converted with the others.
        only: options, and their values that are traced; an option that has one such value is not passed on.
        dtype: of the result; None: as it is computed.
        is_scalar: whether a result without axes is a NumPy scalar."""

    function: Any
    compute: Callable
    count: int = 1
    convert: Callable = to_own
    also: Sequence[str] = ()
    only: Mapping[str, Sequence] = dataclasses.field(default_factory=dict)
    dtype: Any = None
    is_scalar: bool = True

    def __post_init__(self) -> None:
        ROWS.append(self)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters of the function."""
        function = pkgutil.resolve_name(self.function) if isinstance(self.function, str) else self.function
        if function.__name__ in IN_C:
            return tuple(IN_C[function.__name__].split())
        return tuple(inspect.signature(function).parameters)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        options = {name: x for name, x in (*zip(self.names, args), *kwargs.items())
                   if x is not NO_VALUE and name not in WAYS}
        operands = [options.pop(name) for name in self.names[: self.count or 1]]
        out = options.pop("out", None)
        self._prepare(options)
        operands = operands if self.count else unpack(*operands)
        more = [name for name in self.also if options.get(name) is not None]
        values = self.convert(*operands, *map(options.pop, more))
        if more:
            options |= zip(more, values[len(operands) :])
            values = values[: len(operands)]
        return self.wrap(self.compute(*(values if self.count else [values]), **options), out)

    def _prepare(self, options: dict[str, Any]) -> None:
        """Converts the options that mean the same for all functions. Raises: NotTraceable by `only`."""
        for name, traced in self.only.items():
            value = options.get(name, traced[0])
            if not any(value is one or isinstance(value, _PLAIN) and value == one for one in traced):
                function = self.function if isinstance(self.function, str) else f"np.{self.function.__name__}"
                raise not_traceable(f"{function}() with {name}={value!r}")
            if len(traced) == 1:
                options.pop(name, None)
        if "axis" in options:
            options["axis"] = as_axis(options["axis"])
        mask = to_mask(options.pop("where", None))
        if mask is not None:
            options["where"] = mask

    def wrap(self, found: Any, out: Any = None) -> Any:
        """A result as NumPy has it: arrays and scalars, tuples of its types, `out`."""
        if isinstance(found, (list, tuple)):
            results = tuple(map(self.wrap, found))
            is_named = hasattr(found, "_fields") and not isinstance(self.function, str)
            return type(self.function(np.eye(2)))(*results) if is_named else results
        if not isinstance(found, Array):
            return found
        return finish(found if self.dtype is None else cast_raw(found, self.dtype), out, self.is_scalar)


def adapts(*functions: Any, **features: Any) -> Callable[[Callable], Row]:
    """Decorator: makes rows of NumPy's functions, and of the array's method of that name."""

    def register(compute: Callable) -> Row:
        for function in functions:
            found, name = Row(function, compute, **features), function.__name__
            is_method = hasattr(np.ndarray, name) and name not in _IN_PLACE and getattr(np, name) is function
            implements(function, method=name if is_method else None)(found)
        return found

    return register


def adapts_scipy(*paths: str, **features: Any) -> Callable[[Callable], Row]:
    """Decorator: makes rows of SciPy's functions, "linalg.inv"."""

    def register(compute: Callable) -> Row:
        for path in paths:
            found = implements_scipy(f"scipy.{path}")(Row(f"scipy.{path}", compute, **features))
        return found

    return register


def rows(names: str, around: Callable[[Callable], Callable] | None = None, **features: Any) -> None:
    """Makes rows of functions of `numpy` that `jitcore.numpy` has too. around: what is done about these."""
    for find in map(operator.attrgetter, names.split()):
        adapts(find(np), **features)(find(jnp) if around is None else around(find(jnp)))
