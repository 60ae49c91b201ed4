"""The map of the house: the picture in docs/architecture.md, made of the imports that stand in the code, and
the table of modules in each package's docstring, made of the first lines of its modules.

    python docs/draw_map.py            says what is not up to date
    python docs/draw_map.py --write    brings it up to date
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- picture: made by docs/draw_map.py -->\n", "<!-- end of the picture -->\n"
TABLE = "Modules:\n"
WIDTH = 110

#: Rooms that one box of the picture stands for; every other package is a box of its own.
TOGETHER = {
    "ground": ("docstrings", "errors", "process", "hypertext", "config", "caches", "sharding", "dtypes",
               "tree_util", "tree", "array", "typing"),
    "libraries": ("random", "ref", "nn", "scipy", "ops", "image", "flatten_util", "test_util",
                  "debug", "distributed", "ad_checkpoint", "custom_batching", "custom_derivatives", "einops"),
    "jit": ("device", "experimental", "stages", "jitted", "export", "extend"),
    "api": ("api", "cli", "__main__", "__init__"),
}
_BOX = {name: box for box, names in TOGETHER.items() for name in names}


def list_files() -> list[Path]:
    """All modules of the product."""
    return [path for folder in ("jitcore", "backends") for path in sorted((ROOT / folder).rglob("*.py"))
            if "backends" not in path.relative_to(ROOT).parts[1:]]


def find_box(module: str) -> str | None:
    """The box of a dotted module, or of what an import names; None for what is not ours."""
    parts = module.split(".")
    if parts[0] != "jitcore":
        return None
    if parts[1:2] == ["backends"]:
        return f"backends/{parts[2]}" if len(parts) > 2 else None
    return _BOX.get(parts[1], parts[1]) if len(parts) > 1 else None


def list_imports(node: ast.AST) -> Iterator[str]:
    """What a module imports when it is loaded: nothing for type checkers, nothing inside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif not (isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                  or isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from list_imports(child)


def find_edges() -> dict[str, set[str]]:
    """Which boxes each box imports."""
    edges: dict[str, set[str]] = {}
    for path in list_files():
        parts = path.relative_to(ROOT).with_suffix("").parts
        box = find_box(".".join(parts if parts[0] == "jitcore" else ("jitcore", *parts)))
        if box is not None and box != "api":
            names = list_imports(ast.parse(path.read_text(encoding="utf-8")))
            edges.setdefault(box, set()).update(map(find_box, names))
    return {box: found & set(edges) - {box} for box, found in edges.items()}


def reduce_edges(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Without those that a chain of others implies."""
    def reach(box: str, seen: set[str]) -> set[str]:
        for other in edges[box] - seen:
            seen.add(other)
            reach(other, seen)
        return seen

    return sorted((box, other) for box, found in edges.items() for other in found
                  if not any(other in reach(via, set()) for via in found - {other}))


def draw() -> str:
    """The picture: an arrow goes from a box to what it imports."""
    boxes = reduce_edges(find_edges())
    names = {name: name.replace("/", "_") for pair in boxes for name in pair}
    lines = [f"    {key}[{name}]" for name, key in sorted(names.items())]
    lines += [f"    {names[upper]} --> {names[lower]}" for upper, lower in boxes]
    return "```mermaid\nflowchart TD\n" + "\n".join(lines) + "\n```\n"


def write_table(folder: Path) -> str:
    """A row for each module and package of a folder: its name, and the first line of its docstring."""
    rows = []
    for path in sorted(folder.iterdir()):
        source = path / "__init__.py" if path.is_dir() and not path.is_symlink() else path
        if path.suffix == ".py" and path.stem != "__init__" or source != path and source.exists():
            text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
            summary = " ".join(text.partition("\n\n")[0].split()).partition(" Stage: ")[0]
            rows.append((path.stem + ("/" if source != path else ""), summary))
    indent = 4 + max((len(name) for name, _ in rows), default=0) + 2
    return "".join(textwrap.fill(f"    {name:{indent - 4}}{text}", WIDTH, subsequent_indent=" " * indent,
                                 break_long_words=False) + "\n" for name, text in rows)


def write_docstring(path: Path) -> str:
    """The text of an `__init__.py` with its table as it should be."""
    source = path.read_text(encoding="utf-8")
    node = ast.parse(source).body[0]
    prose = ast.get_docstring(ast.parse(source), clean=False).partition(TABLE)[0].rstrip()
    table = write_table(path.parent)
    rest = "".join(source.splitlines(keepends=True)[node.end_lineno:])
    return f'"""{prose}\n\n{TABLE}{table}"""\n{rest}' if table else source


def render() -> dict[Path, str]:
    """Each file that this script writes into, as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    found = {PAGE: before + BEGIN + draw() + END + rest.partition(END)[2]}
    for path in list_files():
        if path.name == "__init__.py":
            found[path] = write_docstring(path)
    return found


def main() -> int:
    stale = {path: text for path, text in render().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
    return 0 if not stale or "--write" in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())
