"""Which tests a change can touch, by the graph of imports.

    python -m tests.changed [BASE]        test files, for pytest; nothing where no test is touched

In: the files that differ from BASE (HEAD, unless given) in the work tree, untracked ones included. Out: the test
modules that import one of them, themselves or through others; of files that nobody imports, the tests that read
them. Imports by name count too: entry points, `python -m`, modules of a package that are imported one after the
other, and submodules as attributes. What is not known to be read by few tests is read by all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

import jitcore
from jitcore.backends import BACKENDS

ROOT = Path(__file__).parents[1]
PACKAGES = ("jitcore", "benchmarks", "tests")
ALL = "tests"
#: Tests that read files which nobody imports, by the beginning of the file's name.
READERS = {
    "docs/examples/": ["tests/test_adding.py"],
    "docs/architecture.md": ["tests/test_docs.py", "tests/test_adding.py"],
    "docs/": ["tests/test_docs.py", "tests/test_docs_examples.py", "tests/test_errors_page.py"],
    "README.md": ["tests/test_docs.py", "tests/test_docs_examples.py", "tests/test_packaging.py"],
    "CHANGELOG.md": ["tests/test_docs.py"],
    "notebooks/": ["tests/test_notebooks.py", "tests/test_docs.py"],
    "benchmarks/results/": ["tests/test_docs.py"],
    "tests/golden/": ["tests/golden"],
    "tests/typing/": ["tests/test_typing.py"],
    "scripts/stub_tables.py": ["tests/test_typing.py"],
    "scripts/write_stubs.py": ["tests/test_typing.py"],
    "LICENSE": ["tests/test_packaging.py"],
    ".gitignore": [],
}

_IMPORT = re.compile(r"^ *import (jitcore[\w.]*)(?: as (\w+))?$", re.M)
_FROM = re.compile(r"^ *from jitcore import (\([^)]*\)|[^\n(]*)$", re.M)
_ATTRIBUTE = re.compile(r"\b(\w+)\.([\w.]+)")


def list_changed(base: str) -> list[str]:
    def run(*command: str) -> list[str]:
        return subprocess.run(
            ["git", *command], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    return sorted({*run("diff", "--name-only", base), *run("ls-files", "--others", "--exclude-standard")})


def name_module(file: str) -> str:
    """The name under which a file is imported."""
    file = f"jitcore/{file}" if file.startswith("backends/") else file
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def build_graph() -> grimp.ImportGraph:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)
    modules = frozenset(graph.modules)
    for module in sorted(modules):
        for imported in set(_list_imports_by_name(module, modules)) - {module}:
            graph.add_import(importer=module, imported=imported)
    return graph


def _list_imports_by_name(module: str, modules: frozenset[str]) -> Iterator[str]:
    """Modules that one imports without an import statement that names them."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if module == "jitcore.dispatch.backend":
        yield from (place.partition(":")[0] for place in BACKENDS.values())
    if module.startswith("jitcore.") and ("import_module(f" in text or "iter_modules(" in text):
        package = module if path.is_dir() else module.rpartition(".")[0]
        folder = f"{package}.cli." if module == "jitcore.__main__" else f"{package}."
        yield from (other for other in modules if other.startswith(folder))
    if module.startswith("tests.") and "subprocess" in text:  # what the other process imports
        yield from (f"{name}.__main__" for name in ("jitcore", "benchmarks") if f'"-m", "{name}"' in text)
        yield from (
            other for other in modules if f"import {other}\n" in text or f"from {other} import" in text
        )
    aliases = {alias or name: name for name, alias in _IMPORT.findall(text)}
    names = [f"{aliases[first]}.{rest}" for first, rest in _ATTRIBUTE.findall(text) if first in aliases]
    names += [f"jitcore.{name}" for group in _FROM.findall(text) for name in re.findall(r"\w+", group)]
    yield from filter(None, (_find_owner(name, modules) for name in names))


def _find_owner(name: str, modules: frozenset[str]) -> str | None:
    """The module that has what `jitcore.name.attribute` stands for: itself, or the one that it is loaded from."""
    while name.startswith("jitcore."):
        owner = name if name in modules else jitcore._MODULE_OF_NAME.get(name.removeprefix("jitcore."))
        if owner is not None:
            return owner
        name = name.rpartition(".")[0]
    return None


def find_tests(changed: list[str]) -> set[str]:
    """Test files, and folders of them; `ALL` where all are touched."""
    graph, found = build_graph(), set()
    for file in changed:
        module = name_module(file)
        if module in graph.modules:
            touched = {module, *graph.find_downstream_modules(module)}
            found |= {f"{name.replace('.', '/')}.py" for name in touched if _is_test(name)}
            if Path(file).name == "conftest.py":
                found.add(str(Path(file).parent))
        elif file.endswith(".pyi"):
            found.add("tests/test_typing.py")
        elif file.startswith("tests/answers/"):
            found.add(f"tests/{Path(file).stem.replace('.', '/')}.py")
        elif (
            tests := next((READERS[start] for start in READERS if file.startswith(start)), None)
        ) is not None:
            found |= set(tests)
        elif (ROOT / file).exists() or not file.endswith(".py"):
            return {ALL}
    return {ALL} if ALL in found else {name for name in found if (ROOT / name).exists()}


def _is_test(module: str) -> bool:
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


if __name__ == "__main__":
    print(*sorted(find_tests(list_changed(*sys.argv[1:] or ["HEAD"]))))
