"""Dead code, in programs and inside loops and branches."""

import numpy as np
import pytest

from jitcore import lax
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.lax.control_flow.callback import io_callback
from jitcore.lax.control_flow.cond import cond, switch
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import fori_loop, while_loop
from jitcore.passes.simplify import eliminate_dead_code, find_live_carries
from tests.passes.programs import F32, ShapedArray, check_pass, names, trace

F = np.float32
XS = np.arange(4, dtype=F)


def pruned(fun, *args):
    closed = trace(fun, *[ShapedArray(arg.shape, arg.dtype) for arg in args])
    return check_pass(eliminate_dead_code, closed, *args)


def test_unread_equations_and_constants_go_away():
    unread, read = np.ones(3, F), np.ones(4, F)

    def fun(x):
        lax.cos(lax.sin(x))
        lax.add(x, np.float32(1) * unread[:0].sum())
        lax.neg(unread)
        return [lax.add(x, read)]

    after = pruned(fun, XS)
    assert names(after) == ["add"] and len(after.consts) == 1 and np.array_equal(after.consts[0], read)


def test_nothing_to_do_returns_the_program_itself():
    def fun(x):
        a = while_loop(lambda c: lax.lt(c, x), lambda c: lax.add(c, x), F(0))
        b, ys = scan(lambda c, y: (lax.add(c, y), c), x, XS)
        return [a, b, ys, cond(lax.gt(x, F(0)), lambda: x, lambda: F(1))]

    closed = trace(fun, F32)
    assert eliminate_dead_code(closed) is closed


def test_effects_stay_also_in_unread_loops():
    log = []

    def body(i, carry):
        used, unused = carry
        io_callback(log.append, None, used, ordered=True)
        return lax.add(used, F(1)), lax.sin(unused)

    def fun(x):
        fori_loop(0, 2, body, (x, x))
        cond(lax.gt(x, F(0)), lambda: io_callback(log.append, None, x), lambda: None)
        return [x]

    after = pruned(fun, F(5))
    assert names(after) == ["scan", "gt", "convert_element_type", "cond"]
    assert [float(value) for value in log] == [5, 6, 5] * 2
    loop = after.eqns[0]
    assert names(loop.params["jaxpr"]) == ["io_callback", "add"] and loop.params["num_carry"] == 1


def test_scan_loses_unread_carries_outputs_operands_and_consts():
    def fun(x, xs, w):
        def step(carry, row):
            a, b, c = carry
            return (lax.add(a, row[0]), lax.mul(b, lax.add(c, w)), lax.add(c, row[1])), (a, lax.sin(b))

        (a, _, _), (ys, _) = scan(step, (x, x, x), (xs, xs))
        return [a, ys]

    (eqn,) = pruned(fun, F(1), XS, F(2)).eqns
    assert (eqn.params["num_carry"], eqn.params["num_consts"], len(eqn.invars)) == (1, 0, 2)
    assert names(eqn.params["jaxpr"]) == ["add"]


def test_carry_that_feeds_a_live_carry_stays():
    def fun(x):
        def body(i, carry):
            a, b, c, d = carry
            return lax.add(a, b), lax.add(b, c), lax.neg(c), lax.sin(d)

        return [fori_loop(0, 3, body, (x, x, x, x))[0]]

    (eqn,) = pruned(fun, F(2)).eqns
    assert eqn.params["num_carry"] == 3 and "sin" not in names(eqn.params["jaxpr"])


@pytest.mark.parametrize("loop", [fori_loop, lambda low, high, body, init: scan(
    lambda carry, _: (body(None, carry), None), init, None, length=high)[0]])
