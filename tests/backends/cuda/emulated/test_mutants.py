"""How sharp the device is: kernels with one mistake each. All that can change a result are found."""

import re

import numpy as np
import pytest

from jitcore.backends.cuda.emulated import DeviceError, EmulatedDevice
from tests.backends.cuda.emulated.kernels import PROGRAMS
from tests.backends.cuda.emulated.programs import launch, to_ptx

_COMPARISONS = {"eq": "ne", "ne": "eq", "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "ltu": "leu", "gtu": "geu"}


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
    ("no atomic", "atom.", r"atom\.(global|shared)\.add\.u32\s+(%r\d+), (\[[^\]]+\]), ([^;]+);", r"ld.\1.u32 \2, \3;"),
]


def list_mutants(ptx):
    """(line, what was done, the text)"""
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        for what, word, pattern, replacement in _MISTAKES:
            if word in line and "cvta" not in line and ".shared .align" not in line:
                changed = re.sub(pattern, replacement, line, count=1)
                if changed != line:
                    yield number + 1, f"{what}: {line.strip()}", "\n".join([*lines[:number], changed, *lines[number + 1 :]])


def is_found(program, ptx, kept):
    """Whether the device finds an error, or a result is another one."""
    for seed in (None, 1, 2, 3):
        try:
            results = launch(ptx, program.arguments, program.grid, program.block, seed=seed)
        except DeviceError:
            return True
        for place, (got, want) in enumerate(zip(results, program.expected)):
            if place in kept and not np.allclose(got, want, 1e-5, 1e-7):
                return True
    return False


@pytest.mark.parametrize("name", ["softmax", "ticket", "scan", "histogram", "transpose"])
def test_mutants(name, monkeypatch):
    monkeypatch.setattr(EmulatedDevice, "step_limit", 20_000)
    program = PROGRAMS[name]
    survivors = [what for _, what, text in list_mutants(to_ptx(program.ir_text))
                 if not is_found(program, text, range(len(program.expected)))]  # fmt: skip
    print(sum(1 for _ in list_mutants(to_ptx(program.ir_text))), survivors)
    assert survivors == []
