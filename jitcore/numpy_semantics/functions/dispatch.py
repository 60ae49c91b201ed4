"""NumPy's functions on handles, as `__array_function__` brings them here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.values.mixed import distributing, find_mixed
from jitcore.rewriter.functions import rewrite_source

#: Functions that change an argument.
CHANGING = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])


def apply_function(function: Any, args: Sequence, kwargs: dict) -> Any:
    """Raises: NotTraceable for a function that has no implementation over handles."""
    tables.load()
    if find_mixed(args) is not None or find_mixed(kwargs.values()) is not None:
        if function in CHANGING:
            raise not_traceable("an array is changed by a number whose type depends on a traced value")
        return distributing(lambda *args, **kwargs: apply_function(function, args, kwargs))(*args, **kwargs)
    if _has_padded((*args, *kwargs.values())):
        return tables.find_hook("apply_function", "an argument")(function, args, kwargs)
    implementation = tables.FUNCTIONS.get(function) or tables.CREATION.get(function)
    if implementation is not None:
        return implementation(*args, **kwargs)
    return run_source(function, args, kwargs)


def run_source(function: Any, args: Sequence, kwargs: dict) -> Any:
    """Traces through NumPy's own source, where a function is written in Python."""
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy._core.")
    reason = f"{module}.{getattr(function, '__name__', function)} of a traced array is not supported"
    source = getattr(function, "_implementation", None)
    if not isinstance(source, FunctionType):
        raise not_traceable(reason)
    try:
        return rewrite_source(source)(*args, **kwargs)
    except (TypeError, AttributeError) as error:  # asks for something that only an ndarray has
        raise not_traceable(f"{reason}: {error}") from error


def _has_padded(values: Iterable) -> bool:
    return any(
        _has_padded(x) if isinstance(x, (list, tuple)) else getattr(x, "is_padded", False) for x in values)
