"""A user's file, type-checked (never run) against the installed package."""

from typing import Any, assert_type

from jitcore import tree_util
from jitcore.config import config, enable_x64
from jitcore.core.symbolic import DimVar, bounds, evaluate

leaves, treedef = tree_util.tree_flatten({"a": 1, "b": (2, 3)})
assert_type(leaves, list[Any])
assert_type(treedef, tree_util.PyTreeDef)
assert_type(treedef.num_leaves, int)
assert_type(tree_util.tree_all([True]), bool)

with enable_x64():
    assert_type(config.trace_key, int)
config.update("jax_enable_x64", True)

n = DimVar("n", lower=2)
assert_type(n >= 1, bool)
assert_type(bounds(n + 1), tuple[int | None, int | None])
assert_type(evaluate(n * 2, {"n": 3}), int)
