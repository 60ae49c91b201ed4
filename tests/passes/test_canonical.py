"""Keys of programs: equal for equal programs, different for different ones, stable across processes."""

import enum
import subprocess
import sys
import timeit
from collections import namedtuple

import numpy as np
import pytest

from jitcore import dtypes, lax
from jitcore.core.jaxpr import ClosedJaxpr, Literal, ShapedArray
from jitcore.core.symbolic import DimVar
from jitcore.lax.control_flow.cond import cond
from jitcore.lax.control_flow.scan import scan
from jitcore.passes.canonical import LOCAL, encode_literal, encode_params, encode_value, program_key
from tests.passes.programs import F32, I32, call, trace

F = np.float32
VECTOR = ShapedArray((3,), F)


def key(fun, *avals):
    return program_key(trace(fun, *avals))


def test_names_and_places_do_not_count():
    def one(x, y):
        return [lax.add(lax.sin(x), y)]

    def other(first, second):
        sine = lax.sin(first)
        return [lax.add(sine, second)]

    assert key(one, F32, F32) == key(other, F32, F32)


DIFFERENT = {
    "operation": (lambda x, y: [lax.add(x, x)], lambda x, y: [lax.mul(x, x)]),
    "operands": (lambda x, y: [lax.sub(x, y)], lambda x, y: [lax.sub(y, x)]),
    "order of outputs": (lambda x, y: [x, y], lambda x, y: [y, x]),
    "literal": (lambda x, y: [lax.add(x, F(1))], lambda x, y: [lax.add(x, F(2))]),
    "sign of zero": (lambda x, y: [lax.add(x, F(0))], lambda x, y: [lax.add(x, F(-0.0))]),
    "literal or argument": (lambda x, y: [lax.add(x, F(1))], lambda x, y: [lax.add(x, y)]),
    "weak output": (lambda x, y: [F(1)], lambda x, y: [1.0]),
    "param": (lambda x, y: [lax.integer_pow(x, 2)], lambda x, y: [lax.integer_pow(x, 3)]),
    "body": (
        lambda x, y: [scan(lambda c, _: (lax.add(c, x), None), x, None, length=2)[0]],
        lambda x, y: [scan(lambda c, _: (lax.sub(c, x), None), x, None, length=2)[0]]),
    "branches": (
        lambda x, y: [cond(lax.lt(x, y), lambda: x, lambda: y)],
        lambda x, y: [cond(lax.lt(x, y), lambda: y, lambda: x)]),
    "dead equation": (lambda x, y: [x], lambda x, y: [lax.sin(x), x][1:]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_have_different_keys(name):
    one, other = DIFFERENT[name]
    assert key(one, F32, F32) != key(other, F32, F32)


def test_types_of_arguments_count():
    others = [ShapedArray((), F, weak_type=True), ShapedArray((4,), F), ShapedArray((3, 1), F)]
    avals = [F32, I32, VECTOR, *others]
    assert len({key(lambda x: [x], aval) for aval in avals}) == len(avals)
    assert len({key(lambda *xs: [xs[0]], *[F32] * count) for count in (1, 2, 3)}) == 3


def test_values_of_constants_do_not_count_and_their_types_do():
    def closing_over(const):
        return key(lambda x: [lax.add(x, const)], VECTOR)

    assert closing_over(np.zeros(3, F)) == closing_over(np.ones(3, F)) != closing_over(F(1))


def test_constants_of_inner_jaxprs_count():
    def with_constant(value):
        closed = trace(lambda x: call(lambda y: [lax.mul(y, np.ones(3, F))], x), VECTOR)
        inner = closed.eqns[0].params["jaxpr"].jaxpr
        moved = inner.replace(constvars=inner.invars[:1], invars=inner.invars[1:])
        closed.eqns[0].params["jaxpr"] = ClosedJaxpr(moved, [np.full(3, value, F)])
        return program_key(closed)

    assert with_constant(1) == with_constant(1) != with_constant(2)


Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "a b")


class Mode(enum.Enum):
    CLIP = 1
    FILL = 2


VALUES = [
    None, True, False, 0, 1, -1, 1.0, -0.0, 0.0, float("nan"), 1j, "1", "a", "", b"1", (), (1,), [1], (1, 2),
    ((1,), 2), (1, (2,)), (12,), "(1,)", {"a": 1}, {"a": 2}, {"b": 1}, frozenset((1,)), frozenset((1, 2)),
    dtypes.float32, dtypes.bfloat16, np.float32, np.float32(1), np.float64(1), np.int32(1),
    np.array([1], np.int32), np.array([[1]], np.int32), np.array([2], np.int32), Pair(1, 2), Other(1, 2),
    Pair(2, 1), Mode.CLIP, Mode.FILL, F32, I32, ShapedArray((), F, weak_type=True), DimVar("n"), DimVar("m"),
    DimVar("n", lower=2), DimVar("n") + 1, "n", "\0",
]


def test_no_two_values_share_an_encoding():
    encoded = [encode_value(value) for value in VALUES]
    shared = [value for value, text in zip(VALUES, encoded) if encoded.count(text) > 1]
    assert shared == []
    assert not any("\0" in text for text in encoded)


def test_equal_values_share_an_encoding():
    assert encode_params({"a": 1, "b": (2,)}) == encode_params({"b": (2,), "a": 1})
    assert encode_value(frozenset("abcdef")) == encode_value(frozenset("fedcba"))
    assert encode_value({"a": 1, "b": 2}) == encode_value({"b": 2, "a": 1})
    assert encode_literal(Literal(0.5)) == encode_literal(Literal(F(0.5), F32))


def test_objects_count_by_identity_and_make_the_key_local():
    one, other = lambda x: x, lambda x: x
    assert encode_value(one) == encode_value(one) != encode_value(other)
    closed = trace(lambda x: [lax.integer_pow(x, 2)], F32)
    assert not program_key(closed).startswith(LOCAL)
    closed.eqns[0].params["hook"] = one
    assert program_key(closed).startswith(LOCAL)


PROGRAM = """
import numpy as np
from jitcore import lax
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.shape import reshape
from jitcore.passes import program_key
from tests.passes.programs import F32, ShapedArray, trace

def fun(x, v):
    c, ys = scan(lambda c, y: (lax.add(c, y), lax.sin(c)), x, v)
    return [lax.mul(c, np.float32(0.1)), reshape(ys, (3, 1)), lax.convert_element_type.primitive.bind(
        x, new_dtype=np.dtype("int8"), weak_type=False)]

print(program_key(trace(fun, F32, ShapedArray((3,), np.float32))))
"""


def test_key_is_the_same_in_another_process():
    keys = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))}).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1 and len(keys.pop().strip()) == 32


def test_hashing_six_equations_is_quick():
    def selu(x):
        negative = lax.sub(lax.mul(F(1.67), lax.exp(x)), F(1.67))
        return [lax.mul(F(1.05), lax.select(lax.gt(x, 0.0), x, negative))]

    closed = trace(selu, VECTOR)
    assert len(closed.eqns) == 6
    assert min(timeit.repeat(lambda: program_key(closed), number=100, repeat=7)) / 100 < 60e-6
