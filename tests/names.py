"""Which of JAX's public names jitcore has, module by module.

    python -m tests.names            prints the table
    python -m tests.names --write    writes it to docs/features.md

In: JAX, of the version that `names.toml` is about, and the reasons there, one for each name that is not here. Out: the
table. Left out are submodules, and the primitives of JAX (`lax.add_p`), which are no part of what it promises.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
DATA = tomllib.loads((ROOT / "tests" / "names.toml").read_text())
PAGE = ROOT / "docs" / "features.md"
BEGIN, END = "<!-- names: made by python -m tests.names --write -->\n", "<!-- end of the names -->\n"


class Compared(NamedTuple):
    """A module: names of JAX's in alphabetical order, and those of them that are not here."""

    module: str
    names: list[str]
    missing: list[str]

    @property
    def have(self) -> int:
        return len(self.names) - len(self.missing)


def list_names(module: ModuleType) -> list[str]:
    """Public names that a module, or the table of those without a list of their own, says it promises."""
    if (promised := DATA["promised"].get(module.__name__)) is not None:
        return promised
    return [name for name in dir(module)
            if not name.startswith("_") and not name.endswith("_p") and name != "annotations"
            and not isinstance(value := getattr(module, name), ModuleType)
            and (not module.__name__.startswith("jax.experimental.") or _is_of_jax(value))]


def _is_of_jax(value: Any) -> bool:
    """Not what a module has imported from Python, or from the pytrees of JAX for its own use."""
    where = getattr(value, "__module__", "jax")
    return where.startswith("jax") and not where.startswith(("jax._src.tree_util", "jax.tree_util"))


def compare(module: str) -> Compared:
    """A module of JAX with its namesake here, which need not be there."""
    names = list_names(importlib.import_module(module))
    try:
        ours = importlib.import_module(module.replace("jax", "jitcore", 1))
    except ModuleNotFoundError:
        ours = None
    return Compared(module, names, [name for name in names if not hasattr(ours, name)])


def compare_all() -> list[Compared]:
    return [compare(module) for module in DATA["least"]]


def render(compared: list[Compared]) -> str:
    """The table of docs/features.md, and the reasons under it."""
    lines = ["| module | names of JAX's | here |", "|---|---|---|"]
    lines += [f"| `{c.module}` | {len(c.names)} | {c.have} ({100 * c.have // max(1, len(c.names))} %) |"
              for c in compared]
    count, have = sum(len(c.names) for c in compared), sum(c.have for c in compared)
    lines += [f"| all | {count} | {have} ({100 * have // count} %) |", "",
              "What is not here, and why:", "", "| module | reason | names |", "|---|---|---|"]
    for module, reasons in DATA["missing"].items():
        lines += [f"| `{module}` | {reason} | {', '.join(f'`{name}`' for name in names)} |"
                  for reason, names in reasons.items()]
    return "\n".join(lines) + "\n"


def write(text: str) -> None:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + text + END + rest.partition(END)[2])


if __name__ == "__main__":
    table = render(compare_all())
    print(table)
    if "--write" in sys.argv:
        write(table)
