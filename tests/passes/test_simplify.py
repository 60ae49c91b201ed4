"""Algebraic rules: each removes what it should, and nothing where the result could differ by a bit."""

import numpy as np
import pytest

from jitcore import lax
from jitcore.lax import joining, shape
from jitcore.lax.control_flow.callback import io_callback
from jitcore.lax.control_flow.cond import cond
from jitcore.passes.simplify import RULES, eliminate_dead_code, simplify
from tests.passes.programs import ShapedArray, check_pass, names, trace

F = np.float32
FLOATS = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 1e-45], F)
INTS = np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int32)
BYTES = np.array([0, 1, 127, 128, 255], np.uint8)
BOOLS = np.array([True, False])
COMPLEX = np.array([1 + 2j, complex(np.inf, 0), complex(-0.0, 0.0)], np.complex64)
MATRIX = np.arange(6, dtype=F).reshape(2, 3)


def convert(x, dtype, weak=False):
    return lax.convert_element_type.primitive.bind(x, new_dtype=np.dtype(dtype), weak_type=weak)


def simplified(fun, *args) -> list[str]:
    """Names of the equations that are left, after checking that results are equal bit for bit."""
    closed = trace(lambda *xs: [fun(*xs)], *[ShapedArray(arg.shape, arg.dtype) for arg in args])

    def run(program):
        return eliminate_dead_code(simplify(program))

    return names(check_pass(run, closed, *args))


REMOVED = {
    "mul 1": (lambda x: lax.mul(x, F(1)), FLOATS),
    "1 mul": (lambda x: lax.mul(1.0, x), FLOATS),
    "mul 1 int": (lambda x: lax.mul(x, 1), INTS),
    "mul ones": (lambda x: lax.mul(x, lax.full(x.shape, F(1))), FLOATS),
    "ones mul": (lambda x: lax.mul(lax.full(x.shape, F(1)), x), FLOATS),
    "div ones": (lambda x: lax.div(x, lax.full(x.shape, 1)), INTS),
    "mul True": (lambda x: lax.mul(x, np.True_), BOOLS),
    "add -0.0": (lambda x: lax.add(x, F(-0.0)), FLOATS),
    "-0.0 add": (lambda x: lax.add(F(-0.0), x), FLOATS),
    "add 0 int": (lambda x: lax.add(x, 0), INTS),
    "add 0 uint8": (lambda x: lax.add(x, np.uint8(0)), BYTES),
    "sub 0.0": (lambda x: lax.sub(x, 0.0), FLOATS),
    "sub 0 int": (lambda x: lax.sub(x, 0), INTS),
    "div 1": (lambda x: lax.div(x, F(1)), FLOATS),
    "div 1 int": (lambda x: lax.div(x, np.int32(1)), INTS),
    "power 1": (lambda x: lax.integer_pow(x, 1), FLOATS),
    "neg neg": (lambda x: lax.neg(lax.neg(x)), FLOATS),
    "neg neg uint8": (lambda x: lax.neg(lax.neg(x)), BYTES),
    "four neg": (lambda x: lax.neg(lax.neg(lax.neg(lax.neg(x)))), INTS),
    "not not": (lambda x: lax.bitwise_not(lax.bitwise_not(x)), BOOLS),
    "equal cases": (lambda x: lax.select(lax.lt(x, F(0)), x, x), FLOATS),
    "literal which": (lambda x: lax.select(True, x, lax.neg(x)), FLOATS),
    "literal int which": (lambda x: lax.select_n(np.int32(7), lax.neg(x), lax.sin(x), x), FLOATS),
    "widen and back": (lambda x: convert(convert(x, "float64"), "float32"), FLOATS),
    "widen int and back": (lambda x: convert(convert(x, "int32"), "uint8"), BYTES),
    "bool to float and back": (lambda x: convert(convert(x, "float32"), "bool"), BOOLS),
    "transpose twice": (lambda x: shape.transpose(shape.transpose(x, (1, 0)), (1, 0)), MATRIX),
    "reshape back": (lambda x: shape.reshape(shape.reshape(x, (6,)), (2, 3)), MATRIX),
    "reshape chain back": (
        lambda x: shape.reshape(shape.reshape(shape.reshape(x, (6,)), (3, 2)), (2, 3)), MATRIX),
    "rev twice": (lambda x: shape.rev(shape.rev(x, (0, 1)), (1, 0)), MATRIX),
    "rev nothing": (lambda x: shape.rev(x, ()), MATRIX),
    "broadcast to itself": (
        lambda x: shape.broadcast_in_dim.primitive.bind(x, shape=(2, 3), broadcast_dimensions=(0, 1)),
        MATRIX),
    "transpose by identity": (lambda x: shape.transpose.primitive.bind(x, permutation=(0, 1)), MATRIX),
    "squeeze nothing": (lambda x: shape.squeeze.primitive.bind(x, dimensions=()), MATRIX),
    "concatenate one": (lambda x: joining.concatenate.primitive.bind(x, dimension=0), MATRIX),
    "convert to itself": (lambda x: convert(x, "float32"), FLOATS),
}


