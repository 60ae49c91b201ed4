"""`%jit_report`: what became of the decorated functions of a session, and of its autojitted cells.

In: the variables of the session, and the sampler of its cells. Out: a `Summary`: tables, in notebooks with the
programs as pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jitcore.autojitted.tiers.report import Report
from jitcore.core.source import format_place, locate_function
from jitcore.dispatch.program import Program
from jitcore.hypertext import fold, format_table, show_table
from jitcore.jitted.comparison import count_kernels
from jitcore.jitted.wrapper import JitWrapped
from jitcore.notebooks.cells import name_cells
from jitcore.notebooks.variants import find_plain
from jitcore.process.lazy import LazyModule
from jitcore.scripts.sampling import Sampler
from jitcore.scripts.sessions.report import list_regions, list_rows
from jitcore.stages import show_stages

shell_errors = LazyModule("IPython.core.error")

__all__ = ["FunctionRow", "Summary", "summarize"]

_HEAD = ("function", "by", "place", "tier", "calls known", "traces", "compiles", "kernels")
#: Functions whose programs are shown.
_MOST_PROGRAMS = 30


class FunctionRow(NamedTuple):
    """A decorated function.

    by: "jit" or "autojit"; tier: how its calls are served; hits, traces, compiles: see `CacheInfo`; program: that
    was compiled last; kernels: in it, as far as the backend tells; report: of an autojitted one."""

    name: str
    by: str
    place: str
    tier: str
    hits: int
    traces: int
    compiles: int
    program: Program | None
    kernels: int | None
    report: Report | None = None

    def list_cells(self) -> tuple[str, ...]:
        return *self[:4], *["" if count is None else str(count)
                            for count in (self.hits, self.traces, self.compiles, self.kernels)]


class Summary:
    """Attributes:
    functions: the decorated ones.
    cells: rows of a table of the hot loops and functions of autojitted cells, the head first; none without
        any."""

    def __init__(self, functions: Sequence[FunctionRow], cells: Sequence[Sequence[str]]):
        self.functions, self.cells = list(functions), list(cells)

    def __repr__(self) -> str:
        parts = [format_table([_HEAD, *[row.list_cells() for row in self.functions]])] if self.functions else []
        parts += [str(row.report) for row in self.functions if row.report is not None]
        parts += [format_table(self.cells)] if self.cells else []
        return "\n\n".join(parts) or "no decorated functions, no autojitted cells"

    def _repr_html_(self) -> str:
        parts = []
        if self.functions:
            parts.append(show_table(_HEAD, [row.list_cells() for row in self.functions], "Decorated functions"))
        for row in self.functions[:_MOST_PROGRAMS]:
            shown = [row.report] if row.report is not None else []
            if row.program is not None and row.kernels is not None:
                shown.append(show_stages(row.program, "loop program"))
            html = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
            parts += [fold(row.name, "".join(html))] if html else []
        if self.cells:
            parts.append(show_table(self.cells[0], self.cells[1:], "Autojitted cells"))
        return f"<div>{''.join(parts) or repr(self)}</div>"


def summarize(variables: Mapping[str, Any], sampler: Sampler | None, names: Sequence[str] = ()) -> Summary:
    """names: of the functions asked for; those of the whole session, and its cells, without any.

    Raises: UsageError for a name of no decorated function."""
    found = list(list_functions({name: variables.get(name) for name in names} if names else variables))
    missing = set(names) - {name for name, _ in found}
    if missing:
        raise shell_errors.UsageError(f"{', '.join(sorted(missing))}: not decorated by jit or autojit")
    regions = [] if names else list_regions(sampler)
    cells = [[*row, name_cells(reason)] for *row, reason in list_rows(regions, format_place)]
    return Summary([_describe(name, value) for name, value in found], cells if regions else [])


def list_functions(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The decorated functions among variables and in the user's classes, each once."""
    seen: set[int] = set()
    for name, value in list(variables.items()):
        inside = vars(value).items() if isinstance(value, type) and value.__module__ == "__main__" else ()
        for full, one in [(name, value), *[(f"{name}.{key}", one) for key, one in inside]]:
            one = getattr(one, "__func__", one) if not isinstance(one, JitWrapped) else one
            if not full.startswith("_") and id(one) not in seen and find_plain(one) is not None:
                seen.add(id(one))
                yield full, one


def _describe(name: str, value: Any) -> FunctionRow:
    info, place = value.cache_info(), locate_function(find_plain(value))[1]
    counts = info.hits, info.traces, info.compiles
    if isinstance(value, JitWrapped):
        program = value._function.last_program
        tier = "traced" if program else "not called yet"
        return FunctionRow(name, "jit", place, tier, *counts, program, _count_kernels(program))
    owner, report = value.__dict__["__jitcore_autojit_state__"], value.report()
    entry = owner.last_entry or owner.loops and owner.loops.last_entry
    tiers = ", ".join(tier.value for tier in report.regions[0].tiers)
    tier = f"{tiers}, {report.compiled:.0f} % compiled" if tiers else "not called yet"
    program = entry.program if entry else None
    return FunctionRow(name, "autojit", place, tier, *counts, program, _count_kernels(program), report)


def _count_kernels(program: Program | None) -> int | None:
    return None if program is None else count_kernels(program.executable.texts())
