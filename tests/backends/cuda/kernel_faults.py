"""Faults in kernels, seeded one at a time, and whether the device in software finds them.

    python -m tests.backends.cuda.kernel_faults --count 160     prints the table of docs/testing.md

In: the PTX of small programs. Out: for each fault what finds it: the device, by a check that fails, or the results,
which differ. A fault is one changed line: a barrier left out, an access one element away, a condition turned round or
one off, a guard left out so that other threads store too, an atomic update made in two steps, another lane of a
shuffle, another operator. Places are drawn at random, with a fixed seed, as many of each kind.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import jitcore
from jitcore.backends.cuda.emulated import EmulatedDevice
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.program import LoadedProgram
from jitcore.sharding import Device

DEVICE = Device("gpu", device_kind="emulated", backend="cuda:emulated")
#: Jumps backwards after which a thread counts as one that never ends.
STEP_LIMIT = 1 << 16
#: Orders of threads in which a fault is looked for before it counts as one that changes nothing.
SEEDS = (None, 1, 2, 3)


class Fault(NamedTuple):
    """A changed line of the PTX of a program."""

    kind: str
    program: str
    number: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.program!r}, line {self.number}: {self.before.strip()} -> {self.after.strip()}"


# -- seeding --------------------------------------------------------------------------------------------------
_COMPARISONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}
_OPERATORS = {"add": "sub", "sub": "add", "min": "max", "max": "min", "mul": "add", "and": "or", "or": "and"}
_ACCESS = re.compile(r"^(.*\b(?:ld|st)\.(?:global|shared)\S*?\.[busf](\d+)\s.*\[%?\w+)((?:\+-?\d+)?)(\].*)$")


def _drop_barrier(line: str) -> Iterator[str]:
    if re.match(r"\s*(bar|barrier)\.", line):
        yield ""


def _shift_access(line: str) -> Iterator[str]:
    found = _ACCESS.match(line)
    if found:
        head, bits, offset, tail = found.groups()
        yield f"{head}+{int(offset[1:] or 0) + int(bits) // 8}{tail}"


def _turn_condition(line: str) -> Iterator[str]:
    if re.match(r"\s*@%p\d+ ", line):
        yield line.replace("@%p", "@!%p")
    found = re.match(r"(\s*setp\.)(lt|le|gt|ge|eq|ne)(\..*)", line)
    if found:
        yield found[1] + _COMPARISONS[found[2]] + found[3]


def _drop_guard(line: str) -> Iterator[str]:
    """All threads go where only some of them should."""
    if re.match(r"\s*@!?%p\d+ bra", line):
        yield ""
    found = re.match(r"(\s*)@!?%p\d+ (st\..*|red\..*)", line)
    if found:
        yield found[1] + found[2]


def _split_update(line: str) -> Iterator[str]:
    found = re.match(r"(\s*)(?:red|atom)\.(global|shared)\.(add|min|max)\.[bsu](\d+)\s+(?:%\w+, )?(\[\S+\]), (\S+);", line)
    if found:
        space, where, name, bits, place, value = found.groups()
        steps = (f".reg .b{bits} %old;", f"ld.{where}.b{bits} %old, {place};",
                 f"{name}.s{bits} %old, %old, {value};", f"st.{where}.b{bits} {place}, %old;")
        yield f"{space}{{ {' '.join(steps)} }}"


def _change_shuffle(line: str) -> Iterator[str]:
    found = re.match(r"(\s*shfl\.sync\.\w+\.b32\s+.*, )(\d+)(, \d+, -?\w+;)", line)
    if found:
        yield f"{found[1]}{int(found[2]) ^ 1}{found[3]}"


def _change_operator(line: str) -> Iterator[str]:
    found = re.match(r"(\s*)(add|sub|min|max|mul|and|or)(\.(?:rn\.)?[fsbu]\d+\s.*)", line)
    if found:
        yield found[1] + _OPERATORS[found[2]] + found[3]


KINDS: dict[str, Callable[[str], Iterator[str]]] = {
    "a barrier left out": _drop_barrier,
    "an access one element away": _shift_access,
    "a condition turned round, or one off": _turn_condition,
    "a guard left out": _drop_guard,
    "an atomic update in two steps": _split_update,
    "another lane of a shuffle": _change_shuffle,
    "another operator": _change_operator,
}


def list_faults(program: str, ptx: str) -> Iterator[Fault]:
    """Every fault of a text."""
    for number, line in enumerate(ptx.splitlines()):
        for kind, change in KINDS.items():
            for after in change(line):
                yield Fault(kind, program, number, line, after)


# -- running --------------------------------------------------------------------------------------------------
class Subject:
    """A program whose kernels are changed. function, args: what is compiled for the device."""

    def __init__(self, name: str, function: Callable, args: tuple):
        program = jitcore.jit(function).lower(*args).compile(target="cuda:emulated")._program
        given, executable = [*program.const_values, *jitcore.tree.leaves(args)], program.executable
        self.name = name
        self._args = [np.asarray(given[i], aval.dtype)
                      for i, aval in zip(program.kept, program.compiled_jaxpr.in_avals)]
        self._rendered, self.ptx = executable.read_latest(), executable.texts()["ptx"]()
        self._expected = self._run(self.ptx, None)

    def _run(self, ptx: str, seed: int | None) -> list[np.ndarray]:
        device = EmulatedDevice(seed=seed)
        device.step_limit = STEP_LIMIT
        run = LoadedProgram(self._rendered, ptx, device, DEVICE).run
        return [np.array(out) for out in run(*self._args)]

    def judge(self, fault: Fault) -> str:
        """What finds a fault; "" for nothing, in any order of threads."""
        lines = self.ptx.splitlines()
        lines[fault.number] = fault.after
        for seed in SEEDS:
            try:
                found = self._run("\n".join(lines) + "\n", seed)
            except DeviceError as error:
                return f"the device: {' '.join(str(error).split())}"
            for one, other in zip(found, self._expected):
                if one.tobytes() != other.tobytes():
                    return "the results"
        return ""


def list_programs() -> dict[str, tuple[Callable, tuple]]:
    """Programs with every mapping: teams, pieces, tiles, sorts, scans, updates, loops."""
    from tests.backends.cuda.programs import PROGRAMS as OF_MAPPINGS
    from tests.backends.cuda.test_programs import PROGRAMS

    names = ("selu", "transposed", "strided", "softmax of 200", "sum", "sum of columns", "sum of parts of columns",
             "argmax of rows", "cumsum", "cumsum of rows", "product of matrices", "batch of products", "counts",
             "many counts", "many sums", "scatter-add", "last one wins", "matrix times vector", "gather", "complex sum", "Jacobi",
             "Lorenz", "compress")
    found = {name: (PROGRAMS[name][0], tuple(PROGRAMS[name][1])) for name in names}
    for name in ("count", "extremes", "add to rows", "boxes"):
        found[name] = OF_MAPPINGS[name]
    found["sort"] = (jitcore.numpy.sort, (np.random.default_rng(3).normal(size=300),))
    found["sort by digits"] = (jitcore.numpy.argsort, (np.random.default_rng(3).integers(-9, 9, 9000).astype(np.int8),))
    return found


def choose(subjects: dict[str, Subject], count: int) -> list[Fault]:
    """So many faults, of each kind as many as of the others as far as there are."""
    draw = random.Random(20261126)
    by_kind: dict[str, list[Fault]] = {kind: [] for kind in KINDS}
    for subject in subjects.values():
        for fault in list_faults(subject.name, subject.ptx):
            by_kind[fault.kind].append(fault)
    for faults in by_kind.values():
        draw.shuffle(faults)
    chosen: list[Fault] = []
    while len(chosen) < count and any(by_kind.values()):
        chosen += [faults.pop() for faults in by_kind.values() if faults]
    return chosen[:count]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.backends.cuda.kernel_faults", description=__doc__)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--program", help="of one program only")
    given = parser.parse_args()
    programs = {name: p for name, p in list_programs().items() if given.program in (None, name)}
    subjects = {name: Subject(name, *program) for name, program in programs.items()}
    table: dict[str, collections.Counter] = {kind: collections.Counter() for kind in KINDS}
    for fault in choose(subjects, given.count):
        found = subjects[fault.program].judge(fault)
        table[fault.kind][found.partition(":")[0] or "nothing"] += 1
        print(f"{fault}\n    {found or 'changes nothing'}", flush=True)
    print("\n| fault | the device | the results | nothing |\n|---|---|---|---|")
    for kind, counts in table.items():
        print(f"| {kind} | " + " | ".join(str(counts[by] or "") for by in ("the device", "the results", "nothing")) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
