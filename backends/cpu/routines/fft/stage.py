"""What the functions of Fourier transforms share: numbers of a stage, complex numbers in lanes.

In: the bytes of a real number and of a vector. Out: LLVM text. Stage: rendering, once per process and dtype.
A complex vector is a pair of registers, real and imaginary parts. In arrays the parts of a number lie side by
side; in a block of lines at work each point is two whole vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.fft.plan import STAGE_FIELDS


class Complex(NamedTuple):
    """Names of the registers of real and imaginary parts."""

    re: str
    im: str


class LaneWriter(TextWriter):
    """Writes text of vectors of `lanes` real numbers of `itemsize` bytes.

    point: bytes of a point of a block at work, and of `lanes` complex numbers of an array."""

    def __init__(self, itemsize: int, vector_bytes: int):
        super().__init__()
        self.itemsize, self.vector_bytes = itemsize, vector_bytes
        self.lanes, self.point = vector_bytes // itemsize, 2 * vector_bytes
        self.real = {4: "float", 8: "double"}[itemsize]
        self.vector, self.mask = f"<{self.lanes} x {self.real}>", f"<{self.lanes} x i1>"

    # -- numbers of a stage ---------------------------------------------------------------------------------
    def number(self, field: str) -> str:
        """A number of the stage `%stage`."""
        return self.load(self.at("%stage", 8 * STAGE_FIELDS.index(field)))

    def pointer(self, field: str) -> str:
        return self.load(self.at("%stage", 8 * STAGE_FIELDS.index(field)), "ptr")

    def scale(self, number: int) -> str:
        """One of the stage's factors in all lanes, see `Transform`."""
        return self.spread(self.at(self.pointer("scales_at"), number * self.itemsize))

    # -- vectors --------------------------------------------------------------------------------------------
    def constant(self, value: float) -> str:
        if self.itemsize == 4:
            value = struct.unpack("f", struct.pack("f", value))[0]
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return "<" + ", ".join([f"{self.real} 0x{bits:016X}"] * self.lanes) + ">"

    def plus(self, x: str, y: str) -> str:
        return self.let(f"fadd {self.vector} {x}, {y}")

    def minus(self, x: str, y: str) -> str:
        return self.let(f"fsub {self.vector} {x}, {y}")

    def times(self, x: str, y: str) -> str:
        return self.let(f"fmul {self.vector} {x}, {y}")

    def negative(self, x: str) -> str:
        return self.let(f"fneg {self.vector} {x}")

    def fused(self, x: str, y: str, z: str) -> str:
        """x * y + z."""
        return self.intrinsic("fmuladd", self.vector, x, y, z)

    def multiply(self, x: Complex, y: Complex) -> Complex:
        re = self.fused(self.negative(x.im), y.im, self.times(x.re, y.re))
        return Complex(re, self.fused(x.im, y.re, self.times(x.re, y.im)))

    def spread(self, pointer: str) -> str:
        """A real number in memory, in all lanes."""
        value = self.load(pointer, self.real, self.itemsize)
        return self.splat(value, self.real, self.lanes)

    def spread_complex(self, pointer: str) -> Complex:
        return Complex(self.spread(pointer), self.spread(self.at(pointer, self.itemsize)))

    def shuffle(self, x: str, y: str, order: Iterable[int]) -> str:
        return self.pick(self.vector, x, y, order)

    def transpose(self, rows: list[str]) -> list[str]:
        """The columns of a square. Each round mixes registers whose numbers differ in one bit, first within
        stretches of 16 bytes, then whole stretches: other patterns are slower, and slow to compile."""
        registers = [(row, [(number, lane) for lane in range(self.lanes)]) for number, row in enumerate(rows)]
        for bit, order in enumerate(self._list_mixings()):
            mixed = list(registers)
            for number in range(self.lanes):
                if not number >> bit & 1:
                    pair = number, number | 1 << bit
                    mixed[pair[0]], mixed[pair[1]] = self._mix(*(registers[k] for k in pair), order)
            registers = mixed
        columns = {marks[0][1]: register for register, marks in registers}
        return [columns[column] for column in range(self.lanes)]

    def _mix(self, x: tuple[str, list], y: tuple[str, list], order: list[int]) -> list[tuple[str, list]]:
        """Two shuffles of a pair of registers, and of marks that say what their lanes hold."""
        marks, halves = x[1] + y[1], (order[: self.lanes], order[self.lanes :])
        return [
            (self._fence(self.shuffle(x[0], y[0], half)), [marks[pick] for pick in half]) for half in halves
        ]

    def _fence(self, x: str) -> str:
        """The same value, which LLVM takes as given: it looks long for ways to merge chains of shuffles."""
        return self.intrinsic("arithmetic.fence", self.vector, x)

    def _list_mixings(self) -> Iterator[list[int]]:
        """What each round of `transpose` picks for two results from two registers."""
        size = 16 // self.itemsize
        unit = 1
        while unit < size:
            yield [source + stretch + half + k + j
                   for half in (0, size // 2) for stretch in range(0, self.lanes, size)
                   for k in range(0, size // 2, unit)
                   for source in (0, self.lanes) for j in range(unit)]
            unit *= 2
        stretches = self.lanes // size
        for _ in range(stretches.bit_length() - 1):
            yield [source + stretch * size + j
                   for parity in (0, 1) for source in (0, self.lanes)
                   for stretch in range(parity, stretches, 2) for j in range(size)]

    def interleave(self, x: str, y: str) -> tuple[str, str]:
        """Elements of two vectors by turns: the first halves, the second halves."""
        order = [k // 2 + k % 2 * self.lanes for k in range(2 * self.lanes)]
        return self.shuffle(x, y, order[: self.lanes]), self.shuffle(x, y, order[self.lanes :])

    def reverse(self, x: str) -> str:
        return self.shuffle(x, x, reversed(range(self.lanes)))

    # -- memory ---------------------------------------------------------------------------------------------
    def compare_lanes(self, kind: str, first: int, count: Operand) -> str:
        """The mask of lanes whose number, counted from `first`, is less ("slt") than a count, or so."""
        whole = f"<{self.lanes} x i32>"
        counts = self.splat(self.let(f"trunc i64 {count} to i32"), "i32", self.lanes)
        numbers = ", ".join(f"i32 {first + lane}" for lane in range(self.lanes))
        return self.let(f"icmp {kind} {whole} <{numbers}>, {counts}")

    def mask_pairs(self, count: str) -> tuple[str, str]:
        """Masks of the two vectors that `count` complex numbers of an array take."""
        double = self.add(count, count)
        return self.compare_lanes("slt", 0, double), self.compare_lanes("slt", self.lanes, double)

    def load_pairs(self, pointer: str, masks: tuple[str, str]) -> Complex:
        """Complex numbers of an array, side by side."""
        low = self.load_masked(pointer, self.vector, masks[0])
        high = self.load_masked(self.at(pointer, self.vector_bytes), self.vector, masks[1])
        return Complex(*(self.shuffle(low, high, range(part, 2 * self.lanes, 2)) for part in (0, 1)))

    def store_pairs(self, x: Complex, pointer: str, masks: tuple[str, str]) -> None:
        low, high = self.interleave(*x)
        self.store_masked(low, pointer, self.vector, masks[0])
        self.store_masked(high, self.at(pointer, self.vector_bytes), self.vector, masks[1])

    def load_point(self, pointer: str) -> Complex:
        """A point of a block at work, or a table's."""
        imaginary = self.at(pointer, self.vector_bytes)
        return Complex(*(self.load(part, self.vector, self.itemsize) for part in (pointer, imaginary)))

    def store_point(self, x: Complex, pointer: str) -> None:
        for part, place in zip(x, (pointer, self.at(pointer, self.vector_bytes))):
            self.store(part, place, self.vector, self.itemsize)

    def join(self, branches: list[tuple[str, list[Complex]]], label: str) -> list[Complex]:
        """Starts the block `label`, where branches meet; gives the values of the one that was taken.

        branches: (label of the last block, values) of each."""
        self.start_block(label)
        joined = []
        for number in range(len(branches[0][1])):
            parts = []
            for part in range(2):
                found = ", ".join(f"[ {values[number][part]}, %{block} ]" for block, values in branches)
                parts.append(self.let(f"phi {self.vector} {found}"))
            joined.append(Complex(*parts))
        return joined
