"""Which types are nodes of a pytree: registration, the keys of their children, and where two trees differ.

In: types with their flatten and unflatten functions. Out: nodes of optree's private namespace `jitcore`, so
that types registered here are unknown to other users of optree. `jitcore.tree_util` builds the public
functions on it.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import optree

from jitcore.process.concurrency import keep_threads_out, stop_at_end

NAMESPACE = "jitcore"

if sys.version_info < (3, 14):  # later ones let daemon threads wait for ever
    atexit.register(keep_threads_out)


class SequenceKey(NamedTuple):
    """Step into a tuple or list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class DictKey(NamedTuple):
    """Step into a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """Step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """Step to a child of a registered type that gave no keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]
#: A step of a path: one of the types above, or what a registered type gives.
KeyEntry = Any

_flatten_with_keys_of_type: dict[type, Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]] = {}


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text: `['a'][1].x`, or with `simple=True, separator="/"`: `a/1/x`."""
    known = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey
    texts = (str(key[0]) if simple and isinstance(key, known) else str(key) for key in keys)
    return separator.join(texts)


def flatten_one_level(tree: Any) -> tuple[list[tuple[Any, Any]], Any] | None:
    """`([(key, child), ...], auxiliary data)` of the outermost node; None when `tree` is a leaf."""
    stop_at_end()
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    kind = type(tree)
    if kind in _flatten_with_keys_of_type:
        pairs, data = _flatten_with_keys_of_type[kind](tree)
        return list(pairs), data
    children, data, entries, _ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    if kind in (tuple, list, deque):
        keys: Iterable[Any] = map(SequenceKey, range(len(children)))
    elif kind in (dict, OrderedDict, defaultdict):
        keys = map(DictKey, entries)
    elif data is kind and optree.is_namedtuple_class(kind):
        keys = map(GetAttrKey, kind._fields)
    else:
        keys = map(FlattenedIndexKey, range(len(children)))
    return list(zip(keys, children)), data


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """The children of the outermost node with the steps to them, and its auxiliary data.

    Returns: ([(key, child), ...], data). Raises: ValueError for a leaf.
    Example: of `[5, 6]` it is `([(SequenceKey(idx=0), 5), (SequenceKey(idx=1), 6)], None)`.
    Source: jax.tree_util.flatten_one_level_with_keys."""
    level = flatten_one_level(tree)
    if level is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return level


def is_tree_node(typ: type) -> bool:
    """Whether values of this type are nodes of a pytree, not leaves.

    Example: `is_tree_node(dict)` is True. Source: jax.tree_util.is_tree_node."""
    found = optree.register_pytree_node.get(typ, namespace=NAMESPACE)
    return found is not None or optree.is_namedtuple_class(typ)


class _Leaf:
    """Stands for a leaf in a tree that is built only to be compared."""

    def __repr__(self) -> str:
        return "*"


LEAF = _Leaf()