def test_carry_that_only_an_unread_operand_of_a_branch_reads_goes_away(loop):
    def fun(x, y):
        def body(i, carry):
            a, b = carry
            a, _ = cond(lax.gt(a, y), lambda a, b: (lax.neg(a), b), lambda a, b: (a, lax.sin(b)), a, b)
            return a, lax.add(b, y)

        return [loop(0, 3, body, (x, x))[0]]

    (eqn,) = pruned(fun, F(2), F(1)).eqns
    body = eqn.params.get("jaxpr") or eqn.params["body_jaxpr"]
    assert [name for name in names(body) if name in ("cond", "add", "sin")].count("cond") == 1
    assert sum(aval.dtype == F32.dtype for aval in body.out_avals) == 1


def test_while_keeps_what_its_condition_reads():
    def fun(x, w, u):
        def body(carry):
            i, a, b = carry
            return lax.add(i, F(1)), lax.mul(a, w), lax.mul(b, u)

        return [while_loop(lambda carry: lax.lt(carry[0], x), body, (F(0), F(1), F(1)))[1]]

    (eqn,) = pruned(fun, F(3), F(2), F(2)).eqns
    assert len(eqn.outvars) == 2 and names(eqn.params["body_jaxpr"]) == ["add", "mul"]
    assert (eqn.params["cond_nconsts"], eqn.params["body_nconsts"]) == (1, 1)


def test_unread_loop_goes_away():
    def fun(x):
        while_loop(lambda c: lax.lt(c, x), lambda c: lax.add(c, F(1)), F(0))
        return [x]

    assert pruned(fun, F(3)).eqns == []


def test_branches_lose_unread_outputs_and_operands():
    def fun(i, x, y):
        a, _ = switch(i, [lambda x, y: (x, y), lambda x, y: (lax.sin(x), lax.cos(y))], x, y)
        return [a]

    eqn = pruned(fun, np.int32(1), F(2), F(3)).eqns[-1]
    assert len(eqn.invars) == 2 and len(eqn.outvars) == 1
    assert [names(branch) for branch in eqn.params["branches"]] == [[], ["sin"]]


def test_nested_loops_are_pruned():
    def fun(x):
        def outer(carry, _):
            return fori_loop(0, 2, lambda i, t: (lax.add(t[0], x), lax.sin(t[1])), (carry, x))[0], None

        return [scan(outer, x, None, length=2)[0]]

    after = pruned(fun, F(2))
    inner = after.eqns[0].params["jaxpr"].eqns[0]
    assert inner.params["num_carry"] == 1 and "sin" not in str(after)


def test_live_carries_of_a_long_chain():
    """Each carry feeds the one before: all are live if the first one is, and the search is one walk."""
    count = 300

    def step(carry, _):
        return (*[lax.add(a, b) for a, b in zip(carry, carry[1:])], carry[-1]), None

    closed = trace(lambda x: [scan(step, (x,) * count, None, length=2)[0][0]], F32)
    body = closed.eqns[0].params["jaxpr"].jaxpr
    wanted = [True] + [False] * (count - 1)
    assert find_live_carries(body, body.invars, wanted) == [True] * count
    assert find_live_carries(body, body.invars, wanted[::-1]) == wanted[::-1]


@pytest.mark.parametrize("read, expected", [
    (lambda a: lax.linalg.svd(a)[1], {"compute_uv": False}),
    (lambda a: lax.linalg.svd(a)[2], {"compute_uv": True}),
    (lambda a: lax.linalg.schur(a)[0], {"compute_schur_vectors": False}),
    (lambda a: lax.linalg.eig(a)[0], {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}),
    (lambda a: lax.linalg.eig(a)[1], {"compute_left_eigenvectors": True, "compute_right_eigenvectors": False}),
])
def test_vectors_of_decompositions_that_nobody_reads(read, expected):
    a = np.random.default_rng(0).standard_normal((5, 5))
    before = trace(lambda a: [read(a)], ShapedArray(a.shape, a.dtype))
    after = eliminate_dead_code(before)
    np.testing.assert_allclose(run_jaxpr_numpy(after, [a])[0], run_jaxpr_numpy(before, [a])[0], atol=1e-12)
    (eqn,) = after.jaxpr.eqns
    assert {name: eqn.params[name] for name in expected} == expected
