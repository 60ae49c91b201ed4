"""How float arithmetic may be rounded.

In: what code is rendered for, and where it stands. Out: a builder of instructions that say so.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.options import RenderOptions

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
