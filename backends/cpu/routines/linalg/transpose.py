"""Transposed copies of matrices, as a function that routines call.

In: a module and the bytes of an element. Out: the internal function
`void transpose(dst, i64 dst_pitch, src, i64 src_pitch, i64 rows, i64 columns)`: with pitches in elements,
`dst[j * dst_pitch + i] = src[i * src_pitch + j]`. Square tiles of a vector's length are turned in registers.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.routines.code_writer import CodeWriter
from jitcore.backends.llvm.registers import I64

_I32 = ir.IntType(32)


def define_transpose(module: ir.Module, itemsize: int, vector_bytes: int) -> ir.Function:
    """The function for elements of 4, 8 or 16 bytes."""
    element = ir.IntType(8 * itemsize)
    pointer = element.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I64, pointer, I64, I64, I64])
    function = ir.Function(module, kind, f"transpose{itemsize}")
    function.linkage = "internal"
    dst, dst_pitch, src, src_pitch, rows, columns = function.args
    w = CodeWriter(function)
    b, lanes = w.b, vector_bytes // itemsize

    def copy_elements(first_row, stop_row, first_column, stop_column):
        with w.loop(first_row, stop_row) as i, w.loop(first_column, stop_column) as j:
            value = b.load(b.gep(src, [b.add(b.mul(i, src_pitch), j)]))
            b.store(value, b.gep(dst, [b.add(b.mul(j, dst_pitch), i)]))

    whole_rows, whole_columns = (b.mul(b.sdiv(n, I64(lanes)), I64(lanes)) for n in (rows, columns))
    vector = ir.VectorType(element, lanes).as_pointer()
    with w.loop(I64(0), whole_rows, lanes) as i, w.loop(I64(0), whole_columns, lanes) as j:
        source = b.gep(src, [b.add(b.mul(i, src_pitch), j)])
        target = b.gep(dst, [b.add(b.mul(j, dst_pitch), i)])
        lines = []
        for k in range(lanes):
            line = b.bitcast(b.gep(source, [b.mul(src_pitch, I64(k))]), vector)
            lines.append(b.load(line, align=itemsize))
        for k, line in enumerate(_turn_tile(b, lines)):
            b.store(line, b.bitcast(b.gep(target, [b.mul(dst_pitch, I64(k))]), vector), align=itemsize)
    copy_elements(I64(0), whole_rows, whole_columns, columns)
    copy_elements(whole_rows, rows, I64(0), columns)
    b.ret_void()
    return function


def _turn_tile(b: ir.IRBuilder, lines: list[ir.Value]) -> list[ir.Value]:
    """The columns of a square tile given by its rows: blocks of 1, 2, 4... lanes change places."""
    lanes, block = len(lines), 1
    while block < lanes:
        low = [k if not k & block else lanes + k - block for k in range(lanes)]
        high = [k + block if not k & block else lanes + k for k in range(lanes)]
        masks = [ir.Constant(ir.VectorType(_I32, lanes), picks) for picks in (low, high)]
        turned = list(lines)
        for k in range(lanes):
            if not k & block:
                pair = lines[k], lines[k + block]
                turned[k], turned[k + block] = (b.shuffle_vector(*pair, mask) for mask in masks)
        lines, block = turned, 2 * block
    return lines
