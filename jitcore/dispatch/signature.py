"""One call of a jitted function: its leaves, how they stand in the arguments, their avals, its static values.

In: args and kwargs. Out: a `CallSignature`, whose `key` finds compiled programs, and which puts tracers back
where the leaves stood. Calls whose arguments are plain arrays and scalars are not flattened by the pytree
library, which would cost more than the rest of the call. Why a call was not served from the cache is the
difference to the signatures seen before, made to a text when somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes, tree_util
from jitcore.array import Array, ConcreteArray, DeviceArray
from jitcore.config import FLAGS, config
from jitcore.core.jaxpr import ShapedArray, ShapeDtypeStruct
from jitcore.core.source import list_positional, read_signature
from jitcore.dispatch.backend import adopt_array
from jitcore.dispatch.options import ArgumentPlan
from jitcore.errors import arguments

#: An aval as a plain tuple, which hashes faster: (shape, dtype, weak type).
Part = tuple[tuple, np.dtype, bool]

_PLACED = (DeviceArray, ShapeDtypeStruct)
_SCALARS = (*dtypes.PYTHON_SCALARS, np.generic)
_LEAF = tree_util.tree_structure(0).spec
# Flags of an ndarray that kernels can read: C-contiguous (1) and aligned (256).
READABLE_FLAGS = 0x101


class CallSignature:
    """Args: as `read_call`.

    Attributes:
        leaves: the dynamic arguments' leaves: positional ones first, then keywords by name.
        structure: (number of positional arguments, keyword names) of a flat call, or the treedef.
        statics: ((position or name, class, value), ...).
        parts: the avals as tuples.
        donated: for each leaf, whether the user donates it.
        shardings: where leaves lie that are on devices: (position, sharding, whether somebody chose it), ...
    """

    __slots__ = ("leaves", "structure", "n_args", "statics", "parts", "donated", "shardings")

    def __init__(self, leaves, structure, n_args, statics, parts, donated):
        self.leaves, self.structure, self.n_args = leaves, structure, n_args
        self.statics, self.parts, self.donated = statics, parts, donated
        self.shardings = tuple([(i, leaf.sharding, leaf.is_committed) for i, leaf in enumerate(leaves)
                                if isinstance(leaf, _PLACED) and leaf.sharding is not None])

    @property
    def key(self) -> tuple:
        return self.structure, self.n_args, self.statics, self.parts, self.shardings

    @property
    def avals(self) -> list[ShapedArray]:
        return [ShapedArray(*part) for part in self.parts]

    def rebuild(self, leaves: Sequence[Any], *, static: Callable[[Any], Any] | None = None):
        """(args, kwargs) with these leaves. static: maps each static value; they stay as they are without."""
        if isinstance(self.structure, tree_util.PyTreeDef):
            dynamic, kwargs = self.structure.unflatten(leaves)
            kwargs = dict(kwargs)
        else:
            n_dynamic, names = self.structure
            dynamic, kwargs = leaves[:n_dynamic], dict(zip(names, leaves[n_dynamic:]))
        args = list(dynamic)
        for place, _, value in self.statics:
            value = static(value) if static else value
            if isinstance(place, int):
                args.insert(place, value)
            else:
                kwargs[place] = value
        return tuple(args), kwargs

    def make_in_tree(self) -> tree_util.PyTreeDef:
        """The treedef of (dynamic args, dynamic kwargs)."""
        if isinstance(self.structure, tree_util.PyTreeDef):
            return self.structure
        n_dynamic, names = self.structure
        return tree_util.tree_structure(((0,) * n_dynamic, dict.fromkeys(names, 0)))

    @property
    def num_nodes(self) -> int:
        """Nodes and leaves of (dynamic args, dynamic kwargs)."""
        is_flat = self.structure.__class__ is tuple
        return 3 + len(self.leaves) if is_flat else self.structure.num_nodes

    def list_specs(self) -> list[Any]:
        """The structure of each dynamic argument, bare: positional ones first, then keywords by name."""
        if self.structure.__class__ is tuple:
            return [_LEAF] * len(self.leaves)
        args, kwargs = self.structure.spec.children()
        return [*args.children(), *kwargs.children()]

    def name_leaves(self, fun: Callable) -> list[str]:
        """What the user would call each leaf, in order: "x", "params['w']", "args[1]"."""
        args, kwargs = self.rebuild([0] * len(self.leaves), static=lambda value: None)
        names: list[str] = []
        for name, value in [*zip(name_positions(fun, len(args)), args), *sorted(kwargs.items())]:
            if value.__class__ is int:
                names.append(name)
            elif value is not None:
                names += [name + tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(value)]
        return names


def name_positions(fun: Callable, count: int) -> list[str]:
    """The names of so many positional arguments."""
    signature = read_signature(fun)
    positional, rest = list_positional(signature) if signature is not None else ([], "args")
    names = [parameter.name for parameter in positional[:count]]
    return names + [f"{rest or 'args'}[{k}]" for k in range(count - len(names))]


def read_call(fun: Callable, plan: ArgumentPlan, args: tuple, kwargs: dict, *, abstract: bool = False):
    """The signature of one call. abstract: ShapeDtypeStructs may stand for arrays.

    Raises: StaticArgumentError for an unhashable static value, JitcoreTypeError for what is not an array."""
    statics: list[tuple] = []
    static_nums = plan.find_static(len(args)) if plan.static_nums else ()
    for num in static_nums:
        statics.append(_read_static(num, args[num]))
    dynamic = [arg for i, arg in enumerate(args) if i not in static_nums] if static_nums else args
    if plan.static_names and kwargs:
        statics += [_read_static(name, kwargs[name]) for name in sorted(plan.static_names & kwargs.keys())]
        kwargs = {name: value for name, value in kwargs.items() if name not in plan.static_names}
    names = tuple(sorted(kwargs)) if kwargs else ()
    leaves = [*dynamic, *[kwargs[name] for name in names]]
    structure: Any = (len(dynamic), names)
    parts = _read_leaves(leaves, abstract)
    if len(parts) < len(leaves):
        leaves, structure = tree_util.tree_flatten(hide_float0((tuple(dynamic), kwargs)))
        parts = _read_leaves(leaves, abstract)
    if len(parts) < len(leaves):
        leaves = [leaf if read_leaf(leaf, abstract) else adopt_array(leaf) for leaf in leaves]
        parts = _read_leaves(leaves, abstract)
    call = CallSignature(leaves, structure, len(args), tuple(statics), tuple(parts), ())
    if len(parts) < len(leaves):
        raise _argument_error(fun, call, len(parts))
    if plan.donate_nums or plan.donate_names:
        call.donated = _find_donated(plan, call, static_nums, args, kwargs)
    return call


class _Float0:
    """Stands for an ndarray of `float0`, which has no elements to compute with: a node without children."""

    def __init__(self, shape: tuple):
        self.shape = shape


tree_util.register_pytree_node(_Float0, lambda leaf: ((), leaf.shape), lambda shape,
                               _: np.zeros(shape, dtypes.float0))


def hide_float0(tree: Any) -> Any:
    """The pytree without leaves of `float0`; they come back where its structure is put together again."""
    if not any(getattr(leaf, "dtype", None) == dtypes.float0 for leaf in tree_util.tree_leaves(tree)):
        return tree
    return tree_util.tree_map(lambda leaf: _Float0(leaf.shape)
                              if getattr(leaf, "dtype", None) == dtypes.float0 else leaf, tree)


def _read_static(place: int | str, value: Any) -> tuple:
    try:
        hash(value)
    except TypeError as error:
        name = place if isinstance(place, str) else ""
        raise arguments.unhashable_static_error(str(type(value)), repr(value), str(error), name) from None
    # 1, 1.0 and True are equal and hash alike, but a function may tell them apart.
    return place, type(value), value


def _read_leaves(leaves: Sequence[Any], abstract: bool) -> list[Part]:
    """The parts of the leaves before the first that is not an array."""
    parts: list[Part] = []
    for leaf in leaves:
        part = read_leaf(leaf, abstract)
        if part is None:
            break
        parts.append(part)
    return parts


def read_leaf(leaf: Any, abstract: bool = False) -> Part | None:
    """Shape, dtype and weak type of a value; None when it is not an array or scalar of a supported dtype."""
    if leaf.__class__ is ConcreteArray:
        return leaf.shape, leaf.dtype, leaf.weak_type
    if isinstance(leaf, (np.ndarray, np.generic)):
        if dtypes.is_masked(leaf):
            return None
        if leaf.dtype in dtypes.SHORT_NAMES:
            return leaf.shape, leaf.dtype, False
        native = leaf.dtype.newbyteorder("=")
        return (leaf.shape, native, False) if native in dtypes.SHORT_NAMES else None
    if isinstance(leaf, dtypes.PYTHON_SCALARS):
        return (), dtypes.of_python_scalar(leaf), not isinstance(leaf, bool)
    if isinstance(leaf, Array) or (abstract and isinstance(leaf, (ShapeDtypeStruct, ShapedArray))):
        return leaf.shape, leaf.dtype, leaf.weak_type
    return None


def read_value(leaf: Any, dtype: np.dtype) -> np.ndarray:
    """The leaf as an ndarray that kernels can read: a copy when layout, alignment or byte order differ."""
    if isinstance(leaf, ConcreteArray):
        return leaf.data
    if isinstance(leaf, np.ndarray):
        if leaf.dtype == dtype and leaf.flags.num & READABLE_FLAGS == READABLE_FLAGS:
            return np.asarray(leaf)  # a subclass would bring its own operators
        return np.array(leaf, dtype, order="C")
    if isinstance(leaf, int) and not isinstance(leaf, bool):
        dtypes.check_integer_fits(leaf, dtype)
    return np.array(leaf, dtype)


def _argument_error(fun: Callable, call: CallSignature, position: int) -> Exception:
    leaf = call.leaves[position]
    kind = f"{type(leaf)}" + (f" with dtype {leaf.dtype}" if isinstance(leaf, np.ndarray) else "")
    names = call.name_leaves(fun)
    path = names[position] if position < len(names) else f"args[{position}]"
    return arguments.argument_type_error(repr(fun), kind, path, dtypes.is_masked(leaf))


def _find_donated(plan: ArgumentPlan, call: CallSignature, static_nums, args, kwargs) -> tuple[bool, ...]:
    donated_nums = plan.find_donated(len(args))
    flags: list[bool] = []
    for num, arg in enumerate(args):
        if num not in static_nums:
            flags += [num in donated_nums] * len(tree_util.tree_leaves(arg))
    for name in sorted(kwargs):
        flags += [name in plan.donate_names] * len(tree_util.tree_leaves(kwargs[name]))
    return tuple(flags)


_REMEMBERED = 32


class _Miss(NamedTuple):
    """A signature without the arrays, and the flags that were set."""

    structure: Any
    n_args: int
    statics: tuple
    parts: tuple[Part, ...]
    shardings: tuple
    flags: dict[str, Any]

    def restore_call(self) -> CallSignature:
        leaves = [None] * len(self.parts)
        return CallSignature(leaves, self.structure, self.n_args, self.statics, self.parts, ())


class MissLog:
    """The last signatures that missed."""

    def __init__(self):
        self._misses: deque[_Miss] = deque(maxlen=_REMEMBERED)

    def clear(self) -> None:
        self._misses.clear()

    def add(self, call: CallSignature) -> None:
        self._misses.append(_Miss(*call.key, config.values()))

    def explain(self, fun: Callable) -> str:
        """Which arguments of the last miss differ, and how, from the most similar earlier signature."""
        if not self._misses:
            return "There was no miss: the function has not been called since its cache was empty."
        *earlier, last = self._misses
        if not earlier:
            return "It was the first call: the cache was empty."
        of_same_structure = [miss for miss in earlier if miss.structure == last.structure] or earlier
        closest = min((_compare(fun, old, last) for old in reversed(of_same_structure)), key=len)
        if not closest:
            return "The same signature was traced twice: inside and outside another trace, or by two threads."
        return "Compared with the most similar earlier call:\n" + "\n".join(f"  {line}" for line in closest)


def _compare(fun: Callable, old: _Miss, new: _Miss) -> list[str]:
    lines = [f"config flag {name}: was {old.flags[name]!r}, is {value!r}"
             for name, value in new.flags.items() if FLAGS[name].affects_trace and old.flags[name] != value]
    if old.structure != new.structure:
        before, after = (miss.restore_call().make_in_tree() for miss in (old, new))
        lines.append(f"structure of (args, kwargs): was {before}, is {after}")
        return lines + _compare_statics(fun, old, new)
    names = new.restore_call().name_leaves(fun)
    for name, before, after in zip(names, old.parts, new.parts):
        lines += _compare_parts(name, before, after)
    lines += [f"argument {names[i]}: sharding was {dict(old.shardings).get(i)}, is {sharding}"
              for i, sharding in new.shardings if (i, sharding) not in old.shardings]
    return lines + _compare_statics(fun, old, new)


def _compare_parts(name: str, before: Part, after: Part) -> list[str]:
    return [f"argument {name}: {what} was {old}, is {new}"
            for what, old, new in zip(("shape", "dtype", "weak_type"), before, after) if old != new]


def _compare_statics(fun: Callable, old: _Miss, new: _Miss) -> list[str]:
    before, after = ({place: (kind, value) for place, kind, value in miss.statics} for miss in (old, new))
    lines = []
    for place in dict.fromkeys((*before, *after)):
        if before.get(place) != after.get(place):
            name = place if isinstance(place, str) else name_positions(fun, place + 1)[place]
            texts = [repr(values[place][1]) if place in values else "not given" for values in (before, after)]
            lines.append(f"static argument {name}: value was {texts[0]}, is {texts[1]}")
    return lines
