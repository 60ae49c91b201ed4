"""Passes of a Fourier transform over a block of lines: butterflies of one size, all lanes alike.

In: the size of a butterfly. Out: LLVM text of the function of a pass. Stage: rendering.

Decimation in frequency, in place: a pass cuts each stretch of `radix * distance` points into `radix`
stretches, whose frequencies are apart by `radix`. So the results of the last pass lie in the order of
reversed digits. The first pass may read columns of an array, the last one may write them where they belong.
"""

from __future__ import annotations

import math

import numpy as np

from jitcore.backends.cpu.routines.fft.plan import find_roots
from jitcore.backends.cpu.routines.fft.stage import Complex, LaneWriter

# src: null to read what is at work; dst: null to leave results at work; roots: null in the last pass. bases:
# of the last pass, frequencies of the butterflies. turns: null, or the roots that turn this block's columns.
PASS_ARGUMENTS = ("ptr %stage, ptr %work, i64 %blocks, i64 %distance, ptr %roots, ptr %src, ptr %dst, "
                  "ptr %bases, i64 %count, ptr %turns")


def write_pass(w: LaneWriter, symbol: str, radix: int) -> None:
    """Butterflies over `blocks` stretches of radix * distance points."""
    with w.function(f"void @{symbol}({PASS_ARGUMENTS})"):
        writer = _PassWriter(w, radix)
        with w.loop(0, "%blocks") as block, w.loop(0, "%distance") as place:
            writer.write_butterfly(block, place)


class _PassWriter:
    """Writes one function. What loops do not change is computed before them."""

    def __init__(self, w: LaneWriter, radix: int):
        self.w, self.radix = w, radix
        self.masks = w.mask_pairs("%count")
        self.scales = [w.scale(number) for number in range(3)]
        self.step = w.mul("%distance", w.point)
        self.stretch = w.mul(self.step, radix)
        self.src_stride, self.dst_stride = w.number("src_stride"), w.number("dst_stride")
        self.src_step = w.mul(self.src_stride, "%distance")
        self.out_step = w.number("out_step")
        self.dst_step = w.mul(self.dst_stride, self.out_step)
        self.turn_lanes = w.pointer("turn_lanes_at")
        self.reads_work, self.leaves, self.is_last, self.is_plain = (
            w.let(f"icmp eq ptr {pointer}, null") for pointer in ("%src", "%dst", "%roots", "%turns")
        )

    def write_butterfly(self, block: str, place: str) -> None:
        """One butterfly, and the way that its results go: to roots of unity or not, and to work; or to the
        array, turned or not, with the scale."""
        w = self.w
        at = w.at("%work", w.add(w.mul(block, self.stretch), w.mul(place, w.point)))
        points = transform_points(w, self._read(at, place))
        roots, last, kept, out, turned, written, done = map(
            w.label, ("roots", "last", "kept", "out", "turned", "written", "done"))
        w.do(f"br i1 {self.is_last}, label %{last}, label %{roots}")
        w.start_block(roots)
        products = self._multiply_roots(points, place)
        w.do(f"br label %{kept}")
        w.start_block(last)
        w.do(f"br i1 {self.leaves}, label %{kept}, label %{out}")
        results = w.join([(roots, products), (last, points)], kept)
        for point, pointer in zip(results, self._list_places(at, self.step)):
            w.store_point(point, pointer)
        w.do(f"br label %{done}")
        w.start_block(out)
        base = w.let(f"zext i32 {w.load(w.at('%bases', w.mul(block, 4)), 'i32', 4)} to i64")
        w.do(f"br i1 {self.is_plain}, label %{written}, label %{turned}")
        w.start_block(turned)
        products = self._turn(points, base)
        w.do(f"br label %{written}")
        results = w.join([(out, points), (turned, products)], written)
        target = w.at("%dst", w.mul(base, self.dst_stride))
        for point, pointer in zip(results, self._list_places(target, self.dst_step)):
            w.store_pairs(Complex(*map(w.times, point, self.scales[1:])), pointer, self.masks)
        w.do(f"br label %{done}")
        w.start_block(done)

    def _read(self, at: str, place: str) -> list[Complex]:
        w = self.w
        work, array, join = w.label("work"), w.label("array"), w.label("join")
        w.do(f"br i1 {self.reads_work}, label %{work}, label %{array}")
        w.start_block(work)
        own = [w.load_point(pointer) for pointer in self._list_places(at, self.step)]
        w.do(f"br label %{join}")
        w.start_block(array)
        start = w.at("%src", w.mul(place, self.src_stride))
        places = self._list_places(start, self.src_step)
        for pointer in places:  # the next block's columns, which processors do not foresee
            w.prefetch(w.at(pointer, w.point), level=2)
            w.prefetch(w.at(pointer, w.point + w.vector_bytes), level=2)
        read = [w.load_pairs(pointer, self.masks) for pointer in places]
        read = [Complex(x.re, w.times(x.im, self.scales[0])) for x in read]
        w.do(f"br label %{join}")
        return w.join([(work, own), (array, read)], join)

    def _list_places(self, start: str, step: str) -> list[str]:
        places = [start]
        while len(places) < self.radix:
            places.append(self.w.at(places[-1], step))
        return places

    def _multiply_roots(self, points: list[Complex], place: str) -> list[Complex]:
        w, pair = self.w, 2 * self.w.itemsize
        roots = w.at("%roots", w.mul(place, (self.radix - 1) * pair))
        products = [w.multiply(point, w.spread_complex(w.at(roots, number * pair)))
                    for number, point in enumerate(points[1:])]
        return [points[0], *products]

    def _turn(self, points: list[Complex], base: str) -> list[Complex]:
        """The columns of a long line times its roots of unity."""
        w, frequency, products = self.w, base, []
        for point in points:
            of_block = w.spread_complex(w.at("%turns", w.mul(frequency, 2 * w.itemsize)))
            of_lanes = w.load_point(w.at(self.turn_lanes, w.mul(frequency, w.point)))
            products.append(w.multiply(point, w.multiply(of_block, of_lanes)))
            frequency = w.add(frequency, self.out_step)
        return products


