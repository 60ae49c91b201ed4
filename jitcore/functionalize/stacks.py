"""Rows of stacks: the elements of a list that a loop filled, which lie side by side in one array.

In: elements of a list. Out: runs of elements that are rows of one stack one after the other: what is made of
them can be made of the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jitcore.array import Array
from jitcore.rewriter.handles import Handle, current


class Element(NamedTuple):
    """A row of a stack."""

    raw: Array
    stack: Array
    index: int


class Run(NamedTuple):
    """Elements `start` to `stop` of a list: rows of a stack from `first` on. stack: None for one element that
    is no such row."""

    start: int
    stop: int
    stack: Array | None
    first: int = 0


def find_element(value: Any) -> Element | None:
    """Of which stack a value is a row, as it is now."""
    elements = getattr(current.mode, "elements", None)
    if not elements or not isinstance(value, Handle) or getattr(value, "steps", ()):
        return None
    storage = value.memory
    raw = value.read() if storage is None else storage.value
    found = elements.get(id(raw))
    return found if found is not None and found.raw is raw else None


def find_runs(values: Sequence) -> list[Run]:
    """The values in runs, in order."""
    runs: list[Run] = []
    for place, value in enumerate(values):
        element = find_element(value)
        last = runs[-1] if runs else None
        if element is None:
            runs.append(Run(place, place + 1, None))
        elif last is not None and last.stack is element.stack and (
                element.index == last.first + last.stop - last.start):
            runs[-1] = last._replace(stop=place + 1)
        else:
            runs.append(Run(place, place + 1, element.stack, element.index))
    return runs
