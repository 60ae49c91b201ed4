"""Runs the scripts of cases/ and renders how they end: the text that the files of expected/ hold.

In: a script that makes one common mistake. Out: one line for each frame of its traceback, then class and
message of the exception, without anything that differs between machines. `python tests/golden/render.py`
writes expected/.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
CASES = sorted((FOLDER / "cases").glob("*.py"))


def run_case(path: Path) -> Exception:
    """The exception that the script ends with, its traceback beginning in the script.

    Raises: AssertionError when the script runs to its end."""
    program = compile(path.read_text(), str(path), "exec")
    try:
        exec(program, {"__name__": "__main__", "__file__": str(path)})
    except Exception as exc:
        exc.__traceback__ = exc.__traceback__.tb_next  # without the frame of this function
        return exc
    raise AssertionError(f"{path.name} raised nothing")


def list_frames(exc: Exception) -> list[tuple[str, int, str]]:
    """(file, line, function) of each frame of the traceback, outermost first."""
    frames, entry = [], exc.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        frames.append((code.co_filename, entry.tb_lineno, code.co_name))
        entry = entry.tb_next
    return frames


def render_case(path: Path) -> str:
    """How the script ends."""
    exc = run_case(path)
    kind = type(exc)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    lines = [f"{Path(file).name}:{line} in {function}" for file, line, function in list_frames(exc)]
    text = "\n".join([*lines, f"{name}: {exc}"])
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x...", text.replace(f"{path.parent}/", ""))
    return re.sub(r"backends are \[.*\]", "backends are [...]", text) + "\n"


def find_expected(path: Path) -> Path:
    """The file that holds the expected text of a case."""
    return FOLDER / "expected" / f"{path.stem}.txt"


if __name__ == "__main__":
    for case in CASES:
        find_expected(case).write_text(render_case(case))
