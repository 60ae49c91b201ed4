"""Structured control flow, eager and traced, against JAX and against Python loops."""

import types

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import lax as jitcore_lax, tree_util
from jitcore.array import ConcreteArray
from jitcore.config import config
from jitcore.core.check import check_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, aval_of
from jitcore.core.trace import to_numpy, trace_to_jaxpr
from jitcore.errors import ConcretizationTypeError
from tests.jax_answers import jax

# What both libraries call alike. The shorter name of the conversion keeps the cases on one line.
NAMES = ("add sub mul sin cos neg lt gt eq select cond switch while_loop fori_loop scan map "
         "associative_scan").split()


def choose_names(lax):
    return types.SimpleNamespace(
        convert=lax.convert_element_type, **{name: getattr(lax, name) for name in NAMES})


OURS = choose_names(jitcore_lax)


def jax_lax():
    return choose_names(jax.lax)


F, I32 = np.float32, np.int32
XS = np.arange(5, dtype=F)
ROWS = np.arange(6, dtype=F).reshape(3, 2)


def describe(result):
    """Structure, dtypes, weak types and values of a pytree of arrays of either library."""
    leaves, tree = tree_util.tree_flatten(result)
    values = [np.asarray(leaf) for leaf in leaves]
    types = [(value.dtype, getattr(leaf, "weak_type", False)) for value, leaf in zip(values, leaves)]
    return str(tree), types, values


def run_traced(fun, args):
    """The result of tracing fun, checking its jaxpr and running that."""
    leaves, tree = tree_util.tree_flatten(args)
    trees = []

    def flat(*tracers):
        outs, out_tree = tree_util.tree_flatten(fun(*tree.unflatten(tracers)))
        trees.append(out_tree)
        return outs

    jaxpr, consts = trace_to_jaxpr(flat, [aval_of(leaf) for leaf in leaves])
    check_jaxpr(jaxpr)
    outs = run_jaxpr_numpy(ClosedJaxpr(jaxpr, consts), [to_numpy(leaf) for leaf in leaves])
    arrays = [ConcreteArray(np.asarray(out), aval.weak_type) for out, aval in zip(outs, jaxpr.out_avals)]
    return trees[0].unflatten(arrays)


def check_same(found, expected):
    found, expected = describe(found), describe(expected)
    assert found[:2] == expected[:2]
    for one, other in zip(found[2], expected[2]):
        np.testing.assert_allclose(one, other, rtol=1e-6)


