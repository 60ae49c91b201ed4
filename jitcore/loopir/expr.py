"""Expressions of the loop program: pure, typed, hash-consed scalars, and places as affine forms of axes.

In: operations on scalars. Out: a DAG in which equal expressions are one object, so that common subexpressions
are computed once and each node can be placed at the outermost loop level that it depends on.

Places are affine forms over loop axes, with run-time sizes as coefficients: `Index` values in normal form, so
that strides can be read off: `coefficient(axis)` is the stride, and equal forms are equal objects.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from jitcore import dtypes
from jitcore.core.algebra import UNKNOWN, Affine, Interval, is_number
from jitcore.core.primitive import registry
from jitcore.lax.elementwise import convert_dtype
from jitcore.loopir.narrow import convert_narrow

_axis_serial = itertools.count()


class Axis:
    """A loop variable that runs over range(extent)."""

    __slots__ = ("extent", "serial")
    exprs = ()

    def __init__(self, extent):
        self.extent = extent
        self.serial = next(_axis_serial)

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset((self,))

    def __repr__(self) -> str:
        return f"i{self.serial}"


class RunTimeSize:
    """A number that kernels are always told at run time, and never share with a size that happens to be
    equal."""

    __slots__ = ("value",)

    def __init__(self, value: int):
        self.value = value

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __repr__(self) -> str:
        return str(self.value)


class Address(RunTimeSize):
    """A place in the memory of this process, which `owner` keeps: its `address`, also where it is pickled."""

    __slots__ = ("owner",)

    def __init__(self, value: int, owner: object):
        super().__init__(value)
        self.owner = owner

    def __str__(self) -> str:
        return "an address"  # another one in each process


class FloorDiv:
    """`index // size`, where it does not simplify."""

    __slots__ = ("index", "size", "serial")

    def __init__(self, index: Index, size):
        self.index, self.size, self.serial = index, size, index.order + 1

    @property
    def axes(self) -> frozenset[Axis]:
        return self.index.axes()

    @property
    def exprs(self) -> list:
        return self.index.exprs

    def of(self, index: Index) -> Index:
        """The same of another index."""
        return index.floordiv(self.size)

    def __eq__(self, other) -> bool:
        return other.__class__ is self.__class__ and self.index == other.index and self.size == other.size

    def __hash__(self) -> int:
        return hash((self.__class__, self.index, self.size))

    def __repr__(self) -> str:
        return f"({self.index!r} // {self.size})"


class Mod(FloorDiv):
    """`index % size`, where it does not simplify."""

    __slots__ = ()

    def of(self, index: Index) -> Index:
        return index.mod(self.size)

    def __repr__(self) -> str:
        return f"({self.index!r} % {self.size})"


class Dynamic:
    """An integer scalar expression used as an index."""

    __slots__ = ("expr", "serial")

    def __init__(self, expr):
        self.expr, self.serial = expr, 0

    @property
    def axes(self) -> frozenset[Axis]:
        return self.expr.axes

    @property
    def exprs(self) -> tuple:
        return (self.expr,)

    def __eq__(self, other) -> bool:
        return other.__class__ is Dynamic and self.expr is other.expr

    def __hash__(self) -> int:
        return hash((Dynamic, id(self.expr)))

    def __repr__(self) -> str:
        return f"[{self.expr!r}]"


class Index(Affine):
    """An affine form of axes and opaque terms, in the order in which these were made."""

    __slots__ = ("_axes",)

    @property
    def order(self) -> int:
        return max((atom.serial for atom, _ in self.terms), default=0)

    def axes(self) -> frozenset:
        """Every axis the index depends on, through opaque terms too."""
        try:
            return self._axes
        except AttributeError:
            self._axes = frozenset().union(*[atom.axes for atom, _ in self.terms])
            return self._axes

    @property
    def exprs(self) -> list:
        """The dynamic expressions that it reads."""
        return [expr for atom, _ in self.terms for expr in atom.exprs]

    def coefficient(self, axis: Axis):
        """The stride along an axis, or None when the axis also occurs inside an opaque term."""
        stride = 0
        for atom, coefficient in self.terms:
            if atom is axis:
                stride = coefficient
            elif not isinstance(atom, Axis) and axis in atom.axes:
                return None
        return stride

    def interval(self) -> Interval:
        """The smallest and the largest value, where all that it depends on is axes of known extents."""
        if not isinstance(self.const, (int, RunTimeSize)):
            return UNKNOWN
        low = high = int(self.const)
        for atom, step in self.terms:
            if not _is_known(atom, step):
                return UNKNOWN
            reach = step * (atom.extent - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def _make_sum(self, terms: tuple, const, other: Index) -> Index:
        whole = _join_quotient(terms)
        if whole is not None:
            return whole + const
        return Index(tuple(sorted(terms, key=lambda term: term[0].serial)), const)

    def floordiv(self, size) -> Index:
        if is_number(size, 1):
            return self
        split = self._split(size)
        if split is not None:
            return split[0]
        return Index.of(FloorDiv(self, size))

    def mod(self, size) -> Index:
        if is_number(size, 1):
            return ZERO
        split = self._split(size)
        if split is not None:
            return split[1]
        return Index.of(Mod(self, size))

    def _split(self, size) -> tuple[Index, Index] | None:
        """(quotient, remainder) when the multiples of `size` separate from a rest known to lie in [0,
        size)."""
        quotient, rest = self.divide(size)
        if isinstance(size, int) and isinstance(self.const, int):
            reach = rest.const
            for atom, step in rest.terms:
                if not _is_known(atom, step) or step < 0:
                    return None
                reach += step * (atom.extent - 1)
            return (quotient, rest) if reach < size else None
        is_inside = not rest.terms or len(rest.terms) == 1 and _is_range(*rest.terms[0], size)
        return (quotient, rest) if is_inside and is_number(self.const, 0) else None


def _is_known(atom, step) -> bool:
    """Whether it is known how far a term goes."""
    return isinstance(atom, Axis) and isinstance(atom.extent, int) and isinstance(step, int)


def _is_range(atom, step, size) -> bool:
    """Whether a term runs over all of range(size)."""
    return isinstance(atom, Axis) and is_number(step, 1) and atom.extent == size


ZERO = Index()


def constant(value) -> Index:
    return Index((), value)


def linearize(index: tuple[Index, ...], shape: tuple) -> Index:
    """The C-order offset of a multi-index."""
    offset, stride = ZERO, 1
    for position, extent in zip(reversed(index), reversed(shape)):
        if not is_number(extent, 1):
            offset = offset + position * stride
        stride = stride * extent
    return offset


def delinearize(offset: Index, shape: tuple) -> tuple[Index, ...]:
    """The multi-index of a C-order offset."""
    if any(isinstance(extent, int) and not extent for extent in shape):
        return (ZERO,) * len(shape)  # there is no element
    index = []
    for extent in reversed(shape[1:]):
        index.append(offset.mod(extent))
        offset = offset.floordiv(extent)
    return tuple(reversed([*index, offset] if shape else index))


def _join_quotient(terms: tuple) -> Index | None:
    """The sum of the terms when some are `(a // n) * n + a % n`, which is `a`: a reshape and back again."""
    for remainder, factor in terms:
        if remainder.__class__ is not Mod:
            continue
        for quotient, coefficient in terms:
            if quotient.__class__ is FloorDiv and (quotient.index, quotient.size) == (
                    remainder.index, remainder.size) and coefficient == factor * remainder.size:
                rest = tuple(term for term in terms if term[0] not in (quotient, remainder))
                return Index(rest) + remainder.index * factor
    return None


# Rough cost of one scalar operation, in multiply-adds, as the block of its primitive says; 1 without. Guides
# recomputation only.
OP_COST = {"logaddexp": 26} | {primitive.traits["scalar_op"]: primitive.traits["cost"]
                               for primitive in registry.values() if "cost" in primitive.traits}
# The same of complex numbers, where that is much more than of their parts.
COMPLEX_COST = {"abs": 16, "div": 16}


# Operations whose code is as good when it does not know a number: they are told larger ones at run time, as
# they are told sizes. A literal is most often a size when it is large.
_TOLD = frozenset(("add", "sub", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "select"))
_LARGEST_KNOWN = 8


class Buffer:
    """Memory of one array, C-contiguous. `kind`: "in", "out", "temp" (arena) or "scalar" (stack, 0-d)."""

    __slots__ = ("name", "shape", "dtype", "kind")

    def __init__(self, name: str, shape: tuple, dtype, kind: str):
        self.name, self.shape, self.dtype, self.kind = name, shape, np.dtype(dtype), kind

    def __repr__(self) -> str:
        return self.name

    @property
    def nbytes(self) -> int:
        """Where all extents are numbers."""
        return math.prod(map(int, self.shape)) * self.dtype.itemsize

    @property
    def known_bytes(self) -> int | None:
        """None where an extent is known to calls only."""
        return self.nbytes if all(isinstance(extent, int) for extent in self.shape) else None


class Expr:
    """A scalar value. Built by `Graph` only.

    op: "const" (attr: value), "load" (attr: (Buffer, Index)), "index" (attr: Index), "result" (attr: the
    statement variable that holds it), or a scalar operation's name with `args`.
    axes: the loop axes it depends on. variables: statement results it depends on. inner: the operands, or the
    expressions inside the index of a load."""

    __slots__ = ("op", "args", "dtype", "attr", "axes", "serial", "inner")

    def __init__(self, op, args, dtype, attr, axes, serial):
        self.op, self.args, self.dtype, self.attr = op, args, dtype, attr
        self.axes, self.serial, self.inner = axes, serial, args
        if op in ("load", "index"):
            self.inner = tuple((attr[1] if op == "load" else attr).exprs)

    def __repr__(self) -> str:
        return f"%{self.serial}"


class Result:
    """A scalar that a reduction statement defines for the statements after it in the same loop body."""

    __slots__ = ("dtype", "axes", "serial")

    def __init__(self, dtype, axes: frozenset, serial: int):
        self.dtype, self.axes, self.serial = np.dtype(dtype), axes, serial

    def __repr__(self) -> str:
        return f"r{self.serial}"


class Graph:
    """Makes expressions; equal ones are the same object. `count`: of expressions made so far. `epoch` counts
    changes of what reading a buffer means."""

    def __init__(self):
        self.epoch = 0
        self._nodes: dict[tuple, Expr] = {}
        self._told: dict[int, RunTimeSize] = {}
        self.count = 0

    def _make(self, op, args, dtype, attr, axes, key_attr=None) -> Expr:
        key = (op, tuple(map(id, args)), dtype, attr if key_attr is None else key_attr)
        node = self._nodes.get(key)
        if node is None:
            self.count += 1
            node = self._nodes[key] = Expr(op, args, dtype, attr, axes, self.count)
        return node

    def const(self, value, dtype) -> Expr:
        dtype = np.dtype(dtype)
        value = np.asarray(value).astype(dtype)
        # bytes tell -0.0 from 0.0 and one NaN from another
        return self._make("const", (), dtype, value[()], frozenset(), value.tobytes())

    def load(self, buffer: Buffer, index: Index) -> Expr:
        return self._make("load", (), buffer.dtype, (buffer, index), index.axes(), (id(buffer), index))

    def index(self, index: Index, dtype=dtypes.int64) -> Expr:
        """An index as a number. One without axes stays an index: it may be a size, which code is told at run
        time."""
        return self._make("index", (), np.dtype(dtype), index, index.axes())

    def result(self, result: Result) -> Expr:
        return self._make("result", (), result.dtype, result, result.axes, id(result))

    def op(self, name: str, *args: Expr, dtype=None) -> Expr:
        if name == "or" and (outside := _find_outside(*args)) is not None:
            # without sign, negative numbers are above all others
            numbers = outside[0], self.index(constant(outside[1]))
            return self.op("gt", *(self.convert(x, dtypes.uint64) for x in numbers), dtype=dtypes.bool_)
        args = tuple([self._tell(arg) if _is_told(name, arg) else arg for arg in args])
        dtype = args[0].dtype if dtype is None else np.dtype(dtype)
        axes = args[0].axes if len(args) == 1 else frozenset().union(*(arg.axes for arg in args))
        return self._make(name, args, dtype, None, axes)

    def _tell(self, number: Expr) -> Expr:
        """A constant as a number that stands in no text, so that code does not depend on it."""
        size = self._told.setdefault(int(number.attr), RunTimeSize(int(number.attr)))
        return self.index(Index((), size), number.dtype)

    def convert(self, x: Expr, dtype) -> Expr:
        if x.dtype == dtype:
            return x
        if x.op == "const":
            with np.errstate(all="ignore"):
                return self.const(convert_dtype(np.asarray(x.attr), np.dtype(dtype)), dtype)
        if dtypes.is_narrow(x.dtype) or dtypes.is_narrow(dtype):
            return convert_narrow(self, x, dtype)
        return self.op("convert", x, dtype=dtype)


def _find_outside(below: Expr, above: Expr) -> tuple[Expr, int] | None:
    """(place, last) where two single tests ask whether a place is outside of [0, last]."""
    if below.op != "lt" or above.op != "gt" or below.axes or above.axes:
        return None
    (place, first), (other, last) = below.args, above.args
    bounds = number_of(first), number_of(last)
    is_place = place is other and place.dtype == dtypes.int64 and None not in bounds
    return (place, int(bounds[1])) if is_place and bounds[0] == 0 <= bounds[1] else None


def _is_told(name: str, arg: Expr) -> bool:
    """Whether an operand is a constant that an operation is told at run time: a whole number, and no divisor
    that one can multiply by instead."""
    if arg.op != "const":
        return False
    value, kind = arg.attr, arg.dtype.kind
    if kind == "i":
        return name in _TOLD and abs(int(value)) > _LARGEST_KNOWN
    is_size = kind == "f" and name == "div" and _LARGEST_KNOWN < value < 2**31 and value == int(value)
    return bool(is_size) and int(value) & int(value) - 1 != 0


def number_of(node: Expr):
    """The value of a literal, also of one that code is told at run time; None for other expressions."""
    if node.op == "const":
        return node.attr
    is_told = node.op == "index" and not node.attr.terms and isinstance(node.attr.const, (int, RunTimeSize))
    return int(node.attr.const) if is_told else None


def walk(roots) -> list[Expr]:
    """Every expression under the roots, operands first."""
    order, seen, stack = [], set(), list(roots)
    while stack:
        node = stack.pop()
        if type(node) is tuple:
            order.append(node[0])  # behind its operands
        elif node not in seen:
            seen.add(node)
            if node.inner:
                stack.append((node,))
                stack.extend(node.inner)
            else:
                order.append(node)
    return order
