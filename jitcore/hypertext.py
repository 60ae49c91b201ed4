"""HTML that notebooks show: tables, folded parts and texts, escaped and of bounded size, without JavaScript.

In: texts. Out: fragments of HTML, for `_repr_html_` of reports, programs and arrays; tables for terminals.
"""

from __future__ import annotations

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = ["Shown", "cut", "escape", "fold", "format_table", "show_grid", "show_table", "show_text"]

#: Characters of a text that a page shows, and rows of a table.
_MOST_CHARACTERS, _MOST_ROWS = 20_000, 500


class Shown(str):
    """The text of an object, in whose place notebooks show the object."""

    of: Any

    def __new__(cls, text: str, of: Any) -> Shown:
        made = super().__new__(cls, text)
        made.of = of
        return made

    def __reduce__(self):
        return str, (str(self),)

    def _repr_html_(self) -> str:
        return self.of._repr_html_()


def cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= most else f"{text[:most]} ... {len(text) - most:,} more characters"


def show_text(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text as it stands."""
    return f'<pre style="margin:0">{escape(cut(text, most))}</pre>'


def fold(title: str, body: str, is_open: bool = False, hint: str = "") -> str:
    """A part under a title that opens it. body: HTML. hint: what a pointer over the title shows."""
    shown = f' title="{escape(hint)}"' if hint else ""
    return f"<details{' open' * is_open}><summary{shown}>{escape(title)}</summary>{body}</details>"


def format_table(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust) -> str:
    """A table for terminals, under its head. A row of fewer cells ends with one of any length."""
    count = len(rows[0])
    full = [row for row in rows if len(row) == count]
    widths = [max(len(row[column]) for row in (full if column else rows)) for column in range(count)]
    lines = []
    for first, *rest in rows:
        rest = list(map(justify, rest, widths[1:])) if len(rest) + 1 == count else rest
        lines.append("  ".join([first.ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def show_table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table. A row of fewer cells than the head ends with one over the columns that are left."""
    rows = list(rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    lines = ["".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)]
    for row in rows[:_MOST_ROWS]:
        cells = [f"<td>{escape(cut(cell, 1000))}</td>" for cell in row[:-1]]
        span = f' colspan="{len(head) - len(row) + 1}"' if len(row) < len(head) else ""
        last = escape(cut(row[-1], 1000))
        lines.append("".join([*cells, f'<td{span} style="text-align:left">{last}</td>']))
    if len(rows) > _MOST_ROWS:
        lines.append(f'<td colspan="{len(head)}">{len(rows) - _MOST_ROWS:,} more rows</td>')
    return f"<table>{title}{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def show_grid(rows: Sequence[Sequence[str]]) -> str:
    """Cells of equal rank, those of one text in one colour."""
    texts = list(dict.fromkeys(cell for row in rows for cell in row))
    hues = {text: 360 * number // len(texts) for number, text in enumerate(texts)}
    lines = []
    for row in rows[:_MOST_ROWS]:
        cells = [f'<td style="border:1px solid;padding:0.6em;text-align:center;'
                 f'background:hsla({hues[cell]},70%,60%,0.3)">{escape(cut(cell, 200))}</td>'
                 for cell in row[:_MOST_ROWS]]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'
