"""One LLVM function under construction: its module, buffers, sizes and the expressions computed so far.

In: expressions and indexes of the loop program. Out: instructions. A backend says where sizes and addresses
come from, and how lanes are loaded and stored; the module that they go to knows its target.

A kernel is several pieces of code: whole vectors, what they leave, rows side by side and alone; and threads
begin anywhere. So it is its expressions that decide which products stay unrounded on their way into a sum,
once for all of these, and an element has the same bits in each. LLVM would decide for each piece by itself.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.complex_ops import read_pair, write_pair
from jitcore.backends.llvm.mathlib.emitter import COLD_WEIGHTS
from jitcore.backends.llvm.options import RenderOptions, is_static
from jitcore.backends.llvm.registers import (I1, I8, I64, FloatBuilder, Pair, element_constant, iota,
                                             map_parts, memory_type, multiply_add, splat)
from jitcore.backends.llvm.scalar_ops import emit_operation
from jitcore.loopir.expr import Axis, Buffer, Dynamic, Expr, Index, Mod, walk


class TargetModule(ir.Module):
    """features: see `RenderOptions`."""

    def __init__(self, name: str, features: Collection[str] = ()):
        super().__init__(name)
        self.features = features


#: Of products that may stay unrounded.
_FUSED_DTYPES = (dtypes.float32, dtypes.float64)


class Product(NamedTuple):
    """x * y, or -(x * y)."""

    x: Expr
    y: Expr
    is_negative: bool = False


class Fused(NamedTuple):
    """A product and what is added to it, or subtracted from it."""

    product: Product
    addend: Expr
    subtracts: bool

    @property
    def operands(self) -> list[Expr]:
        return [self.product.x, self.product.y, self.addend]


class Contraction:
    """Which sums of a kernel are fused multiply-adds.

    roots: all that it computes. vector: the axis of its lanes.

    Attributes:
        sums: the fused multiply-add that computes a sum or difference, by the id of that expression."""

    def __init__(self, roots: Iterable[Expr] = (), vector: Axis | None = None):
        roots = list(roots)
        nodes = walk(roots)
        # a product that is needed for itself too is rounded: t - t is 0
        self._uses = Counter(map(id, roots))
        for node in nodes:
            self._uses.update(map(id, node.inner))
        found = ((node, self._find_fused(node, vector)) for node in nodes)
        self.sums: dict[int, Fused] = {id(node): fused for node, fused in found if fused is not None}

    def find_product(self, node: Expr) -> Product | None:
        """The product that a number is, if nothing else needs it."""
        if self._uses[id(node)] != 1 or node.dtype not in _FUSED_DTYPES:
            return None
        if node.op == "mul":
            return Product(*node.args)
        if node.op == "square":
            return Product(*node.args * 2)
        inner = self.find_product(node.args[0]) if node.op == "neg" else None
        return inner and inner._replace(is_negative=not inner.is_negative)

    def _find_fused(self, node: Expr, vector: Axis | None) -> Fused | None:
        if node.op not in ("add", "sub") or node.dtype not in _FUSED_DTYPES:
            return None
        if vector not in node.axes and any(arg.op == "result" for arg in node.args):
            return None  # a sum that continues a chain: it need not wait with its product
        first, second = node.args
        for arg, other, is_second in (first, second, False), (second, first, True):
            product = self.find_product(arg) if arg.axes == node.axes else None
            if product is None:
                continue
            if node.op == "sub" and is_second:
                return Fused(product._replace(is_negative=not product.is_negative), other, False)
            return Fused(product, other, node.op == "sub")
        return None


class ExpressionEmitter:
    """Emits expressions into one function. Sizes, addresses and accesses in lanes are the backend's.

    lanes, vector_axis, mask: set while the body of a vector loop is emitted; `axis_values[vector_axis]`
    is then the index of lane 0. active: lanes that still go round in the loops of registers, if they differ.
    written: buffers that change. inlines_math: whether each call of a mathematical function gets a copy.
    contraction: of a kernel's expressions; elsewhere LLVM fuses what it likes."""

    def __init__(self, function: ir.Function, options: RenderOptions, contraction: Contraction | None = None):
        self.function = function
        self.prologue = ir.IRBuilder(function.append_basic_block("entry"))
        self.first_block = function.append_basic_block("body")
        self.b = FloatBuilder(self.first_block, options, stands_once=contraction is None)
        self.contraction = contraction or Contraction()
        self.pointers: dict[Buffer, ir.Value] = {}
        self.values: dict[int, ir.Value] = {}
        self.results: dict = {}
        self.axis_values: dict[Axis, ir.Value] = {}
        self.lanes, self.vector_axis, self.mask, self.active = 1, None, None, None
        self.inlines_math, self.written = True, frozenset()

    def finish(self) -> None:
        """Closes the prologue, where sizes, addresses and stack slots were put."""
        self.prologue.branch(self.first_block)

    # -- what a backend says ------------------------------------------------------------------------------
    def load_size(self, size) -> ir.Value:
        """A size that calls are told, an i64."""
        raise NotImplementedError

    def load_address(self, buffer: Buffer) -> ir.Value:
        """Where a buffer lies, an i8*."""
        raise NotImplementedError

    def load_lanes(self, buffer: Buffer, index: Index) -> ir.Value | Pair:
        raise NotImplementedError

    def store_lanes(self, buffer: Buffer, index: Index, value: ir.Value | Pair) -> None:
        raise NotImplementedError

    def emit_poll(self) -> None:
        """At the end of a round of a loop in registers."""

    # -- sizes and addresses ------------------------------------------------------------------------------
    def size(self, size) -> ir.Value:
        return I64(int(size)) if is_static(size) else self.load_size(size)

    def pointer_of(self, buffer: Buffer) -> ir.Value:
        if buffer not in self.pointers:
            self.pointers[buffer] = self.load_address(buffer)
        return self.pointers[buffer]

    def stack_slot(self, initial: ir.Value | Pair) -> ir.Value | Pair:
        """Memory for a register (a slot for each part of a pair) that holds `initial` from here on."""
        slot = map_parts(lambda part: self.prologue.alloca(part.type), initial)
        self.write_slot(slot, initial)
        return slot

    def read_slot(self, slot: ir.Value | Pair) -> ir.Value | Pair:
        return map_parts(self.b.load, slot)

    def write_slot(self, slot: ir.Value | Pair, value: ir.Value | Pair) -> None:
        map_parts(lambda part, new: self.b.store(new, part), slot, value)

    def read_element(self, buffer: Buffer, position: ir.Value) -> ir.Value | Pair:
        """The element of a buffer at a position, an i64."""
        return self._read(buffer, self.b.gep(self.element_pointer(buffer), [position]))

    def write_element(self, buffer: Buffer, position: ir.Value, value: ir.Value | Pair) -> None:
        self._write(buffer, self.b.gep(self.element_pointer(buffer), [position]), value)

    def _read(self, buffer: Buffer, pointer: ir.Value, align: int | None = None) -> ir.Value | Pair:
        if buffer.dtype.kind == "c":
            return read_pair(self.b, pointer)
        value = self.b.load(pointer, align=align)
        return self.b.trunc(value, I1) if buffer.dtype == dtypes.bool_ else value

    def _write(self, buffer: Buffer, pointer: ir.Value, value: ir.Value | Pair,
               align: int | None = None) -> None:
        if buffer.dtype.kind == "c":
            return write_pair(self.b, pointer, value)
        self.b.store(self.b.zext(value, I8) if buffer.dtype == dtypes.bool_ else value, pointer, align=align)

    def element_pointer(self, buffer: Buffer) -> ir.Value:
        """The first element's address, typed."""
        return self.b.bitcast(self.pointer_of(buffer), memory_type(buffer.dtype).as_pointer())

    # -- indexes ------------------------------------------------------------------------------------------
    def is_vector(self, axes: frozenset) -> bool:
        return self.lanes > 1 and self.vector_axis in axes

    def index(self, index: Index) -> ir.Value:
        """An index as an i64; in lanes when it depends on the vector axis."""
        vector = self.is_vector(index.axes())
        total = None if _is_zero(index.const) else self.size(index.const)
        if vector and total is not None:
            total = splat(self.b, total, self.lanes)
        for atom, coefficient in index.terms:
            term = self.index_atom(atom, vector)
            if not (isinstance(coefficient, int) and coefficient == 1):
                factor = self.size(coefficient)
                term = self.b.mul(term, splat(self.b, factor, self.lanes) if vector else factor)
            total = term if total is None else self.b.add(total, term)
        if total is None:
            return I64(0)
        return total

    def index_atom(self, atom, vector: bool) -> ir.Value:
        if isinstance(atom, Axis):
            value = self.axis_values[atom]
            if vector and atom is self.vector_axis:
                return self.b.add(splat(self.b, value, self.lanes), iota(self.lanes))
        elif isinstance(atom, Dynamic):
            value = self.expr(atom.expr)
        else:
            inner, size = self.index(atom.index), self.size(atom.size)
            if isinstance(inner.type, ir.VectorType):
                size = splat(self.b, size, self.lanes)
            value = self.b.urem(inner, size) if isinstance(atom, Mod) else self.b.udiv(inner, size)
        if vector and not isinstance(value.type, ir.VectorType):
            return splat(self.b, value, self.lanes)
        return value

    def scalar_index(self, index: Index) -> ir.Value:
        """The index of lane 0."""
        lanes, self.lanes = self.lanes, 1
        value = self.index(index)
        self.lanes = lanes
        return value

    # -- memory -------------------------------------------------------------------------------------------
    def load(self, buffer: Buffer, index: Index) -> ir.Value | Pair:
        if self.is_vector(index.axes()):
            return self.load_lanes(buffer, index)
        return self.load_scalar(buffer, index)

    def load_scalar(self, buffer: Buffer, index: Index) -> ir.Value | Pair:
        pointer = self.b.gep(self.element_pointer(buffer), [self.index(index)])
        return self._read(buffer, pointer, alignment_of(buffer))

    def store(self, buffer: Buffer, index: Index, value: ir.Value | Pair) -> None:
        if self.is_vector(index.axes()):
            self.store_lanes(buffer, index, value)
        else:
            self.store_scalar(buffer, index, value)

    def store_scalar(self, buffer: Buffer, index: Index, value: ir.Value | Pair) -> None:
        pointer = self.b.gep(self.element_pointer(buffer), [self.index(index)])
        self._write(buffer, pointer, value, alignment_of(buffer))

    # -- expressions --------------------------------------------------------------------------------------
    def expr(self, root: Expr) -> ir.Value:
        """The register of an expression; operands are emitted first, without recursion."""
        values, stack = self.values, [root]
        while stack:
            node = stack[-1]
            if id(node) in values:
                stack.pop()
                continue
            missing = [child for child in self.operands_of(node) if id(child) not in values]
            if missing:
                stack.extend(missing)
                continue
            values[id(node)] = self.emit(node)
            stack.pop()
        return values[id(root)]

    def expr_in_lanes(self, root: Expr) -> ir.Value:
        """The register of an expression, spread over the lanes where it does not depend on them."""
        value = self.expr(root)
        return value if self.lanes == 1 or self.is_vector(root.axes) else self._spread(root, value)

    def _spread(self, node: Expr, value: ir.Value) -> ir.Value:
        ready = self.values.get((id(node), self.lanes))
        return splat(self.b, value, self.lanes) if ready is None else ready

    def operands_of(self, node: Expr) -> Sequence[Expr]:
        """What has to be in registers before a node."""
        fused = self.contraction.sums.get(id(node))
        return node.inner if fused is None else fused.operands

    def emit(self, node: Expr) -> ir.Value | Pair:
        """The instructions of a node whose operands are in registers."""
        if node.op == "const":
            return self.emit_constant(node)
        if node.op == "load":
            return self.load(*node.attr)
        if node.op == "result":
            return self.results[node.attr]
        if node.op == "index":
            value = self.index(node.attr)
            return value if node.dtype == dtypes.int64 else emit_operation(
                self.b, "convert", [dtypes.int64], node.dtype, [value])
        fused = self.contraction.sums.get(id(node))
        if fused is not None:
            operands = self._read_operands(node, fused.operands)
            return multiply_add(self.b, *operands, fused.product.is_negative, fused.subtracts)
        return self.emit_operation(node, self._read_operands(node, node.args))

    def emit_constant(self, node: Expr) -> ir.Value | Pair:
        return element_constant(node.dtype, node.attr)

    def emit_operation(self, node: Expr, args: list, name: str | None = None) -> ir.Value | Pair:
        """The operation of a node, or one of another name in its place."""
        # the rest of a vector loop runs once, so its code may be slower but should be short
        inline = self.inlines_math and self.mask is None
        kinds = [arg.dtype for arg in node.args]
        return emit_operation(self.b, name or node.op, kinds, node.dtype, args, inline)

    def merge(self, op: str, dtype, x: ir.Value | Pair, y: ir.Value | Pair) -> ir.Value | Pair:
        """Two values of a reduction as one."""
        return emit_operation(self.b, op, [dtype, dtype], dtype, [x, y])

    def _read_operands(self, node: Expr, operands: Sequence[Expr]) -> list:
        """The registers of a node's operands, spread over the lanes where the node is in lanes."""
        args = [self.values[id(arg)] for arg in operands]
        if self.is_vector(node.axes):
            args = [arg if self.is_vector(operand.axes) else self._spread(operand, arg)
                    for operand, arg in zip(operands, args)]
        return args

    # -- loops --------------------------------------------------------------------------------------------
    def range_of(self, statement, axis: Axis) -> tuple[ir.Value, ir.Value]:
        """The first position of a statement's axis and the one after the last."""
        low, high = statement.bounds.get(axis, (None, None))
        return (I64(0) if low is None else self.expr(low),
                self.size(axis.extent) if high is None else self.expr(high))

    def count_positions(self, statement, axis: Axis) -> ir.Value:
        """How many positions of an axis a statement runs over; less than one for none."""
        low, high = self.range_of(statement, axis)
        return self.b.sub(high, low) if axis in statement.bounds else high

    @contextlib.contextmanager
    def for_range(self, start: ir.Value, stop: ir.Value, step: ir.Value = I64(1)) -> Iterator[ir.Value]:
        """`for i in range(start, stop, step)`, with unsigned-safe bounds and scoped expressions."""
        b, append, before = self.b, self.function.append_basic_block, self.b.block
        head, inside, after = append("loop"), append("do"), append("done")
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(start.type)
        i.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", i, stop), inside, after)
        with self._scope(inside):
            yield i
        i.add_incoming(b.add(i, step), b.block)
        b.branch(head)
        b.position_at_end(after)

    @contextlib.contextmanager
    def if_then(self, condition: ir.Value, rarely: bool = False) -> Iterator[None]:
        b, append = self.b, self.function.append_basic_block
        inside, after = append("then"), append("after")
        branch = b.cbranch(condition, inside, after)
        if rarely:
            branch.set_weights(COLD_WEIGHTS)
        with self._scope(inside):
            yield
        b.branch(after)
        b.position_at_end(after)

    @contextlib.contextmanager
    def _scope(self, block: ir.Block) -> Iterator[None]:
        """Code from a block on: what it computes is not known behind it."""
        self.b.position_at_end(block)
        saved, self.values = self.values, dict(self.values)
        yield
        self.values = saved

    def loop(self, start: ir.Value, stop: ir.Value, step: ir.Value, body: Callable[[ir.Value], None]) -> None:
        """`for i in range(start, stop, step): body(i)`."""
        with self.for_range(start, stop, step) as i:
            body(i)

    def when(self, condition: ir.Value, body: Callable[[], None], rarely: bool = False) -> None:
        with self.if_then(condition, rarely):
            body()

    def repeat(self, test: Callable[[], ir.Value], body: Callable[[], None]) -> None:
        """`while test(): body()`, with scoped expressions."""
        b, append = self.b, self.function.append_basic_block
        head, inside, after = append("test"), append("round"), append("ended")
        b.branch(head)
        with self._scope(head):
            b.cbranch(test(), inside, after)
            b.position_at_end(inside)
            body()
        b.branch(head)
        b.position_at_end(after)


def alignment_of(buffer: Buffer) -> int:
    """Arrays are aligned to their real element; a complex one to its parts."""
    itemsize = np.dtype(buffer.dtype).itemsize
    return itemsize // 2 if np.dtype(buffer.dtype).kind == "c" else itemsize


def _is_zero(value) -> bool:
    return isinstance(value, int) and value == 0
