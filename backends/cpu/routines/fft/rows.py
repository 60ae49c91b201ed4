"""Blocks of lines that are rows of an array: transposing them into lanes and back, and real spectra.

In: the name of a function. Out: its LLVM text; `untangle_lines` works on lines of an array, the others on a
block. Stage: rendering.

A line of n real numbers, n even, is transformed as n / 2 complex ones z. With Z their spectrum, h = n / 2 and
u = -i exp(-2 pi i k / n), twice the spectrum of the line is, for k up to h / 2,

    (Z[k] + conj Z[h - k]) + u (Z[k] - conj Z[h - k]) at k, and
    conj((Z[k] + conj Z[h - k]) - u (Z[k] - conj Z[h - k])) at h - k.

The same formulas lead from the conjugate of the half spectrum of a real line to that of Z.
"""

from __future__ import annotations

from jitcore.backends.cpu.routines.fft.stage import Complex, LaneWriter

#: Arguments of a function that does items [start, stop) of a stage.
RANGE_ARGUMENTS = "ptr %buffers, ptr %stage, i64 %start, i64 %stop"


def write_load_rows(w: LaneWriter, symbol: str, are_real: bool = False) -> None:
    """Point k of row i goes to lane i of point k; lanes without a row repeat the last row.

    are_real: rows hold real numbers."""
    with w.function(f"void @{symbol}(ptr %stage, ptr %work, ptr %src, i64 %count)"):
        stride, sign = w.number("src_stride"), w.scale(0)
        last = w.sub("%count", 1)
        starts = [w.at("%src", w.mul(w.minimum(lane, last), stride)) for lane in range(w.lanes)]
        parts = w.mul(w.number("src_points"), 1 if are_real else 2)
        with w.loop(0, parts, w.lanes) as part:
            offset = w.mul(part, w.itemsize)
            mask = w.compare_lanes("slt", 0, w.sub(parts, part))
            columns = w.transpose([w.load_masked(w.at(start, offset), w.vector, mask) for start in starts])
            if are_real:
                points = [Complex(column, w.constant(0.0)) for column in columns]
            else:
                points = [Complex(re, w.times(im, sign)) for re, im in zip(columns[::2], columns[1::2])]
            target = w.at("%work", w.mul(part, w.point if are_real else w.vector_bytes))
            for number, point in enumerate(points):
                w.store_point(point, w.at(target, number * w.point))


