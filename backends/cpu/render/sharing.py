"""Kernels of one program that have the same code: it is rendered and compiled once.

In: the kernels of a native step. Out: for those that are alike, which share a function, and what it is told
at each call: where its buffers are, its sizes, and the constants that are not the same in all of them. Steps
of a loop that a script writes out, or that runs while it is traced, are such kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine.tuning import Loops
from jitcore.backends.llvm.options import SizeTable
from jitcore.backends.llvm.registers import part_dtype
from jitcore.loopir.expr import Buffer, Expr
from jitcore.loopir.program import Kernel
from jitcore.loopir.text import format_kernel
from jitcore.loopir.traversal import find_split

# Constants that make code simpler, and are always known.
_SIMPLE = (0.0, 0.5, 1.0, 2.0)


class Form(NamedTuple):
    """A kernel without the names of what it works on.

    text: equal for kernels that are alike. buffers: with their slots in a table of pointers of its own; two
    may be in one place. numbers: (expression, part) of constants that the text leaves out; a complex one has
    two parts."""

    kernel: Kernel
    text: str
    buffers: dict[Buffer, int]
    sizes: SizeTable
    numbers: list[tuple[Expr, int]]

    def value(self, position: int) -> np.generic:
        expr, part = self.numbers[position]
        value = expr.attr
        return (value.real, value.imag)[part] if expr.dtype.kind == "c" else value


class Share(NamedTuple):
    """One of several kernels that share code. first: the one that the code is made from. told: positions of
    the numbers that calls pass, after the sizes."""

    form: Form
    first: Form
    told: list[int]

    def told_slots(self) -> dict[tuple[int, int], int]:
        """(constant, part) -> where the array of sizes has it."""
        first = len(self.first.sizes.slots)
        numbers = [self.first.numbers[position] for position in self.told]
        return {(id(expr), part): first + k for k, (expr, part) in enumerate(numbers)}


def find_shared(kernels: Iterable[Kernel], table: dict[Buffer, int], tuning: Loops) -> dict[Kernel, Share]:
    """The kernels that have the code of another one. table: slots of buffers; two may be in one place."""
    groups: dict[str, list[Form]] = {}
    for form in (describe_kernel(kernel, table) for kernel in kernels):
        groups.setdefault(form.text, []).append(form)
    shared = {}
    for forms in groups.values():
        for alike in _split_by_numbers(forms, tuning.min_told_lines):
            told = _find_different(alike)
            shared |= {form.kernel: Share(form, alike[0], told) for form in alike if len(alike) > 1}
    return shared


def describe_kernel(kernel: Kernel, table: dict[Buffer, int]) -> Form:
    sizes, slots, buffers, numbers = SizeTable(), {}, {}, []
    names: dict = {}

    def name_buffer(buffer: Buffer) -> str:
        if buffer not in names:
            slot = buffers[buffer] = slots.setdefault(table[buffer], len(slots))
            names[buffer] = f"{dtypes.SHORT_NAMES[buffer.dtype]} b{len(buffers)} at {slot}"
        return names[buffer]

    def name_number(expr: Expr) -> str:
        if id(expr) not in names:
            names[id(expr)] = _name_number(expr, numbers)
        return names[id(expr)]

    text = format_kernel(kernel, sizes.name, name_buffer, name_number)
    split = find_split(kernel)
    text += "".join(map(name_buffer, split[1].block_results if split else ()))
    sizes.close()
    return Form(kernel, text, buffers, sizes, numbers)


def _name_number(expr: Expr, numbers: list) -> str:
    kind, words = dtypes.SHORT_NAMES[expr.dtype], []
    is_plain = part_dtype(expr.dtype) in (dtypes.float32, dtypes.float64)
    parts = (expr.attr.real, expr.attr.imag) if expr.dtype.kind == "c" else (expr.attr,)
    for part, value in enumerate(parts):
        if is_plain and math.isfinite(value) and abs(value) not in _SIMPLE:
            words.append(f"c{len(numbers)}")
            numbers.append((expr, part))
        else:
            words.append(repr(value))
    return f"{','.join(words)}:{kind}"


def _split_by_numbers(forms: Sequence[Form], min_lines: int) -> list[list[Form]]:
    """Short kernels apart where their constants differ."""
    if forms[0].text.count("\n") >= min_lines:
        return [list(forms)]
    groups: dict[tuple, list[Form]] = {}
    for form in forms:
        groups.setdefault(tuple(_bits(form, k) for k in range(len(form.numbers))), []).append(form)
    return list(groups.values())


def _find_different(forms: Sequence[Form]) -> list[int]:
    positions = range(len(forms[0].numbers))
    return [k for k in positions if len({_bits(form, k) for form in forms}) > 1]


def _bits(form: Form, position: int) -> bytes:
    return form.value(position).tobytes()


def encode_number(value: np.generic) -> int:
    """The bits of a float32 or float64 as the 64-bit integer that is passed."""
    kind = np.int32 if value.dtype.itemsize == 4 else np.int64
    return int(value.view(kind))
