"""Common subexpressions."""

import numpy as np

from jitcore import lax
from jitcore.lax import shape
from jitcore.lax.control_flow.callback import io_callback, pure_callback
from jitcore.lax.control_flow.cond import cond
from jitcore.lax.control_flow.scan import scan
from jitcore.passes.simplify import merge_common_subexpressions
from tests.passes.programs import F32, ShapedArray, check_pass, names, trace

F = np.float32
VECTOR = np.arange(6, dtype=F)


def merged(fun, *args) -> list[str]:
    closed = trace(fun, *[ShapedArray(arg.shape, arg.dtype) for arg in args])
    return names(check_pass(merge_common_subexpressions, closed, *args))


def test_equal_equations_merge_through_their_operands():
    assert merged(lambda x: [lax.mul(lax.sin(x), lax.cos(x)), lax.mul(lax.sin(x), lax.cos(x))], F(2)) == [
        "sin", "cos", "mul"]


def test_literals_are_told_apart_by_dtype_and_bits():
    zeros = (F(0), F(-0.0), 0.0)
    assert merged(lambda x: [lax.add(x, zero) for zero in zeros], F(2)) == ["add", "add"]
    assert merged(lambda x: [lax.add(x, F(np.nan)), lax.add(x, F(np.nan))], F(2)) == ["add"]
    assert merged(lambda: [lax.neg(1), lax.neg(1.0), lax.neg(np.int8(1))]) == ["neg"] * 3


def test_choice_between_values_that_merge_is_that_value():
    def fun(x, y):
        return [lax.add(lax.select_n(lax.gt(x, y), lax.sin(x), lax.sin(x)), y)]

    assert "select_n" not in merged(fun, F(2), F(1))


def test_params_count():
    def fun(x):
        reshaped = [shape.reshape(x, sizes) for sizes in ((2, 3), (3, 2), (2, 3))]
        return [*reshaped, lax.integer_pow(x, 2), lax.integer_pow(x, 3)]

    assert merged(fun, VECTOR) == ["reshape", "reshape", "integer_pow", "integer_pow"]


def test_equal_loops_merge_and_outputs_that_one_drops_are_kept():
    def loop(x, start):
        return scan(lambda c, y: (lax.add(c, y), lax.mul(c, y)), start, x)

    def fun(x):
        return [loop(x, F(1))[0], loop(x, F(1))[1], loop(x, F(2))[1]]

    assert merged(fun, VECTOR) == ["scan", "scan"]


def test_effects_are_not_merged_and_pure_callbacks_are():
    def note(x):
        return x

    def fun(x):
        return [call(note, F32, x) for call in (io_callback, io_callback, pure_callback, pure_callback)]

    closed = trace(fun, F32)
    assert names(merge_common_subexpressions(closed)) == ["io_callback", "io_callback", "pure_callback"]


def test_branches_have_scopes_of_their_own():
    def double_sine(x):
        return lax.add(lax.sin(x), lax.sin(x))

    def fun(x):
        return [cond(lax.gt(x, F(0)), double_sine, lax.cos, x), lax.sin(x)]

    closed = trace(fun, F32)
    after = check_pass(merge_common_subexpressions, closed, F(2))
    assert names(after) == names(closed)
    assert [names(branch) for branch in after.eqns[-2].params["branches"]] == [["cos"], ["sin", "add"]]