# Each case: a function of (lax, *args) and its arguments.
CASES = {
    "cond true": (lambda lax, x: lax.cond(lax.gt(x, F(0)), lax.sin, lax.cos, x), [F(1)]),
    "cond false": (lambda lax, x: lax.cond(lax.gt(x, F(0)), lax.sin, lax.cos, x), [F(-1)]),
    "cond closure": (lambda lax, x: lax.cond(lax.gt(x, F(0)), lambda: lax.sin(x), lambda: x), [F(2)]),
    "cond number as pred": (lambda lax, x: lax.cond(x, lambda: F(1), lambda: F(2)), [F(0)]),
    "cond operand keyword": (lambda lax, x: lax.cond(True, lambda v: v, lax.neg, operand=x), [XS]),
    "cond weak and strong": (lambda lax, x: lax.cond(True, lambda: 1.0, lambda: x), [F(2)]),
    "cond weak and weak": (lambda lax: lax.cond(True, lambda: 1.0, lambda: 2.0), []),
    "cond pytree": (
        lambda lax, x: lax.cond(
            False, lambda d: {"a": d["b"], "b": None}, lambda d: {"a": d["a"], "b": None}, x),
        [{"a": XS, "b": -XS}]),
    "cond no result": (lambda lax, x: lax.cond(True, lambda: (), lambda: ()), [XS]),
    "switch": (lambda lax, i, x: lax.switch(i, [lax.sin, lax.cos, lax.neg], x), [I32(1), XS]),
    "switch above": (lambda lax, i, x: lax.switch(i, [lax.sin, lax.cos, lax.neg], x), [I32(9), XS]),
    "switch below": (lambda lax, i, x: lax.switch(i, [lax.sin, lax.cos, lax.neg], x), [I32(-9), XS]),
    "switch uint8": (lambda lax, i, x: lax.switch(i, [lax.sin, lax.cos], x), [np.uint8(255), XS]),
    "switch one branch": (lambda lax, i, x: lax.switch(i, [lax.sin], x), [I32(5), XS]),
    "while": (lambda lax, x: lax.while_loop(lambda c: lax.lt(c, F(50)), lambda c: lax.add(c, x), x), [F(3)]),
    "while never": (
        lambda lax, x: lax.while_loop(lambda c: lax.lt(c, F(0)), lambda c: lax.add(c, x), x), [F(3)]),
    "while weak carry": (
        lambda lax: lax.while_loop(lambda c: lax.lt(c, 50.0), lambda c: lax.add(c, 2.0), 1.0), []),
    "while promotes int carry": (
        lambda lax, x: lax.while_loop(
            lambda c: lax.lt(lax.convert(c, F), F(4)), lambda c: lax.add(x, x), 1), [F(3)]),
    "while weak to half": (
        lambda lax, x: lax.while_loop(
            lambda c: lax.lt(lax.convert(c, F), F(4)), lambda c: lax.add(x, x), 1.0), [np.float16(3)]),
    "while dict": (
        lambda lax, x: lax.while_loop(
            lambda c: lax.lt(c["i"], I32(4)),
            lambda c: {"i": lax.add(c["i"], I32(1)), "x": lax.mul(c["x"], c["x"])},
            {"i": I32(0), "x": x}), [XS / 4]),
    "while strong carry, weak result": (
        lambda lax, x: lax.while_loop(lambda c: lax.lt(c, x), lambda c: 5.0, F(0)), [F(3)]),
    "while nested": (
        lambda lax, x: lax.while_loop(
            lambda c: lax.lt(c, F(100)),
            lambda c: lax.while_loop(lambda d: lax.lt(d, lax.add(c, F(7))), lambda d: lax.add(d, x), c), x),
        [F(3)]),
    "fori": (lambda lax, x: lax.fori_loop(0, 10, lambda i, c: lax.add(c, lax.convert(i, F)), x), [XS]),
    "fori empty": (lambda lax, x: lax.fori_loop(5, 2, lambda i, c: lax.add(c, c), x), [XS]),
    "fori negative": (lambda lax, x: lax.fori_loop(-3, 2, lambda i, c: lax.add(c, i), x), [I32(0)]),
    "fori dynamic": (lambda lax, n, x: lax.fori_loop(0, n, lambda i, c: lax.add(c, i), x), [I32(7), I32(1)]),
    "fori int8": (
        lambda lax, n, x: lax.fori_loop(np.int8(0), n, lambda i, c: lax.add(c, i), x),
        [np.int8(7), np.int8(1)]),
    "fori index as result": (lambda lax, n, x: lax.fori_loop(0, n, lambda i, c: i, 0), [I32(7), I32(1)]),
    "scan": (lambda lax, x: lax.scan(lambda c, y: (lax.add(c, y), lax.mul(c, y)), F(1), x), [XS]),
    "scan reverse": (
        lambda lax, x: lax.scan(lambda c, y: (lax.add(c, y), lax.mul(c, y)), F(1), x, reverse=True), [XS]),
    "scan rows": (
        lambda lax, x: lax.scan(lambda c, y: (lax.add(c, y), {"c": c, "y": (y,)}), ROWS[0], x), [ROWS]),
    "scan length": (lambda lax, x: lax.scan(lambda c, _: (lax.mul(c, c), c), x, None, length=3), [F(2)]),
    "scan zero length": (lambda lax, x: lax.scan(lambda c, y: (lax.add(c, y), y), F(2), x), [XS[:0]]),
    "scan unroll": (lambda lax, x: lax.scan(lambda c, y: (lax.add(c, y), c), F(2), x, unroll=2), [XS]),
    "scan promotes": (lambda lax, x: lax.scan(lambda c, y: (lax.add(y, y), c), 1, x), [XS]),
    "scan weak y": (lambda lax, x: lax.scan(lambda c, y: (c, 2), F(1), x), [XS]),
    "scan closure": (
        lambda lax, x, w: lax.scan(lambda c, y: (lax.add(lax.mul(c, w), y), None), F(0), x), [XS, F(0.5)]),
    "scan two arrays": (
        lambda lax, xs: lax.scan(lambda c, y: (c, lax.add(y[0], y[1])), (), xs), [(XS, -2 * XS)]),
    "map": (lambda lax, x: lax.map(lambda y: (lax.sin(y), y), x), [ROWS]),
    "map weak": (lambda lax, x: lax.map(lambda y: 1.0, x), [XS]),
    "loops in branches": (
        lambda lax, p, x: lax.cond(
            p, lambda: lax.fori_loop(0, 3, lambda i, c: lax.mul(c, x), x), lambda: lax.scan(
                lambda c, y: (lax.add(c, y), None), x, XS)[0]), [np.bool_(True), F(1.5)]),
    "associative_scan": (lambda lax, x: lax.associative_scan(lax.add, x), [XS]),
    "associative_scan reverse": (
        lambda lax, x: lax.associative_scan(lax.add, x, reverse=True, axis=1), [ROWS]),
    "associative_scan pairs": (
        lambda lax, x: lax.associative_scan(
            lambda a, b: (lax.mul(a[0], b[0]), lax.add(lax.mul(b[0], a[1]), b[1])), x), [(XS / 4, XS)]),
}


