"""Pytrees: nested containers as a list of leaves and a treedef, with JAX's rules, names and printing.

In: any Python object. Out: `(leaves, treedef)`; a `PyTreeDef` is hashable and puts leaves back. Stage: before
tracing. The flattening itself is optree's; `jitcore.tree_util.nodes` says which types are nodes.

The rules: tuple, list, dict (keys sorted), OrderedDict (keys in order), defaultdict, namedtuple, None (a
container without a leaf) and registered types are nodes; everything else is a leaf. Two rules come from
optree and accept more than JAX does: `deque` and sequences like `time.struct_time` are nodes, and keys of a
dict that cannot be compared with each other are sorted by type first.

Modules:
    nodes  Which types are nodes of a pytree: registration, the keys of their children, and where two trees
           differ.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree

from jitcore.config import config
from jitcore.docstrings import document
from jitcore.process.concurrency import Lock, drop_oldest, stop_at_end
from jitcore.tree_util.nodes import (LEAF, NAMESPACE, DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry,
                                     KeyPath, Partial, SequenceKey, find_difference, flatten_one_level,
                                     flatten_one_level_with_keys, is_tree_node, keystr, register_dataclass,
                                     register_pytree_node, register_pytree_node_class,
                                     register_pytree_with_keys, register_pytree_with_keys_class,
                                     register_static, static)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "broadcast_prefix", "flatten_axes", "flatten_one_level_with_keys", "flatten_to_spec",
    "is_tree_node", "keystr",
    "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "static",
    "tree_all", "tree_broadcast", "tree_flatten", "tree_flatten_with_path", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative",
    "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]

IsLeaf = Callable[[Any], bool] | None


class PyTreeDef:
    """The structure of a pytree without its leaves; equal structures are equal and hash alike.

    Prints as `PyTreeDef((*, [*, None]))`."""

    __slots__ = ("_sorted_spec", "spec")

    def __init__(self, spec: optree.PyTreeSpec):
        self.spec = spec
        self._sorted_spec: optree.PyTreeSpec | None = None

    @property
    def num_leaves(self) -> int:
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        return self.spec.num_nodes

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves. Raises: ValueError when their number is wrong."""
        stop_at_end()
        spec = self._sorted_spec
        if spec is None:
            spec = self._sorted_spec = sort_dict_keys(self.spec)
        return spec.unflatten(leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` that stand where this structure has its leaves.

        Raises: ValueError saying where the structures differ."""
        stop_at_end()
        try:
            return self.spec.flatten_up_to(tree)
        except ValueError as error:
            raise ValueError(self._explain_difference(tree) or str(error)) from None

    def _explain_difference(self, tree: Any) -> str | None:
        try:
            return find_difference(self.unflatten([LEAF] * self.num_leaves), tree)
        except Exception:  # The constructor of a registered type may refuse stand-ins for its children.
            return None

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with `inner` in place of every leaf."""
        stop_at_end()
        return PyTreeDef(self.spec.compose(inner.spec))

    def children(self) -> list[PyTreeDef]:
        return [PyTreeDef(child) for child in self.spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """The type and the auxiliary data of the outermost node; None for a leaf."""
        if self.spec.is_leaf():
            return None
        stop_at_end()
        one_level = self.spec.one_level()
        leaves = [None] * one_level.num_leaves
        return one_level.walk(leaves, lambda kind, data, _: (kind, data))

    def is_leaf(self) -> bool:
        return self.spec.is_leaf()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PyTreeDef) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        stop_at_end()
        return f"PyTreeDef({self.spec.walk(['*'] * self.num_leaves, format_node)})"


def format_node(kind: type | None, data: Any, children: Sequence[str]) -> str:
    """One node as `PyTreeDef` prints it; `children` are already text."""
    listed = ", ".join(children)
    if kind is None or kind is type(None):
        return "None"
    if kind is tuple:
        return f"({listed},)" if len(children) == 1 else f"({listed})"
    if kind is list:
        return f"[{listed}]"
    if kind is dict:
        return "{" + ", ".join(f"{key!r}: {child}" for key, child in zip(data, children)) + "}"
    if kind is OrderedDict:
        return f"CustomNode(OrderedDict[{tuple(data)!r}], [{listed}])"
    if kind is defaultdict:
        factory, keys = data
        return f"CustomNode(defaultdict[{(factory, tuple(keys))!r}], [{listed}])"
    if optree.is_namedtuple_class(kind) and data is kind:
        return f"CustomNode(namedtuple[{kind.__name__}], [{listed}])"
    return f"CustomNode({kind.__name__}[{data}], [{listed}])"


_sorted_specs: dict[optree.PyTreeSpec, optree.PyTreeSpec] = {}
_lock = Lock()


def sort_dict_keys(spec: optree.PyTreeSpec) -> optree.PyTreeSpec:
    """The spec that rebuilds dicts in sorted key order.

    optree rebuilds a dict in the order in which it once was filled, so equal structures would give results
    that print differently, depending on which of them a cache saw first."""
    found = _sorted_specs.get(spec)
    if found is None:
        stop_at_end()
        found = spec.transform(_sort_keys_of_node)
        with _lock:
            _sorted_specs[spec] = found
            drop_oldest(_sorted_specs, config.cache_size)
    return found


def _sort_keys_of_node(node: optree.PyTreeSpec) -> optree.PyTreeSpec:
    if node.type is not dict and node.type is not defaultdict:
        return node
    tree = node.unflatten(range(node.num_leaves))
    for key in node.entries():
        tree[key] = tree.pop(key)
    return optree.tree_structure(tree, namespace=node.namespace)


def flatten_to_spec(tree: Any) -> tuple[list[Any], optree.PyTreeSpec]:
    """Leaves and the bare optree spec: the cheapest hashable structure, for the keys of caches."""
    stop_at_end()
    return optree.tree_flatten(tree, namespace=NAMESPACE)


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves from left to right, and the structure. `is_leaf(x)` true stops at x."""
    stop_at_end()
    leaves, spec = optree.tree_flatten(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    return leaves, PyTreeDef(spec)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The inverse of `tree_flatten`. Raises: ValueError when the number of leaves is wrong."""
    return treedef.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves from left to right."""
    stop_at_end()
    return optree.tree_leaves(tree, is_leaf=is_leaf, namespace=NAMESPACE)


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure without the leaves."""
    stop_at_end()
    return PyTreeDef(optree.tree_structure(tree, is_leaf=is_leaf, namespace=NAMESPACE))


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `f` to each leaf of `tree` and to what stands at its place in each tree of `rest`.

    Raises: ValueError saying where a tree of `rest` differs; it may have subtrees where `tree` has leaves."""
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [leaves, *(treedef.flatten_up_to(other) for other in rest)]
    return treedef.unflatten([f(*row) for row in zip(*columns)])


_NO_INITIALIZER = object()


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NO_INITIALIZER,
                is_leaf: IsLeaf = None) -> Any:
    """`functools.reduce` over the leaves."""
    start = () if initializer is _NO_INITIALIZER else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *,
                            identity: Any = _NO_INITIALIZER, is_leaf: IsLeaf = None) -> Any:
    """The leaves combined by an associative function, halves first: the depth is the logarithm of their
    number.

    Args:
        operation: of two leaves. identity: what a tree without leaves gives.

    Raises: TypeError for a tree without leaves and no identity.
    Example: `tree_reduce_associative(operator.add, [1, (2, 3)])` is 6. Source:
    jax.tree.reduce_associative."""
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _NO_INITIALIZER:
            raise TypeError("Must specify identity for parallel reduction of empty sequence.")
        return identity
    while len(leaves) > 1:
        last = leaves[-1:] if len(leaves) % 2 else []
        leaves = [operation(*pair) for pair in zip(leaves[::2], leaves[1::2])] + last
    return leaves[0]


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: Any) -> Any:
    """Turn an outer structure of inner structures inside out; `inner_treedef=None` is found in the tree.

    Raises: TypeError when the tree does not have the structure `outer` of `inner`."""
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(subtrees[0])
    leaves, treedef = tree_flatten(pytree_to_transpose)
    expected = outer_treedef.compose(inner_treedef)
    if treedef != expected:
        raise TypeError(f"Mismatch\n{treedef}\n != \n{expected}")
    width = inner_treedef.num_leaves
    columns = [outer_treedef.unflatten(leaves[start::width]) for start in range(width)]
    return inner_treedef.unflatten(columns)


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree like `full_tree` whose leaves are those of `prefix_tree`, repeated.

    `is_leaf` is asked of the prefix only.
    Raises: ValueError saying where `prefix_tree` is not a prefix of `full_tree`."""
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return tree_structure(full_tree).unflatten(leaves)


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """One leaf of `prefix_tree` for each leaf of `full_tree`: that of the subtree in which it stands.

    `is_leaf` is asked of the prefix only.
    Raises: ValueError saying where `prefix_tree` is not a prefix of `full_tree`."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    repeated: list[Any] = []
    for leaf, subtree in zip(leaves, treedef.flatten_up_to(full_tree)):
        repeated += [leaf] * len(tree_leaves(subtree))
    return repeated


def _repeat_axes(treedef: PyTreeDef, axis_tree: Any) -> list[Any] | None:
    """`flatten_axes` of numbers and tuples, which asks no node to hold stand-ins; else None."""
    if axis_tree is None or type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    children = treedef.children()
    if type(axis_tree) is not tuple or treedef.spec.type is not tuple or len(children) != len(axis_tree):
        return None
    parts = list(map(_repeat_axes, children, axis_tree))
    return None if None in parts else [axis for part in parts for axis in part]


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any) -> list[Any]:
    """One axis for each leaf of `treedef`; a None in `axis_tree` is an axis ("not mapped"), not a container.

    `name` says in an error which argument it is, such as "vmap in_axes".
    Raises: ValueError saying where `axis_tree` is not a prefix of `treedef`."""
    plain = _repeat_axes(treedef, axis_tree)
    if plain is not None:
        return plain
    full_tree = treedef.unflatten([LEAF] * treedef.num_leaves)
    try:
        return broadcast_prefix(axis_tree, full_tree, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value: {error}\n"
            f"  specification: {axis_tree}\n"
            f"  value:         {treedef}"
        ) from None


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether no element is a container."""
    stop_at_end()
    return optree.all_leaves(iterable, is_leaf=is_leaf, namespace=NAMESPACE)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    return treedef.is_leaf()


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have these structures."""
    stop_at_end()
    return PyTreeDef(optree.treespec_tuple([treedef.spec for treedef in treedefs], namespace=NAMESPACE))


def tree_flatten_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """`([(path, leaf), ...], treedef)`; with `is_leaf_takes_path`, `is_leaf(path, x)` is asked."""
    found: list[tuple[KeyPath, Any]] = []
    verdicts: list[bool] = []

    def visit(path: KeyPath, node: Any) -> None:
        if is_leaf is not None:
            verdicts.append(bool(is_leaf(path, node) if is_leaf_takes_path else is_leaf(node)))
        level = None if verdicts and verdicts[-1] else flatten_one_level(node)
        if level is None:
            found.append((path, node))
        else:
            for key, child in level[0]:
                visit((*path, key), child)

    visit((), tree)
    # optree's predicate sees no path, but it is asked about the same nodes in the same order.
    replay = iter(verdicts)
    return found, tree_structure(tree, None if is_leaf is None else lambda _: next(replay))


def tree_leaves_with_path(tree: Any, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """`[(path, leaf), ...]` from left to right."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: Any, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False) -> Any:
    """As `tree_map`, with the path of the leaf as the first argument of `f`."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([f(*pair, *row) for pair, *row in zip(pairs, *columns)])


document(sys.modules[__name__], __all__)
