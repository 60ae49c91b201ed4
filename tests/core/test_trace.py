"""Sub-traces that open and close by themselves, as a rewriter of control flow needs them."""

import numpy as np
import pytest

from jitcore import errors, lax
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import ShapedArray, eval_jaxpr
from jitcore.core.trace import JaxprTrace, context, eval_trace, open_trace, set_current_trace

SCALAR = ShapedArray((), np.float32)


def test_outputs_are_named_when_the_trace_closes():
    with open_trace() as outer:
        x = outer.new_arg(SCALAR)
        doubled = lax.mul(x, 2.0)
        with open_trace() as arm:
            inside = lax.add(doubled, 1.0)
            assert arm.owns(inside)
            assert not arm.owns(doubled)  # made before the arm began
            assert not arm.owns(x)
            jaxpr, consts = arm.close([inside, doubled])
        assert consts == [doubled]
        check_jaxpr(jaxpr)
        assert context.trace is outer
    assert context.trace is eval_trace
    assert [float(out) for out in eval_jaxpr(jaxpr, [np.float32(3)], [])] == [4.0, 3.0]


def test_two_arms_open_side_by_side():
    with open_trace() as outer:
        x = outer.new_arg(SCALAR)
        arms = [JaxprTrace(None, outer), JaxprTrace(None, outer)]
        results = []
        for arm, factor in zip(arms, (2.0, 3.0)):
            with set_current_trace(arm):
                results.append(lax.mul(x, factor))
        texts = [str(arm.close([result])[0]) for arm, result in zip(arms, results)]
    assert texts == [
        f"{{ lambda a:f32[] ; . let b:f32[] = mul a {factor} in (b,) }}" for factor in (2.0, 3.0)
    ]


def test_a_value_of_a_closed_trace_is_refused():
    with open_trace() as arm:
        x = arm.new_arg(SCALAR)
        arm.close([x])
    with pytest.raises(errors.UnexpectedTracerError):
        lax.add(x, 1.0)
