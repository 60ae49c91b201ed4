"""Pytrees under both of JAX's spellings: `tree.map` beside `tree.tree_map`.

In and out: as `jitcore.tree_util`, which defines everything; the short names stand in a module of their own
because `map` and `all` would hide Python's there. `show` is jitcore's own.
"""

from __future__ import annotations

from typing import Any

from jitcore import tree_util
from jitcore.process.lazy import LazyModule
from jitcore.tree_util import *  # noqa: F403

hypertext = LazyModule("jitcore.hypertext")

all = tree_util.tree_all
broadcast = tree_util.tree_broadcast
flatten = tree_util.tree_flatten
flatten_with_path = tree_util.tree_flatten_with_path
leaves = tree_util.tree_leaves
leaves_with_path = tree_util.tree_leaves_with_path
map = tree_util.tree_map
map_with_path = tree_util.tree_map_with_path
reduce = tree_util.tree_reduce
reduce_associative = tree_util.tree_reduce_associative
static = tree_util.static
structure = tree_util.tree_structure
transpose = tree_util.tree_transpose
unflatten = tree_util.tree_unflatten


class Shown:
    """A pytree to look at: its leaves with their types, as a table for terminals and folded for notebooks."""

    def __init__(self, tree: Any):
        self._tree = tree
        self._rows = [(tree_util.keystr(path) or "the tree itself", *_describe(leaf))
                      for path, leaf in leaves_with_path(tree)]

    @property
    def nbytes(self) -> int:
        """Of all leaves that are arrays."""
        return sum(size for *_, size in self._rows)

    def _summarize(self) -> str:
        return f"{len(self._rows)} {'leaf' if len(self._rows) == 1 else 'leaves'}, {self.nbytes:,} bytes"

    def __repr__(self) -> str:
        rows = [(path, kind, f"{size:,}") for path, kind, size in self._rows]
        return f"{hypertext.format_table([('leaf', 'type', 'bytes'), *rows])}\n{self._summarize()}"

    def _repr_html_(self) -> str:
        return f"<div>{_fold(type(self._tree).__name__, self._tree, True)}</div>"


def show(tree: Any) -> Shown:
    """A pytree to look at, as the last line of a notebook's cell or in `print`: paths, types and bytes of its
    leaves.

    >>> print(jitcore.tree.show({"w": np.ones((2, 3)), "b": [np.zeros(3), None]}))
    leaf      type          bytes
    ['b'][0]  float64[3]    24
    ['w']     float64[2,3]  48
    2 leaves, 72 bytes"""
    return Shown(tree)


def _describe(leaf: Any) -> tuple[str, int]:
    """(type, bytes) of a leaf."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        shape = ",".join([str(extent) for extent in leaf.shape])
        return f"{leaf.dtype}[{shape}]", int(getattr(leaf, "nbytes", 0))
    return "None" if leaf is None else type(leaf).__name__, 0


def _fold(name: str, node: Any, is_open: bool = False) -> str:
    """A container as a part that opens, with those inside of it; a leaf as a line."""
    children = leaves_with_path(node, is_leaf=lambda inner: inner is not node)
    if node is None or children and children[0][0] == ():
        kind, size = _describe(node)
        return hypertext.show_text(f"{name}: {kind}{f', {size:,} bytes' if size else ''}", 1000)
    body = "".join(_fold(tree_util.keystr(path), child) for path, child in children)
    body = f'<div style="margin-left:1em">{body}</div>'
    return hypertext.fold(f"{name}: {Shown(node)._summarize()}", body, is_open)
