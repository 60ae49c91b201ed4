"""Constant folding of scalars."""

import numpy as np
import pytest

from jitcore import dtypes, lax
from jitcore.core.jaxpr import Literal
from jitcore.lax.control_flow.callback import pure_callback
from jitcore.lax.control_flow.while_loop import while_loop
from jitcore.lax.shape import broadcast_in_dim
from jitcore.passes.simplify import fold_constants
from tests.passes.programs import F32, ShapedArray, check_pass, names, trace

F = np.float32


def test_chains_of_literals_become_one_literal():
    closed = trace(lambda x: [lax.mul(x, lax.add(lax.sin(F(1)), F(2)))], F32)
    after = check_pass(fold_constants, closed, F(3))
    assert names(after) == ["mul"]
    assert after.eqns[0].invars[1].value == np.sin(F(1)) + F(2)


@pytest.mark.parametrize("dtype", ["float16", dtypes.bfloat16, "int8", "uint32", "complex64"])
def test_dtype_stays(dtype):
    one = np.ones((), dtype)[()]
    after = check_pass(fold_constants, trace(lambda: [lax.add(one, one)]))
    (out,) = after.jaxpr.outvars
    assert after.eqns == [] and isinstance(out, Literal)
    assert out.aval.dtype == dtype and out.value == 2 and not out.aval.weak_type


def test_weak_types_and_conversions_stay():
    def fun():
        convert = lax.convert_element_type.primitive
        return [lax.add(1.0, 2.0), lax.lt(1, 2), convert.bind(2.7, new_dtype=np.dtype("int32"), weak_type=True)]

    outs = check_pass(fold_constants, trace(fun)).jaxpr.outvars
    assert [atom.value for atom in outs] == [3.0, True, 2]
    assert [str(atom.aval) for atom in outs] == ["~float32[]", "bool[]", "~int32[]"]


def test_special_values():
    def fun():
        infinity = F(np.inf)
        return [lax.div(F(1), F(0)), lax.mul(F(0), F(-1)), lax.sub(infinity, infinity), lax.log(F(-1))]

    after = check_pass(fold_constants, trace(fun))
    assert after.eqns == []
    assert np.signbit(after.jaxpr.outvars[1].value)


def test_what_is_not_folded():
    calls = []

    def fun(x):
        loop = while_loop(lambda c: lax.lt(c, F(3)), lambda c: lax.add(c, F(1)), F(0))
        value = pure_callback(lambda: calls.append(1) or F(1), ShapedArray((), F))
        return [loop, value, broadcast_in_dim(F(1), (1000, 1000), ()), lax.add(x, F(1))]

    closed = trace(fun, F32)
    assert fold_constants(closed).eqns and names(fold_constants(closed)) == names(closed)
    assert not calls


def test_bodies_are_folded():
    def fun(x):
        return [while_loop(lambda c: lax.lt(c, lax.add(F(1), F(2))), lambda c: lax.add(c, F(1)), x)]

    (eqn,) = check_pass(fold_constants, trace(fun, F32), F(0)).eqns
    assert names(eqn.params["cond_jaxpr"]) == ["lt"]
