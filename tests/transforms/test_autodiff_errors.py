"""What is not differentiable says so: with JAX's types and first lines, in eight lines, without our frames."""

from __future__ import annotations

import gc
import traceback

import jax
import jax.numpy
import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import errors, grad, jit
from jitcore.dtypes import float0
from tests.own_files import is_own_file

X = np.ones(3, np.float32)


def square(x):
    return x * x


# Calls of a library, jitcore or jax, that raise.
CALLS = {
    "grad of no function": lambda api: api.grad(3),
    "value_and_grad of no function": lambda api: api.value_and_grad(3),
    "jvp of no function": lambda api: api.jvp(3, (1.0,), (1.0,)),
    "vjp of no function": lambda api: api.vjp(3, 1.0),
    "linearize of no function": lambda api: api.linearize(None, 1.0),
    "jacfwd of no function": lambda api: api.jacfwd("f"),
    "jacrev of no function": lambda api: api.jacrev("f"),
    "hessian of no function": lambda api: api.hessian("f"),
    "grad of a string": lambda api: api.grad(square)("a"),
    "grad of a vector": lambda api: api.grad(square)(X),
    "grad of a pair": lambda api: api.grad(lambda x: None)(3.0),
    "grad of an integer result": lambda api: api.grad(lambda x: 1)(3.0),
    "grad of a bool result": lambda api: api.grad(lambda x: x > 0)(3.0),
    "grad by an integer": lambda api: api.grad(square)(3),
    "grad by a bool": lambda api: api.grad(square)(True),
    "grad by an integer in a tree": lambda api: api.grad(lambda d: d["a"])({"a": 1.0, "b": 2}),
    "grad of a complex result": lambda api: api.grad(square)(1j),
    "holomorphic grad by a real": lambda api: api.grad(square, holomorphic=True)(1.0),
    "holomorphic grad of a real": lambda api: api.grad(lambda z: z.real, holomorphic=True)(1j),
    "grad without its argument": lambda api: api.grad(square, argnums=1)(3.0),
    "grad without any argument": lambda api: api.grad(square)(x=3.0),
    "grad by arguments without one": lambda api: api.grad(lambda x, y: x, argnums=(0, 2))(3.0, 2.0),
    "grad by a negative position": lambda api: api.grad(square, argnums=-2)(3.0),
    "argnums that are text": lambda api: api.grad(square, argnums="a"),
    "argnums that are a float": lambda api: api.grad(square, argnums=1.5),
    "jvp of numbers": lambda api: api.jvp(square, 2.0, 1.0),
    "jvp along a number": lambda api: api.jvp(square, (2.0,), 1.0),
    "jvp along two": lambda api: api.jvp(square, (2.0,), (1.0, 1.0)),
    "jvp along an integer": lambda api: api.jvp(square, (2.0,), (1,)),
    "jvp of an integer along one": lambda api: api.jvp(square, (X.astype(np.int32),), (X,)),
    "jvp of half along single": lambda api: api.jvp(square, (np.float16(1),), (1.0,)),
    "jvp along another shape": lambda api: api.jvp(square, (X,), (np.ones(4, np.float32),)),
    "jvp to text": lambda api: api.jvp(lambda x: "a", (2.0,), (1.0,)),
    "linearized along two": lambda api: api.linearize(square, 1.0)[1](1.0, 2.0),
    "linearized along an integer": lambda api: api.linearize(square, 1.0)[1](1),
    "linearized along another shape": lambda api: api.linearize(square, 1.0)[1](X),
    "cotangent of another structure": lambda api: api.vjp(square, 1.0)[1]((1.0, 2.0)),
    "cotangent with another key": lambda api: api.vjp(lambda x: {"a": x}, 1.0)[1]({"b": 1.0}),
    "cotangent of another shape": lambda api: api.vjp(square, 1.0)[1](X),
    "cotangent of an integer": lambda api: api.vjp(square, 1.0)[1](1),
    "cotangent for an integer": lambda api: api.vjp(lambda x: 2, 1.0)[1](X),
    "aux that is missing": lambda api: api.grad(square, has_aux=True)(3.0),
    "linear_transpose of integers and floats": lambda api: api.linear_transpose(lambda x: x > 2, 1.0),
    "linear cotangent of another structure": lambda api: api.linear_transpose(square, 1.0)((1.0, 2.0)),
    "linear cotangent of another dtype": lambda api: api.linear_transpose(lambda x: 2 * x, 1.0)(1),
    "transpose of what is not linear": lambda api: api.linear_transpose(api.numpy.sin, 1.0)(1.0),
    "jacfwd by an integer": lambda api: api.jacfwd(square)(1),
    "jacfwd by complex": lambda api: api.jacfwd(square)(1j),
    "holomorphic jacfwd by a real": lambda api: api.jacfwd(square, holomorphic=True)(X),
    "holomorphic jacfwd of a real": lambda api: api.jacfwd(lambda z: z.real, holomorphic=True)(1j),
    "jacrev by an integer": lambda api: api.jacrev(square)(1),
    "jacrev of an integer": lambda api: api.jacrev(lambda x: x.astype(int))(X),
    "jacrev of complex": lambda api: api.jacrev(lambda x: x * 1j)(X),
    "hessian by an integer": lambda api: api.hessian(square)(1),
    "jit of grad of a vector": lambda api: api.jit(api.grad(square))(X),
    "if in jit of grad": lambda api: api.jit(api.grad(lambda x: x if x > 0 else -x))(1.0),
    "ndarray of a tracer": lambda api: api.grad(lambda x: np.array(x) * x)(1.0),
    "ndarray of a tracer in jit of grad": lambda api: api.jit(api.grad(lambda x: np.array(x) * x))(1.0),
    "text that is returned": lambda api: api.grad(lambda x: "a")(1.0),
}

