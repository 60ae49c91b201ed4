"""The current tutorial on just-in-time compilation, cell by cell."""

import pytest

from tests.seeds import cells
from tests.seeds.behaviour import check_compiles_once, check_selu
from tests.seeds.replay import Cell, Notebook, check_cell

BRANCH_ON_VALUE = Cell("""
# Condition on value of x.

def f(x):
  if x > 0:
    return x
  else:
    return 2 * x

jax.jit(f)(10)  # Raises an error
""", raises=("TracerBoolConversionError", cells.BOOL_CONVERSION),
    blames=("tracing the function f at {file}:3 for jit.", "depends on the value of the argument x."))

LOOP_ON_VALUE = Cell("""
# While loop conditioned on x and n.

def g(x, n):
  i = 0
  while i < n:
    i += 1
  return x + i

jax.jit(g)(10, 20)  # Raises an error
""", raises=("TracerBoolConversionError", cells.BOOL_CONVERSION),
    blames=("tracing the function g at {file}:3 for jit.", "depends on the value of the argument n."))

NOTEBOOK = Notebook("current tutorial", [
    cells.LOG2, cells.LOG2_WITH_PRINT, cells.LOG2_IF_RANK_2, cells.SELU, cells.SELU_JIT, BRANCH_ON_VALUE,
    LOOP_ON_VALUE, cells.INNER_JITTED, cells.STATIC_ARGNUMS, cells.STATIC_ARGNAMES, cells.STATIC_DECORATOR,
    cells.JIT_IN_A_LOOP,
])


@pytest.mark.parametrize("index", range(len(NOTEBOOK.cells)))
def test_cell(index):
    check_cell(NOTEBOOK, index)


def test_side_effect_happens_while_tracing():
    NOTEBOOK.run(0)
    assert len(NOTEBOOK.namespace["global_list"]) == 1


def test_selu_values():
    check_selu(NOTEBOOK)


@pytest.mark.cpu
@pytest.mark.parametrize("form, traces", [("partial", 20), ("lambda", 20), ("normal", 1)])
def test_jit_in_a_loop_compiles_once(form, traces):
    NOTEBOOK.run(NOTEBOOK.find("g_inner_jitted_normal"))
    check_compiles_once(NOTEBOOK.namespace[f"g_inner_jitted_{form}"], traces)
