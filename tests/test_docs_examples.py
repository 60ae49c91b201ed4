"""The examples of README and docs: each runs, and prints what the page says it prints."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

import jitcore

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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


@pytest.mark.parametrize(("page", "number", "program", "printed"), EXAMPLES)
def test_example_prints_what_the_page_says(page, number, program, printed):
    jitcore.clear_caches()  # what a page says of compilations holds in a new process
    output, file = io.StringIO(), "script.py"  # what messages name
    linecache.cache[file] = len(program), None, program.splitlines(keepends=True), file
    with contextlib.redirect_stdout(output):
        exec(compile(program, file, "exec"), {"__name__": "__main__"})
    assert drop_trailing_spaces(output.getvalue()) == drop_trailing_spaces(printed)
