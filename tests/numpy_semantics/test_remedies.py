"""Every reason why something cannot be traced has a remedy of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jitcore
from jitcore.numpy_semantics.remedies import GENERAL, find_remedy

ROOT = Path(jitcore.__file__).parent
MODULES = [*ROOT.glob("numpy_semantics/**/*.py"), *ROOT.glob("autojitted/**/*.py")]
RAISING = ("not_traceable", "needs_value", "Unreadable")


def list_reasons() -> Iterator:
    """The texts that are written in the source; what is computed stands as a word."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            if not isinstance(node, ast.Call) or name not in RAISING:
                continue
            text = render(node.args[1 if name == "needs_value" else 0])
            if name == "needs_value":
                text += " needs the value of a traced array float64[3]"
            elif len(node.args) + len(node.keywords) > 1:
                continue  # comes with its remedy
            if text.replace("word", "").strip(" :"):
                yield pytest.param(text, id=f"{path.stem}-{node.lineno}")


def render(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(render, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else "word"


@pytest.mark.parametrize("reason", list(list_reasons()))
def test_reason_has_a_remedy(reason):
    found = find_remedy(reason)
    assert found is not GENERAL, reason
    assert found.why.endswith(".") and not found.fix.endswith(".") and len(found.fix) < 200


def test_reasons_are_found():
    assert len(list(list_reasons())) > 60


def test_unknown_reason_has_the_general_remedy():
    assert find_remedy("the moon is full") is GENERAL
