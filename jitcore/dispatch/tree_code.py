"""Python source that takes one structure of pytree apart and puts it together, without a pytree library.

In: a treedef. Out: lines of source in straight-line code, for the functions that `fast_call` and `program`
write for known structures. Flattening by optree costs 200 to 300 ns a leaf, this code 30 ns.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from jitcore.array import ConcreteArray
from jitcore.concurrency import stop_at_end
from jitcore.tree_nodes import NAMESPACE
from jitcore.tree_util import PyTreeDef

#: Structures of more nodes and leaves are left to optree: compiling the code takes 20 us for each.
MAX_NODES = 4096


class Constants:
    """Objects that generated source refers to by name, so that equal source serves different objects."""

    def __init__(self):
        self.values: list[Any] = []
        self._places: dict[int, int] = {}

    def add(self, value: Any) -> str:
        """The name of this object in the source."""
        place = self._places.setdefault(id(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return f"c{place}"

    @property
    def names(self) -> str:
        """The names, each followed by a comma."""
        return "".join(f"c{k}, " for k in range(len(self.values)))


@functools.lru_cache(maxsize=64)
def compile_function(source: str, name: str, module: str) -> Callable:
    """The function `name` that the source defines. `module` is who wrote it, whose names it uses, and under
    whose name tracebacks leave out its frames."""
    names = {**vars(sys.modules[module]), "ndarray": np.ndarray, "array": np.array}
    exec(compile(source, f"<{module}>", "exec"), names)
    return names[name]


def is_small(structure: PyTreeDef) -> bool:
    """Whether code for this structure is worth compiling."""
    return structure.num_nodes <= MAX_NODES


def write_taking_apart(
    spec: optree.PyTreeSpec, root: str, leaves: Sequence[str], constants: Constants
) -> list[str]:
    """Lines that assign the leaves of the object named `root` to the names `leaves`.

    Where the object has another structure they `break`, or raise an error of any class."""
    blocks: list[list[str]] = []

    def add_node(kind: type | None, data: Any, children: tuple[str, ...]) -> str:
        node = f"{root}_{len(blocks)}"
        blocks.append(_take_apart(node, kind, data, children, constants))
        return node

    stop_at_end()
    top = spec.walk(leaves, add_node)
    # The walk visits children before their parents.
    return [f"{top} = {root}", *(line for block in reversed(blocks) for line in block)]


def _take_apart(node: str, kind: type | None, data: Any, children: Sequence[str], constants: Constants):
    targets = "".join(f"{child}, " for child in children)
    if kind is None or kind is type(None):
        return [f"if {node} is not None: break"]
    check = f"if {node}.__class__ is not {constants.add(kind)}: break"
    if kind in (tuple, list) or data is kind and optree.is_namedtuple_class(kind):
        return [check, f"{targets or '()'} = {node}"]
    if kind is dict:
        items = [f"{child} = {node}[{constants.add(key)}]" for key, child in zip(data, children)]
        return [check, f"if len({node}) != {len(children)}: break", *items]
    flatten = constants.add(_find_handler(kind).flatten_func)
    return [
        check,
        f"{node} = {flatten}({node})",
        f"if {node}[1] != {constants.add(data)}: break",
        f"{targets or '()'} = {node}[0]",
    ]


def _find_handler(kind: type) -> Any:
    """How optree takes values of this class apart and puts them together."""
    return optree.register_pytree_node.get(kind, namespace=NAMESPACE)


def make_rebuilder(structure: PyTreeDef, weak_types: Sequence[bool],
                   wrap: Callable = ConcreteArray) -> Callable[[Sequence], Any]:
    """A function that puts Arrays of these ndarrays into the structure. weak_types: one for each leaf; wrap:
    makes an Array of a value and its weak type, or of what stands there in the place of that."""
    if not is_small(structure):
        return lambda values: structure.unflatten(map(wrap, values, weak_types))
    constants = Constants()
    lines: list[str] = []

    def add_node(kind: type | None, data: Any, children: tuple[str, ...]) -> str:
        node = f"n{len(lines)}"
        lines.append(f"{node} = {_put_together(kind, data, children, constants)}")
        return node

    stop_at_end()
    leaves = [f"x{i}" for i in range(structure.num_leaves)]
    top = structure.spec.walk(leaves, add_node)
    body = "".join(f"        {line}\n" for line in lines)
    targets = "".join(f"{leaf}, " for leaf in leaves) or "()"
    source = _REBUILDER.format(constants=constants.names, targets=targets, body=body, top=top)
    return compile_function(source, "make_rebuilder", __name__)(weak_types, wrap, *constants.values)


_REBUILDER = """\
def make_rebuilder(weak_types, wrap, {constants}):
    def rebuild(values):
        {targets} = map(wrap, values, weak_types)
{body}        return {top}

    return rebuild
"""


def _put_together(kind: type | None, data: Any, children: Sequence[str], constants: Constants) -> str:
    listed = "".join(f"{child}, " for child in children)
    if kind is None or kind is type(None):
        return "None"
    if kind is tuple:
        return f"({listed})"
    if kind is list:
        return f"[{listed}]"
    if kind is dict:
        items = ", ".join(f"{constants.add(key)}: {child}" for key, child in zip(data, children))
        return "{" + items + "}"
    if data is kind and optree.is_namedtuple_class(kind):
        return f"{constants.add(kind)}({listed})"
    unflatten = constants.add(_find_handler(kind).unflatten_func)
    return f"{unflatten}({constants.add(data)}, ({listed}))"
