"""Python operators and array methods: against JAX in value, dtype and weak type; eager and traced."""

import operator
import threading
import warnings

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import errors, jit, make_jaxpr
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import eval_jaxpr
from jitcore.core.trace import trace_to_jaxpr
from jitcore.numpy.arrays import operators
from tests.jax_answers import ask, jax

F, G = np.array([1.5, -2.0, 3.0], np.float32), np.array([0.5, 3.0, -1.0], np.float32)
I, J = np.array([7, -5, 3], np.int32), np.array([2, 3, 1], np.int32)  # noqa: E741
B = np.array([True, False, True])
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
          operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.matmul, divmod]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
OPERANDS = [(F, G), (F, 2), (F, 0.5), (I, J), (I, 2), (I, 0.5), (F, I), (2, F), (2.5, I), (3, J), (F, True), (B, 2),
            (np.abs(F), G), (np.float32(2), F), (F, np.float64(2)), (F[0], G[1]), (2.0, F[0])]


def flatten(x):
    return list(x) if isinstance(x, tuple) else [x]


def check_same(ours, theirs):
    for mine, expected in zip(flatten(ours), flatten(theirs), strict=True):
        assert (mine.shape, mine.dtype) == (expected.shape, expected.dtype)
        assert mine.dtype == bool or mine.weak_type == expected.weak_type
        np.testing.assert_allclose(np.asarray(mine), np.asarray(expected), rtol=2e-6)


def as_array(namespace, x):
    return namespace.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x


@pytest.mark.parametrize("pair", OPERANDS, ids=str)
@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_binary_operator(function, pair):
    """The same result, or an error of the same kind, from the eager, the traced and JAX's operator."""
    try:
        expected = ask(lambda jax: function(*[as_array(jax.numpy, x) for x in pair]))
    except (TypeError, ValueError) as error:
        with pytest.raises((TypeError, ValueError)):
            function(*[as_array(jnp, x) for x in pair])
        assert isinstance(error, (TypeError, ValueError))
        return
    if pair[1] is not True and any(getattr(x, "dtype", None) == np.float64 for x in pair):
        return  # an explicit float64 stays one here
    got = function(*[as_array(jnp, x) for x in pair])
    check_same(got, expected)
    leaves = [x for x in pair if isinstance(x, (np.ndarray, np.generic))]

    def run(*tracers):
        remaining = iter(tracers)
        return flatten(
            function(*[next(remaining) if isinstance(x, (np.ndarray, np.generic)) else x for x in pair])
        )

    inputs = [ConcreteArray(np.asarray(x)) for x in leaves]
    jaxpr, consts = trace_to_jaxpr(run, [x.aval for x in inputs])
    assert [v.aval for v in jaxpr.outvars] == [x.aval for x in flatten(got)]
    for mine, want in zip(eval_jaxpr(jaxpr, consts, inputs), flatten(got)):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(want), rtol=1e-6)


@pytest.mark.parametrize("pair", [(I, J), (J, 2), (5, J), (B, ~B)], ids=str)
@pytest.mark.parametrize("function", INTEGER, ids=lambda f: f.__name__)
def test_integer_operator(function, pair):
    if pair[0] is B and function in (operator.lshift, operator.rshift):
        return
    pair = tuple(np.abs(x) if isinstance(x, np.ndarray) and x.dtype != bool else x for x in pair)
    expected = ask(lambda jax: function(*[as_array(jax.numpy, x) for x in pair]))
    check_same(function(*[as_array(jnp, x) for x in pair]), expected)


@pytest.mark.parametrize("function, x", [(operator.neg, F), (operator.pos, I), (abs, F), (operator.invert, I),
                                         (operator.invert, B), (round, F), (abs, I)])
def test_unary_operator(function, x):
    check_same(function(jnp.asarray(x)), ask(lambda jax: function(jax.numpy.asarray(x))))


def test_ndarray_and_array_make_an_array():
    for got in (F + jnp.asarray(G), jnp.asarray(G) + F, np.float32(2) * jnp.asarray(G), F < jnp.asarray(G)):
        assert isinstance(got, Array)


