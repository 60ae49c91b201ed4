"""The worked examples of docs/architecture.md: each diff applies, touches the files that the page names, and passes the
tests that it names, on a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_scripts import load_script

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
_, _, SECTION = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## How do I add ...\n")
ENTRY = re.compile(r"^\*\*\.\.\. .*?\*\* \(\[.*?\]\(examples/(\w+)\.diff\)\)\.(?:.|\n)*?(?=\n\n|\Z)", re.MULTILINE)
ENTRIES = {match[1]: match[0] for match in ENTRY.finditer(SECTION)}


def read_quoted(name: str, word: str) -> list[str]:
    """What stands in backticks behind a word of an entry."""
    sentence = re.search(rf"\b{word}: ((?:`[^`]*`,?\s*)*)", ENTRIES[name])
    return re.findall("`([^`]*)`", sentence[1])


def list_touched(name: str) -> list[str]:
    return re.findall(r"^diff --git a/(\S+)", (EXAMPLES / f"{name}.diff").read_text(encoding="utf-8"), re.MULTILINE)


def test_each_example_has_an_entry():
    assert set(ENTRIES) == {path.stem for path in EXAMPLES.glob("*.diff")} and len(ENTRIES) == 7


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_is_short_and_names_the_files(name):
    assert len(ENTRIES[name].splitlines()) <= 10
    assert {file for file in list_touched(name) if not file.startswith("tests/")} == set(read_quoted(name, "Files"))
    parts = (EXAMPLES / f"{name}.diff").read_text(encoding="utf-8").split("diff --git a/")
    added = [line for part in parts[1:] if not part.startswith("tests/") for line in part.splitlines() if line.startswith("+")]
    assert max(map(len, added)) <= 1 + 110


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The project with all examples in it, its tables and pages made anew."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("jitcore", "backends", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for name in ENTRIES:
        run(folder, "git", "apply", "-C1", str(EXAMPLES / f"{name}.diff"))
    run(folder, sys.executable, "docs/draw_map.py", "--write")
    run(folder, sys.executable, "docs/render_errors.py")
    return folder


def run(folder: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")
def test_copy_passes_the_tests_that_the_page_names(copy):
    """All in one process: of the files those tests that some entry asks for."""
    named = [test.partition(" -k ") for name in ENTRIES for test in read_quoted(name, "Tests")]
    chosen = {words or Path(file).stem for file, _, words in named}
    printed = run(copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rA",
                  *dict.fromkeys(file for file, _, _ in named), "tests/test_map.py", "-k", " or ".join([*sorted(chosen), "test_map"]))
    for file, _, _ in named:
        assert f"PASSED {file}::" in printed, f"no test of {file} ran"


def test_an_example_is_made_anew_from_a_tree(tmp_path):
    """Of a tree with one example, that example."""
    for name in ("jitcore", "backends", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    run(tmp_path, "git", "apply", "-C1", str(EXAMPLES / "pass.diff"))
    remake = load_script("examples/remake")
    made = remake.read_text("pass") + "".join(remake.find_differences(tmp_path))
    kept = (EXAMPLES / "pass.diff").read_text(encoding="utf-8")
    assert re.sub("^@@.*", "", made, flags=re.M) == re.sub("^@@.*", "", kept, flags=re.M)
