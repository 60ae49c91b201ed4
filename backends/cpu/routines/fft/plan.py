"""Plans of Fourier transforms: tables that tell the native code of a dtype what to do.

In: what to transform (`Request`). Out: a `Transform`, a list of stages with the roots of unity that they
need, as arrays whose addresses machine code is given. Stage: lowering, once per shape.

A stage transforms many lines at once, one in each lane of a vector. Lines that are adjacent columns are read
and written as whole vectors; adjacent rows are transposed in registers. A long line is a matrix: its columns
are transformed, turned by roots of unity, and then its rows, transposing (D. H. Bailey, "FFTs in external or
hierarchical memory", 1990).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jitcore.backends.cpu.machine.tuning import Fft
from jitcore.backends.cpu.native import images

#: Kinds of stages: lines in lanes; long lines, each by two stages on a thread's own memory; the step between
#: the spectra of n real and of n / 2 complex numbers.
BLOCKS, LINES, UNTANGLE = range(3)

#: Buffers that stages read and write.
INPUT, OUTPUT, TEMPORARY, PRIVATE = range(4)

# Numbers of a stage, 64 bits each; names that end in _at are addresses, offsets and strides are in bytes.
# items: what threads share, `blocks` for each of an outer index; a block is up to a vector's lanes of `lines`
# lines. *_points: of a line, in memory. parts: stages of LINES, whose memory is `own_bytes`. *_code:
# addresses of the functions of `stages` that a stage needs, so that only these are compiled.
STAGE_FIELDS = (
    "kind", "items", "grain", "blocks", "lines", "own_bytes", "work_bytes", "points",
    "src", "src_outer", "src_block", "src_stride", "src_is_rows", "src_points",
    "dst", "dst_outer", "dst_block", "dst_stride", "dst_is_rows", "dst_points",
    "scales_at", "passes_at", "pass_count", "chunks", "chunk_bases", "bases_at", "positions_at", "out_step",
    "turn_blocks_at", "turn_lanes_at", "untangle_at", "untangle_positions_at", "is_real_output", "parts_at",
    "part_count", "load_code", "store_code", "untangle_code",
)

#: Numbers of a pass: code and count of its butterflies, `blocks` stretches of `distance`; its roots of unity.
PASS_FIELDS = ("code", "distance", "blocks", "roots_at")


# A quarter of the circle, from pi as a sum of two numbers of float64.
_QUARTER = (np.longdouble(3.141592653589793) + np.longdouble(1.2246467991473532e-16)) / 2


class Request(NamedTuple):
    """batch x lengths, complex values of twice `itemsize` bytes in vectors of `lanes` real numbers.

    real: "" for complex input and output, "in" for real input, "out" for real output."""

    batch: int
    lengths: tuple[int, ...]
    itemsize: int
    lanes: int
    is_inverse: bool
    real: str
    tuning: Fft

    @property
    def is_folded(self) -> bool:
        """Whether pairs of real numbers are transformed as complex ones; odd lines are as they are."""
        return bool(self.real) and self.lengths[-1] % 2 == 0


class Side(NamedTuple):
    """Where a stage reads or writes: bytes from an outer index, a block and a point or row to the next."""

    buffer: int
    outer: int
    block: int
    stride: int
    is_rows: int
    points: int


class Place(NamedTuple):
    """Lines one after another in a buffer, so many bytes apart; 0 where there is one."""

    buffer: int
    pitch: int


class Split(NamedTuple):
    """How lines are transformed: at once (columns 1), or as matrices of rows x columns; and its time."""

    time: float
    rows: int
    columns: int


def factorize(n: int) -> tuple[int, ...] | None:
    """Sizes of the butterflies of a line of n > 1 points, largest first; None where a factor has no code."""
    found = []
    for radix in (13, 11, 7, 5, 3):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    twos = n.bit_length() - 1
    if n != 1 << twos:
        return None
    fours = {0: 0, 1: 2 if twos > 1 else 0, 2: 1}[twos % 3]
    found += [4] * fours + [8] * ((twos - 2 * fours) // 3) + [2] * (twos == 1)
    return tuple(sorted(found, reverse=True))


class Transform:
    """All stages of one transform. address: of the machine code's table, which points to `arrays`; temporary:
    complex elements that it needs."""

    def __init__(self, request: Request):
        self.request = request
        self.dtype = np.dtype(f"f{request.itemsize}")
        self.arrays: list[np.ndarray] = []
        self.work_bytes: dict[int, int] = {}
        self.stages: list[int] = []
        self.temporary = 0
        _add_stages(self)
        self.address = self.keep(np.array([len(self.stages), *self.stages], np.int64))

    def __reduce__(self):
        """As what it is a plan of: its addresses are this process'."""
        return _find_transform, (self.request,)

    def keep(self, array: np.ndarray) -> int:
        """The address of an array that now lives as long as this object."""
        array = np.ascontiguousarray(array)
        self.arrays.append(array)
        return array.ctypes.data

    def _find_code(self, name: str) -> int:
        return images.address_of(f"jitcore_fft_{name}_f{8 * self.request.itemsize}")

    def make_stage(self, **numbers: int) -> int:
        """The address of a stage, whose numbers are 0 unless given."""
        address = self.keep(np.array([int(numbers.pop(field, 0)) for field in STAGE_FIELDS], np.int64))
        assert not numbers, f"a stage has no {', '.join(numbers)}"
        return address

    # -- stages ---------------------------------------------------------------------------------------------
    def make_blocks(self, n: int, outer: int, lines: int, src: Side, dst: Side, *, first: bool, last: bool,
                    turned: int = 0, real: str = "") -> int:
        """A stage that transforms `outer` times `lines` lines of n points.

        Args:
            first, last: of a transform, where the direction and the scale come in.
            turned: length of the line whose columns these are, or 0.
            real: as in `Request`."""
        request, lanes, tuning = self.request, self.request.lanes, self.request.tuning
        blocks = -(-lines // lanes)
        radices = factorize(n)
        room = _round_up(max(n, src.points, dst.points), lanes)
        work_bytes = room * 2 * lanes * request.itemsize
        chunks = radices[0] if len(radices) > 2 and work_bytes > tuning.inner_bytes else 1
        bases, positions = _list_orders(radices, room)
        numbers = {"kind": BLOCKS, "items": outer * blocks, "blocks": blocks, "lines": lines, "points": n,
                   "grain": -(-tuning.grain_time // (tuning.point_time * n)), "work_bytes": work_bytes,
                   "pass_count": len(radices), "passes_at": self._keep_passes(radices, chunks),
                   "chunks": chunks,
                   "chunk_bases": len(bases) // chunks, "bases_at": self.keep(bases),
                   "positions_at": self.keep(positions), "out_step": len(bases),
                   "scales_at": self._keep_scales(first, last, real == "in" and request.is_folded),
                   **_name_fields("src", src), **_name_fields("dst", dst)}
        if src.is_rows:
            numbers["load_code"] = self._find_code(
                "load_reals" if real == "in" and not request.is_folded else "load_rows"
            )
        if dst.is_rows:
            numbers["store_code"] = self._find_code(
                "store_reals" if real == "out" and not request.is_folded else "store_rows"
            )
        if turned:
            numbers |= self._keep_turns(n, turned, blocks)
        if real:
            numbers |= self._keep_real_parts(n, real, positions)
        address = self.make_stage(**numbers)
        self.work_bytes[address] = work_bytes
        return address

    def _keep_passes(self, radices: tuple[int, ...], chunks: int) -> int:
        passes, length, blocks = [], math.prod(radices), 1
        for number, radix in enumerate(radices):
            distance = length // radix
            powers = np.arange(distance)[:, None] * np.arange(1, radix)
            roots = self.keep(self._find_roots(powers, length)) if distance > 1 else 0
            code = self._find_code(f"pass{radix}")
            passes.append((code, distance, blocks // chunks if number else 1, roots))
            length, blocks = distance, blocks * radix
        return self.keep(np.array(passes, np.int64))

    def _keep_scales(self, first: bool, last: bool, halves: bool) -> int:
        """Factors of imaginary parts read, of real and of imaginary parts written. The inverse transform is
        the conjugate of the transform of the conjugate. halves: what untangling gives is twice the result."""
        read = write = 1.0
        scale = 0.5 if halves else 1.0
        if self.request.is_inverse:
            read, write = (-1.0 if is_end else 1.0 for is_end in (first, last))
            scale = 1 / math.prod(self.request.lengths) if last else 1.0
        return self.keep(np.array([read, scale, scale * write], self.dtype))

    def _keep_turns(self, n: int, total: int, blocks: int) -> dict[str, int]:
        """Roots of a line of n x columns points: that of column c, row k is that of the first column of c's
        block times that of its lane."""
        lanes, rows = self.request.lanes, np.arange(n)
        of_blocks = self._find_roots(np.arange(blocks)[:, None] * lanes * rows, total)
        of_lanes = self._find_roots(np.arange(lanes) * rows[:, None], total)
        return {"turn_blocks_at": self.keep(of_blocks), "turn_lanes_at": self.keep(of_lanes.swapaxes(1, 2))}

    def _keep_real_parts(self, n: int, real: str, positions: np.ndarray) -> dict[str, int]:
        """What comes before the passes for real output, and after them for real input."""
        is_output = real == "out"
        if not self.request.is_folded:
            code = self._find_code("extend_block") if is_output else 0
            return {"is_real_output": is_output, "untangle_code": code}
        places = np.arange(len(positions), dtype=np.int32) if is_output else positions
        return {"untangle_at": self._keep_untangling(2 * n), "is_real_output": is_output,
                "untangle_positions_at": self.keep(places),
                "untangle_code": self._find_code("untangle_block")}

    def _keep_untangling(self, n: int) -> int:
        roots = self._find_roots(np.arange(n // 4 + 1), n)
        return self.keep(np.stack([roots[:, 1], -roots[:, 0]], axis=1))

    def _find_roots(self, powers: np.ndarray, n: int) -> np.ndarray:
        """exp(-2 pi i powers / n) as pairs of real numbers, along a new last axis."""
        return find_roots(powers, n).astype(self.dtype)

    def make_untangle(self, n: int, lines: int, src: Place, dst: Place, *, first: bool) -> int:
        """The stage between the spectrum of n / 2 complex numbers and half of that of n real ones."""
        is_output, tuning = self.request.real == "out", self.request.tuning
        blocks = -(-(n // 4) // self.request.lanes)
        return self.make_stage(
            kind=UNTANGLE, items=lines * blocks, blocks=blocks, points=n // 2, is_real_output=is_output,
            grain=-(-tuning.grain_time // tuning.point_time), untangle_at=self._keep_untangling(n),
            scales_at=self._keep_scales(first, last=False, halves=not is_output),
            untangle_code=self._find_code("untangle_lines"),
            src=src.buffer, src_outer=src.pitch, dst=dst.buffer, dst_outer=dst.pitch)

    def make_lines(self, lines: int, own_bytes: int, parts: Sequence[int], time: float) -> int:
        """The stage that does others, line by line. own_bytes: of a line at work between them."""
        return self.make_stage(
            kind=LINES, items=lines, grain=-(-self.request.tuning.grain_time // int(time)),
            own_bytes=_round_up(own_bytes, 64),
            work_bytes=max(self.work_bytes.get(part, 0) for part in parts),
            parts_at=self.keep(np.array(parts, np.int64)), part_count=len(parts))


def _round_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _name_fields(prefix: str, side: Side) -> dict[str, int]:
    names = (prefix, *(f"{prefix}_{field}" for field in side._fields[1:]))
    return dict(zip(names, side))


def find_roots(powers: np.ndarray, n: int) -> np.ndarray:
    """exp(-2 pi i powers / n) in float64 as pairs, along a new last axis.

    powers: int64. Angles are taken from the nearest quarter of the circle, exactly, and in longdouble, which
    on many systems has more digits: the errors of roots are what decides about those of a transform."""
    powers = np.asarray(powers, np.int64) % n
    quarters = (8 * powers + n) // (2 * n)
    angles = (4 * powers - quarters * n).astype(np.longdouble) / n * _QUARTER
    cosine, sine = (function(angles).astype(np.float64) for function in (np.cos, np.sin))
    turn = quarters % 4
    real = np.choose(turn, (cosine, -sine, -cosine, sine))
    imaginary = np.choose(turn, (sine, cosine, -sine, -cosine))
    return np.stack([real, -imaginary], axis=-1)


@functools.lru_cache(maxsize=64)
def _list_orders(radices: tuple[int, ...], room: int) -> tuple[np.ndarray, np.ndarray]:
    """(frequency of the first output of each last butterfly, place of each frequency), in int32."""
    bases, weight = np.zeros(1, np.int32), 1
    for radix in radices[:-1]:
        bases = (bases[:, None] + weight * np.arange(radix, dtype=np.int32)).ravel()
        weight *= radix
    frequencies = (bases[:, None] + weight * np.arange(radices[-1], dtype=np.int32)).ravel()
    positions = np.arange(room, dtype=np.int32)
    positions[frequencies] = np.arange(len(frequencies), dtype=np.int32)
    return bases, positions


# -- stages of transforms -----------------------------------------------------------------------------------
def plan_transform(request: Request) -> Transform | None:
    """The plan of a transform; None where a length has a factor without code, or real lines are too short."""
    points = [*request.lengths]
    if request.is_folded:
        points[-1] //= 2
    if request.real and points[-1] == 1:
        return None
    if all(n == 1 for n in points) or any(n != 1 and factorize(n) is None for n in points):
        return None
    return _find_transform(request)


@functools.lru_cache(maxsize=32)
def _find_transform(request: Request) -> Transform:
    return Transform(request)


def _add_stages(transform: Transform) -> None:
    """Rows first, where memory is read in order, and in place from then on; real output comes from rows."""
    request = transform.request
    *outer_lengths, last = request.lengths
    row_points = last // 2 + 1 if request.real else last
    axes, inner = [], row_points
    for position in reversed(range(len(outer_lengths))):
        n = outer_lengths[position]
        if n != 1:
            axes.append((n, request.batch * math.prod(outer_lengths[:position]), inner))
        inner *= n
    lines, has_rows = request.batch * math.prod(outer_lengths), last != 1
    if request.real == "out":
        where = INPUT
        for number, axis in enumerate(axes):
            _add_columns(transform, axis, where, TEMPORARY, first=not number, last=False)
            transform.temporary, where = lines * row_points, TEMPORARY
        _add_rows(transform, last, lines, where, first=not axes, last=True)
        return
    if has_rows:
        _add_rows(transform, last, lines, INPUT, first=True, last=not axes)
    for number, axis in enumerate(axes):
        is_first = not number and not has_rows
        _add_columns(transform, axis, INPUT if is_first else OUTPUT, OUTPUT,
                     first=is_first, last=number == len(axes) - 1)


def _add_columns(transform: Transform, axis: tuple[int, int, int], src: int, dst: int, *, first: bool,
                 last: bool) -> None:
    """Transforms the middle axis of outer x n x inner."""
    n, outer, inner = axis
    item = 2 * transform.request.itemsize
    sides = [Side(buffer, n * inner * item, transform.request.lanes * item, inner * item, 0, n)
             for buffer in (src, dst)]
    transform.stages.append(transform.make_blocks(n, outer, inner, *sides, first=first, last=last))


def _add_rows(transform: Transform, length: int, lines: int, src: int, *, first: bool, last: bool) -> None:
    """Transforms the last axis, from `src` to the output."""
    request, item = transform.request, 2 * transform.request.itemsize
    n = length // 2 if request.is_folded else length
    sides = []
    for buffer, is_real in ((src, request.real == "in"), (OUTPUT, request.real == "out")):
        points = length // 2 + 1 if request.real and not is_real else n
        pitch = length * request.itemsize if is_real else points * item
        sides.append(Side(buffer, 0, request.lanes * pitch, pitch, 1, points))
    split = _choose_split(n, lines, request)
    if split.columns == 1:
        stage = transform.make_blocks(n, 1, lines, *sides, first=first, last=last, real=request.real)
        transform.stages.append(stage)
        return
    is_alone = lines < request.tuning.many_lines and n >= request.tuning.shared_points
    middle = TEMPORARY if is_alone else PRIVATE
    # Rows of the matrix that are powers of two apart would compete for the same lines of caches.
    row = split.columns if request.real == "out" else split.columns + request.lanes
    source, target = (Place(side.buffer, side.stride) for side in sides)
    own = source if middle == src else Place(middle, split.rows * row * item if is_alone else 0)
    parts = []
    if request.real == "out":
        parts.append(transform.make_untangle(length, lines, source, own, first=first))
        source, first = own, False
    parts += _make_two_steps(transform, split, lines, row, (source, own, target), first=first, last=last)
    if request.real == "in":
        parts.append(transform.make_untangle(length, lines, target, target, first=False))
    if is_alone:
        transform.stages += parts
        transform.temporary = max(transform.temporary, lines * split.rows * row)
    else:
        own_bytes = split.rows * row * item
        transform.stages.append(transform.make_lines(lines, own_bytes, parts, split.time / lines))


def _make_two_steps(transform: Transform, split: Split, lines: int, row: int,
                    places: tuple[Place, Place, Place], *, first: bool, last: bool) -> list[int]:
    """Stages for lines as matrices: columns, which keep their places, turned; rows, which become columns.

    row: points from a row to the next of the second of the places, between the steps."""
    (source, own, target), lanes = places, transform.request.lanes
    item = 2 * transform.request.itemsize
    rows, columns = split.rows, split.columns
    src = Side(source.buffer, source.pitch, lanes * item, columns * item, 0, rows)
    middle = Side(own.buffer, own.pitch, lanes * item, row * item, 0, rows)
    turned = Side(own.buffer, own.pitch, lanes * row * item, row * item, 1, columns)
    dst = Side(target.buffer, target.pitch, lanes * item, rows * item, 0, columns)
    return [
        transform.make_blocks(
            rows, lines, columns, src, middle, first=first, last=False, turned=rows * columns
        ),
        transform.make_blocks(columns, lines, rows, turned, dst, first=False, last=last),
    ]


def _choose_split(n: int, lines: int, request: Request) -> Split:
    """The fastest way by a rough count of time."""
    t, lanes = request.tuning, request.lanes
    ends = (t.untangle_time if request.real else 0) + 2 * t.rows_time
    time = _estimate_blocks(n, request, ends) * -(-lines // lanes)
    best = Split(time, n, 1)
    if request.real and not request.is_folded:
        return best
    for rows in _list_divisors(n):
        columns = n // rows
        if rows == 1 or columns == 1:
            continue
        first = _estimate_blocks(rows, request, 2 * t.columns_time + t.turn_time) * -(-columns // lanes)
        second = _estimate_blocks(columns, request, t.columns_time + t.rows_time) * -(-rows // lanes)
        time = lines * (first + second + (t.untangle_time * n / lanes if request.real else 0))
        if time < best.time:
            best = Split(time, rows, columns)
    return best


def _estimate_blocks(n: int, request: Request, ends: int) -> float:
    """Time of a block of lines of n points. ends: of a point, for reading and writing."""
    size, tuning = n * 2 * request.lanes * request.itemsize, request.tuning
    distance = tuning.distances[(size > tuning.inner_bytes) + (size > tuning.outer_bytes)]
    times = dict(tuning.radix_times)
    return n * (sum(times[radix] for radix in factorize(n)) + ends) * distance


def _list_divisors(n: int) -> Iterator[int]:
    """Divisors of n, from its square root on to both sides."""
    for low in range(math.isqrt(n), 0, -1):
        if n % low == 0:
            yield low
            if low * low != n:
                yield n // low