def find_difference(prefix: Any, full: Any, path: KeyPath = ()) -> str | None:
    """In words, the first place where `prefix` (with `LEAF` as leaves) is not a prefix of `full`."""
    if prefix is LEAF:
        return None
    place = f"at {keystr(path)}" if path else "at the root"
    level, other = flatten_one_level(prefix), flatten_one_level(full)
    if level is None:
        return None
    name = "None" if prefix is None else f"a {type(prefix).__name__}"
    if type(prefix) is not type(full) or other is None:
        found = f"a leaf of type {type(full).__name__}" if other is None else f"a {type(full).__name__}"
        return f"{place}, expected {name}, found {found}."
    if len(level[0]) != len(other[0]):
        return f"{place}, expected {name} of length {len(level[0])}, found {len(other[0])}."
    if level[1] != other[1]:
        return f"{place}, {name} differs: expected {level[1]!r}, found {other[1]!r}."
    for (key, child), (_, other_child) in zip(level[0], other[0]):
        if (difference := find_difference(child, other_child, (*path, key))) is not None:
            return difference
    return None


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make `nodetype` a node: `flatten_func(x) -> (children, aux)`, `unflatten_func(aux, children) -> x`.

    `aux` must be hashable and comparable. Raises: ValueError when the type is registered already."""
    try:
        optree.register_pytree_node(nodetype, flatten_func, unflatten_func, namespace=NAMESPACE)
    except ValueError:
        raise ValueError(f"Duplicate custom PyTreeDef type registration for {nodetype}.") from None
    if flatten_with_keys_func is not None:
        _flatten_with_keys_of_type[nodetype] = flatten_with_keys_func


def register_pytree_node_class(cls: type) -> type:
    """Decorator for a class with `tree_flatten(self)` and a class method `tree_unflatten(aux, children)`."""
    register_pytree_node(cls, lambda tree: tree.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype: type,
                              flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
                              unflatten_func: Callable[[Any, Iterable[Any]], Any],
                              flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None) -> None:
    """As `register_pytree_node`, with `flatten_with_keys(x) -> ([(key, child), ...], aux)`."""

    def flatten_without_keys(tree: Any) -> tuple[Iterable[Any], Any]:
        pairs, aux = flatten_with_keys(tree)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or flatten_without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: type) -> type:
    """Decorator for a class with `tree_flatten_with_keys` and `tree_unflatten` (and maybe `tree_flatten`)."""
    flatten = (lambda tree: tree.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda tree: tree.tree_flatten_with_keys(), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype: type, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()) -> type:
    """Make a dataclass a node: `data_fields` are children, `meta_fields` belong to the structure.

    With neither given, a field declared by `dataclasses.field(metadata=dict(static=True))` is meta and every
    other field that `__init__` takes is data.
    Raises: TypeError when only one of the two is given, ValueError when they are not exactly the fields."""
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: data_fields and meta_fields must both be given, or neither.")
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"register_dataclass: {nodetype} is not a dataclass, so data_fields and "
                            "meta_fields are required.")
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
    data_names, meta_names = tuple(data_fields), tuple(meta_fields)
    _check_dataclass_fields(nodetype, {*data_names, *meta_names}, set(drop_fields))
    read_data, read_meta = _make_reader(data_names), _make_reader(meta_names)

    def flatten(tree: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return read_data(tree), read_meta(tree)

    def flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        children, meta = flatten(tree)
        return list(zip(map(GetAttrKey, data_names), children)), meta

    def unflatten(meta: tuple[Any, ...], children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(meta_names, meta)), **dict(zip(data_names, children)))

    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _make_reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that reads these attributes of an object into a tuple."""
    if not names:
        return lambda tree: ()
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda tree: (read(tree),)


def _check_dataclass_fields(nodetype: type, given: set[str], dropped: set[str]) -> None:
    if not dataclasses.is_dataclass(nodetype):
        return
    expected = {field.name for field in dataclasses.fields(nodetype) if field.init} - dropped
    if given != expected:
        raise ValueError(
            "data_fields and meta_fields must include all dataclass fields with init=True and only them. "
            f"Missing fields: {sorted(expected - given)}. Unexpected fields: {sorted(given - expected)}."
        )


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that belongs to the structure, for `register_dataclass`.

    Args: those of `dataclasses.field`.
    Example: `name: str = tree.static(default="add")`. Source: jax.tree.static."""
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: type) -> type:
    """Decorator: values of this class have no leaf and belong to the structure; they must be hashable."""
    register_pytree_node(cls, lambda tree: ((), tree), lambda tree, _: tree)
    return cls


class Partial(functools.partial):
    """`functools.partial` as a pytree: its arguments are children, its function belongs to the structure.

    The arguments of a partial that is given as `func` belong to the structure too."""

    def __new__(cls, func, /, *args, **keywords):
        if isinstance(func, functools.partial):
            # functools.partial would merge the two and so turn the inner one's arguments into leaves.
            func = _WholeCallable(func)
        return super().__new__(cls, func, *args, **keywords)


class _WholeCallable:
    """A callable that `functools.partial` does not look into; equal when what it calls is equal."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WholeCallable) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


register_pytree_node(Partial, lambda partial: ((partial.args, partial.keywords), partial.func), lambda func,
                     children: Partial(func, *children[0], **children[1]))
