"""`make_jaxpr`: the texts of the tutorial, static arguments, pytrees, shapes, inner functions."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import lax

LOG2 = """\
{ lambda ; a:f32[]. let
    b:f32[] = log a
    c:f32[] = log 2.0
    d:f32[] = div b c
  in (d,) }"""


def log2(x):
    ln_x = lax.log(x)
    ln_2 = lax.log.primitive.bind(2.0)
    return lax.div(ln_x, ln_2)


def test_the_tutorials_jaxpr():
    assert str(jitcore.make_jaxpr(log2)(3.0)) == LOG2


def test_tracers_print_as_in_the_tutorial(capsys):
    def log2_with_print(x):
        print("printed x:", x)
        return log2(x)

    print(jitcore.make_jaxpr(log2_with_print)(3.0))
    text = "printed x: Traced<ShapedArray(float32[], weak_type=True)>with<DynamicJaxprTrace(level=1/0)>\n"
    assert capsys.readouterr().out == text + LOG2 + "\n"


def test_a_function_that_does_nothing():
    jaxpr = jitcore.make_jaxpr(lambda x: x)(np.array([1, 2, 3], np.int32))
    assert str(jaxpr) == "{ lambda ; a:i32[3]. let  in (a,) }"


def test_static_arguments_keywords_and_pytrees():
    def fun(n, tree, *, scale):
        return [lax.mul(tree["x"], scale)] * n

    jaxpr = jitcore.make_jaxpr(fun, static_argnums=0)(2, {"x": 1.0, "y": 2}, scale=3.0)
    assert str(jaxpr) == "{ lambda ; a:f32[] b:i32[] c:f32[]. let d:f32[] = mul a c in (d, d) }"


def test_captured_arrays_are_constvars():
    captured = np.ones(3, np.float32)
    closed = jitcore.make_jaxpr(lambda x: lax.add(x, captured))(captured)
    assert str(closed).startswith("{ lambda a:f32[3] ; b:f32[3]. let")
    (const,) = closed.consts
    assert not np.shares_memory(const, captured) and np.array_equal(const, captured)


def test_return_shape_and_names():
    make = jitcore.make_jaxpr(log2, return_shape=True)
    jaxpr, shape = make(jitcore.ShapeDtypeStruct((2,), np.float32))
    assert shape == jitcore.ShapeDtypeStruct((2,), np.float32)
    assert jaxpr.in_avals[0].shape == (2,)
    assert make.__name__ == "make_jaxpr(log2)"


def test_open_axes():
    jaxpr = jitcore.make_jaxpr(lambda x: lax.neg(x), abstracted_axes=("n",))(np.ones(3, np.float32))
    assert str(jaxpr) == "{ lambda ; a:f32[n]. let b:f32[n] = neg a in (b,) }"


def test_inner_functions_take_captured_values_as_operands():
    @jitcore.jit
    def outer(x):
        @jitcore.jit
        def inner(y):
            return lax.mul(lax.add(y, x), 2.0)

        return inner(lax.neg(x))

    closed = jitcore.make_jaxpr(outer)(1.0)
    (eqn,) = closed.eqns
    assert eqn.primitive.name == "jit" and eqn.params["name"] == "outer"
    negation, call = eqn.params["jaxpr"].eqns
    assert call.params["name"] == "inner"
    assert call.invars == [negation.invars[0], negation.outvars[0]]
    assert not call.params["jaxpr"].consts
    assert float(outer(1.0)) == 0.0


def test_what_is_refused():
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        jitcore.make_jaxpr(3)
    with pytest.raises(ValueError, match="axis_env"):
        jitcore.make_jaxpr(log2, axis_env=[("i", 3)])
    with pytest.raises(TypeError, match="passed to the function at path x"):
        jitcore.make_jaxpr(log2)("text")
