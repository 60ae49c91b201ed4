"""Functions that hand a routine the sizes that it is told, which stand side by side in the array of sizes.

In: the symbol of a routine, the types of its other arguments and the number of sizes. Out: an internal
function of these arguments and the address of the first size; each call of the routine is short code.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.registers import I64, SIZES


def make_teller(renderer, name: str, symbol: str, kinds: list[ir.Type], count: int) -> ir.Function:
    """kinds: of the arguments before the sizes."""
    teller = ir.Function(renderer.module, ir.FunctionType(ir.VoidType(), [*kinds, SIZES]), name)
    teller.linkage = "internal"
    b = ir.IRBuilder(teller.append_basic_block("entry"))
    *values, sizes = teller.args
    told = [b.load(b.gep(sizes, [I64(k)])) for k in range(count)]
    kind = ir.FunctionType(ir.VoidType(), [*kinds, *[I64] * count])
    b.call(renderer.declare(symbol, kind), [*values, *told])
    b.ret_void()
    return teller
