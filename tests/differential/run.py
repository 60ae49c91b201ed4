"""A call, evaluated: by jitcore, and by JAX where it is asked.

In: a table and the text of a call. Out: what it gives, or the exception. `evaluate_under_jit` traces its arrays.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore
from tests.differential.draw import make_names
from tests.differential.table import Table

#: What texts may use beside the names of their namespace.
_SHARED = {"jnp": "numpy", "lax": "lax", "nn": "nn"}


class _Names(dict):
    """Global names of a text: attributes of the namespace, unless they are given."""

    def __init__(self, namespace: Any, given: dict[str, Any]):
        super().__init__(given)
        self._namespace = namespace

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._namespace, name)
        except AttributeError:
            raise KeyError(name) from None


def evaluate(package: str, table: Table, text: str, make: Callable | None = None) -> Any:
    """What a text gives in the namespaces of "jitcore" or "jax"; the exception, where it raises."""
    root = importlib.import_module(package)
    find = importlib.import_module
    try:
        namespace = find(f"{package}.{table.namespace}")
    except ImportError as error:
        return error
    given = {name: find(f"{package}.{path}") for name, path in _SHARED.items()}
    given |= {name: getattr(root, name) for name in ("grad", "jvp", "vjp", "vmap", "jit")} | {"np": np}
    names = _Names(namespace, given | make_names(text, make or given["jnp"].asarray))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(table.setup, names)
            return eval(text, names)  # noqa: S307  a text of our tables
        except Exception as error:
            return error


def list_arrays(table: Table, text: str) -> list[np.ndarray]:
    """The arrays of a text, in the order in which they are drawn."""
    found: list[np.ndarray] = []
    evaluate("jitcore", table, text, lambda x: found.append(x) or jitcore.numpy.asarray(x))
    return found


def evaluate_under_jit(package: str, table: Table, texts: list[str]) -> list[Any]:
    """What a program of all texts, whose arrays are its inputs, gives for each; the exception, where tracing a
    text raises. Many calls are quicker to compile in one program."""
    root = importlib.import_module(package)
    arrays = [[root.numpy.asarray(x) for x in list_arrays(table, text)] for text in texts]
    static: dict[int, Any] = {}

    def run(arrays):
        traced = {}
        for place, (text, inputs) in enumerate(zip(texts, arrays)):
            remaining = iter(inputs)
            result = evaluate(package, table, text, lambda _, remaining=remaining: next(remaining))
            if all(isinstance(leaf, root.Array) for leaf in root.tree.leaves(result)):
                traced[place] = result
            else:
                static[place] = result
        return traced

    traced = root.jit(run)(arrays)
    return [traced[place] if place in traced else static[place] for place in range(len(texts))]
