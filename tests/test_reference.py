"""The pages of the API reference: every public function has a section, with its signature, example and source."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs_scripts import load_script

ROOT = Path(__file__).parents[1]


reference = load_script("reference")


@pytest.mark.parametrize("module", reference.list_modules())
def test_each_function_has_a_section(module):
    page = reference.format_module(module)
    headings = re.findall(r"^## (\S+)$", page.replace("\\", ""), re.MULTILINE)
    assert headings == list(reference.list_functions(module))
    assert page.count("Source: jitcore/") >= 0.8 * len(headings)
    assert page.count("```") % 2 == 0
    signatures = re.compile(r"^(## \S+\n\n)```python\n[\w.]+(.*?)\n```", re.MULTILINE | re.DOTALL)
    for _, signature in signatures.findall(page):
        ast.parse(f"def function{signature}: ..." if signature != "(...)" else "")
    for code in re.findall(r"^```python\n(.*?)\n```", signatures.sub("", page), re.MULTILINE | re.DOTALL):
        assert code.startswith(">>> ") or ast.parse(code)


def test_a_section_has_all_parts():
    section = reference.format_module("jitcore.numpy").partition("## sum\n")[2].partition("\n## ")[0]
    for part in ("sum(\n    a,\n    axis=None,", "**Args**", "- `axis`: ", "**Returns**: ", "**Raises**: ", ">>> jnp.sum(",
                 "Source: jitcore/numpy/reductions.py, line", "def sum(a"):
        assert part in section, part


def test_markup_stands_for_itself():
    text = reference.format_docstring("|x| of `a_b`[0] and *args.\n\nArgs:\n    x: a_b,\n        and c.\n")
    assert text == "\\|x\\| of `a_b`\\[0\\] and \\*args.\n\n**Args**\n\n- `x`: a\\_b, and c."


def test_indented_lines_after_a_section_are_code():
    text = reference.format_docstring("Runs.\n\nRaises: OSError,\n    of files.\n\n    x = f()\n    print(x)\n")
    assert text == "Runs.\n\n**Raises**: OSError, of files.\n\n```python\nx = f()\nprint(x)\n```"


def test_pages_are_listed(tmp_path):
    reference.write_reference(tmp_path)
    index = (tmp_path / "index.md").read_text()
    pages = {page.stem for page in tmp_path.glob("*.md")} - {"index"}
    assert pages == set(reference.list_modules()) and all(f"({page}.md)" in index for page in pages)
