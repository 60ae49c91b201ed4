"""The reference page of `jit`: its two examples, its signature, and what it says of each parameter."""

import inspect
import weakref

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from tests.seeds.replay import Cell, Notebook, check_cell

SELU = Cell("""
import jax

@jax.jit
def selu(x, alpha=1.67, lmbda=1.05):
  return lmbda * jax.numpy.where(x > 0, x, alpha * jax.numpy.exp(x) - alpha)

key = jax.random.key(0)
x = jax.random.normal(key, (10,))
print(selu(x))
""")

# The page cuts the numbers after five digits.
SELU_DIGITS = """
-0.54485 0.27744 -0.29255 -0.91421 -0.62452 -0.24748 -0.85743 -0.78232 0.76827 0.59566
""".split()

STATIC_LOOP = Cell("""
import jax.numpy as jnp
from functools import partial

@partial(jax.jit, static_argnames=['n'])
def g(x, n):
  for i in range(n):
    x = x ** 2
  return x

g(jnp.arange(4), 3)
""", shows="Array([   0,    1,  256, 6561], dtype=int32)")

NOTEBOOK = Notebook("reference page", [SELU, STATIC_LOOP])


@pytest.mark.parametrize("index", range(len(NOTEBOOK.cells)))
def test_cell(index):
    check_cell(NOTEBOOK, index)


def test_selu_prints_the_published_digits():
    """Of JAX's first scheme of random numbers, by which the page was printed."""
    with jitcore.threefry_partitionable(False):
        printed = Notebook("reference page", [SELU]).run(0).printed.strip("[] \n").split()
    assert [number[: len(digits)] for number, digits in zip(printed, SELU_DIGITS, strict=True)] == SELU_DIGITS


@pytest.mark.cpu
def test_selu_is_one_fused_kernel():
    NOTEBOOK.run(0)
    program = NOTEBOOK.namespace["selu"].inspect("loop program")
    assert sum(line.startswith("for ") for line in map(str.strip, program.splitlines())) == 1, program


def test_signature():
    parameters = list(inspect.signature(jitcore.jit).parameters.values())
    unspecified = jitcore.api.UnspecifiedValue
    published = {
        "in_shardings": unspecified, "out_shardings": unspecified, "static_argnums": None,
        "static_argnames": None, "donate_argnums": None, "donate_argnames": None, "keep_unused": False,
        "device": None, "backend": None, "inline": False, "abstracted_axes": None, "compiler_options": None,
    }
    assert (parameters[0].name, parameters[0].kind) == ("fun", inspect.Parameter.POSITIONAL_ONLY)
    keywords = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    own = keywords.keys() - published.keys()
    assert own == {"rewrite"}
    assert {name: keywords[name] for name in published} == published


def test_signature_order():
    names = list(inspect.signature(jitcore.jit).parameters)
    assert names[1:-1] == ["in_shardings", "out_shardings", "static_argnums", "static_argnames",
                           "donate_argnums", "donate_argnames", "keep_unused", "device", "backend", "inline",
                           "abstracted_axes", "compiler_options"]


def scale(x, factor):
    return x * factor


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "factor"},
                                     {"static_argnums": (1,)}, {"static_argnames": ["factor"]}])
def test_static_arguments_are_found_by_position_and_by_name(options):
    """Given one of the two, the signature of the function tells the other; a new value traces anew."""
    fun = jitcore.jit(lambda x, factor: scale(x, factor), **options)
    for factor in (2, 3, 2, 3):
        assert int(fun(5, factor)) == 5 * factor
    assert fun.cache_info()[:3] == (2, 2, 2)
    assert int(fun(5, factor=3)) == 15
    assert "mul a 3" in str(fun.trace(5, 3).jaxpr) and "mul a 4" in str(fun.trace(5, factor=4).jaxpr)


def test_with_both_given_only_the_listed_arguments_are_static():
    fun = jitcore.jit(lambda x, n, m: x + n + m, static_argnums=1, static_argnames="m")
    assert len(fun.trace(1, 2, m=3).jaxpr.in_avals) == 1
    assert len(fun.trace(1, 2, 3).jaxpr.in_avals) == 2
    assert len(fun.trace(1, n=2, m=3).jaxpr.in_avals) == 2


def test_static_argument_must_be_hashable():
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        jitcore.jit(scale, static_argnums=1)(1, [2])


def test_what_is_no_array_must_be_static():
    with pytest.raises(TypeError, match="mark the argument static"):
        jitcore.jit(lambda x, name: x)(1, "name")


def test_the_function_is_held_weakly():
    def fun(x):
        return x + 1

    jitted, reference = jitcore.jit(fun), weakref.ref(fun)
    assert int(jitted(1)) == 2
    del fun, jitted
    assert reference() is None


@pytest.mark.cpu
@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "x"}])
def test_donated_buffer_is_reused_and_using_it_raises(options):
    x = jnp.arange(1000.0)
    address = x.data.ctypes.data
    y = jitcore.jit(lambda x: x + 1, **options)(x)
    assert y.data.ctypes.data == address
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_nothing_is_donated_by_default():
    x = jnp.arange(1000.0)
    y = jitcore.jit(lambda x: x + 1)(x)
    assert not x.is_deleted() and float(x[0]) == 0 and float(y[0]) == 1


@pytest.mark.parametrize("keep, inputs", [(False, 1), (True, 2)])
def test_unused_arguments_are_dropped_unless_kept(keep, inputs):
    fun = jitcore.jit(lambda x, y: x + 1, keep_unused=keep)
    assert int(fun(1, np.ones(3))) == 2
    assert fun.inspect("optimized jaxpr").split(" let")[0].count(":") == inputs


@pytest.mark.parametrize("name", ["gpu", "tpu"])
def test_absent_backend_is_named(name):
    if name in {backend.platform for backend in jitcore.dispatch.backend.list_backends()[0].values()}:
        pytest.skip(f"{name} is present")
    with pytest.raises(RuntimeError, match=name):
        jitcore.jit(scale, backend=name)(1, 2)


def test_backend_and_device_of_this_machine():
    assert int(jitcore.jit(scale, backend="cpu")(2, 3)) == 6
    result = jitcore.jit(scale, device=jitcore.devices()[0])(2, 3)
    assert result.devices() == {jitcore.devices()[0]}


def test_inline():
    inner, inlined = jitcore.jit(scale), jitcore.jit(scale, inline=True)
    assert "jit[" in str(jitcore.make_jaxpr(lambda x: inner(x, 2))(1))
    assert "jit[" not in str(jitcore.make_jaxpr(lambda x: inlined(x, 2))(1))


def test_containers_of_arrays_go_in_and_out():
    fun = jitcore.jit(lambda tree: {"sum": tree["a"] + tree["b"][0], "rest": tree["b"][1:]})
    result = fun({"a": np.float32(1), "b": (2.0, [3, None])})
    assert float(result["sum"]) == 3 and [int(leaf) for leaf in result["rest"][0][:1]] == [3]
    assert result["rest"][0][1] is None
