"""Vectors of keys of sorting: their type, and what is done with their lanes.

In: bits of a key. Out: the type, and LLVM text of instructions. Stage: rendering of the sorting routines.
Keys are signed integers.
"""

from __future__ import annotations

from typing import NamedTuple

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native.text_writer import TextWriter


class KeyType(NamedTuple):
    """Signed integer keys: their bits, and how many of them a vector holds."""

    bits: int
    lanes: int

    @property
    def scalar(self) -> str:
        return f"i{self.bits}"

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x i{self.bits}>"

    @property
    def mask(self) -> str:
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """The vector type in names of intrinsics."""
        return f"v{self.lanes}i{self.bits}"

    @property
    def largest(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def has_ternary_logic(self) -> bool:
        """Whether there are 32 registers, and any function of three bits is one instruction: AVX-512."""
        return self.bits * self.lanes == 512

    def lane_numbers(self, first: int = 0) -> str:
        return "<" + ", ".join(f"i{self.bits} {first + lane}" for lane in range(self.lanes)) + ">"


def key_type(bits: int) -> KeyType:
    return KeyType(bits, host.native_vector_bytes() * 8 // bits)


def compress(w: TextWriter, key: KeyType, vector: str, mask: str) -> str:
    """The lanes of a mask side by side; what follows them is undefined."""
    return w.call(f"llvm.experimental.vector.compress.{key.suffix}", vector, mask, "poison",
                  type=f"{key.vector} ({key.vector}, {key.mask}, {key.vector})")


def count_true(w: TextWriter, key: KeyType, mask: str) -> str:
    bits = f"i{key.lanes}"
    count = w.intrinsic("ctpop", bits, w.let(f"bitcast {key.mask} {mask} to {bits}"))
    return w.let(f"zext {bits} {count} to i64")
