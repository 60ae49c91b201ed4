"""Cells that several editions of the tutorial share word for word, and outputs in the current format."""

from __future__ import annotations

from tests.seeds.replay import Cell

LOG2_JAXPR = """
{ lambda ; a:f32[]. let
    b:f32[] = log a
    c:f32[] = log 2.0
    d:f32[] = div b c
  in (d,) }
"""
PRINTED_TRACER = "printed x: Traced<ShapedArray(float32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>"
BOOL_CONVERSION = "Attempted boolean conversion of traced array with shape bool[].."

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
""", shows=LOG2_JAXPR)

LOG2_WITH_PRINT = Cell("""
def log2_with_print(x):
  print("printed x:", x)
  ln_x = jnp.log(x)
  ln_2 = jnp.log(2.0)
  return ln_x / ln_2

print(jax.make_jaxpr(log2_with_print)(3.))
""", shows=PRINTED_TRACER + LOG2_JAXPR)

LOG2_IF_RANK_2 = Cell("""
def log2_if_rank_2(x):
  if x.ndim == 2:
    ln_x = jnp.log(x)
    ln_2 = jnp.log(2.0)
    return ln_x / ln_2
  else:
    return x

print(jax.make_jaxpr(log2_if_rank_2)(jax.numpy.array([1, 2, 3])))
""", shows="{ lambda ; a:i32[3]. let  in (a,) }")

SELU = Cell("""
import jax
import jax.numpy as jnp

def selu(x, alpha=1.67, lambda_=1.05):
  return lambda_ * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

x = jnp.arange(1000000)
%timeit selu(x).block_until_ready()
""")

SELU_JIT = Cell("""
selu_jit = jax.jit(selu)

# Warm up
selu_jit(x).block_until_ready()

%timeit selu_jit(x).block_until_ready()
""")

INNER_JITTED = Cell("""
# While loop conditioned on x and n with a jitted body.

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

STATIC_ARGNUMS = Cell("""
f_jit_correct = jax.jit(f, static_argnums=0)
print(f_jit_correct(10))
""", shows="10")

STATIC_ARGNAMES = Cell("""
g_jit_correct = jax.jit(g, static_argnames=['n'])
print(g_jit_correct(10, 20))
""", shows="30")

STATIC_DECORATOR = Cell("""
from functools import partial

@partial(jax.jit, static_argnames=['n'])
def g_jit_decorated(x, n):
  i = 0
  while i < n:
    i += 1
  return x + i

print(g_jit_decorated(10, 20))
""", shows="30")

WHEN_TO_JIT = Cell("""
print("g jitted:")
%timeit g_jit_correct(10, 20).block_until_ready()

print("g:")
%timeit g(10, 20)
""", shows="g jitted:\ng:")

JIT_IN_A_LOOP = Cell("""
from functools import partial

def unjitted_loop_body(prev_i):
  return prev_i + 1

def g_inner_jitted_partial(x, n):
  i = 0
  while i < n:
    # Don't do this! each time the partial returns
    # a function with different hash
    i = jax.jit(partial(unjitted_loop_body))(i)
  return x + i

def g_inner_jitted_lambda(x, n):
  i = 0
  while i < n:
    # Don't do this!, lambda will also return
    # a function with a different hash
    i = jax.jit(lambda x: unjitted_loop_body(x))(i)
  return x + i

def g_inner_jitted_normal(x, n):
  i = 0
  while i < n:
    # this is OK, since JAX can find the
    # cached, compiled function
    i = jax.jit(unjitted_loop_body)(i)
  return x + i

print("jit called in a loop with partials:")
%timeit g_inner_jitted_partial(10, 20).block_until_ready()

print("jit called in a loop with lambdas:")
%timeit g_inner_jitted_lambda(10, 20).block_until_ready()

print("jit called in a loop with caching:")
%timeit g_inner_jitted_normal(10, 20).block_until_ready()
""", shows="""
jit called in a loop with partials:
jit called in a loop with lambdas:
jit called in a loop with caching:
""")
