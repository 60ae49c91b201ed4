"""Scalar expressions of the loop program: pure, typed, hash-consed nodes.

In: operations on scalars. Out: a DAG in which equal expressions are one object, so that common subexpressions
are computed once and each node can be placed at the outermost loop level that it depends on.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore import dtypes
from jitcore.core.primitive import registry
from jitcore.lax.elementwise import convert_dtype
from jitcore.loopir.index import Index, RunTimeSize, constant

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
    expressions inside the index of a load.
    """

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
