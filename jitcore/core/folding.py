"""The HTML of a jaxpr, as notebooks show it: equation by equation, with the user's line under the pointer;
jaxprs inside of equations are folded.

In: a jaxpr. Out: HTML that says what its text says, with the same names.
"""

from __future__ import annotations

import linecache
from typing import Any

from jitcore.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from jitcore.core.pretty import Names, format_equation, format_param, holds_jaxpr
from jitcore.core.source import SourceInfo, summarize_source
from jitcore.hypertext import cut, escape, fold

#: Equations that a page shows, and characters of each.
_MOST_EQUATIONS, _MOST_CHARACTERS = 500, 1000
_INDENTED = '<div style="margin-left:2em">'


def show_jaxpr(jaxpr: Jaxpr) -> str:
    page = _Page()
    return f'<div style="font-family:monospace">{page.jaxpr(jaxpr, Names())}</div>'


def describe_line(info: SourceInfo | None) -> str:
    """The user's line that an equation comes from."""
    if info is None:
        return ""
    position = info.resolve()
    return f"{summarize_source(info)}\n{linecache.getline(position.file, position.line).strip()}"


class _Page:
    """Counts the equations that it may still show."""

    def __init__(self):
        self.left = _MOST_EQUATIONS

    def jaxpr(self, jaxpr: Jaxpr, names: Names) -> str:
        lines = [f"<div>{escape(cut(names.head(jaxpr), _MOST_CHARACTERS))}</div>", _INDENTED]
        for number, eqn in enumerate(jaxpr.eqns):
            if not self.left:
                lines.append(f"<div>... {len(jaxpr.eqns) - number:,} more equations</div>")
                break
            self.left -= 1
            lines.append(self.equation(eqn, names))
        outs = names.results(jaxpr) if self.left else "..."
        return "".join([*lines, f"</div><div>&nbsp; in ({escape(cut(outs, _MOST_CHARACTERS))}) }}</div>"])

    def equation(self, eqn: Equation, names: Names) -> str:
        hint = describe_line(eqn.source_info)
        inner = {key: value for key, value in eqn.params.items() if holds_jaxpr(value)}
        if not inner:
            shown = f' title="{escape(hint)}"' if hint else ""
            return f"<div{shown}>{escape(cut(format_equation(eqn, names), _MOST_CHARACTERS))}</div>"
        plain = eqn.replace(params={key: value for key, value in eqn.params.items() if key not in inner})
        title = cut(" ".join(format_equation(plain, names).split()), _MOST_CHARACTERS)
        below = names.inside(eqn.primitive)
        parts = [_INDENTED]
        for key, value in sorted(inner.items()):
            for one in value if isinstance(value, (tuple, list)) else (value,):
                parts.append(f"<div>{escape(key)}=</div>{self.param(one, below)}")
        return fold(title, "".join([*parts, "</div>"]), hint=hint)

    def param(self, value: Any, names: Names) -> str:
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return self.jaxpr(value.jaxpr if isinstance(value, ClosedJaxpr) else value, names)
        return escape(cut(format_param(value, 0, names), _MOST_CHARACTERS))
