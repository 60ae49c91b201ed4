"""The jaxpr: jitcore's first-order typed program text, with one equation per primitive application.

Grammar: a `Jaxpr` is constvars, invars, a list of `Equation`s in order, and outvars (atoms). An atom is a
`Var` or a `Literal`. Each variable is assigned once. `check.py` is the executable specification.

Abstract values (`ShapedArray`) are what a tracer knows of an array before it has a value.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, TypeVar

import numpy as np

from jitcore import array, dtypes
from jitcore.array import Array, ConcreteArray
from jitcore.config import config

T = TypeVar("T")

NOWHERE: frozenset = frozenset()


class ShapedArray:
    """Shape, dtype and weak type of an array. Extents are ints or symbolic dimensions.

    Args:
        shape: tuple of ints or symbolic dimensions.
        dtype: a supported dtype.
        weak_type: whether the dtype yields in promotion.
        varying: inside of `shard_map`, the axes of the mesh along which the value may differ from device to
            device. It is no part of the type: avals that differ in it are equal."""

    __slots__ = ("shape", "dtype", "weak_type", "varying", "_hash")

    def __init__(self, shape, dtype, weak_type: bool = False, varying: frozenset = NOWHERE):
        self.shape = shape if shape.__class__ is tuple else tuple(shape)
        if dtype.__class__ is type or not isinstance(dtype, np.dtype):
            dtype = dtype if dtypes.is_key(dtype) else np.dtype(dtype)
        self.dtype = dtype if dtype.names is None else dtypes.of_ndarray(dtype)
        self.weak_type = weak_type
        self.varying = varying

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size = size * extent
        return size

    @property
    def vma(self) -> frozenset:
        """JAX's name for `varying`."""
        return self.varying

    @property
    def carried(self) -> ShapedArray:
        """The type of what a compiled program holds: of keys, their words."""
        return self.update(dtype=self.dtype.carrier) if dtypes.is_key(self.dtype) else self

    def update(self, **changes) -> ShapedArray:
        facts = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "varying")} | changes
        return ShapedArray(**facts)

    def short(self) -> str:
        """The jaxpr text: `f32[3,4]`."""
        return f"{dtypes.short_name_of(self.dtype)}[{','.join(map(str, self.shape))}]"

    def long(self) -> str:
        """The text of error messages: `float32[3,4]`."""
        return f"{dtypes.name_of(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __eq__(self, other) -> bool:
        return self is other or (
            other.__class__ is ShapedArray and self.shape == other.shape
            and self.dtype == other.dtype and self.weak_type == other.weak_type
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((self.shape, self.dtype, self.weak_type))
            return self._hash

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.long()}{weak})"

    def __str__(self) -> str:
        return ("~" if self.weak_type else "") + self.long()


class ShapeDtypeStruct:
    """A shape and dtype that stands for an array: argument of `.lower`, result of `eval_shape`.

    sharding: where the array would lie, or None."""

    __slots__ = ("shape", "dtype", "weak_type", "sharding")
    is_committed = True

    def __init__(self, shape, dtype, *, weak_type: bool = False, sharding=None):
        self.shape, self.dtype, self.weak_type = tuple(shape), dtypes.canonicalize(dtype), weak_type
        self.sharding = sharding

    @classmethod
    def like(cls, x) -> ShapeDtypeStruct:
        """What stands for x, an array or scalar."""
        aval = aval_of(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=getattr(x, "sharding", None))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (
            (self.shape, self.dtype, self.weak_type, self.sharding)
            == (other.shape, other.dtype, other.weak_type, other.sharding)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{where})"


array.make_aval = ShapedArray


def aval_of(x) -> ShapedArray:
    """The aval of an array, tracer, NumPy array or scalar, or Python scalar.

    Raises: TypeError for anything that is not an array."""
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, (np.ndarray, np.generic)):
        dtype = x.dtype
        dtypes.reject_mask(x)
        return ShapedArray(x.shape, dtype if dtype == dtypes.float0 else dtypes.canonicalize(dtype))
    if isinstance(x, dtypes.PYTHON_SCALARS):
        return ShapedArray((), *dtypes.type_of(x))
    if isinstance(x, ShapedArray):
        return x
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype, x.weak_type)
    raise TypeError(f"Value {x!r} with type {type(x)} is not a valid jitcore type")