def test_lists_are_no_operands():
    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.asarray(F) + [1, 2, 3]
    with pytest.raises(
        TypeError, match="requires ndarray or scalar arguments, got <class 'list'> at position 0"
    ):
        jnp.sin([1.0, 2.0])
    assert (jnp.asarray(F) == None) is False  # noqa: E711  compared with what is no array
    for multiply in (lambda n: n * [0], lambda n: [0] * n, lambda n: (0,) * n):  # no repetition of sequences
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*"):
            multiply(jnp.asarray(2))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_integers_modulo_zero_are_zero(dtype):
    x, zeros = np.array([0, 1, 100], dtype), np.array([0, 0, 7], dtype)
    for function in (jnp.remainder, jnp.fmod):
        for divisor in (zeros, 0, dtype(0)):
            expected = np.asarray(jax.numpy.remainder(x, divisor))
            np.testing.assert_array_equal(np.asarray(function(x, divisor)), expected)
            np.testing.assert_array_equal(np.asarray(jit(function)(x, divisor)), expected)
    assert "select_n" not in str(make_jaxpr(lambda x: jnp.fmod(x, 3))(x))


LISTS = [("add", (F, [1, 2, 3])), ("where", (B, F, [1.0, 2.0, 3.0])), ("dot", (F, [1, 2, 3])), ("take", (F, [2, 0])),
         ("interp", (F, [0, 1, 2], [0, 1, 4])), ("einsum", ("i,i", F, [1, 2, 3])), ("split", (F, [1, 2])),
         ("digitize", (F, [0, 1, 2])), ("maximum", ([1, 2, 3], F)), ("clip", (F, [0, 0, 0], 2))]


@pytest.mark.parametrize("name, args", LISTS, ids=lambda x: x if isinstance(x, str) else "")
def test_numpy_functions_take_lists_for_arrays(name, args):
    """Where NumPy's own function is called with a traced value, a list beside it is an array, as NumPy has it.
    On concrete Arrays NumPy gives its own arrays."""
    position = next(i for i, arg in enumerate(args) if arg is F)

    def call(x):
        return getattr(np, name)(*args[:position], x, *args[position + 1 :])

    for got, kind in ((call(jnp.asarray(F)), (np.ndarray, np.generic)), (jit(call)(F), Array)):
        leaves, expected = (got, call(F)) if isinstance(got, list) else ([got], [call(F)])
        for mine, value in zip(leaves, expected, strict=True):
            assert isinstance(mine, kind)
            np.testing.assert_allclose(np.asarray(mine), value, rtol=1e-6)


SCALAR_CALLS = [("sinc", (0.5,)), ("hypot", (3, 4)), ("heaviside", (0.0, 0.5)), ("gcd", (12, 8)), ("lcm", (4, 6)),
                ("modf", (1.5,)), ("round", (2.567, 2))]


@pytest.mark.parametrize("name, args", SCALAR_CALLS, ids=lambda x: str(x))
def test_python_scalars_give_weak_types(name, args):
    check_same(getattr(jnp, name)(*args), getattr(jax.numpy, name)(*args))


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        jnp.ones((3, 4)) + jnp.ones(3)


def test_lean_jaxprs():
    """One equation where one is enough; scalars stay scalars."""
    aval = ConcreteArray(np.ones((3, 4), np.float32)).aval
    expected = {
        "log": (jnp.log, ["log"]), "sub": (lambda x: x - 1, ["sub"]), "pow": (lambda x: x**2, ["integer_pow"]),
        "where": (lambda x: jnp.where(x > 0, x, 0.5), ["gt", "select_n"]), "mean": (lambda x: x.mean(0), ["reduce_sum", "div"]),
        "matmul": (lambda x: x @ x.T, ["transpose", "dot_general"]), "clip": (lambda x: jnp.clip(x, 0, 1), ["max", "min"]),
        "broadcast": (lambda x: x + x[0], ["slice", "squeeze", "broadcast_in_dim", "add"]), "maximum": (lambda x: jnp.maximum(x, 0), ["max"]),
    }
    for function, names in expected.values():
        jaxpr, _ = trace_to_jaxpr(lambda x, f=function: [f(x)], [aval])
        assert [eqn.primitive.name for eqn in jaxpr.eqns] == names


METHODS = [
    ("sum", (0,)), ("mean", ()), ("max", (1,)), ("min", ()), ("prod", (0,)), ("any", ()), ("all", (1,)), ("argmax", (1,)),
    ("argmin", ()), ("cumsum", (0,)), ("cumprod", (1,)), ("var", ()), ("std", (0,)), ("reshape", (4, 3)), ("reshape", ((2, -1),)),
    ("ravel", ()), ("flatten", ()), ("squeeze", ()), ("transpose", (1, 0)), ("transpose", ()), ("swapaxes", (0, 1)),
    ("astype", ("int32",)), ("conj", ()), ("clip", (-1, 1)), ("round", (1,)), ("sort", ()), ("argsort", (0,)), ("take", (np.array([1, 2]), 1)),
    ("repeat", (2, 1)), ("ptp", ()), ("diagonal", ()), ("trace", ()), ("view", ("int32",)), ("copy", ()), ("nonzero", ()),
    ("compress", (np.array([True, False, True]), 0)), ("item", (0,)),
]


