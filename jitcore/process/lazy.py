"""Modules that are imported when something of them is asked for: optional ones, and those that take long.

In: the name of a module. Out: an object with the module's attributes.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LazyModule:
    """Stands for a module. Raises: ImportError when an attribute is asked for, of no module."""

    def __init__(self, name: str):
        self._name, self._module = name, None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, attribute)
