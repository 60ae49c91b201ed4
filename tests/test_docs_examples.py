"""The examples of README and docs: each runs, and prints what the page says it prints."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

import jitcore

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(page, number, *match.groups(), id=f"{page.stem}-{number}")
    for page in PAGES
    if page.name not in ("errors.md", "sharding.md")  # run by test_errors_page, and on eight devices by tests/sharding
    for number, match in enumerate(EXAMPLE.finditer(page.read_text()))
]


def drop_trailing_spaces(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("page", [*(ROOT / "docs" / "howto").glob("*.md"), *(ROOT / "docs" / "migrating").glob("*.md"),
                                  *(ROOT / "docs" / f"{name}.md" for name in ("faq", "index", "sharp_bits", "tutorial"))],
                         ids=lambda page: page.stem)
def test_each_program_of_a_guide_is_run(page):
    text = page.read_text()
    assert len(EXAMPLE.findall(text)) == text.count("```python\n")


@pytest.mark.parametrize(("page", "number", "program", "printed"), EXAMPLES)
def test_example_prints_what_the_page_says(page, number, program, printed):
    jitcore.clear_caches()  # what a page says of compilations holds in a new process
    output, file = io.StringIO(), "script.py"  # what messages name
    linecache.cache[file] = len(program), None, program.splitlines(keepends=True), file
    with contextlib.redirect_stdout(output):
        exec(compile(program, file, "exec"), {"__name__": "__main__"})
    assert drop_trailing_spaces(output.getvalue()) == drop_trailing_spaces(printed)


@pytest.mark.parametrize(("backend", "stage"), [("xla", "stablehlo"), ("cuda:emulated", "numba.cuda")])
def test_example_of_the_readme_with_another_backend(backend, stage):
    """One word is another, and fewer elements: the device in software takes seconds for a million."""
    if backend == "xla":
        pytest.importorskip("jax")
    _, _, program, printed = EXAMPLES[0].values
    program = program.replace("@jit\n", f'@jit(backend="{backend}")\n').replace("1_000_000", "1_000")
    program = program.replace('inspect("numba")', f'inspect("{stage}")')
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(program, "script.py", "exec"), {"__name__": "__main__"})
    found, expected = output.getvalue(), printed.replace("1000000", "1000")
    assert found.startswith("[-1.516") and "2.1" in found.partition("]")[0]
    assert found.partition("{ lambda")[2].partition("in (g,) }")[0] == expected.partition("{ lambda")[2].partition("in (g,) }")[0]
    assert {"xla": "stablehlo.exponential", "cuda:emulated": "@cuda.jit"}[backend] in found
