"""Programs for the tests of passes: tracing helpers, exact comparison, and random programs.

In: a function of lax operations, or a list of integers that a random program is read from. Out: closed jaxprs
and their results, which must agree bit for bit before and after a pass.
"""

import sys

import numpy as np
from hypothesis import strategies as st

from jitcore import lax
from jitcore.core.check import check_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.dispatch.inner import jit_primitive
from jitcore.lax.control_flow.callback import io_callback
from jitcore.lax.control_flow.cond import cond, switch
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import fori_loop, while_loop
from jitcore.lax.shape import broadcast_in_dim, reshape, transpose

F32, I32, BOOL = (ShapedArray((), dtype) for dtype in (np.float32, np.int32, np.bool_))
F = np.float32


def trace(fun, *avals) -> ClosedJaxpr:
    """The checked jaxpr of a function that returns a list."""
    jaxpr, consts = trace_to_jaxpr(fun, avals)
    closed = ClosedJaxpr(jaxpr, consts)
    check_jaxpr(closed)
    return closed


def names(closed: ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in closed.eqns]


def call(fun, *args):
    """Calls a function through a `jit` equation, as a jitted function inside another one."""
    avals = [arg.aval if hasattr(arg, "aval") else ShapedArray(arg.shape, arg.dtype) for arg in args]
    jaxpr, consts = trace_to_jaxpr(fun, avals)
    closed, operands = close_over_consts(jaxpr, consts)
    return jit_primitive.bind(*operands, *args, jaxpr=closed, name=fun.__name__)