@pytest.mark.parametrize("name", REMOVED)
def test_equation_goes_away(name):
    fun, arg = REMOVED[name]
    assert simplified(fun, arg) == []


KEPT = {
    "add +0.0 turns -0.0 into 0.0": (lambda x: lax.add(x, F(0.0)), FLOATS, ["add"]),
    "sub -0.0 turns -0.0 into 0.0": (lambda x: lax.sub(x, F(-0.0)), FLOATS, ["sub"]),
    "mul 0 is NaN for infinities": (lambda x: lax.mul(x, F(0)), FLOATS, ["mul"]),
    "complex mul 1 is NaN for infinities": (lambda x: lax.mul(x, np.complex64(1)), COMPLEX, ["mul"]),
    "0 sub is a negation": (lambda x: lax.sub(F(0), x), FLOATS, ["sub"]),
    "1 div is a reciprocal": (lambda x: lax.div(F(1), x), FLOATS, ["div"]),
    "narrowing rounds": (
        lambda x: convert(convert(x, "float16"), "float32"), FLOATS, ["convert_element_type"] * 2),
    "float to int saturates": (
        lambda x: convert(convert(x, "float32"), "uint8"), np.array([-1, 300], np.int32),
        ["convert_element_type"] * 2),
    "two transposes make another": (
        lambda x: shape.transpose(shape.transpose(x, (1, 2, 0)), (1, 2, 0)), MATRIX.reshape(2, 3, 1),
        ["transpose"]),
    "reshape of reshape": (lambda x: shape.reshape(shape.reshape(x, (6,)), (3, 2)), MATRIX, ["reshape"]),
    "broadcast of broadcast": (
        lambda x: shape.broadcast_in_dim(shape.broadcast_in_dim(x, (3, 1), (0,)), (2, 3, 4), (1, 2)),
        np.arange(3, dtype=F), ["broadcast_in_dim"]),
    "conversion after widening": (
        lambda x: convert(convert(x, "int16"), "int32"), BYTES, ["convert_element_type"]),
    "rev of another axis": (lambda x: shape.rev(shape.rev(x, (0,)), (1,)), MATRIX, ["rev", "rev"]),
    "neg of a neutral add": (lambda x: lax.neg(lax.add(lax.neg(x), F(-0.0))), FLOATS, []),
}


@pytest.mark.parametrize("name", KEPT)
def test_equations_that_are_left(name):
    fun, arg, left = KEPT[name]
    assert simplified(fun, arg) == left


def test_scalar_operand_that_is_broadcast_is_no_result():
    assert simplified(lambda x, y: lax.mul(x, lax.mul(y, F(1))), MATRIX, F(2)) == ["mul"]
    ones = ShapedArray((3,), F)
    closed = trace(lambda x: [shape.broadcast_in_dim(lax.mul(x, F(1)), (3,), ())], ShapedArray((), F))
    assert simplify(closed).out_avals == [ones]


def test_weak_type_of_an_output_stays():
    closed = trace(lambda x: [convert(x, "float32"), lax.mul(x, F(1))], ShapedArray((), F, weak_type=True))
    after = check_pass(simplify, closed, F(3))
    assert names(after) == ["convert_element_type"] * 2
    assert names(check_pass(simplify, after, F(3))) == ["convert_element_type"] * 2


def test_known_branch_is_taken():
    log = []

    def chosen(x):
        io_callback(log.append, None, x)
        return lax.mul(lax.sin(x), F(1))

    closed = trace(lambda x: [cond(True, chosen, lax.cos, x)], ShapedArray((), F))
    after = check_pass(simplify, closed, F(3))
    assert names(after) == ["io_callback", "sin"] and len(log) == 2


def test_every_rule_belongs_to_a_primitive():
    from jitcore import lax as everything  # noqa: F401  registers all primitives
    from jitcore.core.primitive import registry

    assert set(RULES) <= set(registry)