def is_array_like(x) -> bool:
    """Whether x can be an operand: Array, ndarray or scalar of a supported dtype, Python scalar."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype in dtypes.SHORT_NAMES and not dtypes.is_masked(x)
    return isinstance(x, (Array, *dtypes.PYTHON_SCALARS))


_serial = itertools.count()


class Var:
    """A variable. Identity is the object; `serial` orders variables by creation."""

    __slots__ = ("aval", "serial", "name")

    def __init__(self, aval: ShapedArray, name: str | None = None):
        self.aval = aval
        self.serial = next(_serial)
        self.name = name

    def __repr__(self) -> str:
        return f"Var({self.aval.short()})"


class DropVar(Var):
    """An output that nothing reads; printed `_`."""

    __slots__ = ()


class Literal:
    """A scalar constant written into the program."""

    __slots__ = ("value", "aval")

    def __init__(self, value, aval: ShapedArray | None = None):
        self.value = value
        self.aval = aval_of(value) if aval is None else aval

    @property
    def val(self) -> Any:
        """The value, by JAX's name."""
        return self.value

    def to_numpy(self) -> np.ndarray:
        return np.asarray(self.value, self.aval.dtype)

    def to_operand(self):
        """The value as an operand of the same type, weak where the literal is."""
        return ConcreteArray(self.to_numpy(), True) if self.aval.weak_type else self.value

    def __repr__(self) -> str:
        return f"Literal({self.value})"


Atom = Var | Literal


class Equation:
    """`outvars = primitive[params] invars`, with its effects and the user's source position."""

    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source_info")

    def __init__(self, primitive, invars, outvars, params, effects=frozenset(), source_info=None):
        self.primitive, self.invars, self.outvars = primitive, invars, outvars
        self.params, self.effects, self.source_info = params, effects, source_info

    @property
    def variables(self) -> list[Var]:
        """The operands that are no literals."""
        return [atom for atom in self.invars if isinstance(atom, Var)]

    def replace(self, **changes) -> Equation:
        fields = {name: getattr(self, name) for name in Equation.__slots__} | changes
        return Equation(**fields)


class DebugInfo:
    """Where a jaxpr came from: function name and place, and the name of each flat argument."""

    __slots__ = ("fun_name", "location", "transform", "arg_names")

    def __init__(self, fun_name: str, location: str, transform: str, arg_names: Sequence[str | None] | None):
        self.fun_name, self.location, self.transform = fun_name, location, transform
        self.arg_names = arg_names


