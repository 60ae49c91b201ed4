"""Writes the API reference: a page of Markdown per public module, from signatures and docstrings.

In: the modules that have a table in `jitcore/docstrings`, and a few others. Out: pages for
`scripts/build_site.py`, with a section per function or class: signature, docstring, example, source.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import GenericAlias

ROOT = Path(__file__).parents[1]
#: Public modules whose docstrings stand in the source as a whole.
WHOLE = {"custom_derivatives", "distributed", "sharding", "stages"}
TITLES = ("Args:", "Returns:", "Raises:", "Source:", "Same as:", "Cost:", "Yields:")
#: What Markdown would read as markup outside of code.
_MARKUP = re.compile(r"([*_\[\]<>$|#~])")


def list_modules() -> list[str]:
    """Public modules, the package first."""
    tables = {path.stem for path in (ROOT / "jitcore" / "docstrings").glob("*.txt")}
    return ["jitcore", *(f"jitcore.{table}" for table in sorted(tables - {"parameters", "jitcore"} | WHOLE))]


def write_reference(folder: Path) -> None:
    """All pages, and one that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = list_modules()
    for name in modules:
        (folder / f"{name}.md").write_text(format_module(name), encoding="utf-8")
    rows = [f"| [{name}]({name}.md) | {_escape(_first_line(importlib.import_module(name)))} |"
            for name in modules]
    head = "# API reference\n\nMade from the signatures and docstrings: `help(function)` shows the same.\n"
    index = [head, "| module | what it has |", "|---|---|", *rows, "",
             "```{toctree}", ":hidden:", "", *modules, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def list_functions(name: str) -> dict[str, object]:
    """The public functions of a module by name; those of the distributions in `scipy.stats`, too."""
    module, found = importlib.import_module(name), {}
    for public in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
        value = getattr(module, public)
        if inspect.ismodule(value) and value.__name__.startswith("jitcore.scipy.stats."):
            found |= {f"{public}.{inner}": getattr(value, inner) for inner in value.__all__}
        elif callable(value) and not isinstance(value, GenericAlias) and inspect.getdoc(value):
            if not inspect.isclass(value) or value.__module__.startswith("jitcore"):
                found[public] = value
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def format_module(name: str) -> str:
    """A page: what the module says of itself, and its functions in the order of the alphabet."""
    functions = list_functions(name)
    index = " · ".join(f"[{_escape(public)}](#{name}.{public})" for public in functions)
    parts = [f"# {name}", _escape(_first_line(importlib.import_module(name))), index]
    return "\n\n".join([*parts, *(format_function(name, *item) for item in functions.items())]) + "\n"


def format_function(module: str, name: str, function: object) -> str:
    """A section: signature, docstring, source."""
    try:
        signature = re.sub(r"<object object at 0x\w+>", "...", str(inspect.signature(function)))
        signature = re.sub(r"<(?:class ')?(\w+(?:\.\w+)*)[^>]*>", r"\1", signature)
        signature = re.sub(r"(: |-> )[\"']{1,2}([^\"']*)[\"']{1,2}", r"\1\2", signature)
    except (ValueError, TypeError):
        signature = "(...)"
    parts = [f"({module}.{name})=", f"## {_escape(name)}", f"```python\n{name}{_break(signature)}\n```",
             format_docstring(inspect.getdoc(function))]
    if inspect.isclass(function):
        parts += list_methods(function)
    if source := _read_source(function):
        parts.append(source)
    return "\n\n".join(parts)


def list_methods(kind: type) -> list[str]:
    """What the public methods and attributes of a class do, a line each."""
    lines = []
    for name in sorted(dir(kind)):
        text = inspect.getdoc(getattr(kind, name, None)) if not name.startswith("_") else None
        if text and getattr(object, name, None) is None and kind.__module__.startswith("jitcore"):
            lines.append(f"- `{name}`: {_escape(' '.join(text.partition(chr(10) * 2)[0].split()))}")
    return ["**Methods and attributes**", "\n".join(lines)] if lines else []


def format_docstring(text: str) -> str:
    """Markdown of a docstring: sections as lists, examples and indented lines as code."""
    parts, lines = [], text.splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith(">>>"):
            example = [line]
            while lines and lines[0].strip():
                example.append(lines.pop(0))
            parts += ["", "```python", *example, "```", ""]
            continue
        while line.startswith(TITLES) and line != "Args:" and lines and lines[0][:1].strip() and (
                not lines[0].startswith((*TITLES, "Example:", ">>>"))):
            line += f" {lines.pop(0)}"
        inner = []
        while lines and (not lines[0].strip() or lines[0].startswith("    ")):
            inner.append(lines.pop(0))
        ends = bool(inner) and not inner[-1].strip()
        while inner and not inner[-1].strip():
            inner.pop()
        title, _, rest = line.partition(":")
        after: list[str] = []
        if f"{title}:" in TITLES and "" in inner:
            inner, after = inner[: inner.index("")], inner[inner.index("") + 1 :]
        code = inspect.cleandoc("\n".join(inner)) if inner else ""
        if line == "Args:":
            parts += ["", "**Args**", "", *_list_arguments(inner), ""]
        elif ">>>" in line or ">>>" in code:
            before = [] if line == "Example:" else [line]
            parts += ["", "```python", *before, *code.splitlines(), "```", ""]
        elif f"{title}:" in TITLES:
            parts += ["", f"**{title}**:{_escape(rest)} {_escape(' '.join(code.split()))}", ""]
        elif code and line.rstrip().endswith(":"):
            parts += [_escape(line), "", *_fence(code), ""]
        else:
            parts += [_escape(line), _escape(code)] if code else [_escape(line)]
        if after:
            parts += ["", *_fence(inspect.cleandoc("\n".join(after))), ""]
        if ends:
            parts.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def _fence(text: str) -> list[str]:
    """A block of code, or of text where it is no Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return ["```text", text, "```"]
    return ["```python", text, "```"]


def _list_arguments(lines: list[str]) -> list[str]:
    """`name: meaning` with what follows on deeper lines, as items of a list."""
    items: list[str] = []
    for line in lines:
        if match := re.match(r"    (\*{0,2}[\w, ]+): (.*)", line):
            items.append(f"- `{match[1]}`: {_escape(match[2])}")
        elif items:
            items[-1] += f" {_escape(line.strip())}"
        else:
            items.append(_escape(line.strip()))
    return items


def _read_source(function: object) -> str:
    """The text of a function in a fold, under its place."""
    plain = inspect.unwrap(getattr(function, "_function", function))
    try:
        lines, first = inspect.getsourcelines(plain)
        path = Path(inspect.getsourcefile(plain)).resolve().relative_to(ROOT)
    except (TypeError, OSError, ValueError):
        return ""
    text = inspect.cleandoc("\n" + "".join(lines)) if lines[0].startswith(" ") else "".join(lines)
    return f"````{{dropdown}} Source: {path}, line {first}\n```python\n{text.rstrip()}\n```\n````"


def _break(signature: str) -> str:
    """A long signature with an argument a line."""
    if len(signature) < 80:
        return signature
    parts, depth, current = [], 0, ""
    inside, _, result = signature[1:].rpartition(")")
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return "(\n" + "".join(f"    {part},\n" for part in [*parts, current.strip()]) + f"){result}"


def _first_line(module: object) -> str:
    return inspect.cleandoc(module.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _escape(text: str) -> str:
    """Text as it is, but for what stands between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = "".join(part if part.startswith("`") and part.endswith("`") and len(part) > 1
                    else _MARKUP.sub(r"\\\1", part) for part in parts)
    return re.sub(r"(?<=[.;)]) (Returns|Raises|Cost|Source|Same as): ", r"\n\n**\1**: ", plain)
