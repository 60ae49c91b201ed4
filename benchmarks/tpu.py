"""TPU: every primitive and every program of the run-time section, compiled for TPUs that need not be there.

In: names of programs. Out: what XLA's compiler says of each: operations, bytes, memory, code, and the seconds
that it expects. Nothing runs. Double precision, which TPUs lack, is given as single.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measured import Section, explain_error
from benchmarks.peers import JITCORE
from benchmarks.table import align_cells, format_bytes, format_count, format_seconds
from benchmarks.timing import FULL, Effort
from benchmarks.workload import Workload
from benchmarks.workloads import ROWS

TITLE = "TPU: compiled ahead of time"
TARGETS = ("tpu:v5e", "tpu:v6e")
PAGE = Path(__file__).parents[1] / "docs" / "tpu.md"
_BEGIN, _END = "<!-- python -m benchmarks tpu --save -->", "<!-- end -->"
_NARROW = {"float64": "float32", "complex128": "complex64"}
#: Elements of the operands of elementwise primitives.
_ELEMENTS = 1_000_000


class Program(NamedTuple):
    """function: made when the row is compiled. make_arguments: of arrays, or of what has a shape and a
    dtype."""

    name: str
    make_function: Callable[[], Callable]
    make_arguments: Callable[[], Sequence[Any]]


def list_names() -> list[str]:
    return [program.name for program in list_programs()]


def list_programs() -> Iterator[Program]:
    """Primitives, by the cases that the tests of their rules have, and rows of the run-time section."""
    import jitcore
    from tests.transforms.batching_cases import CASES

    for name, cases in sorted(CASES.items()):
        if name == "call_exported":  # a program of another one
            continue
        for number, case in enumerate(cases, 1):
            shapes = [(_ELEMENTS,)] * len(case.operands) if _is_elementwise(name) else None
            if shapes is not None and number > 1:
                continue
            arguments = [jitcore.ShapeDtypeStruct(shapes[i] if shapes else operand.shape, operand.dtype)
                         for i, operand in enumerate(case.operands)]
            full = f"primitive {name}" + (f" {number}" if shapes is None and len(cases) > 1 else "")
            yield Program(full, lambda case=case: case.function, lambda arguments=arguments: arguments)
    rows: dict[str, Workload] = {}
    for row in ROWS:  # those in double precision stand for themselves where no other one is
        rows.setdefault(row.name.replace(" f64", " f32").replace(" c128", " c64"), row)
    for name, row in rows.items():
        yield Program(
            name, lambda row=row: row.program(JITCORE.load_api()), lambda row=row: row.make_inputs(row.size)
        )


def _is_elementwise(name: str) -> bool:
    from jitcore.core.primitive import registry

    return registry[name].traits.get("family") == "elementwise" and "arity" in registry[name].traits


def run_section(
    names: Sequence[str], peers: Sequence[str], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Compiles the rows with these names. `show` is told the name of each before it starts. A quick run
    compiles for the first target only."""
    if importlib.util.find_spec("libtpu") is None:
        return Section(TITLE, 'not available: the compiler for TPUs is missing: pip install "jitcore[tpu]"')
    wanted, targets = set(names), TARGETS if effort == FULL else TARGETS[:1]
    parts: dict[bool, list[list[str]]] = {True: [], False: []}
    refused, problems = [], []
    for program in list_programs():
        if program.name in wanted:
            show(program.name)
            try:
                cells = describe_program(program, targets)
                parts[program.name.startswith("primitive ")].append(
                    [program.name.removeprefix("primitive "), *cells]
                )
            except NotImplementedError as error:
                refused.append(f"- {program.name}: {error}")
            except Exception as error:
                problems.append(f"- {program.name}: {explain_error(error)}")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "jaxlib", "libtpu"))
    texts = [f"{datetime.date.today().isoformat()}, {versions}. FLOPs and bytes are those of {targets[0]}."]
    head = [
        "FLOPs",
        "bytes",
        "arguments",
        "results",
        "temporary",
        "code",
        *(f"time {target[4:]}" for target in targets),
    ]
    for is_primitive, title in ((False, "program"), (True, "primitive")):
        if parts[is_primitive]:
            texts.append(align_cells([[title, *head], *parts[is_primitive]]))
    for title, lines in (("Refused, with the line of the program:", refused), ("Not compiled:", problems)):
        if lines:
            texts.append("\n".join((title, "", *lines)))
    return Section(TITLE, "\n\n".join(texts), bool(problems))


def describe_program(program: Program, targets: Sequence[str]) -> list[str]:
    """FLOPs, bytes and memory on the first target, and the seconds expected on each."""
    import jitcore

    arguments = jitcore.tree.map(narrow, list(program.make_arguments()))
    lowered = jitcore.jit(program.make_function()).lower(*arguments)
    compiled = [lowered.compile(target=target) for target in targets]
    cost, memory = compiled[0].cost_analysis(), compiled[0].memory_analysis()
    sizes = [
        getattr(memory, f"{part}_size_in_bytes") for part in ("argument", "output", "temp", "generated_code")
    ]
    seconds = [one.cost_analysis().get("optimal_seconds", math.nan) for one in compiled]
    return [format_count(cost.get("flops", 0)),
            format_bytes(cost.get("bytes accessed", 0)), *map(format_bytes, sizes),
            *("" if math.isnan(s) else format_seconds(s) for s in seconds)]


def narrow(value: Any) -> Any:
    """Arrays as what has their shape, in single precision."""
    import jitcore

    if not hasattr(value, "dtype") or isinstance(value, np.generic):
        return value
    return jitcore.ShapeDtypeStruct(value.shape, np.dtype(_NARROW.get(value.dtype.name, value.dtype)))


def write_page(section: Section) -> Path:
    """Puts the tables into docs/tpu.md, between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{_BEGIN}\n{section.text}\n{_END}", text), encoding="utf-8")
    return PAGE
