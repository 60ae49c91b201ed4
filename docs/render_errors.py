"""Writes docs/errors.md: the documentation of every error class, with an example and what it prints.

In: the docstrings of `jitcore.errors`, and of tests/golden the cases (scripts) and the expected texts. Out:
the page. `python docs/render_errors.py` writes it; a test compares.
"""

import builtins
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "errors.md"
GOLDEN = ROOT / "tests" / "golden"

HEAD = """# Errors

One section for each class of `jitcore.errors`: cause, example, what is printed, fix. Names and hierarchy are
those of `jax.errors`, where it has them. A message has at most eight lines: what happened, why, your line
with a caret, and a way out; the traceback has frames of your files only.
`config.update("traceback_filtering", False)` shows all.

This page is made from the docstrings (`help(jitcore.errors.<class>)`) by `docs/render_errors.py`.
"""


def list_classes() -> list[type[Exception]]:
    """The classes a user meets, in the order of the module; the bases have no example."""
    from jitcore import errors

    own = [value for value in vars(errors).values() if getattr(value, "__module__", "") == errors.__name__]
    classes = dict.fromkeys(value for value in own if inspect.isclass(value) and issubclass(value, Exception))
    return [kind for kind in classes if not kind.__doc__.startswith("Base of")]


def find_case(kind: type[Exception]) -> tuple[str, str] | None:
    """(script, what it prints) of the first golden case that ends with this very class."""
    for expected in sorted((GOLDEN / "expected").glob("*.txt")):
        text = expected.read_text()
        if re.search(rf"^jitcore\.errors\.{kind.__name__}: ", text, re.MULTILINE):
            return (GOLDEN / "cases" / f"{expected.stem}.py").read_text(), text
    return None


def render_class(kind: type[Exception]) -> str:
    """One section."""
    roots = (Exception, BaseException, object)
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__mro__[1:] if base not in roots)
    parts = [f"## {kind.__name__}", f"A subclass of {bases}." if bases else ""]
    parts += [render_paragraph(text) for text in inspect.cleandoc(kind.__doc__).split("\n\n")]
    case = find_case(kind)
    if case is not None:
        script, printed = case
        message = printed[printed.index("jitcore.errors.") :]
        parts += ["A script that ends with it:", f"```python\n{script}```", f"```text\n{message}```"]
    return "\n\n".join(part for part in parts if part)


def render_paragraph(text: str) -> str:
    """A paragraph of a docstring in Markdown."""
    if text.startswith(">>>"):
        lines = [re.sub(r"^>>> ", "", line) for line in text.splitlines()]
        return "\n".join(["```python", *lines, "```"])
    return re.sub(r"^(Cause|Fix): (.)", lambda m: f"**{m[1]}.** {m[2].upper()}", text)


TRACED = """## What cannot be traced, case by case

Control flow on traced values (`ControlFlowError`, of `jit(f, rewrite=True)`), and statements under `autojit`
(`NotTraceable` with `strict=True`, else `AutojitWarning`). Each message also shows your line with a caret."""


def render_traced() -> str:
    """A table of the golden cases about control flow and about autojit."""
    rows = ["| what | message | way out |", "|---|---|---|"]
    for script, text in list_cases():
        found = re.search(r"^jitcore\.errors\.(\w+): (.*)\n(?:.*\n)*?To fix: (.*)", text, re.MULTILINE)
        if found and found[1] in ("ControlFlowError", "NotTraceable", "AutojitWarning"):
            rows.append(render_row(script, f"{found[1]}: {found[2]}", found[3]))
    return "\n\n".join([TRACED, "\n".join(rows)])


def list_cases() -> list[tuple[str, str]]:
    """(script, how it ends) of the golden cases."""
    return [((GOLDEN / "cases" / f"{expected.stem}.py").read_text(), expected.read_text())
            for expected in sorted((GOLDEN / "expected").glob("*.txt"))]


def render_row(script: str, message: str, fix: str) -> str:
    """A row of a table: the script's docstring, the first line of the message, the way out."""
    fence = "``" if "`" in message else "`"
    cells = script.partition('"""')[2].partition('"""')[0], f"{fence}{message}{fence}", fix
    return " | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip()


BUILTINS = """## TypeError, ValueError and others of Python's own

Raised where JAX raises them: by arguments and results that do not fit, above all those of `grad` and its
company. The messages are laid out in the same way."""


def render_builtins() -> str:
    """A table of the golden cases that end with a class of Python's own."""
    rows = ["| mistake | message | way out |", "|---|---|---|"]
    for script, text in list_cases():
        found = re.search(r"^([A-Z]\w+: .*)\n(?:.*\n)*?To fix: (.*)", text, re.MULTILINE)
        if found and hasattr(builtins, found[1].partition(":")[0]):
            rows.append(render_row(script, found[1], found[2]))
    return "\n\n".join([BUILTINS, "\n".join(rows)])


def render_page() -> str:
    """The whole page."""
    sections = [*map(render_class, list_classes()), render_traced(), render_builtins()]
    return "\n\n".join([HEAD.strip(), *sections]) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(render_page())
