"""The commonest mistakes: what a user reads, in full, and that nothing of the inside shows.

`python tests/golden/render.py` writes the expected texts anew; read the difference before keeping it.
"""

import ast
import re
import subprocess
import sys

import pytest

from jitcore import errors
from tests.golden.render import CASES, FOLDER, find_expected, list_frames, render_case, run_case

by_name = pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)


@by_name
def test_text_is_the_expected_one(path):
    assert render_case(path) == find_expected(path).read_text()


@by_name
def test_message_is_short_and_names_the_place(path):
    exc = run_case(path)
    message = str(exc).splitlines()
    assert len(message) <= errors.MAX_LINES
    assert any(line.startswith("To fix: ") for line in message)
    frames = list_frames(exc)
    assert frames, "the traceback does not reach the script"
    assert [file for file, _, _ in frames if file != str(path)] == []
    text = path.read_text().splitlines()
    shown = [line for line in message if line.startswith(f"  {path}:")]
    for position in shown:  # the line below it is that of the file
        source = text[int(position.rpartition(":")[2]) - 1]
        assert source.strip() == message[message.index(position) + 1].strip()


TRACED = re.compile(r"^jitcore\.errors\.(ControlFlowError|NotTraceable|AutojitWarning): (.*)", re.MULTILINE)
TRACED_CASES = [path for path in CASES if TRACED.search(find_expected(path).read_text())]


def list_identifiers(path):
    """Variables, arguments, attributes and functions of a script."""
    for node in ast.walk(ast.parse(path.read_text())):
        found = [getattr(node, field, None) for field in ("id", "arg", "attr", "name")]
        yield from (name for name in found if isinstance(name, str))


@pytest.mark.parametrize("path", TRACED_CASES, ids=lambda path: path.stem)
def test_what_cannot_be_traced_is_named_with_its_place(path):
    message = str(run_case(path)).splitlines()
    place = next(i for i, line in enumerate(message) if line.startswith(f"  {path}:"))
    words = set(re.findall(r"\w+", " ".join(message[:place]).replace(str(path), "")))
    named = (words - {"a", "is", "in", "of", "it"}) & set(list_identifiers(path))
    assert named or re.search("return value|is returned$", message[0]), message[0]
    assert message[-1].startswith("See help(jitcore.errors.")


def test_forty_ways_not_to_be_traced():
    headlines = {(match[1], match[2]) for path in TRACED_CASES
                 for match in TRACED.finditer(find_expected(path).read_text())}
    assert len({headline for _, headline in headlines}) >= 40
    assert {kind for kind, _ in headlines} == {"ControlFlowError", "NotTraceable", "AutojitWarning"}


def test_the_cases_cover_twenty_mistakes_and_no_text_is_left_over():
    assert len(CASES) >= 20
    assert {path.stem for path in CASES} == {path.stem for path in (FOLDER / "expected").glob("*.txt")}


def test_python_prints_no_frame_of_jitcore():
    path = FOLDER / "cases" / "bool_in_if.py"
    process = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert process.returncode == 1
    files = [line.split('"')[1] for line in process.stderr.splitlines() if line.startswith('  File "')]
    assert files and set(files) == {str(path)}
    expected = find_expected(path).read_text().partition("Error: ")[2]
    assert process.stderr.replace(f"{path.parent}/", "").endswith(expected)
