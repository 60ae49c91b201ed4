"""Writes an example anew, as the difference between this tree and a copy of it in which the example stands.

    git worktree add /tmp/tree && cd /tmp/tree
    git apply -3 docs/examples/pass.diff                 and mend what does not fit
    python docs/examples/remake.py pass /tmp/tree        in this tree

In: the name of an example and a folder. Out: docs/examples/NAME.diff, under the text that it began with. Only
`PLACES` count. What `docs/draw_map.py` and `docs/render_errors.py` write is no part of an example: do not run
them in the folder.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PLACES = ("jitcore", "backends", "tests", "setup.cfg")


def list_files(tree: Path) -> set[Path]:
    """Of jitcore/backends, a link, those of backends."""
    found = [path for place in PLACES for path in (tree / place, *(tree / place).rglob("*"))]
    files = {path.relative_to(tree) for path in found if path.suffix in (".py", ".txt", ".cfg")}
    return {path for path in files if path.parts[:2] != ("jitcore", "backends") and (tree / path).is_file()}


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []


def find_differences(tree: Path) -> Iterator[str]:
    """The lines of a unified diff from this tree to another one."""
    for path in sorted(list_files(ROOT) | list_files(tree)):
        old, new = read_lines(ROOT / path), read_lines(tree / path)
        names = [f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null"]
        if old != new:
            yield f"diff --git a/{path} b/{path}\n" + ("" if old else "new file mode 100644\n")
            yield from difflib.unified_diff(old, new, *names)


def read_text(name: str) -> str:
    """What an example says before its diff."""
    path = FOLDER / f"{name}.diff"
    return path.read_text(encoding="utf-8").partition("diff --git ")[0] if path.exists() else ""


if __name__ == "__main__":
    example, folder = sys.argv[1:]
    written = read_text(example) + "".join(find_differences(Path(folder).resolve()))
    (FOLDER / f"{example}.diff").write_text(written, encoding="utf-8")