# -- butterflies --------------------------------------------------------------------------------------------
def transform_points(w: LaneWriter, x: list[Complex]) -> list[Complex]:
    """The Fourier transform of a few points."""
    if len(x) == 2:
        return list(_add_and_subtract(w, *x))
    if len(x) == 4:
        return _transform_four(w, x)
    return _transform_eight(w, x) if len(x) == 8 else _transform_odd(w, x)


def _add_and_subtract(w: LaneWriter, x: Complex, y: Complex) -> tuple[Complex, Complex]:
    return Complex(*map(w.plus, x, y)), Complex(*map(w.minus, x, y))


def _add_and_subtract_turned(w: LaneWriter, x: Complex, y: Complex) -> tuple[Complex, Complex]:
    """x - i y, x + i y."""
    return (Complex(w.plus(x.re, y.im), w.minus(x.im, y.re)),
            Complex(w.minus(x.re, y.im), w.plus(x.im, y.re)))


def _transform_four(w: LaneWriter, x: list[Complex]) -> list[Complex]:
    even = _add_and_subtract(w, x[0], x[2])
    odd = _add_and_subtract(w, x[1], x[3])
    first, third = _add_and_subtract(w, even[0], odd[0])
    second, fourth = _add_and_subtract_turned(w, even[1], odd[1])
    return [first, second, third, fourth]


def _transform_eight(w: LaneWriter, x: list[Complex]) -> list[Complex]:
    """Two transforms of four points; the odd one's results are turned by eighths of the circle."""
    even, odd = _transform_four(w, x[::2]), _transform_four(w, x[1::2])
    half = w.constant(math.sqrt(0.5))
    minus_half = w.constant(-math.sqrt(0.5))
    results = [*_add_and_subtract(w, even[0], odd[0])]
    # (1 - i) y = (re + im) + i (im - re); (-1 - i) y = (im - re) - i (re + im)
    for number in (1, 3):
        y = odd[number]
        total, difference = w.plus(y.re, y.im), w.minus(y.im, y.re)
        re, im = (total, difference) if number == 1 else (difference, total)
        signs = (half, half if number == 1 else minus_half)
        back = (minus_half, minus_half if number == 1 else half)
        results += [Complex(*(w.fused(part, sign, e) for part, sign, e in zip((re, im), side, even[number])))
                    for side in (signs, back)]
    results += _add_and_subtract_turned(w, even[2], odd[2])
    first, fifth, second, sixth, fourth, eighth, third, seventh = results
    return [first, second, third, fourth, fifth, sixth, seventh, eighth]


def _transform_odd(w: LaneWriter, x: list[Complex]) -> list[Complex]:
    """By definition, with the symmetry of the points around the first."""
    n, half = len(x), len(x) // 2
    pairs = [_add_and_subtract(w, x[k], x[n - k]) for k in range(1, half + 1)]
    zero = x[0]
    for total, _ in pairs:
        zero = Complex(*map(w.plus, zero, total))
    results = {0: zero}
    for k in range(1, half + 1):
        roots = find_roots(k * np.arange(1, half + 1), n)
        even, odd = x[0], None
        for (real, imaginary), (total, difference) in zip(roots.tolist(), pairs):
            cosine, sine = w.constant(real), w.constant(-imaginary)
            even = Complex(*(w.fused(part, cosine, old) for part, old in zip(total, even)))
            odd = Complex(*(w.times(part, sine) for part in difference) if odd is None
                          else (w.fused(part, sine, old) for part, old in zip(difference, odd)))
        results[k], results[n - k] = _add_and_subtract_turned(w, even, odd)
    return [results[k] for k in range(n)]
