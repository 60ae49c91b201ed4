"""The Chinese edition of 2021, cell by cell; its older jaxprs, errors and reprs in their current form."""

# ruff: noqa: W293 -- the blanks on empty lines are as published

import pytest

from tests.seeds import cells
from tests.seeds.behaviour import check_compiles_once, check_selu
from tests.seeds.replay import Cell, Notebook, check_cell

LOG2 = Cell("""
import jax
import jax.numpy as jnp

global_list = []

def log2(x):
    global_list.append(x)
    ln_x = jnp.log(x)
    ln_2 = jnp.log(2.0)
    
    return ln_x / ln_2

print(jax.make_jaxpr(log2)(3.0))
""", shows=cells.LOG2_JAXPR)

# Today the logarithm of a Python int is as weakly typed as that of a float: no conversion stands between.
LOG2_WITH_PRINT = Cell("""
def log2_with_print(x):
    print("printed x: ", x)
    ln_x = jnp.log(x)
    ln_2 = jnp.log(2)
    return ln_x / ln_2

print(jax.make_jaxpr(log2_with_print)(3.))
""", shows=cells.PRINTED_TRACER.replace("x: ", "x:  ") + cells.LOG2_JAXPR)

LOG2_IF_RANK_2 = Cell("""
def log2_if_rank_2(x):
    if x.ndim == 2:
        ln_x = jnp.log(x)
        ln_2 = jnp.log(2)
        return ln_x / ln_2
    else:
        return x
    
print(jax.make_jaxpr(log2_if_rank_2)(jax.numpy.array([1., 2., 3.])))
""", shows="{ lambda ; a:f32[3]. let  in (a,) }")

BRANCH_ON_VALUE = Cell("""
# Condition on value of x

def f(x):
    if x> 0:
        return x
    else:
        return 2 * x
    
f_jit = jax.jit(f)
f_jit(10)
""", raises=("ConcretizationTypeError", cells.BOOL_CONVERSION),
    blames=("function f", "the argument x"))

LOOP_ON_VALUE = Cell("""
# while loop conditioned on x and n

def g(x, n):
    i = 0
    while i < n:
        i += 1
    return x + i

g_jit = jax.jit(g)
g_jit(10, 20)
""", raises=("ConcretizationTypeError", cells.BOOL_CONVERSION), blames=("function g", "the argument n"))

INNER_JITTED = Cell("""
@jax.jit
def loop_body(prev_i):
    return prev_i + 1

def g_inner_jitted(x, n):
    i = 0
    while i < n:
        i = loop_body(i)
    return x + i

g_inner_jitted(10, 20)
""", shows="Array(30, dtype=int32, weak_type=True)")

STATIC_LOOP = Cell("""
g_jit_correct = jax.jit(g, static_argnums=1)
print(g_jit_correct(10, 20))
""", shows="30")

JIT_IN_A_LOOP = Cell("""
def unjitted_loop_body(prev_i):
    return prev_i + 1

def g_inner_jitted_poorly(x, n):
    i = 0
    while i < n:
        # Don't do this
        i = jax.jit(unjitted_loop_body)(i)
    return x + i

print("jit called outside the loop:")
%timeit g_inner_jitted(10, 20).block_until_ready()

print("jit called inside the loop:")
%timeit g_inner_jitted_poorly(10, 20).block_until_ready()
""", shows="jit called outside the loop:\njit called inside the loop:")

NOTEBOOK = Notebook("tutorial of 2021", [
    LOG2, LOG2_WITH_PRINT, LOG2_IF_RANK_2, cells.SELU, cells.SELU_JIT, BRANCH_ON_VALUE, LOOP_ON_VALUE,
    INNER_JITTED, cells.STATIC_ARGNUMS, STATIC_LOOP, cells.WHEN_TO_JIT, JIT_IN_A_LOOP,
])


@pytest.mark.parametrize("index", range(len(NOTEBOOK.cells)))
def test_cell(index):
    check_cell(NOTEBOOK, index)


def test_selu_values():
    check_selu(NOTEBOOK)


@pytest.mark.cpu
def test_jit_in_a_loop_compiles_and_traces_once():
    NOTEBOOK.run(NOTEBOOK.find("g_inner_jitted_poorly"))
    check_compiles_once(NOTEBOOK.namespace["g_inner_jitted_poorly"], traces=1)


def test_static_argument_retraces_per_value():
    NOTEBOOK.run(NOTEBOOK.find("static_argnums=1"))
    g_jit_correct = NOTEBOOK.namespace["g_jit_correct"]
    before = g_jit_correct.cache_info().traces
    for n in (7, 8, 7, 8):
        assert int(g_jit_correct(10, n)) == 10 + n
    assert g_jit_correct.cache_info().traces - before == 2
