"""Docstrings of public functions: sections and examples, read from text files when somebody asks for them.

In: the docstring in the source, one sentence and what is special about a function. Out: the same with `Args`,
`Returns`, `Raises`, `Example` and `Source`, for `help()`, notebooks and the documentation.

`<module>.txt` has a block per function: its name, and an example with what it prints. A block that begins
with `Source:`, `Returns:` or `Raises:` says what holds for all functions after it, and what parameters mean
that mean something special there. `parameters.txt` says what they mean elsewhere. Tests run the examples,
and find functions without.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore.process.lazy import LazyModule

if TYPE_CHECKING:
    from pathlib import Path

# What only help needs.
inspect, pathlib, textwrap = LazyModule("inspect"), LazyModule("pathlib"), LazyModule("textwrap")

_WIDTH = 100
_SHARED = ("Source:", "Returns:", "Raises:")


class Entry(NamedTuple):
    """What a table says of a function: a doctest, and the sections that it shares with its neighbours."""

    example: str
    sections: dict[str, str]


class Docstring(str):
    """The docstring in the source; `inspect.getdoc`, which asks it to expand tabs, gets all sections."""

    def __new__(cls, text: str, function: Any, module: str, name: str) -> Docstring:
        docstring = super().__new__(cls, text)
        docstring.subject = function, module, name
        return docstring

    def __reduce__(self) -> tuple:
        return str, (str(self),)  # of functions that are sent by value, where `wraps` has put it

    def expandtabs(self, tabsize: int = 8) -> str:
        return compose_docstring(str.expandtabs(self, tabsize), *self.subject)


def document(module: ModuleType, names: Iterable[str]) -> None:
    """Lets the public functions of a module have the sections that its table knows."""
    for name in names:
        function = getattr(module, name)
        text = getattr(function, "__doc__", None)
        if text.__class__ is str and callable(function) and not isinstance(function, type):
            function.__doc__ = Docstring(text, function, module.__name__, name)


def compose_docstring(text: str, function: Any, module: str, name: str) -> str:
    """The docstring of `module.name` with the sections that its text in the source lacks."""
    text = inspect.cleandoc(text)
    entry = find_entry(module, name)
    parts = [text]
    if "Args:" not in text and (lines := list(_describe_parameters(function, entry))):
        parts.append("\n".join(["Args:", *lines]))
    if entry is not None:
        if lines := [_fold(f"{title} {entry.sections[title]}") for title in ("Returns:", "Raises:")
                     if title not in text and title in entry.sections]:
            parts.append("\n".join(lines))
        parts.append("Example:\n" + textwrap.indent(entry.example, "    "))
        if "Same as:" not in text and "Source:" not in text and "Source:" in entry.sections:
            parts.append(f"Source: {entry.sections['Source:']}")
    return "\n\n".join(parts)


def _describe_parameters(function: Any, entry: Entry | None) -> Iterable[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return
    meanings = read_parameters()
    special = entry.sections if entry else {}
    for parameter in parameters:
        if meaning := special.get(f"{parameter.name}:", meanings.get(parameter.name)):
            yield _fold(f"{parameter.name}: {meaning}", "    ")


def _fold(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ",
                         break_long_words=False)


def find_entry(module: str, name: str) -> Entry | None:
    """What a table says of `module.name`; a submodule without one stands in its package's, as `norm.pdf`."""
    while not _locate(module).exists():
        module, _, submodule = module.rpartition(".")
        if not module:
            return None
        name = f"{submodule}.{name}"
    return read_table(module).get(name)


@functools.cache
def read_table(module: str) -> dict[str, Entry]:
    """The entries of a module's table by name."""
    entries: dict[str, Entry] = {}
    sections: dict[str, str] = {}
    for block in _locate(module).read_text(encoding="utf-8").split("\n\n"):
        head, _, example = block.strip().partition("\n")
        if head.startswith(_SHARED):
            shared = {title: text for title, _, text in (line.partition(" ") for line in block.splitlines())}
            sections = {title: text for title, text in sections.items() if title == "Source:"} | shared
        elif head:
            named = {title: text.replace("{name}", head) for title, text in sections.items()}
            entries[head] = Entry(example, named)
    return entries


@functools.cache
def read_parameters() -> dict[str, str]:
    """What parameters mean, by name."""
    meanings: dict[str, str] = {}
    for line in _locate("parameters").read_text(encoding="utf-8").splitlines():
        names, _, meaning = line.partition(": ")
        meanings.update((name, meaning) for name in names.split(", "))
    return meanings


def _locate(module: str) -> Path:
    return pathlib.Path(__file__).parent / f"{module.removeprefix('jitcore.')}.txt"