# Bounds of 8 bits that are known: JAX counts in int32 then, jitcore in int8 as it does for traced bounds.
@pytest.mark.parametrize("name", [name for name in CASES if name != "fori int8"])
def test_eager_agrees_with_jax(name):
    fun, args = CASES[name]
    check_same(fun(OURS, *args), fun(jax_lax(), *args))


@pytest.mark.parametrize("name", CASES)
def test_traced_agrees_with_jax_under_jit(name):
    fun, args = CASES[name]
    lax = jax_lax()
    check_same(run_traced(lambda *xs: fun(OURS, *xs), args), jax.jit(lambda *xs: fun(lax, *xs))(*args))


@pytest.mark.parametrize("name", [name for name in CASES if "zero length" not in name])
def test_disable_jit_computes_the_same_values(name):
    fun, args = CASES[name]
    with config.override(disable_jit=True):
        python = describe(fun(OURS, *map_arrays(args)))
    for one, other in zip(python[2], describe(fun(OURS, *args))[2]):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def map_arrays(args):
    return tree_util.tree_map(lambda x: ConcreteArray(np.asarray(x)), args)


# Each case: a function of lax that raises.
ERRORS = {
    "branch structure": lambda lax: lax.cond(True, lambda x: x, lambda x: (x, x), F(1)),
    "branch dtype": lambda lax: lax.cond(True, lambda x: x, lambda x: I32(1), F(1)),
    "branch shape": lambda lax: lax.cond(True, lambda x: x, lambda x: XS, F(1)),
    "cond callable": lambda lax: lax.cond(True, 3, lambda x: x, F(1)),
    "cond complex pred": lambda lax: lax.cond(np.complex64(1j), lambda x: x, lambda x: x, F(1)),
    "switch structure": lambda lax: lax.switch(1, [lambda x: x, lambda x: (x, x)], F(1)),
    "switch empty": lambda lax: lax.switch(1, [], F(1)),
    "switch vector": lambda lax: lax.switch(XS.astype(I32), [lambda x: x] * 2, F(1)),
    "while structure": lambda lax: lax.while_loop(lambda x: lax.lt(x, F(3)), lambda x: (x, x), F(1)),
    "while dtype": lambda lax: lax.while_loop(lambda x: lax.lt(x, F(3)), lambda x: I32(1), F(1)),
    "while condition type": lambda lax: lax.while_loop(lambda x: x, lambda x: x, 1.0),
    "while condition pair": lambda lax: lax.while_loop(lambda x: (True, True), lambda x: x, F(1)),
    "while callable": lambda lax: lax.while_loop(3, lambda x: x, F(1)),
    "scan dtype": lambda lax: lax.scan(lambda c, x: (x, x), F(1), XS.astype(I32)),
    "scan structure": lambda lax: lax.scan(lambda c, x: ((c, c), x), F(1), XS),
    "scan no pair": lambda lax: lax.scan(lambda c, x: c, 1.0, XS),
    "scan lengths": lambda lax: lax.scan(lambda c, x: (c, x), F(1), (XS, XS[:2])),
    "scan length": lambda lax: lax.scan(lambda c, x: (c, x), F(1), XS, length=2),
    "scan nothing": lambda lax: lax.scan(lambda c, x: (c, x), F(1), None),
    "scan unroll": lambda lax: lax.scan(lambda c, x: (c, x), F(1), XS, unroll=-1),
    "fori dtype": lambda lax: lax.fori_loop(0, 3, lambda i, c: i, F(1)),
    "fori bounds": lambda lax: lax.fori_loop(np.int8(0), np.int16(3), lambda i, c: c, F(1)),
    "associative lengths": lambda lax: lax.associative_scan(lax.add, (XS, XS[:2])),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_type_and_first_line_of_jax(name):
    with pytest.raises(Exception) as theirs:
        ERRORS[name](jax_lax())
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](OURS)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
    assert len(str(ours.value).splitlines()) <= 8


def test_carry_error_names_the_component_and_both_types():
    with pytest.raises(TypeError) as caught:
        init = {"a": F(1), "b": XS}
        OURS.while_loop(lambda x: OURS.lt(x["a"], F(3)), lambda x: {"a": x["a"], "b": I32(1)}, init)
    text = str(caught.value)
    assert "carry component x['b'] has type float32[5]" in text and "has type int32[]" in text
    assert "the shapes and dtypes do not match" in text


