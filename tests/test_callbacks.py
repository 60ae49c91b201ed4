"""Callbacks and debug printing: order, effects, checks of results, eager and traced."""

import functools

import numpy as np
import pytest

from jitcore import debug, effects_barrier, jit, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, ShapeDtypeStruct
from jitcore.core.trace import trace_to_jaxpr
from jitcore.errors import JitcoreRuntimeError
from jitcore.experimental import io_callback
from jitcore.lax.control_flow.callback import DEBUG, IO, ORDERED_DEBUG, ORDERED_IO, pure_callback
from jitcore.lax.control_flow.cond import cond
from jitcore.lax.control_flow.while_loop import fori_loop, while_loop
from jitcore.passes import PIPELINE, program_key, run_pipeline
from jitcore.passes.canonical import LOCAL

F = np.float32
SCALAR = ShapedArray((), F)
RESULT = ShapeDtypeStruct((), F)


def trace(fun, *avals):
    jaxpr, consts = trace_to_jaxpr(lambda *args: fun(*args) or [], avals)
    return ClosedJaxpr(jaxpr, consts)


def run(closed_jaxpr, *args):
    return run_jaxpr_numpy(closed_jaxpr, [np.asarray(arg) for arg in args])


def test_pure_callback_gets_arrays_and_returns_arrays():
    seen = []

    def double(x, *, scale):
        seen.append(x)
        return {"y": np.asarray(x) * np.asarray(scale)}

    out = pure_callback(double, {"y": ShapeDtypeStruct((3,), F)}, np.arange(3, dtype=F), scale=F(2))
    assert isinstance(seen[0], Array) and isinstance(out["y"], ConcreteArray)
    assert out["y"].tolist() == [0, 2, 4] and out["y"].dtype == F


def test_pure_callback_is_traced_once_and_called_at_run_time():
    calls = []
    closed = trace(lambda x: [pure_callback(lambda v: calls.append(v) or v, RESULT, lax.add(x, x))], SCALAR)
    assert not calls and not closed.effects
    assert [float(run(closed, F(value))[0]) for value in (1, 2)] == [2, 4]
    assert len(calls) == 2


def test_callback_may_keep_its_arguments():
    kept = []
    closed = trace(lambda x: io_callback(kept.append, None, x), ShapedArray((2,), F))
    buffer = np.ones(2, F)
    run(closed, buffer)
    buffer[:] = 7
    assert kept[0].tolist() == [1, 1]


