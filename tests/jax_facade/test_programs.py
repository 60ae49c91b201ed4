"""Programs written for JAX run on `jitcore.jax` when their imports say so, and give what JAX gives."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.jax_answers import ask

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
_IMPORT = re.compile(r"^(import|from) jax\b", re.M)


def run(text: str, name: str) -> dict:
    module: dict = {"__name__": f"jax_facade_program_{name}"}
    sys.modules[module["__name__"]] = type(sys)(module["__name__"])  # dataclasses look their module up
    exec(compile(text, name, "exec"), module)
    return module["RESULTS"]


def change_imports(text: str) -> str:
    """`import jax` binds `jax`: under another name it has to say so."""
    text = re.sub(r"^import jax$", "import jitcore.jax as jax", text, flags=re.M)
    return _IMPORT.sub(r"\1 jitcore.jax", text)


def flatten(value) -> list:
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in flatten(value[key])]
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in flatten(item)]
    return [value]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path):
    text = path.read_text()
    found = run(change_imports(text), path.stem)
    wanted = ask(lambda jax: {name: flatten(value) for name, value in run(text, path.stem).items()})
    assert found.keys() == wanted.keys()
    for name, theirs in wanted.items():
        ours = flatten(found[name])
        assert len(ours) == len(theirs), name
        for mine, other in zip(ours, theirs):
            if other is None or isinstance(other, (str, bool, type)):
                assert mine == other, name
            else:
                mine, other = np.asarray(mine), np.asarray(other)
                assert (mine.shape, mine.dtype) == (other.shape, other.dtype), name
                np.testing.assert_allclose(mine, other, rtol=2e-4, atol=2e-5, err_msg=name)


def test_every_import_of_jax_is_changed():
    for path in PROGRAMS:
        assert not re.search(r"^\s*(import|from) jax\b", change_imports(path.read_text()), re.M)
