"""`vmap`: a function of one element as a function of a batch of elements.

In: a function, and which axis of each argument numbers the elements. Out: a function that runs it once, on
`BatchTracer`s, and gives the results of all elements. Python control flow works on what is the same for all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from jitcore import dtypes
from jitcore.core import source
from jitcore.core.jaxpr import DebugInfo, aval_of, is_array_like
from jitcore.core.refs import Ref, read_refs, refuse_repeated, replace_refs
from jitcore.core.trace import to_array
from jitcore.errors import arguments
from jitcore.transforms.batching import BatchAxis, add_axis, move_axis, run_batched
from jitcore.tree_util import PyTreeDef, flatten_axes, tree_flatten, tree_leaves, tree_leaves_with_path
from jitcore.tree_util.nodes import keystr

P = ParamSpec("P")
R = TypeVar("R")


@source.api_boundary
def vmap(fun: Callable[P, R], in_axes: int | None | Sequence[Any] = 0, out_axes: Any = 0,
         axis_name: Hashable | None = None, axis_size: int | None = None,
         spmd_axis_name: Any = None) -> Callable[P, R]:
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
        spmd_axis_name: accepted for compatibility: the partitioner decides how the new axis lies on devices.

    Returns: a function of the same arguments.
    Raises: TypeError for axes that are no integers; ValueError for those that arguments lack, or that differ
        in size."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, out_axes)

    @functools.wraps(fun, updated=())
    @source.api_boundary
    def map_batch(*args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise arguments.axes_count_error(len(in_axes), len(args))
        leaves, in_tree = tree_flatten((args, kwargs))
        axes = flatten_axes("vmap in_axes", in_tree, (in_axes, 0))
        operands = [_read_operand(leaf, axis) for leaf, axis in zip(leaves, axes)]
        axis = BatchAxis(_find_size(fun, in_tree, operands, axis_size), axis_name)
        return _run(fun, in_tree, operands, axis, out_axes)

    map_batch.__doc__ = _write_documentation(fun)
    return map_batch


def _write_documentation(fun: Callable) -> str:
    name, original = source.locate_function(fun)[0], getattr(fun, "__doc__", None)
    text = (f"Vectorized version of {name}. Takes similar arguments as {name} but with additional array axes "
            f"over which {name} is mapped.")
    return f"{text}\n\nOriginal documentation:\n\n{original}" if original else text


def _check_axes(in_axes, out_axes) -> None:
    """Raises: TypeError for what is no integer, None or container of them."""
    if not (in_axes is None or type(in_axes) in (int, tuple)):
        raise TypeError("vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                        f"positional arguments passed to the function, but got {in_axes}.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(type(axis) is int for axis in tree_leaves(axes)):
            raise TypeError(f"vmap {name} must be an int, None, or (nested) container with those types as "
                            f"leaves, but got {axes}.")


# -- arguments ----------------------------------------------------------------------------------------------
class _Operand(NamedTuple):
    """One leaf of the arguments. axis: that is mapped, None for none; value: with that axis first, the leaf
    itself for none; of a reference, what it holds."""

    leaf: Any
    axis: int | None
    value: Any

    @property
    def is_ref(self) -> bool:
        """Whether it is a reference each of whose parts is one of an element."""
        return self.axis is not None and isinstance(self.leaf, Ref)


def _read_operand(leaf, axis: int | None) -> _Operand:
    """Raises: TypeError for a mapped leaf that is no array; ValueError where it lacks the axis."""
    if axis is None:
        return _Operand(leaf, None, leaf)
    array = leaf.read() if isinstance(leaf, Ref) else leaf
    if not is_array_like(array):
        raise TypeError(f"Argument {leaf!r} of type {type(leaf)} is not a valid jitcore type")
    shape = aval_of(array).shape
    if not -len(shape) <= axis < len(shape):
        raise arguments.mapped_axis_error(axis, shape)
    return _Operand(leaf, axis, move_axis(to_array(array), axis % len(shape), 0))


def _find_size(fun: Callable, in_tree: PyTreeDef, operands: Sequence[_Operand], axis_size):
    """The number of elements. Raises: ValueError when it is unknown, or arguments disagree about it."""
    sizes = [None if x.axis is None else aval_of(x.value).shape[0] for x in operands]
    known = [size for size in (axis_size, *sizes) if size is not None]
    if not known:
        args, kwargs = in_tree.unflatten([x.leaf for x in operands])
        raise arguments.unknown_axis_size_error(bool(operands), repr(args), repr(kwargs))
    if all(size == known[0] for size in known):
        return known[0]
    places: dict[Any, list[str]] = {}
    for size, operand, name in zip(sizes, operands, _name_leaves(fun, in_tree)):
        if size is not None:
            places.setdefault(size, []).append(f"axis {operand.axis} of {name} of type "
                                            f"{aval_of(operand.leaf).long()}")
    raise arguments.axis_sizes_error(places, axis_size)


def _name_leaves(fun: Callable, in_tree: PyTreeDef) -> Iterator[str]:
    """The leaves of a call as messages name them: `argument x['a']`, `args[1]`, `kwargs['b']`."""
    try:
        parameters = list(source.inspect_signature(fun).parameters.values())
    except (TypeError, ValueError):  # a builtin may have no signature
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for path, _ in tree_leaves_with_path(in_tree.unflatten(range(in_tree.num_leaves))):
        _, first, *rest = path
        if path[0].idx == 1:
            yield f"kwargs{keystr(path[1:])}"
        elif first.idx < len(names):
            yield f"argument {names[first.idx]}{keystr(tuple(rest))}"
        else:
            yield f"args{keystr(path[1:])}"


# -- the call -----------------------------------------------------------------------------------------------
def _run(fun: Callable, in_tree: PyTreeDef, operands: Sequence[_Operand], axis: BatchAxis, out_axes) -> Any:
    found: dict[str, Any] = {}

    refs = [operand for operand in operands if operand.is_ref]
    refuse_repeated([operand.leaf for operand in refs], "among the arguments of a mapped function")

    def run_flat(*elements):
        elements = [Ref(x) if operand.is_ref else x for x, operand in zip(elements, operands)]
        args, kwargs = in_tree.unflatten(elements)
        outs, found["tree"] = tree_flatten(fun(*args, **kwargs))
        found["empty"] = [out if getattr(out, "dtype", None) == dtypes.float0 else None for out in outs]
        values = read_refs([x for x, operand in zip(elements, operands) if operand.is_ref])
        return [*values, *[_check_output(out) if empty is None else 0
                           for out, empty in zip(outs, found["empty"])]]

    info = DebugInfo(*source.locate_function(fun), "vmap", None)
    mapped = [operand.axis is not None for operand in operands]
    outs, batched = run_batched(run_flat, axis, [operand.value for operand in operands], mapped, info)
    replace_refs([operand.leaf for operand in refs],
                 [_place_axis(out, flag, operand.axis, axis.size)
                  for out, flag, operand in zip(outs, batched, refs)])
    outs, batched = outs[len(refs) :], batched[len(refs) :]
    out_tree: PyTreeDef = found["tree"]
    targets = flatten_axes("vmap out_axes", out_tree, out_axes)
    for position, (flag, target) in enumerate(zip(batched, targets)):
        if flag and target is None:
            path, _ = tree_leaves_with_path(out_tree.unflatten(range(len(outs))))[position]
            raise arguments.unmapped_output_error(keystr(path))
    return out_tree.unflatten(
        [_place_axis(out, flag, target, axis.size) if empty is None
         else _repeat_empty(empty, target, axis.size)
         for out, flag, target, empty in zip(outs, batched, targets, found["empty"])])


def _check_output(out):
    """Raises: TypeError for a result that is no array."""
    if not is_array_like(out):
        raise TypeError(
            f"Output from batched function {out!r} with type {type(out)} is not a valid jitcore type")
    return out


def _repeat_empty(out: np.ndarray, target: int | None, size) -> np.ndarray:
    """A derivative by integers, which holds nothing, for all elements of the batch."""
    if target is None:
        return out
    shape = list(out.shape)
    shape.insert(target % (out.ndim + 1), size)
    return np.zeros(shape, out.dtype)


def _place_axis(out, has_axis: bool, target: int | None, size):
    """One array of the result with its batch axis at `target`. Raises: ValueError for no such place."""
    if target is None:
        return out
    out = out if has_axis else add_axis(out, size)
    ndim = aval_of(out).ndim
    if not -ndim <= target < ndim:
        raise ValueError(f"axis {target} is out of bounds for array of dimension {ndim}")
    return move_axis(out, 0, target % ndim)