class Jaxpr:
    """Args: constvars, invars: lists of Var; eqns: list of Equation; outvars: list of atoms."""

    __slots__ = ("constvars", "invars", "eqns", "outvars", "effects", "debug_info")

    def __init__(self, constvars, invars, eqns, outvars, effects=None, debug_info=None):
        self.constvars, self.invars, self.eqns, self.outvars = constvars, invars, eqns, outvars
        self.effects = frozenset().union(*(eqn.effects for eqn in eqns)) if effects is None else effects
        self.debug_info = debug_info

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [var.aval for var in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [atom.aval for atom in self.outvars]

    def replace(self, **changes) -> Jaxpr:
        fields = {name: getattr(self, name) for name in Jaxpr.__slots__} | changes
        if "eqns" in changes and "effects" not in changes:
            fields["effects"] = None
        return Jaxpr(**fields)


class ClosedJaxpr:
    """A jaxpr and the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> list[Equation]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> frozenset:
        return self.jaxpr.effects

    @property
    def literals(self) -> list[Any]:
        """The values of its constvars, by JAX's older name."""
        return self.consts

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def sub_jaxprs(params: dict) -> list[ClosedJaxpr]:
    """The closed jaxprs among an equation's parameters (loop bodies, branches, inner jits)."""
    found = []
    for value in params.values():
        if isinstance(value, ClosedJaxpr):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found.extend(item for item in value if isinstance(item, ClosedJaxpr))
    return found


def holds_keys(jaxpr: Jaxpr) -> bool:
    """Whether one of its variables, or of those of the jaxprs inside, is an array of keys."""
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    return any(dtypes.is_key(var.aval.dtype) for var in inputs) or any(
        "on_words" in eqn.primitive.traits for eqn in list_equations(jaxpr))


def list_equations(jaxpr: Jaxpr) -> Iterator[Equation]:
    """All equations, those in the jaxprs among their parameters behind each."""
    for eqn in jaxpr.eqns:
        yield eqn
        if eqn.params:
            for inner in sub_jaxprs(eqn.params):
                yield from list_equations(inner.jaxpr)


def slice_eqns(eqns: Sequence[Equation], outs: Iterable[Atom], given: Set[Var] = frozenset(),
               keep_effects: bool = False) -> tuple[list[Equation], set[Var]]:
    """The equations that some atoms need, in order, and the variables that these read.

    Args:
        given: variables whose values are there already.
        keep_effects: whether equations with effects stay."""
    needed = {atom for atom in outs if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(eqns):
        is_needed = any(var in needed and var not in given for var in eqn.outvars)
        if is_needed or (keep_effects and eqn.effects):
            needed.update(eqn.variables)
            kept.append(eqn)
    return kept[::-1], needed


def find_dependent(eqns: Iterable[Equation], variables: Iterable[Var]) -> set[Var]:
    """The variables that equations, in their order, compute from some, and these."""
    found = set(variables)
    for eqn in eqns:
        if not found.isdisjoint(eqn.variables):
            found.update(eqn.outvars)
    return found


def find_read(eqns: Iterable[Equation], outs: Iterable[Atom]) -> set[Var]:
    """The variables that equations read, and those among the outputs."""
    read = {var for eqn in eqns for var in eqn.variables}
    return read | {atom for atom in outs if isinstance(atom, Var)}


def find_shardings(jaxpr: Jaxpr) -> Iterator[Any]:
    """The shardings that equations name, each time: those of the trait `mesh` of their primitives."""
    for eqn in list_equations(jaxpr):
        find = eqn.primitive.traits.get("mesh")
        if find is not None:
            yield find(**eqn.params)


def keep_with_jaxpr(function: Callable[..., T]) -> Callable[..., T]:
    """Decorator of a function of a jaxpr and of what is hashable: its results are kept while the jaxpr lives,
    for each configuration. An inner jit is traced once and called often."""
    kept: weakref.WeakKeyDictionary[ClosedJaxpr, dict] = weakref.WeakKeyDictionary()

    @functools.wraps(function)
    def look_up(closed: ClosedJaxpr, *rest: Any) -> T:
        known, key = kept.setdefault(closed, {}), (*rest, config.trace_key)
        if key not in known:
            known[key] = function(closed, *rest)
        return known[key]

    return look_up


@keep_with_jaxpr
def names_mesh(closed: ClosedJaxpr) -> bool:
    """Whether an equation names a sharding."""
    return next(find_shardings(closed.jaxpr), None) is not None


def count_primitives(jaxpr: Jaxpr) -> Counter:
    """How many equations of each primitive a jaxpr has, with those in the jaxprs among their parameters."""
    count, waiting = Counter(), [jaxpr]
    while waiting:
        eqns = waiting.pop().eqns
        count.update([eqn.primitive for eqn in eqns])
        waiting += [sub.jaxpr for eqn in eqns if eqn.params for sub in sub_jaxprs(eqn.params)]
    return count


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence, args: Sequence,
               apply: Callable[[Equation, list], Sequence] | None = None) -> list:
    """Runs a jaxpr on values or tracers by binding each equation's primitive in order.

    apply: `apply(equation, operands) -> results` in the place of that, for values of other kinds."""
    env: dict[Var, Any] = {}
    env.update(zip(jaxpr.constvars, consts))
    env.update(zip(jaxpr.invars, args))

    def read(atom):
        return atom.to_operand() if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        operands = list(map(read, eqn.invars))
        outs = eqn.primitive.bind_all(*operands, **eqn.params) if apply is None else apply(eqn, operands)
        env.update(zip(eqn.outvars, outs))
    return list(map(read, jaxpr.outvars))