def assert_bitwise_equal(found, expected) -> None:
    """Equal dtypes, shapes and bits; one NaN is as good as another."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind == "f":
            assert np.array_equal(np.isnan(one), np.isnan(other))
            signs = [np.signbit(np.nan_to_num(value, nan=1.0)) for value in (one, other)]
            assert np.array_equal(*signs)
        np.testing.assert_array_equal(one, other)


def check_pass(run_pass, closed: ClosedJaxpr, *args) -> ClosedJaxpr:
    """Runs a pass; types, effects and results must be those of the program before. Returns what it made."""
    text = str(closed)
    after = run_pass(closed)
    assert str(closed) == text, "the pass changed its argument"
    check_jaxpr(after)
    assert after.in_avals == closed.in_avals and after.out_avals == closed.out_avals
    assert after.effects <= closed.effects  # fewer where a branch is never taken; logs are compared elsewhere
    args = [np.asarray(arg) for arg in args]
    assert_bitwise_equal(run_jaxpr_numpy(after, args), run_jaxpr_numpy(closed, args))
    return after


# -- random programs ----------------------------------------------------------------------------------------
CODES = st.lists(st.integers(0, 999), min_size=4, max_size=24)
SPECIAL = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 0.3, -7.5])
VALUES = st.lists(SPECIAL, min_size=6, max_size=6)
INPUTS = st.tuples(SPECIAL.map(F), VALUES, st.integers(-3, 5).map(np.int32))
AVALS = (F32, ShapedArray((2, 3), np.float32), I32)
LITERALS = [F(0), F(-0.0), F(1), F(np.nan), F(np.inf), F(0.5), 2.0, 0.0, 1.0]


def make_args(inputs) -> list[np.ndarray]:
    x, values, n = inputs
    return [np.asarray(x), np.array(values, F).reshape(2, 3), np.asarray(n)]


class RandomProgram:
    """A function of (float32[], float32[2,3], int32[]) whose operations are chosen by a list of integers.

    `log` collects what its ordered callbacks were given."""

    def __init__(self, codes):
        self.codes, self.log = list(codes), []

    def __call__(self, x, v, n):
        self.position = 0
        pool = {"f": [x, *LITERALS], "v": [v], "i": [n, np.int32(2)], "b": [lax.lt(n, np.int32(2)), True]}
        self.grow(pool, depth=0)
        return [self.pick(pool, kind) for kind in "fvib"] + pool["f"][-2:]

    def next_code(self) -> int:
        self.position += 1
        return self.codes[self.position % len(self.codes)] + self.position

    def pick(self, pool, kind):
        return pool[kind][self.next_code() % len(pool[kind])]

    def grow(self, pool, depth: int) -> None:
        """Adds the results of a few operations to the pool."""
        for _ in range(len(self.codes) if depth == 0 else 3):
            operations = self.SIMPLE + (self.NESTED if depth < 2 else ())
            operations[self.next_code() % len(operations)](self, pool, depth)

    def grow_inner(self, pool, depth: int, **more):
        """Operations inside a body: on values from outside and on the body's own."""
        inner = {kind: [*values, *more.get(kind, ())] for kind, values in pool.items()}
        self.grow(inner, depth + 1)
        return inner

    # Each operation takes (self, pool, depth).
    def add_binary(self, pool, depth):
        operation = (lax.add, lax.sub, lax.mul, lax.max, lax.div)[self.next_code() % 5]
        pool["f"].append(operation(self.pick(pool, "f"), self.pick(pool, "f")))

    def add_unary(self, pool, depth):
        operation = (lax.neg, lax.sin, lax.abs, lambda x: lax.neg(lax.neg(x)))[self.next_code() % 4]
        pool["f"].append(operation(self.pick(pool, "f")))

    def add_vector(self, pool, depth):
        operation = (lax.add, lax.mul, lax.sub)[self.next_code() % 3]
        pool["v"].append(operation(self.pick(pool, "v"), self.pick(pool, "v")))

    def add_scaled(self, pool, depth):
        factor = (F(1), F(-0.0), F(0), 1.0)[self.next_code() % 4]
        pool["v"].append((lax.mul, lax.add, lax.sub)[self.next_code() % 3](self.pick(pool, "v"), factor))

    def add_shapes(self, pool, depth):
        v = transpose(transpose(self.pick(pool, "v"), (1, 0)), (1, 0))
        pool["v"] += [v, reshape(reshape(v, (6,)), (2, 3)), broadcast_in_dim(v, (2, 3), (0, 1))]

    def add_broadcast(self, pool, depth):
        pool["v"].append(broadcast_in_dim(broadcast_in_dim(self.pick(pool, "f"), (3,), ()), (2, 3), (1,)))

    def add_integer(self, pool, depth):
        operation = (lax.add, lax.sub, lax.mul)[self.next_code() % 3]
        pool["i"].append(operation(self.pick(pool, "i"), self.pick(pool, "i")))

    def add_compare(self, pool, depth):
        pool["b"].append(lax.lt(self.pick(pool, "f"), self.pick(pool, "f")))
        pool["b"].append(lax.bitwise_not(lax.bitwise_not(self.pick(pool, "b"))))

    def add_select(self, pool, depth):
        pool["f"].append(lax.select(self.pick(pool, "b"), self.pick(pool, "f"), self.pick(pool, "f")))

    def add_callback(self, pool, depth):
        io_callback(lambda value: self.log.append(float(value)), None, self.pick(pool, "f"), ordered=True)

    def add_cond(self, pool, depth):
        def branch():
            inner = self.grow_inner(pool, depth)
            return lax.add(self.pick(inner, "f"), F(0)), self.pick(inner, "v")

        f, v = cond(self.pick(pool, "b"), branch, branch)
        pool["f"].append(f)
        pool["v"].append(v)

    def add_switch(self, pool, depth):
        branches = [lambda v: v, lax.neg, lambda v: lax.add(v, v)]
        pool["v"].append(switch(self.pick(pool, "i"), branches, self.pick(pool, "v")))

    def add_scan(self, pool, depth):
        def step(carry, row):
            inner = self.grow_inner(pool, depth, f=carry)
            f = lax.add(self.pick(inner, "f"), F(0))
            return (f, carry[0], lax.add(carry[2], F(1))), (row, lax.mul(f, F(1)))

        f = lax.add(self.pick(pool, "f"), F(0))
        reverse = self.next_code() % 2 == 0
        (a, b, _), (rows, _) = scan(step, (f, f, F(0)), self.pick(pool, "v"), reverse=reverse)
        pool["f"] += [a, b]
        pool["v"].append(rows)

    def add_while(self, pool, depth):
        def body(carry):
            inner = self.grow_inner(pool, depth, f=carry[1:])
            return lax.add(carry[0], np.int32(1)), lax.add(self.pick(inner, "f"), F(0)), carry[1]

        f = lax.add(self.pick(pool, "f"), F(0))
        limit = lax.min(self.pick(pool, "i"), np.int32(3))
        i, a, b = while_loop(lambda carry: lax.lt(carry[0], limit), body, (np.int32(0), f, f))
        pool["f"].append((a, b)[self.next_code() % 2])
        pool["i"].append(i)

    def add_loop(self, pool, depth):
        def body(i, c):
            return lax.add(self.pick(self.grow_inner(pool, depth, f=[c]), "f"), F(0))

        pool["f"].append(fori_loop(0, 3, body, lax.add(self.pick(pool, "f"), F(0))))

    def add_call(self, pool, depth):
        def inner_function(f, v):
            inner = self.grow_inner(pool, depth, f=[f], v=[v])
            return [self.pick(inner, "f"), self.pick(inner, "v")]

        f, v = call(inner_function, lax.add(self.pick(pool, "f"), F(0)), lax.neg(self.pick(pool, "v")))
        pool["f"].append(f)
        pool["v"].append(v)

    SIMPLE = (add_binary, add_unary, add_vector, add_scaled, add_shapes, add_broadcast, add_integer,
              add_compare, add_select, add_callback)
    NESTED = (add_cond, add_switch, add_scan, add_while, add_loop, add_call)


def count_calls(run, *args) -> int:
    """How many functions are called, Python's own among them."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        run(*args)
    finally:
        sys.setprofile(None)
    return count