@pytest.mark.parametrize("name, args", METHODS, ids=lambda x: str(x))
def test_method(name, args):
    data = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)

    def call(numpy):
        return getattr(numpy.asarray(data), name)(*[as_array(numpy, a) for a in args])

    ours, theirs = call(jnp), ask(lambda jax: call(jax.numpy))
    if name == "item":
        assert ours == theirs
        return
    for mine, expected in zip(flatten(ours), flatten(theirs), strict=True):
        assert mine.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(mine), np.asarray(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["T", "mT", "real", "imag", "ndim", "size", "shape"])
def test_property(name):
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(
        getattr(jnp.asarray(data), name),
        getattr(data.mT if name == "mT" else data, name if name != "mT" else "real"),
    )


def test_scalar_types_make_arrays():
    x = jnp.float32(3)
    assert isinstance(x, Array) and x.dtype == np.float32 and not x.weak_type
    assert (
        np.dtype(jnp.float32) == np.float32
        and jnp.float32 == np.float32
        and jnp.zeros(2, jnp.int8).dtype == np.int8
    )
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)


def test_aliasing_of_ndarrays():
    data = np.ones(3, np.float64)
    for copy in (True, None):
        assert not np.shares_memory(jnp.array(data, copy=copy).data, data)
        assert not np.shares_memory(jnp.asarray(data, copy=copy).data, data)
    lent = jnp.asarray(data, copy=False)
    assert np.shares_memory(lent.data, data) and lent.dtype == np.float64
    assert jnp.asarray(lent) is lent and jnp.array(lent).data is not lent.data


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(jnp.ones(3))


# -- NumPy's own functions ------------------------------------------------------------------------------------
def test_ufunc_methods_reach_us():
    for call in (np.add.reduce, lambda x: np.add.outer(x, x), np.multiply.accumulate, lambda x: np.add.reduceat(x, [0, 2]),
                 np.subtract.reduce, lambda x: np.add(x, 1, dtype=np.float64)):
        expected = call(F)
        for got, kind in ((call(jnp.asarray(F)), type(expected)), (jit(call)(F), Array)):
            assert isinstance(got, kind) and got.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)


def test_operators_give_arrays_wherever_the_array_stands():
    x = jnp.asarray(F)
    for left in (F, F[0]):
        for got, expected in [(left + x, left + F), (left @ x if left is F else left * x, left @ F if left is F else left * F),
                              (left < x, left < F), (divmod(left, x)[1], divmod(left, F)[1]), (x - left, F - left)]:
            assert isinstance(got, Array)
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    assert type(np.add(x, F)) is type(np.maximum(F, x)) is np.ndarray


@pytest.mark.parametrize("dtype, kept", [(np.float64, np.float64), (np.int64, np.float64), (np.complex128, None), (np.float32, np.float32), (np.uint8, np.float32)])
def test_pythons_types_keep_64_bits(dtype, kept):
    """`dtype=float` of an array of 64 bits has 64 bits; of a narrower one the default width."""
    data = np.arange(1, 4).astype(dtype)
    wide = data.dtype in (np.float64, np.int64, np.complex128)

    def calls(x, kind):
        return [x.astype(kind), jnp.sum(x, dtype=kind), x.cumsum(dtype=kind), jnp.empty_like(x, dtype=kind), jnp.full_like(x, 2, dtype=kind),
                jnp.asarray(x, dtype=kind), jnp.concatenate([x, x], dtype=kind), jnp.add.reduce(x, dtype=kind)]

    for kind, expected in ((float, kept), (int, np.int64 if wide else np.int32), (complex, np.complex128 if wide else np.complex64)):
        if expected is not None and not (kind is int and data.dtype.kind == "c"):
            eager, traced = calls(jnp.asarray(data), kind), jit(lambda x: calls(x, kind))(data)  # noqa: B023
            assert {x.dtype for x in [*eager, *traced]} == {np.dtype(expected)}
    assert jnp.asarray([1.5], dtype=float).dtype == np.float32  # nothing says 64 bits


