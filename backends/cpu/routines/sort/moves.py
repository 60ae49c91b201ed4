"""Transposed copies of batches of matrices in machine code: how an axis becomes the last one and goes back.

In: a symbol, `jitcore_sort_transpose_<bytes of an element>`. Out: LLVM text that defines it. Stage:
rendering of routines.

    void jitcore_sort_transpose_4(in, out, i64 outer, i64 rows, i64 columns, i64 is_shared)

copies in[outer, rows, columns] to out[outer, columns, rows], by blocks that threads share.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.routines.code_writer import CodeWriter
from jitcore.backends.cpu.routines.linalg.transpose import define_transpose
from jitcore.backends.cpu.runtime.threads import SYMBOL as PARALLEL_FOR
from jitcore.backends.llvm.registers import I64, POINTER, SIZES, TABLE

TRANSPOSE_PREFIX = "jitcore_sort_transpose_"


_VOID = ir.VoidType()
_BODY = ir.FunctionType(_VOID, [TABLE, SIZES, I64, I64])


def render_transpose(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_transpose_<bytes>`."""
    size = int(symbol.removeprefix(TRANSPOSE_PREFIX))
    module = ir.Module(symbol)
    body = _define_body(module, size, tuning.block)
    function = ir.Function(module, ir.FunctionType(_VOID, [POINTER, POINTER, I64, I64, I64, I64]), symbol)
    source, target, outer, rows, columns, is_shared = function.args
    w = CodeWriter(function)
    b = w.b
    table, numbers = w.slot(POINTER, 2), w.slot(I64, 4)
    for k, pointer in enumerate((source, target)):
        b.store(pointer, b.gep(table, [I64(k)]))
    blocks = b.mul(_count_blocks(b, rows, tuning.block), _count_blocks(b, columns, tuning.block))
    for k, number in enumerate((rows, columns, _count_blocks(b, columns, tuning.block), blocks)):
        b.store(number, b.gep(numbers, [I64(k)]))
    total = b.mul(outer, blocks)
    grain = b.select(b.icmp_signed("!=", is_shared, I64(0)), I64(4), total)
    kind = ir.FunctionType(_VOID, [_BODY.as_pointer(), TABLE, SIZES, I64, I64])
    b.call(ir.Function(module, kind, PARALLEL_FOR), [body, table, numbers, total, grain])
    b.ret_void()
    return str(module)


def _count_blocks(b: ir.IRBuilder, extent: ir.Value, block: int) -> ir.Value:
    return b.udiv(b.add(extent, I64(block - 1)), I64(block))


def _define_body(module: ir.Module, size: int, side: int) -> ir.Function:
    """The function that copies some of the blocks."""
    # A tile has as many rows as lanes: small elements take part of a vector, so that rows stay in registers.
    transpose = define_transpose(module, size, min(host.native_vector_bytes(), 16 * size))
    element = ir.IntType(8 * size).as_pointer()
    function = ir.Function(module, _BODY, "transpose_blocks")
    function.linkage = "internal"
    table, numbers, start, stop = function.args
    w = CodeWriter(function)
    b = w.b
    source, target = (b.bitcast(b.load(b.gep(table, [I64(k)])), element) for k in range(2))
    rows, columns, across, blocks = (b.load(b.gep(numbers, [I64(k)])) for k in range(4))
    with w.loop(start, stop) as block:
        base = b.mul(b.udiv(block, blocks), b.mul(rows, columns))
        place = b.urem(block, blocks)
        row = b.mul(b.udiv(place, across), I64(side))
        column = b.mul(b.urem(place, across), I64(side))
        high, wide = (w.smaller(I64(side), b.sub(extent, first)) for extent, first in
                      ((rows, row), (columns, column)))
        read = b.gep(source, [b.add(base, b.add(b.mul(row, columns), column))])
        write = b.gep(target, [b.add(base, b.add(b.mul(column, rows), row))])
        b.call(transpose, [write, rows, read, columns, high, wide])
    b.ret_void()
    return function
