"""How sharp the device is: kernels with one mistake each. All that can change a result are found."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from jitcore.backends.cuda.emulated import DeviceError, EmulatedDevice
from tests.backends.cuda.emulated.kernels import PROGRAMS
from tests.backends.cuda.emulated.programs import launch, to_ptx

_COMPARISONS = {
    "eq": "ne",
    "ne": "eq",
    "lt": "le",
    "le": "lt",
    "gt": "ge",
    "ge": "gt",
    "ltu": "leu",
    "gtu": "geu",
}


def halve_distance(found):
    return f", {int(found[1]) // 2}, "


def turn(found):
    return f"setp.{_COMPARISONS[found[1]]}."


#: (what is done, which instructions, what is replaced, by what)
_MISTAKES = [
    ("barrier dropped", "bar.sync", r"bar\.sync[^;]*;", ""),
    ("fence dropped", "membar", r"membar[^;]*;", ""),
    ("distance", "shfl", r", (\d+), (?=31, -1|0, -1)", halve_distance),
    ("comparison", "setp", r"setp\.(\w+)\.", turn),
    ("shared address", "shared", r"\[(%rd\d+|%r\d+|[a-z_]+)(?:\+\d+)?\]", r"[\1+4]"),
    ("global address", "global.b32", r"\[(%rd\d+|%r\d+|[a-z_]+)(?:\+\d+)?\]", r"[\1+4]"),
    (
        "no atomic",
        "atom.",
        r"atom\.(global|shared)\.add\.u32\s+(%r\d+), (\[[^\]]+\]), ([^;]+);",
        r"ld.\1.u32 \2, \3;",
    ),
]


def list_mutants(ptx):
    """(line, what was done, the text)"""
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        for what, word, pattern, replacement in _MISTAKES:
            if word in line and "cvta" not in line and ".shared .align" not in line:
                changed = re.sub(pattern, replacement, line, count=1)
                if changed != line:
                    yield (
                        number + 1,
                        f"{what}: {' '.join(line.split())}",
                        "\n".join([*lines[:number], changed, *lines[number + 1 :]]),
                    )


def is_found(program, ptx):
    """Whether the device finds an error, or a result is another one."""
    for seed in (None, 1, 2, 3):
        try:
            results = launch(ptx, program.arguments, program.grid, program.block, seed=seed)
        except DeviceError:
            return True
        if not all(np.allclose(got, want, 1e-5, 1e-7) for got, want in zip(results, program.expected)):
            return True
    return False


#: Mistakes that change nothing, and why: (program, mistake, its beginning)
_ANY_SHIFT = "any number that all threads subtract gives the same softmax"
_NOT_REACHED = "blocks run one after the other, so that the flag before is 2: totals are never needed"
_FIRST_BARRIER = "nothing has been read from the buffer before, or another barrier stands between"
SURVIVORS = {
    "softmax": {
        "comparison: setp.ge.s32": "no thread has the number of columns as its number",
        "distance: shfl.sync.bfly.b32 %r12, ": _ANY_SHIFT,
        "distance: shfl.sync.bfly.b32 %r14, ": _ANY_SHIFT,
        "distance: shfl.sync.bfly.b32 %r16, ": _ANY_SHIFT,
        "distance: shfl.sync.bfly.b32 %r18, ": _ANY_SHIFT,
        "distance: shfl.sync.bfly.b32 %r20, ": _ANY_SHIFT,
        "barrier dropped: bar.sync 0": _FIRST_BARRIER,
    },
    "ticket": {
        "barrier dropped: bar.sync 0": _FIRST_BARRIER,
        "barrier dropped: bar.sync 0 again": _FIRST_BARRIER,
    },
    "scan": {
        "fence dropped: membar.gl": "the second publication covers what the first one was to cover",
        "fence dropped: membar.gl again": "the fence after reading a flag is not checked",
        "global address: ld.volatile.global.b32": _NOT_REACHED,
        "global address: ld.global.b32": _NOT_REACHED,
        "comparison: setp.ne.b32": "sums of totals are sums as well",
        "comparison: setp.ne.b32 again": _NOT_REACHED,
    },
}


@pytest.mark.skipif(llvm.llvm_version_info < (21,), reason="which mutants are found is known of the code of later LLVMs")
@pytest.mark.parametrize("name", ["softmax", "ticket", "scan", "histogram", "transpose"])
def test_mutants(name, monkeypatch):
    monkeypatch.setattr(EmulatedDevice, "step_limit", 20_000)
    program, left = PROGRAMS[name], dict(SURVIVORS.get(name, {}))
    mutants = list(list_mutants(to_ptx(program.ir_text)))
    assert len(mutants) > 8
    for line, what, text in mutants:
        if not is_found(program, text):
            known = [start for start in left if what.startswith(start.removesuffix(" again"))]
            assert known, f"not found: line {line}, {what}"
            left.pop(known[0])
    assert not left, f"found now: {left}"
