"""Rows of functions name parameters that NumPy's and SciPy's functions have, and that the functions of Arrays take."""

from __future__ import annotations

import functools
import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.functions.rows import IN_C, ROWS, WAYS, Row
from jitcore.numpy_semantics.mode import NumpyMode

OF_THE_NEWEST = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0",
                                   reason="rows have the options of NumPy 2.4 and SciPy 1.17")

tables.load()
#: Other defaults that mean the same.
ALIKE = {"cross axis", "eigh UPLO", "pinv rtol"}


def _id(row: Row) -> str:
    return row.function if isinstance(row.function, str) else row.function.__name__


def _import(row: Row) -> None:
    if isinstance(row.function, str):
        importlib.import_module(".".join(row.function.split(".")[:2]))


@OF_THE_NEWEST
@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_operands_and_options_are_parameters(row):
    _import(row)
    assert len(row.names) >= row.count
    assert {*row.also, *row.only} <= set(row.names), row


@OF_THE_NEWEST
@pytest.mark.parametrize("row", ROWS, ids=_id)
def test_what_computes_takes_every_option(row):
    """Else a call with the option would be refused without need."""
    _import(row)
    taken = inspect.signature(row.compute).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    dropped = {name for name, values in row.only.items() if len(values) == 1}
    options = set(row.names[max(row.count, 1) :]) - WAYS - dropped - {"out", "kwargs"}
    assert options <= set(taken)


@OF_THE_NEWEST
@pytest.mark.parametrize("row", [row for row in ROWS if not isinstance(row.function, str)], ids=_id)
def test_defaults_are_those_of_numpy(row):
    """Only options that were given are passed on."""
    computes, numpys = inspect.signature(row.compute).parameters, inspect.signature(row.function).parameters
    for name in row.names[max(row.count, 1) :]:
        own, other = computes.get(name), numpys[name].default
        is_passed = own is not None and own.kind is not inspect.Parameter.VAR_KEYWORD and name not in WAYS
        if not is_passed or name in (*row.also, *row.only) or f"{_id(row)} {name}" in ALIKE:
            continue
        assert own.default == other or other is np._NoValue and not own.default, name


@pytest.mark.parametrize("name", IN_C)
def test_parameters_of_functions_in_c(name):
    try:
        parameters = inspect.signature(getattr(np, name)).parameters
    except ValueError:
        pytest.skip("NumPy does not tell")
    assert list(parameters) == IN_C[name].split()


def test_functions_in_python_tell_their_parameters():
    for row in ROWS:
        if not isinstance(row.function, str):
            source = getattr(row.function, "_implementation", row.function)
            assert inspect.isfunction(source) or _id(row) in IN_C, row


def test_an_unknown_parameter_is_told():
    row = Row(np.tril, functools.partial, count=3)
    ROWS.remove(row)
    with pytest.raises(AssertionError):
        test_operands_and_options_are_parameters(row)


@pytest.mark.parametrize("table", [tables.FUNCTIONS, tables.CREATION], ids=["functions", "creation"])
def test_rewritten_code_finds_every_function(table):
    for function in filter(callable, table):
        assert NumpyMode().redirects.get(function) is not None, function


def test_a_loop_without_functions_of_numpy_loads_none():
    code = """
import sys
import numpy as np
from jitcore import autojit

@autojit
def smooth(u, rounds):
    for _ in range(rounds):
        u[1:-1] = (u[:-2] + u[2:]) / 2
    return u

smooth(np.linspace(0, 1, 1000), 100)
assert "scan" in str(smooth.inspect("jaxpr"))
assert not [name for name in ("reductions", "python_math", "scipy_functions")
            if f"jitcore.numpy_semantics.functions.{name}" in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
