"""`jit`: what a call does, how the wrapper looks, static arguments, nesting, errors."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import threading
import traceback
from collections import namedtuple

import numpy as np
import pytest

import jitcore
from jitcore import errors, lax
from jitcore.array import Array, ConcreteArray

PARAMETERS = [
    "fun", "in_shardings", "out_shardings", "static_argnums", "static_argnames", "donate_argnums",
    "donate_argnames", "keep_unused", "device", "backend", "inline", "abstracted_axes", "compiler_options",
    "rewrite",
]


def make_array(*shape: int, weak: bool = False) -> ConcreteArray:
    return ConcreteArray(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape), weak)


def double(x):
    """Twice x."""
    return lax.mul(x, 2.0)


@jitcore.jit
def decorated(x):
    return lax.neg(x)


# -- the wrapper ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0,), (2, 0, 3)])
def test_arrays_without_elements_take_other_shapes(shape):
    x = np.zeros(shape)
    for function, expected in [(lambda x: x.reshape(-1) + 1, (0,)), (jitcore.numpy.cumsum, (0,)),
                               (lambda x: lax.sin(x).reshape(0, 5).T, (5, 0))]:
        assert jitcore.jit(function)(x).shape == expected


def test_signature_is_that_of_the_reference_page():
    parameters = inspect.signature(jitcore.jit).parameters
    assert list(parameters) == PARAMETERS
    assert parameters["fun"].kind is inspect.Parameter.POSITIONAL_ONLY
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in PARAMETERS[1:])
    assert repr(parameters["in_shardings"].default) == "UnspecifiedValue"


def test_metadata_of_the_function_survives():
    def fun(x: float, *, scale: int = 2) -> float:
        """Doc."""

    fun.custom = 7
    jitted = jitcore.jit(fun)
    assert (jitted.__name__, jitted.__doc__, jitted.__module__) == ("fun", "Doc.", __name__)
    assert jitted.__qualname__ == fun.__qualname__
    assert jitted.__wrapped__ is fun
    assert inspect.get_annotations(type(jitted)) == {}
    assert jitted.__annotations__ == fun.__annotations__
    assert jitted.custom == 7
    assert inspect.signature(jitted) == inspect.signature(fun)
    assert repr(fun) in repr(jitted)
    with pytest.raises(AttributeError):
        _ = jitted.no_such_attribute


def test_all_ways_to_decorate():
    @jitcore.jit(static_argnames="n")
    def with_options(x, n):
        return lax.mul(x, float(n))

    @functools.partial(jitcore.jit, static_argnames=["n"])
    def with_partial(x, n):
        return lax.mul(x, float(n))

    assert with_options(2.0, 3) == with_partial(2.0, n=3) == 6.0
    assert jitcore.jit(inline=True)(double)(3.0) == 6.0


def test_methods():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @functools.partial(jitcore.jit, static_argnums=0)
        def scale(self, x):
            return lax.mul(x, self.factor)

        @staticmethod
        @jitcore.jit
        def negate(x):
            return lax.neg(x)

        def __call__(self, x):
            return self.scale(x)

    scaler = Scaler(3.0)
    assert scaler.scale(2.0) == 6.0
    assert Scaler(4.0).scale(2.0) == 8.0
    assert Scaler.scale(scaler, 1.0) == 3.0
    assert scaler.negate(2.0) == -2.0
    assert jitcore.jit(scaler)(2.0) == 6.0
    assert jitcore.jit(scaler.scale)(2.0) == 6.0


def test_callables_that_are_no_functions():
    assert jitcore.jit(functools.partial(lax.mul, 3.0))(2.0) == 6.0
    assert jitcore.jit(functools.partial(power, n=2))(2.0) == 16.0


def test_pickle_and_copy():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(jitcore.jit(double)))(2.0) == 4.0
    assert copy.deepcopy(decorated)(1.0) == -1.0


@pytest.mark.parametrize("value", [3, "f", (double,), (x for x in ())])
def test_what_is_not_callable_is_refused(value):
    with pytest.raises(TypeError, match="Expected a function, got a generator function"):
        jitcore.jit(lambda x: (yield x))
    with pytest.raises(TypeError, match="Expected a callable value, got"):
        jitcore.jit(value)


# -- arguments and results -----------------------------------------------------------------------------------

VALUES = [
    (True, "bool", False), (3, "int32", True), (2.5, "float32", True), (1j, "complex64", True),
    (np.float64(2), "float64", False), (np.int8(2), "int8", False), (np.bool_(True), "bool", False),
    (np.arange(3), "int64", False), (np.ones((2, 3), np.float16), "float16", False),
    (np.ones(3, ">f4"), "float32", False), (np.ones((4, 6), np.float32)[::2, ::3], "float32", False),
    (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "float64", False), (np.array(2.0), "float64", False),
    (np.frombuffer(b"x" + np.arange(3.0).tobytes(), np.uint8)[1:].view(np.float64), "float64", False),
]


@pytest.mark.parametrize("value, dtype, weak", VALUES)
@pytest.mark.parametrize("how", ["positional", "keyword", "container"])
def test_each_kind_of_argument_keeps_value_dtype_and_weak_type(value, dtype, weak, how):
    fun = jitcore.jit(lambda x: x[0] if isinstance(x, tuple) else x)
    for _ in range(3):  # the first call traces, later ones take the fast path
        out = {"positional": lambda: fun(value), "keyword": lambda: fun(x=value),
               "container": lambda: fun((value,))}[how]()
        assert isinstance(out, Array)
        assert (out.dtype.name, out.weak_type) == (dtype, weak)
        np.testing.assert_array_equal(np.asarray(out), value)


def test_the_result_shares_no_memory_with_an_ndarray():
    x = np.ones(3, np.float32)
    out = jitcore.jit(lambda x: x)(x)
    x[:] = 7
    np.testing.assert_array_equal(np.asarray(out), [1, 1, 1])


Point = namedtuple("Point", "x y")


def test_pytrees_in_and_out():
    @jitcore.jit
    def fun(tree, *rest, scale=None):
        assert scale is None or isinstance(scale, Array)
        return {"a": lax.neg(tree["a"]), "b": [rest, None, Point(tree["b"][0], 2)], "c": ()}

    for _ in range(2):
        out = fun({"a": 1.0, "b": (2, None)}, 3.0, [4], scale=1)
        assert sorted(out) == ["a", "b", "c"]
        assert out["a"] == -1.0 and out["b"][0] == (3.0, [4]) and out["b"][1] is None and out["c"] == ()
        assert isinstance(out["b"][2], Point) and out["b"][2] == (2, 2)
    assert fun.cache_info()[:3] == (1, 1, 1)


def test_results_of_several_arrays():
    two = jitcore.jit(lambda x: (x, lax.neg(x)))
    for _ in range(2):
        out = two(2.0)
        assert type(out) is tuple and out == (2.0, -2.0)
    assert jitcore.jit(lambda: None)() is None
    assert jitcore.jit(lambda: 3)() == 3
    assert jitcore.jit(lambda x: [x])(1) == [1]


def test_defaults_are_constants_of_the_trace():
    seen = []

    @jitcore.jit
    def fun(x, alpha=2.0):
        seen.append(alpha)
        return lax.mul(x, alpha)

    assert fun(3.0) == 6.0 and fun(3.0, 3.0) == 9.0
    assert seen[0] == 2.0 and isinstance(seen[1], Array)


def test_integers_that_do_not_fit():
    fun = jitcore.jit(lambda x: x)
    for _ in range(2):
        with pytest.raises(
            OverflowError, match=r"argument path is x\. Got <class 'int'> with value 1099511627776"
        ):
            fun(2**40)
        assert fun(1) == 1
    assert fun(np.int64(2**40)) == 2**40


@pytest.mark.parametrize(
    "value, path",
    [
        ("text", "x"),
        (object(), "x"),
        ({"k": [1, "text"]}, r"x\['k'\]\[1\]"),
        (np.array(["a"]), "x"),
        (np.array([None]), "x"),
    ],
)
def test_what_is_no_array_is_refused(value, path):
    with pytest.raises(TypeError, match=f"Error interpreting argument to .* at path {path}\\."):
        jitcore.jit(lambda x: x)(value)


def test_results_that_are_no_arrays_are_refused():
    with pytest.raises(TypeError, match=r"traced for jit returned a value of type <class 'str'> at output "
                                        r"component \['a'\]"):
        jitcore.jit(lambda x: {"a": "s"})(1)


def test_missing_and_surplus_arguments():
    fun = jitcore.jit(double)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        fun()
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        fun(1, 2)


# -- static arguments ----------------------------------------------------------------------------------------


def power(x, n):
    for _ in range(n):
        x = lax.mul(x, x)
    return x


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnums": (-1,)},
        {"static_argnames": "n"},
        {"static_argnames": ["n"]},
        {"static_argnums": 1, "static_argnames": "n"},
    ],
)
def test_static_arguments_by_position_and_name(options):
    fun = jitcore.jit(power, **options)
    assert fun(2.0, 1) == 4.0
    assert fun(2.0, 2) == 16.0
    assert fun(2.0, n=2) == 16.0
    assert fun(x=2.0, n=2) == 16.0


def test_only_what_is_listed_is_static_when_both_are_given():
    fun = jitcore.jit(power, static_argnums=1, static_argnames="x")
    with pytest.raises(errors.TracerIntegerConversionError):
        fun(2.0, n=2)


def test_static_values_are_compared_by_type_and_value():
    seen = []

    @functools.partial(jitcore.jit, static_argnums=1)
    def fun(x, value):
        seen.append(value)
        return x

    for value in (1, 1.0, True, 1, (1, 2), (1, 2), "a", None):
        fun(0.0, value)
        fun(0.0, value)
    assert list(map(repr, seen)) == ["1", "1.0", "True", "(1, 2)", "'a'", "None"]


def test_static_errors():
    with pytest.raises(
        ValueError, match=r"Jitted function has static_argnums=\(3,\), but only accepts 1 positional"
    ):
        jitcore.jit(double, static_argnums=3)
    with pytest.raises(ValueError, match=r"Jitted function has static_argnums=\(-2,\)"):
        jitcore.jit(double, static_argnums=-2)
    with pytest.raises(ValueError, match=r"invalid argnames \{'yy'\} in static_argnames"):
        jitcore.jit(double, static_argnames="yy")
    with pytest.raises(ValueError, match=r"Argument names \{'x'\} appear in both"):
        jitcore.jit(double, static_argnums=0, donate_argnames="x")
    with pytest.raises(TypeError, match="static_argnames must be a string"):
        jitcore.jit(double, static_argnames=[0])
    fun = jitcore.jit(lambda x, sizes: x, static_argnames="sizes")
    for call in (lambda: fun(1, [2]), lambda: fun(1, sizes=[2]), lambda: fun(1, np.ones(2))):
        with pytest.raises(
            errors.StaticArgumentError, match="Non-hashable static arguments are not supported"
        ):
            call()


def test_open_ended_signatures():
    fun = jitcore.jit(lambda *args, **kwargs: args[0] if args[1] == "a" else kwargs["k"],
                      static_argnums=1, static_argnames="other")
    assert fun(2.0, "a") == 2.0
    assert fun(2.0, "b", k=3.0, other="text") == 3.0


# -- nesting, recursion, modes -------------------------------------------------------------------------------


def test_recursion_through_jitted_functions():
    @functools.partial(jitcore.jit, static_argnums=1)
    def repeat(x, n):
        return x if n == 0 else lax.mul(2.0, repeat(x, n - 1))

    assert repeat(1.0, 5) == 32.0
    assert repeat(3.0, 5) == 96.0
    assert repeat.cache_info().traces == 6


def test_jit_of_a_jitted_function():
    inner = jitcore.jit(lambda x: double(x))
    outer = jitcore.jit(inner)
    assert outer(2.0) == outer(2.0) == 4.0
    assert outer.__name__ == "<lambda>" and inner.cache_info().traces == 1


def test_disable_jit_runs_the_function_itself():
    seen = []
    fun = jitcore.jit(lambda x: seen.append(x) or x)
    fun(1.0)
    with jitcore.disable_jit():
        assert fun(3.0) == 3.0 and type(fun(3.0)) is float
    assert seen[1:] == [3.0, 3.0]
    assert isinstance(fun(1.0), Array)


def test_a_loop_around_a_jitted_body():
    body = jitcore.jit(lambda i: lax.add(i, 1))
    i = 0
    while i < 20:
        i = body(i)
    assert repr(i) == "Array(20, dtype=int32, weak_type=True)"


def test_flags_that_affect_traces_make_new_traces():
    fun = jitcore.jit(lambda x: lax.mul(x, 2.0))
    assert fun(1.0).dtype == np.float32
    with jitcore.enable_x64():
        assert fun(1.0).dtype == np.float64
        assert fun(1.0).dtype == np.float64
    assert fun(1.0).dtype == np.float32
    assert fun.cache_info().traces == 2


def test_a_leaked_tracer_is_refused():
    leaked = []
    jitcore.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(errors.UnexpectedTracerError):
        jitcore.jit(double)(leaked[0])


def test_checking_leaks():
    kept = []
    with jitcore.checking_leaks(), pytest.raises(errors.LeakedTracerError):
        jitcore.jit(lambda x: kept.append(x) or x)(1.0)


def test_debug_nans():
    fun = jitcore.jit(lambda x: lax.log(x))
    assert np.isnan(np.asarray(fun(-1.0)))
    with jitcore.debug_nans(), pytest.raises(FloatingPointError, match="nan"):
        fun(-1.0)


def test_compile_time_evaluation_inside_a_trace():
    def fun(x):
        with jitcore.ensure_compile_time_eval():
            assert float(jitcore.jit(double)(2.0)) == 4.0
        return x

    assert jitcore.jit(fun)(1.0) == 1.0


def test_calls_from_several_threads():
    fun = jitcore.jit(lambda x, y: lax.add(lax.mul(x, 2.0), y))
    failures = []

    def work(seed):
        x = np.full((seed % 4 + 1,), seed, np.float32)
        for _ in range(50):
            if not np.array_equal(np.asarray(fun(x, x)), 3 * x):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert fun.cache_info().misses >= 4


# -- errors of the user's function ---------------------------------------------------------------------------


def test_tracebacks_show_only_the_users_frames():
    def fails(x):
        raise KeyError("mine")

    for call in (lambda: jitcore.jit(fails)(1), lambda: jitcore.jit(lambda x: jitcore.jit(fails)(x))(1),
                 lambda: jitcore.make_jaxpr(fails)(1), lambda: jitcore.jit(fails).lower(1)):
        with pytest.raises(KeyError) as caught:
            call()
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert set(files) == {__file__}


def test_branching_on_a_traced_value_names_the_argument():
    def fun(x, n):
        while lax.lt(0, n):
            n = lax.sub(n, 1)
        return x

    with pytest.raises(
        errors.TracerBoolConversionError, match="depends on the value of the argument n"
    ) as caught:
        jitcore.jit(fun)(10, 20)
    assert str(caught.value).startswith("Attempted boolean conversion of traced array with shape bool[]..")


def test_rewrite_by_option_and_by_configuration():
    def choose(x):
        return x if x > 0 else -x

    assert jitcore.jit(choose, rewrite=True)(-3) == 3
    with pytest.raises(errors.TracerBoolConversionError):
        jitcore.jit(choose)(-3)
    jitcore.config.update("rewrite", True)
    try:
        assert jitcore.jit(choose)(-3) == 3
    finally:
        jitcore.config.update("rewrite", False)


def test_tracers_can_be_copied_and_not_pickled():
    def function(x):
        return copy.copy(x) + copy.deepcopy({"x": [x]})["x"][0]

    assert float(jitcore.jit(function)(2.0)) == 4.0
    with pytest.raises(errors.ConcretizationTypeError, match="Abstract tracer value"):
        jitcore.jit(lambda x: pickle.dumps(x))(2.0)