#: First lines that name things of the library, or that JAX has not.
OWN_LINES = {
    "grad of no function", "ndarray of a tracer", "ndarray of a tracer in jit of grad", "aux that is missing",
    "if in jit of grad", "text that is returned", "jvp to text", "linear cotangent of another dtype",
}


def catch(call, api) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the type is what is compared
        call(api)
    return caught.value


def read_first_line(error: Exception) -> str:
    line = str(error).strip().splitlines()[0]
    return line.replace("jax.", "jitcore.").replace("JAX", "jitcore").replace("[('float0', 'V')]", "float0")


def find_base(error: Exception) -> type:
    """The builtin class of an error."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


@pytest.mark.parametrize("name", CALLS)
def test_as_jax_says_it(name):
    ours, theirs = catch(CALLS[name], jitcore), catch(CALLS[name], jax)
    assert find_base(ours) is find_base(theirs), (ours, theirs)
    if type(theirs).__name__.startswith("Tracer"):
        assert type(ours).__name__ == type(theirs).__name__
    if name not in OWN_LINES:
        assert read_first_line(ours) == read_first_line(theirs)
    assert len(str(ours).splitlines()) <= errors.MAX_LINES


@pytest.mark.parametrize("name", CALLS)
def test_no_frame_of_ours_is_shown(name):
    error = catch(CALLS[name], jitcore)
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    assert not list(filter(is_own_file, files))


def test_cotangents_for_several_results_are_one_tuple():
    _, pull = jitcore.vjp(lambda x: (x, x), 1.0)
    with pytest.raises(TypeError, match=r"was called with 2 arguments,\n.*must be called with a single"):
        pull(1.0, 2.0)
    with pytest.raises(TypeError, match="was called with 0 arguments"):
        pull()


# -- tracers that outlive their trace -----------------------------------------------------------------------
def leak(transform):
    seen = []

    def f(x):
        y = x * x
        seen.append(y)
        return y

    transform(f)
    return seen[0]


@pytest.mark.parametrize("transform", [
    lambda f: grad(f)(1.0),
    lambda f: jitcore.jvp(f, (1.0,), (1.0,)),
    lambda f: jitcore.linearize(f, 1.0),
    lambda f: jitcore.vjp(f, 1.0),
    lambda f: jitcore.jacfwd(f)(1.0),
    lambda f: jit(grad(f))(1.0),
    lambda f: grad(jit(f))(1.0),
], ids=["grad", "jvp", "linearize", "vjp", "jacfwd", "jit of grad", "grad of jit"])
def test_leaked_tracers(transform):
    value = leak(transform)
    with pytest.raises(errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
        jnp.sin(value)
    with pytest.raises(errors.UnexpectedTracerError):
        jit(lambda x: x + value)(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        grad(lambda x: x * value)(1.0)


def test_leaks_are_found_where_they_happen():
    kept = []
    with jitcore.checking_leaks():
        with pytest.raises(errors.LeakedTracerError):
            grad(lambda x: kept.append(x * x) or x)(1.0)
        kept.clear()
        gc.collect()
        assert grad(lambda x: x * x)(1.0) == 2.0


# -- missing rules ------------------------------------------------------------------------------------------
def test_a_missing_rule_names_the_operation_and_the_line():
    with pytest.raises(
        NotImplementedError, match="Differentiation rule for 'schur' not implemented"
    ) as caught:
        grad(lambda a: jitcore.lax.schur(a)[0][0, 0])(np.eye(2, dtype=np.float32))
    assert "jitcore.lax.schur(a)" in str(caught.value)


def test_operations_on_float0_are_refused():
    nothing = np.zeros(3, float0)
    for call in (lambda: jnp.sin(nothing), lambda: nothing + jnp.ones(3), lambda: jit(jnp.sin)(nothing)):
        with pytest.raises(TypeError):
            call()
