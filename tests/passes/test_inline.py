"""Inlining of jit equations."""

import numpy as np

from jitcore import lax
from jitcore.core.jaxpr import ClosedJaxpr, Var
from jitcore.lax.control_flow.cond import cond
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import while_loop
from jitcore.passes.inline import inline_calls
from tests.passes.programs import F32, ShapedArray, call, check_pass, names, trace

F = np.float32


def double(x):
    return [lax.add(x, x)]


def test_calls_inside_calls_go_away():
    def outer(x):
        (y,) = call(double, x)
        return [lax.sin(y), *call(double, y)]

    closed = trace(lambda x: call(outer, x), F32)
    assert names(closed) == ["jit"]
    assert names(check_pass(inline_calls, closed, F(3))) == ["add", "sin", "add"]


def test_one_jaxpr_called_twice_gets_variables_of_its_own():
    closed = trace(lambda x: call(double, *call(double, x)), F32)
    first = closed.eqns[0].params["jaxpr"]
    closed.eqns[1].params["jaxpr"] = first
    assert names(check_pass(inline_calls, closed, F(3))) == ["add", "add"]


def test_captured_values_become_operands():
    closed = trace(lambda x, y: call(lambda z: [lax.mul(z, y)], lax.sin(x)), F32, F32)
    after = check_pass(inline_calls, closed, F(3), F(4))
    assert names(after) == ["sin", "mul"] and after.eqns[1].invars[1] is after.jaxpr.invars[1]


def test_bodies_and_branches_are_inlined():
    def fun(x):
        (a,) = (cond(lax.gt(x, F(0)), lambda: call(double, x)[0], lambda: x),)
        b = while_loop(lambda c: lax.lt(*call(double, c), F(9)), lambda c: call(double, c)[0], F(1))
        c, _ = scan(lambda c, _: (call(double, c)[0], None), x, None, length=2)
        return [a, b, c]

    after = check_pass(inline_calls, trace(fun, F32), F(3))
    assert "jit" not in str(after)


def test_constants_of_an_inner_jaxpr_become_constants_of_the_outer_one():
    closed = trace(lambda x: call(lambda z: [lax.mul(z, z)], x), ShapedArray((2,), F))
    inner = closed.eqns[0].params["jaxpr"]
    const = Var(inner.in_avals[0])
    eqn = inner.eqns[0].replace(invars=[inner.jaxpr.invars[0], const])
    value = np.array([5, 6], F)
    closed.eqns[0].params["jaxpr"] = ClosedJaxpr(inner.jaxpr.replace(constvars=[const], eqns=[eqn]), [value])
    after = check_pass(inline_calls, closed, np.array([1, 2], F))
    assert len(after.jaxpr.constvars) == 1 and after.consts[0] is value


def test_identity_call_passes_its_operand_through():
    after = check_pass(inline_calls, trace(lambda x: [*call(lambda z: [z, F(1)], x)], F32), F(3))
    assert after.eqns == [] and after.jaxpr.outvars[0] is after.jaxpr.invars[0]


def test_deep_nesting():
    def nest(depth, x):
        return [lax.sin(x)] if depth == 0 else call(lambda y: nest(depth - 1, y), x)

    assert names(check_pass(inline_calls, trace(lambda x: nest(8, x), F32), F(3))) == ["sin"]
