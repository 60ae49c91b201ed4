"""From lists of objects of one class to specs, attribute by attribute.

In: a list, and the `Reader` that came to it. Out: an `ObjectsSpec`, or None where the list is taken element
by element: where an object stands in it twice, was met before, or is of another class than the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitcore import dtypes
from jitcore.autojitted.inputs.object_specs import ArraysSpec, ConstantSpec, ObjectsSpec, TuplesSpec
from jitcore.autojitted.inputs.specs import Spec, Unreadable, UnreadSpec
from jitcore.process.lists import describe as describe_list
from jitcore.process.objects import are_one, split_tuples, stack, take_apart
from jitcore.rewriter.objects import find_in_class, is_user_class

if TYPE_CHECKING:
    from jitcore.autojitted.inputs.reading import Reader

__all__ = ["read_objects"]

#: Items of tuples that objects hold.
MAX_ITEMS = 8


def can_be_derived(kind: type) -> bool:
    """Whether a class derived from it, made for what stands for its objects, runs no code of the user's."""
    return type(kind) is type and not is_user_class(find_in_class(kind, "__init_subclass__")[0])


def read_objects(reader: Reader, values: list, path: tuple) -> Spec | None:
    """The spec of a list; None where it is none of objects of one class, each once."""
    kind = type(values[0])
    if not reader.is_instance(kind) or not can_be_derived(kind):
        return None
    names = tuple(values[0].__dict__)
    variables = take_apart(kind, frozenset(names), len(values), values)
    if variables is None or any(map(reader.was_met, [*values, *variables])):
        return None
    reader.add_objects(values, variables, path)
    children = [_try_column(reader, [own[name] for own in variables], (*path, f".{name}")) for name in names]
    return ObjectsSpec(kind, len(values), names, tuple(children))


def _try_column(reader: Reader, values: list, path: tuple) -> Spec:
    """One that can be no input only matters where it is read."""
    try:
        return reader.undo_unreadable(lambda: _read_column(reader, values, path))
    except Unreadable as error:
        return UnreadSpec(str(error))


def _read_column(reader: Reader, values: list, path: tuple) -> Spec:
    """Raises: Unreadable."""
    numbers = _read_numbers(reader, values, path)
    if numbers is not None:
        return numbers
    first = values[0]
    if are_one(values) and not (type(first) is tuple and split_tuples(len(first), values)):
        return ConstantSpec(reader.read(first, path))
    if type(first) is tuple and 0 < len(first) <= MAX_ITEMS:
        columns = split_tuples(len(first), values) or ()
        found = [_read_numbers(reader, column, (*path, number)) for number, column in enumerate(columns)]
        if found and None not in found:
            return TuplesSpec(tuple(found))
    if type(first) is np.ndarray and first.ndim and first.size and first.dtype in dtypes.SHORT_NAMES:
        if not any(map(reader.was_met, values)) and stack(first.dtype, first.shape, values) is not None:
            reader.add_arrays(values, path)
            return ArraysSpec(len(values), first.dtype, first.shape)
    nested = read_objects(reader, values, path)
    if nested is not None:
        return nested
    raise Unreadable(f"the attribute {path[-1][1:]} is of several kinds in a list of objects")


def _read_numbers(reader: Reader, values: list, path: tuple) -> Spec | None:
    found = describe_list(values)
    if found is None:
        return None
    kind, shape = found
    if kind is int and len(shape) == 1 and are_one(values) and reader.is_static(path, values[0]):
        return ConstantSpec(reader.read(values[0], path))
    return reader.add_numbers(values, kind, shape, path)