def write_store_rows(w: LaneWriter, symbol: str, are_real: bool = False) -> None:
    """The way back, from where the passes left each frequency, with the scale."""
    with w.function(f"void @{symbol}(ptr %stage, ptr %work, ptr %dst, i64 %count)"):
        stride, positions = w.number("dst_stride"), w.pointer("positions_at")
        scales = [w.scale(1), w.scale(2)]
        starts = [w.at("%dst", w.mul(lane, stride)) for lane in range(w.lanes)]
        parts_per_point = 1 if are_real else 2
        parts = w.mul(w.number("dst_points"), parts_per_point)
        with w.loop(0, parts, w.lanes) as part:
            offset, first = w.mul(part, w.itemsize), w.div(part, parts_per_point)
            columns = []
            for number in range(w.lanes // parts_per_point):
                point = w.load_point(_find_place(w, positions, w.add(first, number)))
                columns += map(w.times, point[:parts_per_point], scales)
            mask = w.compare_lanes("slt", 0, w.sub(parts, part))
            for lane, row in enumerate(w.transpose(columns)):
                is_there = w.compare("slt", lane, "%count")
                chosen = w.let(f"select i1 {is_there}, {w.mask} {mask}, {w.mask} zeroinitializer")
                w.store_masked(row, w.at(starts[lane], offset), w.vector, chosen)


def write_extend_block(w: LaneWriter, symbol: str) -> None:
    """The second half of the spectra of real lines of odd length, from the first; the mean is real."""
    with w.function(f"void @{symbol}(ptr %stage, ptr %work)"):
        points = w.number("points")
        w.store(w.constant(0.0), w.at("%work", w.vector_bytes), w.vector, w.itemsize)
        with w.loop(1, w.add(w.div(points, 2), 1)) as k:
            value = w.load_point(w.at("%work", w.mul(k, w.point)))
            mirrored = w.at("%work", w.mul(w.sub(points, k), w.point))
            w.store_point(Complex(value.re, w.negative(value.im)), mirrored)


def _find_place(w: LaneWriter, positions: str, k: str) -> str:
    """The address of frequency k of the block at work."""
    place = w.load(w.at(positions, w.mul(k, 4)), "i32", 4)
    return w.at("%work", w.mul(w.let(f"zext i32 {place} to i64"), w.point))


def write_untangle_block(w: LaneWriter, symbol: str) -> None:
    """In place on a block at work, of one point more than n / 2."""
    with w.function(f"void @{symbol}(ptr %stage, ptr %work)"):
        points, positions = w.number("points"), w.pointer("untangle_positions_at")
        table = w.pointer("untangle_at")
        first, last = (_find_place(w, positions, k) for k in (0, points))
        ends = _untangle_ends(w, w.load_point(first), w.load_point(last))
        w.store_point(ends[0], first)
        w.store_point(ends[1], last)
        half = w.let(f"lshr i64 {points}, 1")
        with w.loop(1, w.add(half, 1)) as k:
            low, high = _find_place(w, positions, k), _find_place(w, positions, w.sub(points, k))
            root = w.spread_complex(w.at(table, w.mul(k, 2 * w.itemsize)))
            pair = _untangle(w, w.load_point(low), w.load_point(high), root)
            w.store_point(pair[0], low)
            w.store_point(pair[1], high)


def write_untangle_lines(w: LaneWriter, symbol: str) -> None:
    """Items of a stage, vectors of neighbouring k from 1 on of a line; source and target may
    be one."""
    with w.function(f"void @{symbol}({RANGE_ARGUMENTS})"):
        blocks, points = w.number("blocks"), w.number("points")
        half, table = w.let(f"lshr i64 {points}, 1"), w.pointer("untangle_at")
        scales = [w.scale(number) for number in range(3)]
        pair = 2 * w.itemsize
        with w.loop("%start", "%stop") as item:
            line, block = w.div(item, blocks), w.rem(item, blocks)
            src, dst = (find_line(w, side, line) for side in ("src", "dst"))
            k = w.add(w.mul(block, w.lanes), 1)
            with w.when(w.compare("eq", block, 0)):
                _untangle_line_ends(w, src, dst, points, scales)
            count = w.sub(w.add(half, 1), k)
            masks = w.mask_pairs(count)
            back = _mask_last_pairs(w, count)
            low = w.mul(k, pair)
            high = w.mul(w.sub(w.sub(points, k), w.lanes - 1), pair)
            values = [w.load_pairs(w.at(src, low), masks), _reverse(w, w.load_pairs(w.at(src, high), back))]
            values = [Complex(x.re, w.times(x.im, scales[0])) for x in values]
            results = _untangle(w, *values, w.load_pairs(w.at(table, low), masks))
            results = [Complex(*map(w.times, x, scales[1:])) for x in results]
            w.store_pairs(results[0], w.at(dst, low), masks)
            w.store_pairs(_reverse(w, results[1]), w.at(dst, high), back)


def find_line(w: LaneWriter, side: str, line: str) -> str:
    """Where line number `line` of a stage's source or target begins."""
    buffer = w.load(w.at("%buffers", w.mul(w.number(side), 8)), "ptr")
    return w.at(buffer, w.mul(line, w.number(f"{side}_outer")))


def _mask_last_pairs(w: LaneWriter, count: str) -> tuple[str, str]:
    """Masks of the last `count` complex numbers of two vectors."""
    missing = w.mul(w.sub(w.lanes, count), 2)
    return w.compare_lanes("sge", 0, missing), w.compare_lanes("sge", w.lanes, missing)


def _reverse(w: LaneWriter, x: Complex) -> Complex:
    return Complex(*map(w.reverse, x))


def _untangle(w: LaneWriter, x: Complex, y: Complex, root: Complex) -> tuple[Complex, Complex]:
    """What comes to k and h - k, from what is there."""
    total = Complex(w.plus(x.re, y.re), w.minus(x.im, y.im))
    turned = w.multiply(Complex(w.minus(x.re, y.re), w.plus(x.im, y.im)), root)
    low = Complex(*map(w.plus, total, turned))
    return low, Complex(w.minus(total.re, turned.re), w.minus(turned.im, total.im))


def _untangle_ends(w: LaneWriter, first: Complex, last: Complex) -> tuple[Complex, Complex]:
    """What comes to 0 and h. The ends of a real line's spectrum are real, and taken as such."""
    to_real = w.compare("ne", w.number("is_real_output"), 0)
    y = w.choose(to_real, last.re, first.im, w.vector)
    total, difference = w.plus(first.re, y), w.minus(first.re, y)
    doubled = [w.plus(x, x) for x in (total, difference)]
    zero = w.constant(0.0)
    first = Complex(w.choose(to_real, total, doubled[0], w.vector),
                    w.choose(to_real, w.negative(difference), zero, w.vector))
    return first, Complex(doubled[1], zero)


def _untangle_line_ends(w: LaneWriter, src: str, dst: str, points: str, scales: list[str]) -> None:
    """`_untangle_ends` on a line of an array, in the first lane; a line of n / 2 points ends before h."""
    end = w.mul(points, 2 * w.itemsize)
    to_real = w.compare("ne", w.number("is_real_output"), 0)
    one = w.mask_pairs("1")
    last = w.load_pairs(w.at(src, w.choose(to_real, end, 0)), one)
    ends = _untangle_ends(w, w.load_pairs(src, one), last)
    ends = [Complex(*map(w.times, x, scales[1:])) for x in ends]
    w.store_pairs(ends[0], dst, one)
    with w.when(w.let(f"xor i1 {to_real}, true")):
        w.store_pairs(ends[1], w.at(dst, end), one)