def test_out_is_written_or_refused():
    target = np.zeros(3, np.float32)
    np.add(jnp.asarray(F), 1, out=target)
    np.testing.assert_array_equal(target, F + 1)
    target += jnp.asarray(F)
    np.testing.assert_array_equal(target, 2 * F + 1)
    with pytest.raises(errors.TracerMutationError):
        np.add(F, 1, out=jnp.asarray(F))
    with pytest.raises(errors.TracerArrayConversionError, match="numpy.ndarray conversion"):
        trace_to_jaxpr(lambda x: [np.add(x, 1, out=target)], [ConcreteArray(F).aval])


def test_function_without_namesake():
    assert np.allclose(
        np.linalg.tensorinv(jnp.asarray(np.eye(4).reshape(2, 2, 2, 2))), np.eye(4).reshape(2, 2, 2, 2)
    )
    np.testing.assert_array_equal(np.busday_count("2020-01-01", "2020-01-08"), 5)
    with pytest.raises(errors.TracerArrayConversionError, match="datetime_as_string"):
        trace_to_jaxpr(lambda x: [np.datetime_as_string(x)], [ConcreteArray(F).aval])


# -- promotion --------------------------------------------------------------------------------------------------
DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
          "complex128").split()


def promoted(numpy, function: str, *operands):
    """(dtype, weak type) of a function of two operands, dtypes of arrays or numbers, or None where it refuses
    them."""
    try:
        out = getattr(numpy, function)(*[numpy.ones(3, x) if isinstance(x, str) else x for x in operands])
    except TypeError:
        return None
    return np.dtype(out.dtype), bool(out.weak_type) and out.dtype != bool


FUNCTIONS = ["add", "divide", "floor_divide", "power", "maximum", "less", "bitwise_and"]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", DTYPES)
def test_promotion_of_arrays_matches_jax(function, first):
    """64-bit dtypes need no flag here; in JAX they do."""

    def promote(jax):
        with jax.enable_x64(True):
            return {second: promoted(jax.numpy, function, first, second) for second in DTYPES}

    expected = ask(promote)
    for second in DTYPES:
        assert promoted(jnp, function, first, second) == expected[second], (first, second)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [d for d in DTYPES if "64" not in d and d != "complex128"])
def test_promotion_of_python_scalars_matches_jax(function, first):
    pairs = [pair for scalar in (True, 2, 0.5, 1j) for pair in ((first, scalar), (scalar, first))]
    expected = ask(lambda jax: [promoted(jax.numpy, function, *pair) for pair in pairs])
    for pair, result in zip(pairs, expected, strict=True):
        assert promoted(jnp, function, *pair) == result, pair


# -- warnings of NumPy ---------------------------------------------------------------------------------------
def test_operators_do_not_warn_and_leave_the_users_settings_alone():
    zero, huge = jnp.zeros(2), jnp.full(2, 3e38)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(np.asarray(zero / zero)).all() and np.isinf(np.asarray(huge * huge)).all()
        assert np.isinf(np.asarray(huge @ huge))
        with pytest.raises(FloatingPointError):
            np.float32(1) / np.float32(0)


def test_a_finalizer_may_compute_amid_an_operator():
    results = []

    def compute(x, y):
        results.append(jnp.ones(2) / jnp.zeros(2))
        return x

    assert operators.run_quietly(compute, 1, 2) == 1
    assert np.isinf(np.asarray(results[0])).all()


def test_operators_in_eight_threads():
    x = jnp.arange(200_000, dtype=jnp.float32)
    results = [None] * 8

    def work(number):
        for _ in range(20):
            results[number] = x / 0 + number

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for number in range(8):
        np.testing.assert_array_equal(results[number], results[0])
        assert np.isnan(np.asarray(results[number])[0])


class Wrapped:
    """An object of the user's that says what Array it is."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return self.x


@pytest.mark.parametrize("call", [
    lambda jnp, x: jnp.sin(x), lambda jnp, x: jnp.add(x, 1), lambda jnp, x: jnp.matmul(x, x), lambda jnp, x: jnp.sum(x),
    lambda jnp, x: jnp.where(True, x, 0), lambda jnp, x: jnp.reshape(x, (3, 1)), lambda jnp, x: jnp.concatenate([x, x])])
def test_functions_take_what_says_which_array_it_is(call):
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(call(jnp, Wrapped(x)), call(jnp, x))
    np.testing.assert_allclose(jit(lambda x: call(jnp, Wrapped(x)))(x), call(jnp, x), rtol=1e-6)
