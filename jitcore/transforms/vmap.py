"""`vmap`: a function of one element as a function of a batch of elements.

In: a function, and which axis of each argument numbers the elements. Out: a function that runs it once, on
`BatchTracer`s, and gives the results of all elements. Python control flow works on what is the same for all.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from jitcore import argument_errors
from jitcore.core import source
from jitcore.core.aval import aval_of, is_array_like
from jitcore.core.jaxpr import DebugInfo
from jitcore.core.trace import to_array
from jitcore.transforms.batching import BatchAxis, add_axis, move_axis, run_batched
from jitcore.tree_nodes import KeyPath, keystr
from jitcore.tree_util import (
    PyTreeDef,
    flatten_axes,
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_structure,
)

P = ParamSpec("P")
R = TypeVar("R")


@source.api_boundary
def vmap(
    fun: Callable[P, R],
    in_axes: int | None | Sequence[Any] = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
) -> Callable[P, R]:
    """`fun` on each element of a batch, all elements at once.

    Same as (for one argument and axis 0):
        return np.stack([fun(x) for x in xs])

    Args:
        fun: a function of pytrees of arrays. `if` and `while` may test what is the same for all elements.
        in_axes: for each positional argument the axis that numbers the elements, counted from the end where
            negative, or None for an argument that is the same for all; one number for all arguments; or
            pytrees of them, as far down as the axes differ. Keyword arguments are mapped along axis 0.
        out_axes: where that axis stands in the result: a number, or a pytree as for in_axes; None for a part
            that is the same for all elements.
        axis_name: by which collectives such as `lax.psum` refer to the axis.
        axis_size: number of elements; needed where no argument is mapped.

    Returns: a function of the same arguments.
    Raises: TypeError for axes that are no integers; ValueError for those that arguments lack, or that differ
        in size.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, out_axes)

    @functools.wraps(fun)
    def map_batch(*args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise argument_errors.axes_count_error(len(in_axes), len(args))
        leaves, in_tree = tree_flatten((args, kwargs), is_leaf=_has_hidden_axes)
        axes = flatten_axes("vmap in_axes", in_tree, (in_axes, 0))
        paths = _LeafNames(fun, in_tree)
        operands = [_read_operand(leaf, axis) for leaf, axis in zip(leaves, axes)]
        size = _find_size(operands, axis_size, paths, (args, kwargs))
        return _run(fun, in_tree, operands, BatchAxis(size, axis_name), out_axes)

    map_batch.__doc__ = _write_documentation(fun)
    return source.api_boundary(map_batch)


def _write_documentation(fun: Callable) -> str:
    name, original = source.locate_function(fun)[0], getattr(fun, "__doc__", None)
    text = (f"Vectorized version of {name}. Takes similar arguments as {name} but with additional array axes "
            f"over which {name} is mapped.")  # fmt: skip
    return f"{text}\n\nOriginal documentation:\n\n{original}" if original else text


def _check_axes(in_axes, out_axes) -> None:
    """Raises: TypeError for what is no integer, None or container of them."""
    if not (in_axes is None or type(in_axes) in (int, tuple)):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                        f"positional arguments passed to the function, but got {in_axes}.")  # fmt: skip
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(type(axis) is int for axis in tree_leaves(axes)):
            raise TypeError(f"vmap {name} must be an int, None, or (nested) container with those types as "
                            f"leaves, but got {axes}.")  # fmt: skip


# -- arguments ----------------------------------------------------------------------------------------------
def _has_hidden_axes(node) -> bool:
    """Whether a pytree node stands for an array of things that take trailing axes of their own, as keys do:
    the axes that a caller counts are those of the node, not of the array inside."""
    return getattr(type(node), "hidden_axes", 0) > 0


class _Operand(NamedTuple):
    """One leaf of the arguments. value: with the mapped axis first; axis: where it stood, None for unmapped.

    structure: of a leaf with hidden axes around its value, else None."""

    value: Any
    axis: int | None
    text: str
    structure: PyTreeDef | None


def _read_operand(leaf, axis: int | None) -> _Operand:
    """Raises: TypeError for a mapped leaf that is no array; ValueError where it lacks the axis."""
    if axis is None:
        return _Operand(leaf, None, "", None)
    if not is_array_like(leaf) and not _has_hidden_axes(leaf):
        raise TypeError(f"Argument {leaf!r} of type {type(leaf)} is not a valid jitcore type")
    shape = getattr(leaf, "shape", ())
    if not -len(shape) <= axis < len(shape):
        raise argument_errors.mapped_axis_error(axis, shape)
    structure = None
    value, text = leaf, ""
    if _has_hidden_axes(leaf):
        (value,), structure = tree_flatten(leaf)
        text = f"{leaf.dtype}[{','.join(map(str, shape))}]"
    value = to_array(value)
    return _Operand(move_axis(value, axis % len(shape), 0), axis, text or value.aval.long(), structure)


