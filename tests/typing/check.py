"""Runs a type checker on users' files: `python tests/typing/check.py [mypy | pyright]`, away from the source folder to
check the installed package.

In: `good_*.py`, which are right, and `bad_*.py`, with mistakes in the lines that say `# error`. Out: a line for each
error that is found and not marked, or marked and not found, and whether there are none. After the mark stands mypy's
code; pyright has others.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_MARK = re.compile(r"# error: (\S+)")


def run_mypy(files: list[Path]) -> set[tuple[str, int, str]]:
    """(file, line, code) of each error."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", "--no-pretty",
               "--follow-imports", "silent", "--hide-error-context", *files]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert lines and re.match("Found|Success", lines[-1]), lines
    found = [re.match(r"(.*?):(\d+): error: .*\[([\w-]+)\]$", line) for line in lines if ": error: " in line]
    return {(Path(one[1]).name, int(one[2]), one[3]) for one in found}


def run_pyright(files: list[Path]) -> set[tuple[str, int, str]]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *files]
    said = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["generalDiagnostics"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1, "") for one in said}


def find_differences(checker: str) -> list[str]:
    """What the checker says and the files do not, and the other way round."""
    files = sorted(FOLDER.glob("good_*.py")) + sorted(FOLDER.glob("bad_*.py"))
    found = {"mypy": run_mypy, "pyright": run_pyright}[checker](files)
    marked = set()
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if mark := _MARK.search(line):
                marked.add((path.name, number, mark[1]))
    if checker == "pyright":
        marked = {(name, line, "") for name, line, _ in marked}
    else:  # some lines have two errors
        lines = {one[:2] for one in found & marked}
        found = {one for one in found if one in marked or one[:2] not in lines}
    return ([f"{name}:{line}: not marked: {code}" for name, line, code in sorted(found - marked)]
            + [f"{name}:{line}: not found: {code}" for name, line, code in sorted(marked - found)])


if __name__ == "__main__":
    differences = find_differences(*(sys.argv[1:] or ["mypy"]))
    print(*differences or ["as marked"], sep="\n")
    sys.exit(bool(differences))
