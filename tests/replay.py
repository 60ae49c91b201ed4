"""Process replay: the text that the code generators write, of every benchmark program and every small test program.

    python -m tests.replay                   names the programs whose text is another one than is kept
    python -m tests.replay --keep            keeps the hashes of the present texts
    python -m tests.replay --write FOLDER    writes the texts themselves, to be compared by `diff -r`

In: programs. Out: hashes of the loop program and the LLVM IR of the CPU backend, of the LLVM IR of kernels for sm_90, and
of the module of StableHLO that XLA gets. A change that is not meant to change code changes none of them; one that is
says which. So that every machine writes the same, code is for one processor, and nothing of it is compiled or run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

KEPT = Path(__file__).parent / "golden" / "replay.json"
KINDS = ("benchmarks", "programs")
_FEATURES = "+avx,+avx2,+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl,+bmi2,+f16c,+fma,+sse2,+sse4.2"


class _Rendered(Exception):
    """Raised in the place of a compile, with the text."""


def _pretend_processor() -> None:
    """The processor of all texts: with AVX-512, 4 cores, and caches of a usual size."""
    from jitcore.backends.cpu.machine import host
    from jitcore.backends.cpu.native import images, libraries
    from jitcore.backends.cuda.render import ptx

    host.find_target = lambda: host.Target("x86_64-unknown-linux-gnu", "znver4", _FEATURES)
    host.cache_sizes = lambda: host.CacheSizes(l1=32 << 10, l2=1 << 20, l3=32 << 20)
    host.list_fused_operations = lambda: ()
    host.Machine.processors = 4

    def stop(name, facts, render, **options):
        raise _Rendered(str(render()))

    libraries.find_or_compile = stop
    ptx.make_ptx = lambda *given: ""
    images.address_of = lambda symbol: zlib.crc32(symbol.encode())  # nothing is compiled for routines, either


def list_programs(kind: str) -> Iterator[tuple[str, Callable, tuple]]:
    """(name, function, arguments)."""
    import jitcore

    if kind == "benchmarks":
        from benchmarks.workloads import ROWS

        for row in ROWS:
            yield row.name, row.program(jitcore), row.make_inputs(row.size)
        return
    from tests.backends.cuda.programs import OWN
    from tests.backends.python.programs import PROGRAMS

    for name, (function, args) in (PROGRAMS | OWN).items():
        yield name, function, args


def render(function: Callable, args: tuple) -> dict[str, str]:
    """The texts of a program; "" for what a target has none of."""
    import jitcore
    from jitcore.backends.cpu.compiler import CpuTarget
    from jitcore.backends.cpu.machine import host
    from jitcore.backends.cpu.mapping.rules import RULES
    from jitcore.backends.xla.lower import has_rule, lower_module
    from jitcore.dispatch.backend import find_compiler, find_lowering
    from jitcore.loopir.text import format_program
    from jitcore.loopir.ways import apply_rules
    from jitcore.schedule import lower_program

    lowered = jitcore.jit(function).lower(*args)
    closed = lowered.make_program(find_lowering("cpu")).compiled_jaxpr
    found = {"loop program": format_program(apply_rules(lower_program(closed, CpuTarget), RULES, host.MACHINE))}
    try:
        lowered.compile(target="cpu")
    except _Rendered as rendered:
        found["llvm"] = str(rendered)
    program = lowered.make_program(find_compiler("cuda:sm_90"))
    found["kernels"] = program.executable.texts()["kernel"]().replace('"\n(', '"(')  # llvmlite 0.45 breaks lines
    closed = lowered.make_program(find_lowering("xla")).compiled_jaxpr
    is_whole = all(has_rule(eqn, "cpu") for eqn in closed.jaxpr.eqns)
    found["stablehlo"] = lower_module(closed, "cpu") if is_whole else ""
    return found


def replay(kind: str, write: Callable[[str, str, str], None] = lambda *text: None) -> dict[str, dict[str, str]]:
    """Hashes by program and text. write: gets (program, text's name, text)."""
    found = {}
    for name, function, args in list_programs(kind):
        texts = render(function, args)
        for part, text in texts.items():
            write(name, part, text)
        found[name] = {part: hashlib.sha256(text.encode()).hexdigest()[:12] for part, text in texts.items()}
    return found


def compare(kept: dict[str, dict[str, str]], found: dict[str, dict[str, str]]) -> list[str]:
    """A line for each program whose texts differ."""
    lines = []
    for name in sorted({*kept, *found}):
        old, new = kept.get(name, {}), found.get(name, {})
        parts = [part for part in {**old, **new} if old.get(part) != new.get(part)]
        if parts:
            lines.append(f"{name}: {', '.join(parts)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--write", metavar="FOLDER", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["JITCORE_CACHE_DIR"] = ""
    _pretend_processor()

    def write(name: str, part: str, text: str) -> None:
        if given.write:
            folder = given.write / part.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / re.sub(r"\W+", "_", name)).write_text(text)

    kinds = [given.kind] if given.kind else KINDS
    found = {kind: replay(kind, write) for kind in kinds}
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    lines = [line for kind in kinds for line in compare(kept.get(kind, {}), found[kind])]
    print("\n".join([*lines, f"{len(lines)} of {sum(map(len, found.values()))} programs differ"]))
    if given.keep:
        KEPT.write_text(json.dumps(kept | found, indent=0) + "\n")
        return 0
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
