"""Pytrees under both of JAX's spellings: `tree.map` beside `tree.tree_map`.

In and out: as `jitcore.tree_util`, which defines everything; the short names stand in a module of their own
because `map` and `all` would hide Python's there.
"""

from jitcore import tree_util
from jitcore.tree_util import *  # noqa: F403

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