def test_branch_error_names_path_functions_and_both_types():
    def give_pair(x):
        return {"a": x, "b": x}

    with pytest.raises(TypeError) as caught:
        OURS.cond(True, give_pair, lambda x: {"a": x, "b": XS}, F(1))
    text = str(caught.value)
    assert "give_pair at" in text and "at path ['b']" in text and "float32[5]" in text


def test_function_that_returns_no_array_is_named():
    with pytest.raises(TypeError, match="traced for cond returned a value of type <class 'str'>"):
        OURS.cond(True, lambda x: "a", lambda x: x, F(1))


def test_traced_scan_length_is_explained():
    with pytest.raises(ConcretizationTypeError, match="length"):
        run_traced(lambda n: OURS.scan(lambda c, x: (c, x), F(1), None, length=n), [I32(3)])


def test_unroll_needs_static_bounds():
    with pytest.raises(ValueError, match="statically known"):
        run_traced(lambda n: OURS.fori_loop(0, n, lambda i, c: c, F(1), unroll=2), [I32(3)])


def test_only_the_chosen_branch_runs_and_both_are_traced():
    log = []

    def note(name):
        log.append(name)
        return F(1)

    OURS.cond(True, lambda: note("true"), lambda: note("false"))
    assert sorted(log) == ["false", "true"]
    log.clear()
    with config.override(disable_jit=True):
        OURS.cond(True, lambda: note("true"), lambda: note("false"))
    assert log == ["true"]


def test_consts_of_branches_are_passed_once():
    def fun(x, y):
        return [OURS.cond(OURS.lt(x, y), lambda: OURS.add(x, y), lambda: OURS.sub(x, y))]

    jaxpr, _ = trace_to_jaxpr(fun, [aval_of(F(1)), aval_of(F(2))])
    eqn = jaxpr.eqns[-1]
    assert eqn.primitive.name == "cond" and eqn.invars[1:] == jaxpr.invars


def test_static_trip_count_is_a_scan_and_a_dynamic_one_a_while():
    jaxpr, _ = trace_to_jaxpr(
        lambda n, x: [OURS.fori_loop(0, 3, lambda i, c: c, x), OURS.fori_loop(0, n, lambda i, c: c, x)],
        [aval_of(I32(3)), aval_of(F(1))])
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan", "while"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=6), st.integers(-5, 5), st.booleans())
def test_scan_is_the_python_loop(values, start, reverse):
    xs = np.array(values, I32)
    carry, collected = start, [0] * len(values)
    for i in reversed(range(len(values))) if reverse else range(len(values)):
        collected[i] = carry * values[i]
        carry = carry + values[i] if values[i] > 0 else -carry

    def step(c, x):
        return OURS.select(OURS.gt(x, I32(0)), OURS.add(c, x), OURS.neg(c)), OURS.mul(c, x)

    last, ys = OURS.scan(step, I32(start), xs, reverse=reverse)
    assert int(last) == carry and ys.tolist() == collected
    last, ys = run_traced(lambda xs: OURS.scan(step, I32(start), xs, reverse=reverse), [xs])
    assert int(last) == carry and ys.tolist() == collected


def test_program_is_built_once_for_a_jaxpr():
    from jitcore.core.interpret import build_program

    jaxpr, consts = trace_to_jaxpr(lambda x: [OURS.sin(x), x], [aval_of(F(1))])
    closed = ClosedJaxpr(jaxpr, consts)
    assert build_program(closed) is build_program(closed)
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        run_jaxpr_numpy(closed, [np.zeros((), F)] * 2)


@pytest.mark.parametrize("init, body", [(0, lambda x: x + 1.5), (1, lambda x: x * 2j)])
def test_a_promoted_carry_is_strongly_typed(init, body):
    out = jitcore_lax.fori_loop(0, 2, lambda i, x: body(x), init)
    expected = jax_lax().fori_loop(0, 2, lambda i, x: body(x), init)
    assert (out.dtype, out.weak_type, complex(out)) == (expected.dtype, False, complex(expected))


def test_a_python_float_as_predicate():
    assert int(jitcore_lax.cond(0.5, lambda: 1, lambda: 2)) == 1


def test_cond_with_an_operand_for_each_function():
    from jitcore import grad, jit, lax

    choose = lambda p, x, y: lax.cond(p, x, lambda v: v + 1, y, lambda v: v - 1)  # noqa: E731
    for run in (choose, jit(choose)):
        assert run(True, 1.0, 2.0) == 2 and run(False, 1.0, 2.0) == 1
    assert grad(lambda x: choose(True, x, 2.0))(1.0) == 1
    assert lax.cond(False, {"a": 1.0}, lambda d: d["a"], (2.0, 3.0), lambda t: t[0] * t[1]) == 6
