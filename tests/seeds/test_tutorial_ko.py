"""The Korean edition of the tutorial, cell by cell; its older errors and reprs in their current form."""

import pytest

from tests.own_files import is_own_file
from tests.seeds import cells
from tests.seeds.behaviour import check_compiles_once, check_selu
from tests.seeds.replay import Cell, Notebook, check_cell

# The edition is from when ConcretizationTypeError was raised itself; it is a base of today's error.
BRANCH_ON_VALUE = Cell("""
# Condition on value of x.

def f(x):
  if x > 0:
    return x
  else:
    return 2 * x

f_jit = jax.jit(f)
f_jit(10)  # Should raise an error.
""", raises=("ConcretizationTypeError", cells.BOOL_CONVERSION),
    blames=("tracing the function f at {file}:3 for jit.", "concrete value was not available in Python",
            "depends on the value of the argument x."))

LOOP_ON_VALUE = Cell("""
# While loop conditioned on x and n.

def g(x, n):
  i = 0
  while i < n:
    i += 1
  return x + i

g_jit = jax.jit(g)
g_jit(10, 20)  # Should raise an error.
""", raises=("ConcretizationTypeError", cells.BOOL_CONVERSION),
    blames=("tracing the function g at {file}:3 for jit.", "depends on the value of the argument n."))

NOTEBOOK = Notebook("tutorial in Korean", [
    cells.LOG2, cells.LOG2_WITH_PRINT, cells.LOG2_IF_RANK_2, cells.SELU, cells.SELU_JIT, BRANCH_ON_VALUE,
    LOOP_ON_VALUE, cells.INNER_JITTED, cells.STATIC_ARGNUMS, cells.STATIC_ARGNAMES, cells.STATIC_DECORATOR,
    cells.WHEN_TO_JIT, cells.JIT_IN_A_LOOP,
])


@pytest.mark.parametrize("index", range(len(NOTEBOOK.cells)))
def test_cell(index):
    check_cell(NOTEBOOK, index)


def test_selu_values():
    check_selu(NOTEBOOK)


@pytest.mark.parametrize("name", ["f", "g"])
def test_traceback_ends_in_the_condition_and_shows_no_internals(name):
    """The published traceback has 25 internal frames; ours has the cell and the function."""
    index = NOTEBOOK.find(f"{name}_jit = jax.jit({name})")
    error = NOTEBOOK.run(index).error
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append((step.tb_frame.f_code.co_filename, step.tb_frame.f_code.co_name))
        step = step.tb_next
    cell = "<tutorial in Korean cell %d>" % index
    assert frames[-2:] == [(cell, "<module>"), (cell, name)]
    assert not any(is_own_file(file) for file, _ in frames)


@pytest.mark.cpu
@pytest.mark.parametrize("form, traces", [("partial", 20), ("lambda", 20), ("normal", 1)])
def test_jit_in_a_loop_compiles_once(form, traces):
    NOTEBOOK.run(NOTEBOOK.find("g_inner_jitted_normal"))
    check_compiles_once(NOTEBOOK.namespace[f"g_inner_jitted_{form}"], traces)
