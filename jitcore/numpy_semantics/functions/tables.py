"""Tables of what stands for NumPy's functions and methods; the modules here and `dynamic_extents` fill them.

`FUNCTIONS`: NumPy function -> implementation of the same parameters over handles, reached by
`__array_function__`. `CREATION`: functions that rewritten code calls by redirect, with or without handles
among the arguments. `METHODS`: name -> implementation(self, ...). `HOOKS`: what arrays of traced extent do.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.rehearsal import rehearsed
from jitcore.numpy_semantics.values.storage import leaves_order_open

FUNCTIONS: dict[Any, Callable] = {}
CREATION: dict[Any, Callable] = {}
METHODS: dict[str, Callable] = {}
#: Of arrays with traced extents, and of indices that make such (slices with traced bounds, traced masks):
#: read_item(array, index), write_item(array, index, value), apply_ufunc(ufunc, method, inputs, kwargs),
#: apply_function(function, args, kwargs).
HOOKS: dict[str, Callable] = {}


def implements(*functions: Any, method: str | None = None, knows_order: bool = False, is_view: bool = False,
               always: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: the implementation of NumPy functions, and of the array method of that name. knows_order:
    whether its results have their axes in the order of NumPy's (`storage`); is_view: whether NumPy looks at
    no element. always: whether rewritten code calls it whatever the arguments are, as for `creates`."""

    def register(implementation: Callable) -> Callable:
        entry = implementation if knows_order else leaves_order_open(implementation)
        for function in functions:
            FUNCTIONS[function] = rehearsed(function, entry, is_view) if callable(function) else entry
            CREATION.update({function: entry} if always else {})
        if method is not None:
            METHODS[method] = rehearsed(getattr(np.ndarray, method), entry, is_view)
        return implementation

    return register


def creates(*functions: Any, knows_order: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: what rewritten code calls instead of NumPy functions that make arrays. knows_order: as for
    `implements`."""

    def register(implementation: Callable) -> Callable:
        entry = implementation if knows_order else leaves_order_open(implementation)
        for function in functions:
            CREATION[function] = entry
        return implementation

    return register


def find_hook(name: str, what: str) -> Callable:
    """Raises: NotTraceable, with what is asked for, where nobody has put that hook here."""
    load()
    if name not in HOOKS:
        raise not_traceable(f"{what} has an extent that is traced")
    return HOOKS[name]


@functools.cache
def load() -> None:
    """Imports the modules that fill the tables."""
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        importlib.import_module(f"{__package__}.{module.name}")
    importlib.import_module("jitcore.numpy_semantics.dynamic_extents")
