"""How float arithmetic may be rounded, and which products stay unrounded on their way into a sum.

In: what code is rendered for, and the expressions of a kernel. Out: builders of instructions that say so;
which sums are fused multiply-adds, and instructions for them. A kernel is several pieces of code: whole
vectors, what they leave, rows side by side and alone; and threads begin anywhere. So it is the expressions
that decide, once for all of these, and an element has the same bits in each. LLVM would decide for each piece
by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.options import RenderOptions
from jitcore.backends.llvm.registers import call_intrinsic
from jitcore.loopir.expr import Axis, Expr, walk

# A product may stay unrounded on its way into a sum, where LLVM likes: in code that stands once.
CONTRACT_FLAGS = ("contract",)
# `fastmath`: sums may be reordered, quotients become products; NaN and infinities keep their meaning.
FAST_FLAGS = ("reassoc", "nsz", "arcp", "contract", "afn")


class FloatBuilder(ir.IRBuilder):
    """An IRBuilder whose float arithmetic is IEEE's, but for what `flags` allow. fuses: whether the formulas
    of complex numbers are made of multiply-adds; fused_complex: those that are in any case. stands_once:
    whether no other code computes the same."""

    def __init__(self, block: ir.Block, options: RenderOptions, stands_once: bool):
        super().__init__(block)
        self.flags: tuple[str, ...] = CONTRACT_FLAGS if options.contract and stands_once else ()
        if options.fastmath:
            self.flags = FAST_FLAGS
        self.fuses = options.contract and not self.flags
        self.fused_complex = options.fused_complex

    def fadd(self, lhs, rhs, name="", flags=()):
        return super().fadd(lhs, rhs, name, flags=self.flags)

    def fadd_rounded(self, lhs, rhs):
        """A sum of what is rounded already."""
        return super().fadd(lhs, rhs)

    def fsub(self, lhs, rhs, name="", flags=()):
        return super().fsub(lhs, rhs, name, flags=self.flags)

    def fmul(self, lhs, rhs, name="", flags=()):
        return super().fmul(lhs, rhs, name, flags=self.flags)

    def fdiv(self, lhs, rhs, name="", flags=()):
        return super().fdiv(lhs, rhs, name, flags=self.flags)


_DTYPES = (dtypes.float32, dtypes.float64)


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
    """roots: all that a kernel computes. vector: the axis of its lanes.

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
        if self._uses[id(node)] != 1 or node.dtype not in _DTYPES:
            return None
        if node.op == "mul":
            return Product(*node.args)
        if node.op == "square":
            return Product(*node.args * 2)
        inner = self.find_product(node.args[0]) if node.op == "neg" else None
        return inner and inner._replace(is_negative=not inner.is_negative)

    def _find_fused(self, node: Expr, vector: Axis | None) -> Fused | None:
        if node.op not in ("add", "sub") or node.dtype not in _DTYPES:
            return None
        if vector not in node.axes and any(arg.op == "result" for arg in node.args):
            return None  # a sum that continues a chain: it need not wait with its product
        for arg, other, is_second in (*_turns(node),):
            product = self.find_product(arg) if arg.axes == node.axes else None
            if product is None:
                continue
            if node.op == "sub" and is_second:
                return Fused(product._replace(is_negative=not product.is_negative), other, False)
            return Fused(product, other, node.op == "sub")
        return None


def emit_fused(b: ir.IRBuilder, fused: Fused, args: list[ir.Value]) -> ir.Value:
    """args: the registers of `fused.operands`."""
    return multiply_add(b, *args, fused.product.is_negative, fused.subtracts)


def _turns(node: Expr) -> Iterable[tuple[Expr, Expr, bool]]:
    first, second = node.args
    return (first, second, False), (second, first, True)


def multiply_add(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value, is_negative: bool = False,
                 subtracts: bool = False) -> ir.Value:
    """x * y + z, or with other signs, rounded once where the processor can."""
    x = b.fneg(x) if is_negative else x
    return call_intrinsic(b, "fmuladd", [x, y, b.fneg(z) if subtracts else z])
