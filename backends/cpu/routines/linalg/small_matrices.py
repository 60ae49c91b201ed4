"""Factorisations and solvers for matrices so small that calling LAPACK takes longer than the work.

In: a `lapack_code` writer at one matrix of real numbers. Out: code that works on the rows where they lie: no
work memory, no transposed copies. Pivots are chosen as LAPACK does, by the first largest magnitude.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.registers import I32, I64


def write_small_lu(w) -> None:
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    size, count = b.mul(rows, columns), w.smaller(rows, columns)
    out = w.at("out", size, w.real)
    pivots, permutation = w.at("pivots", count, I32), w.at("permutation", rows, I32)
    w.copy(out, w.at("x", size), size)
    w.count_up(permutation, rows)
    with w.loop(I64(0), count) as k:
        pivot = _find_pivot(w, out, rows, columns, k)
        b.store(b.trunc(pivot, I32), b.gep(pivots, [k]))
        line, other = (b.gep(out, [b.mul(row, columns)]) for row in (k, pivot))
        with b.if_then(b.icmp_signed("!=", pivot, k)):
            with w.loop(I64(0), columns) as j:
                w.exchange(b.gep(line, [j]), b.gep(other, [j]))
            w.exchange(b.gep(permutation, [k]), b.gep(permutation, [pivot]))
        divisor, below = b.load(b.gep(line, [k])), b.add(k, I64(1))
        with b.if_then(b.fcmp_unordered("!=", divisor, ir.Constant(w.real, 0.0))):
            with w.loop(below, rows) as i:
                target = b.gep(out, [b.mul(i, columns)])
                factor = b.fdiv(b.load(b.gep(target, [k])), divisor)
                b.store(factor, b.gep(target, [k]))
                with w.loop(below, columns) as j:
                    _subtract(w, b.gep(target, [j]), factor, b.gep(line, [j]))


def _find_pivot(w, out: ir.Value, rows: ir.Value, columns: ir.Value, k: ir.Value) -> ir.Value:
    """The row, from k on, with the first largest magnitude in column k."""
    b = w.b
    best, place = w.slot(w.real), w.slot(I64)
    b.store(_magnitude(w, b.load(b.gep(out, [b.add(b.mul(k, columns), k)]))), best)
    b.store(k, place)
    with w.loop(b.add(k, I64(1)), rows) as i:
        value = _magnitude(w, b.load(b.gep(out, [b.add(b.mul(i, columns), k)])))
        found = b.load(best)
        is_larger = b.fcmp_ordered(">", value, found)
        b.store(b.select(is_larger, value, found), best)
        b.store(b.select(is_larger, i, b.load(place)), place)
    return b.load(place)


def _magnitude(w, value: ir.Value) -> ir.Value:
    return w.b.call(w.module.declare_intrinsic("llvm.fabs", [w.real]), [value])


def _subtract(w, place: ir.Value, factor: ir.Value, other: ir.Value) -> None:
    """*place -= factor * *other."""
    b = w.b
    product = b.fmul(factor, b.load(other), flags=["contract"])
    b.store(b.fsub(b.load(place), product, flags=["contract"]), place)


def write_small_solve(w, side: str, triangle: str, form: str, diagonal: str) -> None:
    """T Y = C by substitution, where T is op(A) and Y is X, or both are transposed for X op(A) = B."""
    b, rows, columns, n = w.b, w.numbers["rows"], w.numbers["columns"], w.numbers["n"]
    size = b.mul(rows, columns)
    out, a = w.at("out", size, w.real), w.at("a", b.mul(n, n), w.real)
    w.copy(out, w.at("b", size), size)
    is_left, is_transposed = side == "l", form != "n"
    across, along = (columns, I64(1)) if is_left else (I64(1), columns)  # steps of Y between rows, columns
    others = columns if is_left else rows
    down, right = (n, I64(1)) if is_left != is_transposed else (I64(1), n)  # the same of T
    is_forward = (triangle == "l") ^ is_transposed ^ (not is_left)

    def position(k):
        return k if is_forward else b.sub(b.sub(n, I64(1)), k)

    with w.loop(I64(0), n) as step:
        i = position(step)
        line, target = b.gep(a, [b.mul(i, down)]), b.gep(out, [b.mul(i, across)])
        with w.loop(I64(0), step) as before:
            k = position(before)
            factor, known = b.load(b.gep(line, [b.mul(k, right)])), b.gep(out, [b.mul(k, across)])
            with w.loop(I64(0), others) as j:
                offset = b.mul(j, along)
                _subtract(w, b.gep(target, [offset]), factor, b.gep(known, [offset]))
        if diagonal == "n":
            divisor = b.load(b.gep(line, [b.mul(i, right)]))
            with w.loop(I64(0), others) as j:
                place = b.gep(target, [b.mul(j, along)])
                b.store(b.fdiv(b.load(place), divisor), place)
