"""Modules with functions of loops, taken apart for LLVM.

In: the text of a module. Out: the texts of two: one of loops of scalar code, for LLVM's passes over loops,
and one of the rest, which is made of explicit lanes: these passes would take long there and find little.
"""

from __future__ import annotations

import re

SUFFIX = "_scalar_loop"  # of the names of such functions
_DEFINITION = re.compile(r"^define .*?^\}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'@"?([^"( ]+)"?\(')
_CALLED = re.compile(r'@"?([^"(), ]+)"?')


def split_loops(text: str) -> tuple[str, str, list[str]]:
    """(a module without the bodies of its functions of loops, one of these alone, empty where there are none,
    names that are internal in both together).

    What one has for the other is external in both, until they are linked; what is copied to where it is
    called, both have."""
    if SUFFIX not in text:
        return text, "", []
    definitions = {_NAME.search(found[0])[1]: found[0] for found in _DEFINITION.finditer(text)}
    loops = {name: body for name, body in definitions.items() if name.endswith(SUFFIX)}
    copied = {name for name, body in definitions.items() if "alwaysinline" in body.partition("\n")[0]}
    called = set(_CALLED.findall("".join(definitions[name] for name in (*loops, *copied))))
    rest, alone, shown = text, text, list(loops)
    for name, body in definitions.items():
        head = body.partition("\n")[0]
        if name in copied:
            continue
        declared = _declare(head) if name in loops or name in called else ""
        if name in loops:
            rest, alone = rest.replace(body, declared), alone.replace(body, _show(body))
            continue
        alone = alone.replace(body, declared)
        if name in called and head.startswith("define internal"):
            rest = rest.replace(body, _show(body))
            shown.append(name)
    return rest, alone, shown


def _show(body: str) -> str:
    return body.replace("define internal ", "define ", 1)


def _declare(head: str) -> str:
    return "declare " + head[: head.rindex(")") + 1].removeprefix("define ").removeprefix("internal ")
