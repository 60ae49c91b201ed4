"""Programs as users write them, run plainly and compiled: results, writes, errors and variables must agree."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path

import pytest

import jitcore
from jitcore.autojitted import function as autojit_function
from tests.autojit.programs import assert_alike, list_programs, list_sharing, load, read_variables, run
from tests.codegens import codegen, pytest_generate_tests  # noqa: F401
from tests.own_files import is_own_file

FILES = sorted(Path(__file__).parent.glob("user_programs_*.py"))
#: Files of programs that compute much; of the others the machine code says nothing more.
COMPUTING = ("arrays", "loops", "science")


def list_cases(is_computing: bool) -> list:
    kinds = [(path.stem.removeprefix("user_programs_"), path) for path in FILES]
    return [pytest.param(path, name, id=f"{kind}-{name}")
            for kind, path in kinds if (kind in COMPUTING) == is_computing for name in list_programs(path)]


@pytest.mark.parametrize("path, name", list_cases(False))
def test_program(path, name, monkeypatch):
    check_program(path, name, monkeypatch)


@pytest.mark.machine_code
@pytest.mark.parametrize("path, name", list_cases(True))
def test_computing_program(path, name, monkeypatch):
    check_program(path, name, monkeypatch)


def check_program(path, name, monkeypatch):
    monkeypatch.setattr(autojit_function.Probe, "_is_slower", lambda self, copies: False)
    modules = load(path), load(path)
    inputs = zip(*(getattr(module, name).inputs for module in modules))
    plain, compiled = getattr(modules[0], name), jitcore.autojit(getattr(modules[1], name))
    for place, makers in enumerate(inputs):
        for _ in range(1 if place else 2):
            given = [_as_tuple(make()) for make in makers]
            expected = run(plain, given[0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run(compiled, given[1])
            _compare_errors(expected[1], found[1])
            assert expected[2] == found[2]
            assert_alike((given[0], expected[0]), (given[1], found[0]))
            assert list_sharing((given[0], expected[0])) == list_sharing((given[1], found[0]))
            assert_alike(*map(read_variables, modules))


def _as_tuple(arguments) -> tuple:
    return arguments if type(arguments) is tuple else (arguments,)


def _compare_errors(expected, found) -> None:
    assert (type(expected).__name__, str(expected)) == (type(found).__name__, str(found))
    if found is not None:
        files = [frame.filename for frame in traceback.extract_tb(found.__traceback__)]
        assert not any(map(is_own_file, files))
