"""Functions of SciPy and opt_einsum without their import: the module is loaded when one of them is called.

In: the name of a module. Out: an object whose attributes are functions that forward their call. Importing
`jitcore.numpy` would otherwise take twice as long, for routines that most programs never run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable


class LazyFunctions:
    """Stands for a module of functions, whose attributes are not looked up before they are called."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Callable:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        function = None

        def call(*args, **kwargs):
            nonlocal function
            if function is None:
                function = getattr(importlib.import_module(self._name), attribute)
            return function(*args, **kwargs)

        call.__name__ = attribute
        call.__qualname__ = f"{self._name}.{attribute}"
        setattr(self, attribute, call)
        return call
