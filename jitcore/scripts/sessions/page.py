"""The report of a run as a page of HTML: what was compiled, beside the source.

In: regions of a report. Out: text. Lines of compiled regions are green; those that stayed in Python are red,
the more the longer they took.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from html import escape

from jitcore.scripts.sessions.report import Region

__all__ = ["format_page"]

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>jitcore run</title><style>
body { font: 14px/1.4 sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse } td { padding: 0 .8em; vertical-align: top }
td.number { color: #888; text-align: right } td.note { color: #555 } td.note b { color: #222 }
pre { font: 13px/1.4 monospace; margin: 0 }
.compiled { background: #d5f0d5 }
@media (prefers-color-scheme: dark) {
  body, td.note b { color: #ddd } body { background: #1c1c1c } td.note { color: #aaa }
  .compiled { background: #1f4a25 }
}
</style></head><body>
"""


def format_page(regions: Sequence[Region]) -> str:
    parts = [_HEAD]
    if not regions:
        parts.append("<p>Nothing was hot.</p>")
    longest = max((one.python for one in regions), default=0.0)
    for path in dict.fromkeys(one.path for one in regions):
        parts += _format_file(path, [one for one in regions if one.path == path], longest)
    return "".join([*parts, "</body></html>\n"])


def _format_file(path: str, regions: Sequence[Region], longest: float) -> Iterable[str]:
    yield f"<h2>{escape(os.path.basename(path))}</h2><p>{escape(path)}</p>\n<table>\n"
    for number, line in enumerate(linecache.getlines(path), 1):
        around = [one for one in regions if one.first <= number <= one.last]
        inner = min(around, key=lambda one: one.last - one.first, default=None)
        notes = "<br>".join(_describe(one) for one in around if one.first == number)
        yield (f'<tr{_colour(inner, longest)}><td class="number">{number}</td>'
               f'<td><pre>{escape(line.rstrip())}</pre></td><td class="note">{notes}</td></tr>\n')
    yield "</table>\n"


def _colour(region: Region | None, longest: float) -> str:
    if region is None:
        return ""
    if region.tier == "compiled":
        return ' class="compiled"'
    return f' style="background: rgb(230 60 40 / {0.08 + 0.4 * region.python / (longest or 1.0):.2f})"'


def _describe(region: Region) -> str:
    times = f"{region.python:.2f} s in Python"
    if region.calls:
        replaced = f" instead of {region.replaced:.3f} s" if region.replaced else ""
        times += f", {region.calls} calls of its program: {region.compiled:.3f} s{replaced}"
    if region.cost:
        times += f", {region.cost:.2f} s of compiling"
    reason = f": {escape(region.reason)}" if region.reason else ""
    return f"<b>{region.kind}, {region.tier}</b> ({times}){reason}"