class _LeafNames:
    """The leaves of a call as messages name them: `argument x['a']`, `args[1]`, `kwargs['b']`."""

    def __init__(self, fun: Callable, in_tree: PyTreeDef):
        self.fun, self.in_tree = fun, in_tree

    def list_names(self) -> list[str]:
        example = self.in_tree.unflatten(range(self.in_tree.num_leaves))
        return [self._name(path) for path, _ in tree_leaves_with_path(example)]

    def _name(self, path: KeyPath) -> str:
        kind, first, *rest = path
        if kind.idx == 1:
            return f"kwargs{keystr(path[1:])}"
        try:
            parameters = inspect.signature(self.fun).parameters.values()
        except (TypeError, ValueError):
            parameters = ()
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if first.idx < len(names):
            return f"argument {names[first.idx]}{keystr(tuple(rest))}"
        return f"args{keystr(path[1:])}"


def _find_size(operands: Sequence[_Operand], axis_size, names: _LeafNames, call):
    """The number of elements. Raises: ValueError when it is unknown, or arguments disagree about it."""
    sizes = [None if x.axis is None else aval_of(x.value).shape[0] for x in operands]
    mapped = [size for size in sizes if size is not None]
    if not mapped and axis_size is None:
        raise argument_errors.unknown_axis_size_error(bool(operands), *map(repr, call))
    if axis_size is None and all(size == mapped[0] for size in mapped):
        return mapped[0]
    if axis_size is not None and all(size == axis_size for size in mapped):
        return axis_size
    groups: dict[Any, list[str]] = {}
    for size, operand, name in zip(sizes, operands, names.list_names()):
        if size is not None:
            groups.setdefault(size, []).append(f"axis {operand.axis} of {name} of type {operand.text}")
    raise argument_errors.axis_sizes_error(groups, axis_size)


# -- the call -----------------------------------------------------------------------------------------------
def _run(fun: Callable, in_tree: PyTreeDef, operands: Sequence[_Operand], axis: BatchAxis, out_axes) -> Any:
    structures = [operand.structure for operand in operands]
    found: list[PyTreeDef | None] = []

    def run_flat(*elements):
        leaves = [x if structure is None else structure.unflatten([x])
                  for x, structure in zip(elements, structures)]  # fmt: skip
        args, kwargs = in_tree.unflatten(leaves)
        outs, out_tree = tree_flatten(fun(*args, **kwargs), is_leaf=_has_hidden_axes)
        found.extend([out_tree, *[tree_structure(out) if _has_hidden_axes(out) else None for out in outs]])
        return [tree_leaves(out)[0] if _has_hidden_axes(out) else _check_output(out) for out in outs]

    info = DebugInfo(*source.locate_function(fun), "vmap", None)
    mapped = [operand.axis is not None for operand in operands]
    outs, batched = run_batched(run_flat, axis, [operand.value for operand in operands], mapped, info)
    out_tree, *structures = found
    axes = flatten_axes("vmap out_axes", out_tree, out_axes)
    for position, (flag, target) in enumerate(zip(batched, axes)):
        if flag and target is None:
            path, _ = tree_leaves_with_path(out_tree.unflatten(range(len(outs))))[position]
            raise argument_errors.unmapped_output_error(keystr(path))
    return out_tree.unflatten(
        [_place_axis(out, flag, target, axis.size, structure)
         for out, flag, target, structure in zip(outs, batched, axes, structures)])  # fmt: skip


def _check_output(out):
    """Raises: TypeError for a result that is no array."""
    if not is_array_like(out):
        raise TypeError(
            f"Output from batched function {out!r} with type {type(out)} is not a valid jitcore type"
        )
    return out


def _place_axis(out, has_axis: bool, target: int | None, size, structure: PyTreeDef | None):
    """One leaf of the result, its batch axis where out_axes wants it."""
    if target is not None:
        out = out if has_axis else add_axis(out, size)
        ndim = aval_of(out).ndim - (0 if structure is None else structure.unflatten([out]).hidden_axes)
        if not -ndim <= target < ndim:
            raise ValueError(f"axis {target} is out of bounds for array of dimension {ndim}")
        out = move_axis(out, 0, target % ndim)
    return out if structure is None else structure.unflatten([out])
