"""Faults of the compiler, seeded one at a time, and which oracle finds them.

    python -m tests.faults                       all of them; prints the table of docs/testing.md
    python -m tests.faults --kind passes --count 5
    python -m tests.faults --one passes 17       one, in this process: what is changed, and what is found

In: the source of the passes, of scheduling and of the code generator. Out: for each fault the oracle that finds it
first. A fault is one changed expression: a comparison or an operator exchanged, a condition negated, a number
one off, two arguments exchanged, a statement left out. Places are drawn at random, with a fixed seed, from the
lines that the corpus runs. What the corpus does not find is shown to the tests of its stage.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: Modules by the stage whose fault is seeded there, and the tests of that stage.
MODULES = {
    "passes": (
        "jitcore/passes",
        ["tests/passes", "tests/fuzz/test_random_programs.py", "tests/fuzz/test_random_ranges.py"],
    ),
    "schedule": ("jitcore/schedule", ["tests/schedule", "tests/backends", "tests/lax"]),
    "emitter": ("backends/cpu", ["tests/backends/cpu", "tests/lax"]),
}
#: Modules of the code generator that do not say what a program computes: caches, threads, linking, memory.
_OTHERS = frozenset(
    "ahead cpuinfo host images launch memory native objects pool sharing symbols threads translate "
    "call_plan compiler executable host_calls interrupts balance reading streams long_sums tellers layout "
    "routines fit".split())
_SECONDS = 120


class Fault(NamedTuple):
    """A changed place: module by its file, line, what was there and what stands there now."""

    file: str
    line: int
    before: str
    after: str
    source: str


# -- seeding --------------------------------------------------------------------------------------------------
_COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
                ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_NAMES = {"add": "sub", "sub": "add", "mul": "add", "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "min": "max", "max": "min",
          "and": "or", "or": "and", "eq": "ne", "ne": "eq", "<": "<=", ">": ">=", ">=": ">", "<=": "<", "fadd": "fsub",
          "fsub": "fadd", "fmul": "fadd"}


def list_changes(node: ast.AST) -> Iterator[ast.AST]:
    """Other nodes that may stand in the place of one."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        yield _replace(node, ops=[_COMPARISONS[type(node.ops[0])]()])
    elif (
        isinstance(node, ast.BinOp)
        and type(node.op) in _OPERATORS
        and not isinstance(node.left, ast.Constant)
    ):
        yield _replace(node, op=_OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _replace(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        yield _replace(node, values=node.values[:-1])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield _replace(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield _replace(node, value=node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield _replace(node, value=not node.value)
    elif isinstance(node, ast.Constant) and node.value in _NAMES:
        yield _replace(node, value=_NAMES[node.value])
    elif (
        isinstance(node, ast.Call)
        and len(node.args) == 2
        and not any(isinstance(x, ast.Starred) for x in node.args)
    ):
        yield _replace(node, args=node.args[::-1])
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield _replace(node, attr=_NAMES[node.attr])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
        yield ast.Pass()


def _replace(node: ast.AST, **fields) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def list_faults(file: Path, lines: set[int]) -> list[Fault]:
    """Every fault of a module in lines that are run."""
    text = file.read_text()
    tree = ast.parse(text)
    found = []
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            for place, node in enumerate(value if isinstance(value, list) else [value]):
                if (
                    not isinstance(node, ast.AST)
                    or getattr(node, "lineno", 0) not in lines
                    or _is_told(parent, node)
                ):
                    continue
                for change in list_changes(node):
                    ast.copy_location(change, node)
                    _put(parent, name, value, place, change)
                    before, after = (
                        ast.unparse(ast.fix_missing_locations(x)).splitlines()[0] for x in (node, change)
                    )
                    found.append(
                        Fault(str(file.relative_to(ROOT)), node.lineno, before, after, ast.unparse(tree))
                    )
                    _put(parent, name, value, place, node)
    return found


def _put(parent: ast.AST, name: str, value, place: int, node: ast.AST) -> None:
    if isinstance(value, list):
        value[place] = node
    else:
        setattr(parent, name, node)


def _is_told(parent: ast.AST, node: ast.AST) -> bool:
    """Whether a node is a docstring, an annotation or part of an error."""
    return (
        isinstance(parent, (ast.Raise, ast.AnnAssign))
        or isinstance(parent, ast.Expr)
        and isinstance(node, ast.Constant)
    )


# -- the corpus -----------------------------------------------------------------------------------------------
def list_corpus() -> Iterator[tuple[str, Callable, tuple]]:
    import jitcore.numpy as jnp
    from tests.backends.python.programs import PROGRAMS
    from tests.fuzz.programs import make_inputs, make_program, run_program

    for name, (function, args) in PROGRAMS.items():
        yield name, function, args
    for seed in range(60):
        program = make_program(seed)
        yield f"random {seed}", lambda *x, p=program: run_program(p, jnp, x), make_inputs(program, seed)


def judge() -> str:
    """The oracle that finds a fault in the corpus first: the stage, and what it says; "" for none."""
    from tests.oracles import find_faults

    for name, function, args in list_corpus():
        try:
            faults = find_faults(function, args, tolerance=3, size=1)
        except Exception as error:  # while it is compiled
            return f"an error: {type(error).__name__}: {' '.join(str(error).split())[:80]} ({name})"
        for stage, text in faults.items():
            return f"{stage}: {' '.join(text.split())[:80]} ({name})"
    return ""


def trace_lines(kind: str) -> dict[str, set[int]]:
    """The lines of a stage's modules that the corpus runs, by file."""
    folder, found = str(ROOT / MODULES[kind][0]), collections.defaultdict(set)

    def look(frame, event, _):
        name = frame.f_code.co_filename.replace("/jitcore/backends/", "/backends/")
        if not name.startswith(folder):
            return None
        lines = found[name]

        def note(frame, event, _):
            lines.add(frame.f_lineno)
            return note

        return note(frame, event, None)

    sys.settrace(look)
    try:
        judge()
    finally:
        sys.settrace(None)
    return found


# -- one fault ------------------------------------------------------------------------------------------------
class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module from changed source."""

    def __init__(self, fault: Fault):
        self.fault = fault
        path = fault.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.name = f"jitcore.{path}" if path.startswith("backends") else path

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        is_package = self.fault.file.endswith("__init__.py")
        spec = importlib.util.spec_from_loader(name, self, origin=self.fault.file, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [str((ROOT / self.fault.file).parent)]
        return spec

    def exec_module(self, module):
        exec(compile(self.fault.source, self.fault.file, "exec"), vars(module))


def choose(kind: str, count: int) -> list[Fault]:
    """So many faults, from all modules of a stage."""
    lines = trace_lines(kind)
    faults = []
    for file in sorted(lines):
        if Path(file).stem not in _OTHERS:
            faults += list_faults(Path(file), lines[file])
    return random.Random(20261126).sample(faults, min(count, len(faults)))


def run_one(kind: str, number: int, count: int, tests: bool) -> int:
    """Seeds a fault into this process, in which nothing compiled comes from disk."""
    warnings.simplefilter("ignore")
    os.environ["JITCORE_CACHE_DIR"] = ""
    fault = _load_chosen(kind, count)[number]
    print(f"{fault.file}:{fault.line}: {fault.before}  ->  {fault.after}", flush=True)
    sys.meta_path.insert(0, _Finder(fault))
    if not tests:
        print(judge() or "not found", flush=True)
        return 0
    import pytest

    return pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *MODULES[kind][1]])


def _store(kind: str, count: int) -> Path:
    return Path(tempfile.gettempdir()) / f"jitcore-faults-{kind}-{count}.json"


def _load_chosen(kind: str, count: int) -> list[Fault]:
    """Chosen once: the lines that are run have to be looked for without a fault."""

    file = _store(kind, count)
    if not file.exists():
        file.write_text(json.dumps(choose(kind, count)))
    return [Fault(*row) for row in json.loads(file.read_text())]


def _start(kind: str, number: int, count: int, *options: str) -> list[str]:
    """The lines that a process with one fault prints."""
    command = [
        sys.executable,
        "-m",
        "tests.faults",
        "--one",
        kind,
        str(number),
        "--count",
        str(count),
        *options,
    ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS * (6 if options else 1)
        )
    except subprocess.TimeoutExpired as late:
        lines = (late.stdout or b"").decode().splitlines()[:1]
        return [*lines, f"no end within {_SECONDS} s"]
    lines = done.stdout.splitlines()
    if options:
        return lines
    if done.returncode < 0:
        return [*lines[:1], f"the process died: signal {-done.returncode}"]
    if done.returncode:
        return [*lines[:1], f"an error: {done.stderr.strip().splitlines()[-1]}"]
    return [lines[0], lines[-1]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kind", choices=MODULES, help="of one stage only")
    parser.add_argument("--count", type=int, default=40, help="faults of each stage")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "NUMBER"))
    parser.add_argument("--tests", action="store_true", help="with --one: run the tests of the stage")
    given = parser.parse_args()
    if given.one:
        return run_one(given.one[0], int(given.one[1]), given.count, given.tests)
    for kind in [given.kind] if given.kind else MODULES:
        table: collections.Counter = collections.Counter()
        for number in range(len(_load_chosen(kind, given.count))):
            place, found = _start(kind, number, given.count)
            if found == "not found":
                lines = _start(kind, number, given.count, "--tests")
                failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
                found = f"tests: {failed[0]}" if failed else "not found"
            table[found.partition(":")[0]] += 1
            print(f"{kind} {number}: {place}\n    {found}", flush=True)
        print(kind, dict(table), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