SHAPE, DTYPE = (f"Incorrect output {what} for return value #0: Expected: " for what in ("shape", "dtype"))
COUNT = "Mismatched number of outputs from callback. Expected: "
WRONG = {
    "shape": (lambda x: np.zeros(2, F), SHAPE + "(), Actual: (2,)"),
    "dtype": (lambda x: np.int32(1), DTYPE + "float32, Actual: int32"),
    "scalar": (lambda x: 1j, DTYPE + "float32, Actual: complex128"),
    "count": (lambda x: (x, x), COUNT + "1, Actual: 2"),
    "none": (lambda x: None, COUNT + "1, Actual: 0"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_results_are_checked(name, call):
    callback, first_line = WRONG[name]
    with pytest.raises(JitcoreRuntimeError) as eager:
        call(callback, RESULT, F(1))
    assert str(eager.value).splitlines()[0] == first_line
    assert "test_callbacks.py:" in str(eager.value)
    with pytest.raises(JitcoreRuntimeError) as traced:
        run(trace(lambda x: [call(callback, RESULT, x)], SCALAR), F(1))
    assert str(traced.value) == str(eager.value)


@pytest.mark.parametrize("result", [np.float64(1.5), 1.5, 1, True, F(1.5)])
def test_results_that_fit_are_converted(result):
    out = pure_callback(lambda: result, RESULT)
    assert out.dtype == F and float(out) == float(result)


def test_error_of_the_callback_reaches_the_caller():
    def fail(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        pure_callback(fail, RESULT, F(1))


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="shape and a dtype"):
        pure_callback(lambda: 1, [3])
    with pytest.raises(ValueError, match="vmap_method"):
        pure_callback(lambda: 1, RESULT, vmap_method="often")
    with pytest.raises(TypeError, match="is not a valid jitcore type"):
        pure_callback(lambda x: 1, RESULT, "text")


def test_effects_reach_the_equations_of_control_flow():
    def fun(x):
        cond(lax.gt(x, F(0)), lambda: debug.callback(print), lambda: io_callback(print, None))
        while_loop(lambda c: lax.lt(c, x), lambda c: debug.print("{}", c, ordered=True) or c, x)
        fori_loop(0, 2, lambda i, c: io_callback(print, None, c, ordered=True) or c, x)
        return [lax.sin(x)]

    closed = trace(fun, SCALAR)
    by_name = {eqn.primitive.name: eqn.effects for eqn in closed.eqns}
    assert by_name["cond"] == {DEBUG, IO}
    assert by_name["while"] == {ORDERED_DEBUG}
    assert by_name["scan"] == {ORDERED_IO}
    assert by_name["sin"] == frozenset()
    assert closed.effects == {DEBUG, IO, ORDERED_DEBUG, ORDERED_IO}


def build_logging_program(log):
    """A program whose order of effects shows in `log`, with results that nobody reads."""

    def note(name, value):
        io_callback(lambda v: log.append((name, float(v))), None, value, ordered=True)

    def step(i, c):
        note("loop", c)
        unread = lax.sin(c)
        note("again", c)
        note("unread", lax.sub(unread, unread))
        return lax.add(c, F(1))

    def fun(x):
        note("first", x)
        note("first", x)
        fori_loop(0, 2, step, x)
        cond(lax.gt(x, F(0)), lambda: note("positive", x), lambda: note("negative", x))
        note("last", lax.mul(x, F(1)))
        return [x]

    return fun


def test_ordered_callbacks_keep_their_order_through_every_pass():
    eager = []
    build_logging_program(eager)(F(2))
    assert [name for name, _ in eager] == (
        ["first", "first"] + ["loop", "again", "unread"] * 2 + ["positive", "last"])
    log = []
    closed = trace(build_logging_program(log), SCALAR)
    for step in (None, *PIPELINE):
        if step is not None:
            closed = step.run(closed)
        log.clear()
        run(closed, F(2))
        assert log == eager


def test_debug_print(capsys):
    def fun(x):
        debug.print("x = {x:.2f}, {} {name}", lax.add(x, F(1)), x=x, name="text")
        return [x]

    fun(F(1.5))
    closed = trace(fun, SCALAR)
    assert capsys.readouterr().out == "x = 1.50, 2.5 text\n"
    run(run_pipeline(closed), F(2.5))
    assert capsys.readouterr().out == "x = 2.50, 3.5 text\n"


def test_debug_print_of_pytrees_and_python_objects(capsys):
    debug.print("{} {}", {"a": np.arange(2, dtype=np.int32)}, 0.1)
    assert capsys.readouterr().out == "{'a': Array([0, 1], dtype=int32)} 0.1\n"


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "Unused keyword arguments", lambda: debug.print("{}", 3, y=3)),
        (ValueError, "Unused positional arguments", lambda: debug.print("{}", 3, 4)),
        (KeyError, "x", lambda: debug.print("{x}", y=3)),
        (IndexError, "out of range", lambda: debug.print("{} {}", 3)),
        (TypeError, "expected str", lambda: debug.print(3)),
    ],
)
def test_debug_print_checks_its_format(error, match, call):
    with pytest.raises(error, match=match):
        call()


def test_debug_callback_passes_other_objects_through():
    got = []
    debug.callback(lambda *args, **kwargs: got.append((args, kwargs)), "a", F(2), None, b=print)
    (args, kwargs), = got
    assert args[0] == "a" and isinstance(args[1], Array) and args[2] is None and kwargs == {"b": print}


def test_tracing_again_gives_the_same_key():
    def printing(x):
        debug.print("{} {n}", x, n=3)
        return [lax.sin(x)]

    def printing_otherwise(x):
        debug.print("{}; {n}", x, n=3)
        return [lax.sin(x)]

    program, again, other = (trace(fun, SCALAR) for fun in (printing, printing, printing_otherwise))
    assert program_key(program).startswith(LOCAL)
    assert program_key(again) == program_key(program) != program_key(other)


def test_callbacks_that_are_not_hashable_work():
    class Adder:
        __hash__ = None

        def __call__(self, x):
            return F(float(x) + 1)

    assert float(pure_callback(Adder(), RESULT, F(1))) == 2
    assert float(pure_callback(functools.partial(lambda a, x: F(a), 3), RESULT, F(1))) == 3


def test_effects_have_ended_with_their_call():
    seen = []
    jit(lambda x: debug.callback(lambda value: seen.append(float(value)), x))(1.5)
    effects_barrier()
    assert seen == [1.5]
