"""Modules that are imported when something of them is asked for: optional ones, and those that take long.

In: the name of a module. Out: an object with the module's attributes; or with functions that forward their
calls, of modules of functions that most programs never run, such as SciPy's.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def is_loaded(name: str) -> bool:
    """Whether this process has imported a module, NumPy say, which takes longer than many scripts."""
    return name in sys.modules


class LazyModule:
    """Stands for a module. Raises: ImportError when an attribute is asked for, of no module."""

    def __init__(self, name: str):
        self._name, self._module = name, None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)


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
