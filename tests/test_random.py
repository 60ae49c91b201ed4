"""`jitcore.random` against JAX from the same keys: integers bit for bit, floats to rounding, both schemes."""

import contextlib
import inspect

import numpy as np
import pytest
from scipy import special

import jitcore
import jitcore.numpy as jnp
from jitcore import random
from jitcore.config import config
from jitcore.core.check import check_jaxpr
from jitcore.lax.random import threefry2x32
from jitcore.passes import run_pipeline
from jitcore.sharding import Mesh, NamedSharding, PartitionSpec
from tests.jax_answers import jax

SHAPES = [(), (0,), (1,), (7,), (2, 5)]
PROBABILITIES = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
MATRIX = np.arange(24, dtype=np.float32).reshape(4, 6)
LOGITS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)


@pytest.fixture(params=[False, True], ids=["original", "partitionable"], autouse=True)
def scheme(request):
    """Runs each test under both ways to count."""
    with config.override(threefry_partitionable=request.param):
        with jax.threefry_partitionable(request.param):
            yield request.param


def draw_both(name, *args, seed=5, **kwargs):
    """What jitcore and JAX draw from one key, as ndarrays of equal dtype and shape."""
    ours = getattr(random, name)(random.key(seed), *args, **kwargs)
    wide = any(_needs_64_bits(arg) for arg in args)
    with jax.enable_x64(True) if wide else contextlib.nullcontext():
        theirs = getattr(jax.random, name)(jax.random.key(seed), *args, **kwargs)
    ours, theirs = ours.data, np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    return ours, theirs


def _needs_64_bits(value) -> bool:
    return value in ("int64", "uint64", "float64") if isinstance(value, str) else (
        isinstance(value, int) and value >= 2**31)


def assert_same_draw(name, *args, **kwargs):
    ours, theirs = draw_both(name, *args, **kwargs)
    np.testing.assert_array_equal(ours, theirs)


# -- the hash -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key, counter, expected", [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
])
def test_hash_gives_the_published_answers(key, counter, expected):
    words = [np.uint32(word) for word in (*key, *counter)]
    assert tuple(int(word) for word in threefry2x32(*words)) == expected
    compiled = jitcore.jit(lambda first, second: threefry2x32(*words[:2], first, second))
    arrays = [np.full(3, word) for word in words[2:]]
    np.testing.assert_array_equal([word.data for word in compiled(*arrays)], np.repeat([expected], 3, 0).T)


def test_hash_refuses_other_dtypes():
    with pytest.raises(TypeError, match="must have uint32 type"):
        threefry2x32(np.uint32(0), np.uint32(0), np.int32(0), np.uint32(0))


# -- keys -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "seed", [0, 1, -1, 2**31, 2**40 + 5, -(2**63), np.int8(-1), np.uint32(7), True, np.array(3)]
)
def test_seeds_give_jax_keys(seed):
    expected = np.asarray(jax.random.key_data(jax.random.key(seed)))
    np.testing.assert_array_equal(random.key_data(random.key(seed)).data, expected)
    np.testing.assert_array_equal(random.PRNGKey(seed).data, expected)


@pytest.mark.parametrize("seed", [-1, 2**40 + 5, np.int64(-7)])
def test_wide_seeds_use_all_64_bits_under_enable_x64(seed):
    with jitcore.enable_x64(True), jax.enable_x64(True):
        expected = np.asarray(jax.random.key_data(jax.random.key(seed)))
        np.testing.assert_array_equal(random.key_data(random.key(seed)).data, expected)


def test_explicit_64_bit_seed_is_not_truncated():
    np.testing.assert_array_equal(random.PRNGKey(np.int64(2**40 + 5)).data, [256, 5])


@pytest.mark.parametrize("shape", [1, 2, 5, (2, 3), 0])
def test_split(shape):
    ours, theirs = random.split(random.key(3), shape), jax.random.split(jax.random.key(3), shape)
    assert ours.dtype == random.key(0).dtype and ours.shape == theirs.shape
    np.testing.assert_array_equal(random.key_data(ours).data, np.asarray(jax.random.key_data(theirs)))
    raw = random.split(random.PRNGKey(3), shape)
    np.testing.assert_array_equal(raw.data, random.key_data(ours).data)


@pytest.mark.parametrize("data", [0, 7, 2**32 - 1, np.int32(-1), np.uint8(9)])
def test_fold_in(data):
    expected = np.asarray(jax.random.key_data(jax.random.fold_in(jax.random.key(3), data)))
    np.testing.assert_array_equal(random.key_data(random.fold_in(random.key(3), data)).data, expected)
    np.testing.assert_array_equal(random.fold_in(random.PRNGKey(3), data).data, expected)


def test_key_array_reads_like_an_array():
    keys = random.split(random.key(7), 6)
    assert repr(random.key(0)) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(keys.dtype) == "key<fry>" and (keys.shape, keys.ndim, keys.size, len(keys)) == ((6,), 1, 6, 6)
    assert keys.nbytes == 48 and random.key_impl(keys) == "threefry2x32"
    grid = keys.reshape(2, 3)
    assert grid[..., 1].shape == (2,) and grid.T.shape == (3, 2) and keys[None].squeeze(0).shape == (6,)
    assert [bool(key == keys[4]) for key in keys] == [False] * 4 + [True, False]
    np.testing.assert_array_equal((keys != keys[0]).data, [False] + [True] * 5)
    first, second = random.split(random.key(7))
    np.testing.assert_array_equal(random.key_data(grid.ravel()[:2]).data[1], random.key_data(keys[1]).data)
    assert not bool(first == second)
    assert bool(random.wrap_key_data(random.key_data(first)) == first)


@pytest.mark.parametrize("call, error, text", [
    (lambda: random.key(1.5), TypeError, "must be an integer"),
    (lambda: random.key(random.key(0)), TypeError, "was given a PRNG key"),
    (lambda: random.key(np.zeros(2, int)), TypeError, "accepts a scalar seed"),
    (lambda: random.key(2**64), OverflowError, "too large"),
    (lambda: random.key(0, impl="other"), ValueError, "unrecognized PRNG implementation"),
    (lambda: random.fold_in(random.key(0), -1), OverflowError, "uint32"),
    (lambda: random.uniform(random.split(random.key(0))), ValueError, "accepts a single key"),
    (lambda: random.uniform("a"), TypeError, "unexpected PRNG key type"),
    (lambda: random.uniform(np.zeros(3, np.uint32)), TypeError, "invalid PRNG key data"),
    (lambda: random.uniform(np.zeros(2, np.int32)), TypeError, "invalid PRNG key data"),
    (lambda: bool(random.key(0)), TypeError, "cannot be converted to boolean"),
    (lambda: np.asarray(random.key(0)), TypeError, "cannot be converted to a NumPy array"),
    (lambda: random.key(0)[0], IndexError, "too many indices"),
    (lambda: len(random.key(0)), TypeError, "len()"),
    (lambda: hash(random.key(0)), TypeError, "unhashable"),
    (lambda: random.uniform(random.key(0), (2,), int), ValueError, "must be a float dtype"),
    (lambda: random.bits(random.key(0), (2,), int), ValueError, "unsigned int dtype"),
    (lambda: random.randint(random.key(0), (2,), 0, 1, float), TypeError, "only accepts integer dtypes"),
    (lambda: random.bernoulli(random.key(0), 1), TypeError, "must have a floating dtype"),
    (lambda: random.uniform(random.key(0), (2,), minval=np.zeros(3)), ValueError, "ncompatible"),
    (lambda: random.choice(random.key(0), 0, (1,)), ValueError, "must be greater than 0"),
    (lambda: random.choice(random.key(0), 3, (5,), replace=False), ValueError, "larger sample"),
    (lambda: random.choice(random.key(0), 3, 5), TypeError, "must be a sequence"),
    (lambda: random.choice(random.key(0), 3, (1,), p=np.ones(2)), ValueError, "p must be None"),
    (lambda: random.permutation(random.key(0), 1.5), TypeError, "integer or at least 1-dimensional"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text.replace("(", r"\(").replace(")", r"\)")):
        call()


# -- bits and integers: bit for bit ---------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("shape", [*SHAPES, (40001,)])
def test_bits(shape, dtype):
    assert_same_draw("bits", shape, dtype)


@pytest.mark.parametrize("args", [
    ((5,), 0, 10), ((3, 4), -5, 100000), ((7,), 5, 5), ((7,), 9, 2), ((7,), 0, 256, "uint8"), ((7,), 0, 2**31 - 1),
    ((7,), -(2**31), 2**31 - 1), ((9,), -128, 200, "int8"), ((), 0, 3), ((4,), 1.5, 9.5), ((9,), 0, 70000, "uint16"),
    ((3,), np.array([0, 5, 9]), np.array([1, 100, 3])), ((2, 3), np.array([0, 5, 9]), 300, "uint8"),
    ((5,), 0, 2**40, "int64"), ((5,), -(2**63), 2**63 - 1, "int64"), ((5,), 0, 2**32, "uint32"),
])
def test_randint(args):
    assert_same_draw("randint", *args)


@pytest.mark.parametrize("args", [
    (), (0.3,), (0.3, (5,)), (PROBABILITIES,), (PROBABILITIES, (3, 4), "high"), (1e-3, (999,), "high"),
])
def test_bernoulli(args):
    assert_same_draw("bernoulli", *args)


@pytest.mark.parametrize(
    "args", [(0,), (1,), (7,), (3000,), (MATRIX,), (MATRIX, 1), (MATRIX, 1, True), (MATRIX[0],)]
)
def test_permutation(args):
    assert_same_draw("permutation", *args)


@pytest.mark.parametrize("args", [
    (5,), (5, (3,)), (5, (2, 2), False), (MATRIX, (3,)), (MATRIX, (3,), False), (MATRIX, (3, 2), True, None, 1),
    (MATRIX, (3,), False, None, 1), (4, (50,), True, PROBABILITIES), (4, (3,), False, PROBABILITIES),
    (MATRIX, (2,), False, PROBABILITIES, 0), (4, (0,)), (4, (3,), False, PROBABILITIES, 0, "high"),
])
def test_choice(args):
    assert_same_draw("choice", *args)


@pytest.mark.parametrize("args", [
    (LOGITS,), (LOGITS, 0), (LOGITS, 1), (LOGITS, -1, (7, 3, 5)), (LOGITS, 1, (2, 3, 4), False),
    (LOGITS[0, 0], -1, (3,), False), (LOGITS, -1, None, True, "high"),
])
def test_categorical(args):
    assert_same_draw("categorical", *args)


def test_other_integers():
    assert_same_draw("rademacher", (9,))
    assert_same_draw("rademacher", (9,), "float32")
    assert_same_draw("geometric", 0.3, (200,))
    assert_same_draw("poisson", np.array([0.0, 0.5, 3.0, 30.0, 500.0], np.float32), (40, 5))


# -- floats -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_uniform(shape, dtype):
    assert_same_draw("uniform", shape, dtype)
    # Where the bounds cancel, a fused multiply-add keeps bits that two roundings lose.
    ours, theirs = draw_both("uniform", shape, dtype, -2.0, 3.7)
    spacing = float(jnp.finfo(dtype).eps) * 4
    np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=0, atol=spacing)
    assert np.all((ours >= -2.0) & (ours.astype(float) <= 3.71))


def test_uniform_broadcasts_its_bounds():
    bounds = np.array([0, 1, 2], np.float32), np.array([[5], [6]], np.float32)
    ours, theirs = draw_both("uniform", (2, 3), "float32", *bounds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 5), (4001,)])
def test_normal(shape, dtype):
    ours, theirs = draw_both("normal", shape, dtype)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=tolerance, atol=tolerance / 10)


def test_float32_normal_is_that_of_jax_to_3_spacings():
    ours, theirs = draw_both("normal", (100_000,), "float32")
    spacings = np.abs(ours.astype(np.float64) - theirs) / np.spacing(np.abs(theirs))
    assert spacings.max() <= 3
    assert np.mean(spacings > 2) < 5e-3


def test_float64_normal_is_exact_to_3_spacings():
    low = float(np.nextafter(-1.0, 0.0))
    u = random.uniform(random.key(1), (2000,), np.float64, low, 1.0).data
    exact = np.sqrt(2) * special.erfinv(u)
    ours = random.normal(random.key(1), (2000,), np.float64).data
    assert np.max(np.abs(ours - exact) / np.spacing(np.abs(ours))) <= 3


@pytest.mark.parametrize("name, args, tolerance", [
    ("exponential", ((301,),), 1e-6), ("laplace", ((301,),), 1e-6), ("gumbel", ((301,),), 1e-5),
    ("gumbel", ((301,), "float32", "high"), 1e-5), ("logistic", ((301,),), 1e-5), ("cauchy", ((301,),), 1e-5),
    ("maxwell", ((31,),), 2e-5), ("truncated_normal", (-1.0, 2.0, (301,)), 1e-5),
    ("truncated_normal", (np.float32([-1, 0]), 2.0), 1e-5), ("lognormal", (0.5, (31,)), 2e-5),
    ("wald", (2.0, (31,)), 2e-5), ("pareto", (3.0, (31,)), 1e-5), ("rayleigh", (2.0, (31,)), 1e-5),
    ("weibull_min", (2.0, 1.5, (31,)), 1e-5), ("triangular", (-1.0, 0.0, 3.0, (31,)), 1e-5),
    ("double_sided_maxwell", (1.0, 2.0, (31,)), 2e-5), ("normal", ((31,), "complex64"), 1e-5),
    ("gamma", (np.float32([0.3, 1, 4.5]), (20, 3)), 2e-5), ("loggamma", (0.1, (31,)), 2e-5),
    ("beta", (0.5, 2.0, (31,)), 2e-5), ("dirichlet", (np.float32([0.5, 1, 3]), (4,)), 2e-5),
    ("chisquare", (3.0, (31,)), 2e-5), ("t", (3.0, (31,)), 5e-5), ("f", (3.0, 4.0, (31,)), 5e-5),
    ("generalized_normal", (1.5, (31,)), 2e-5), ("ball", (3, 2, (7,)), 2e-5), ("orthogonal", (4, (2,)), 2e-5),
])
def test_other_floats(name, args, tolerance):
    ours, theirs = draw_both(name, *args)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    mean, cov = np.float32([1, 2]), np.float32([[2, 0.5], [0.5, 1]])
    ours, theirs = draw_both("multivariate_normal", mean, cov, (5,), method=method)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_documented_numbers(scheme):
    """The digits that jax.jit's reference page prints, cut off after five."""

    def selu(x, alpha=1.67, lmbda=1.05):
        return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    printed = [
        -0.54485,
        0.27744,
        -0.29255,
        -0.91421,
        -0.62452,
        -0.24748,
        -0.85743,
        -0.78232,
        0.76827,
        0.59566,
    ]
    values = selu(random.normal(random.key(0), (10,))).data.astype(float)
    if scheme is False:
        np.testing.assert_array_equal(np.trunc(values * 1e5) / 1e5, printed)
    else:
        assert np.abs(values - printed).max() > 0.1


# -- traced -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("draw", [
    lambda key: random.split(key, 3), lambda key: random.fold_in(key, 3), lambda key: random.bits(key, (5,), "uint8"),
    lambda key: random.normal(key, (7,)), lambda key: random.randint(key, (7,), 0, 10),
    lambda key: random.permutation(key, 11), lambda key: random.choice(key, 4, (9,), p=PROBABILITIES),
    lambda key: random.categorical(key, LOGITS), lambda key: random.gamma(key, 2.0, (5,)),
    lambda key: random.poisson(key, 20.0, (5,)), lambda key: random.split(key)[1],
])
@pytest.mark.parametrize("make_key", [random.key, random.PRNGKey])
def test_jit_draws_the_same(draw, make_key):
    key = make_key(11)
    expected = draw(key)
    got = jitcore.jit(draw)(key)
    assert isinstance(got, type(expected))
    got, expected = (jitcore.tree.leaves(value)[0].data for value in (got, expected))
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(got, expected)


def test_seed_may_be_traced():
    got = jitcore.jit(random.key)(42)
    assert bool(got == random.key(42))


def test_jaxpr_is_lean():
    closed = jitcore.make_jaxpr(lambda key: random.uniform(key, (8,)))(random.key(0))
    check_jaxpr(closed.jaxpr)
    names = [eqn.primitive.name for eqn in closed.jaxpr.eqns]
    assert names == ["random_bits", "shift_right_logical", "or", "bitcast_convert_type", "sub"]
    names = [eqn.primitive.name for eqn in run_pipeline(closed).jaxpr.eqns]
    assert names.count("threefry2x32") == 1 and len(names) <= 14


def gamma_slope(a, x):
    """-dP(a, x)/da divided by the density, by differences of SciPy's."""
    step = 1e-4 * a
    return -(special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step) / np.exp(
        special.xlogy(a - 1, x) - x - special.gammaln(a))


@pytest.mark.parametrize("a", [0.3, 1.0, 4.5, 60.0])
def test_gamma_samples_move_with_the_quantile(a):
    """A sampler's own steps would say how a sample moves that is accepted all the same, which is another slope."""
    shapes = np.full(50, a)
    key = random.key(3)
    found = np.asarray(jitcore.grad(lambda a: random.gamma(key, a, dtype="float64").sum())(shapes))
    samples = np.asarray(random.gamma(key, shapes, dtype="float64"))
    np.testing.assert_allclose(found, gamma_slope(a, samples), rtol=1e-4, atol=1e-8)
    logarithmic = jitcore.grad(lambda a: random.loggamma(key, a, dtype="float64").sum())(shapes)
    logs = np.exp(np.asarray(random.loggamma(key, shapes, dtype="float64")))
    np.testing.assert_allclose(logarithmic, gamma_slope(a, logs) / logs, rtol=1e-4, atol=1e-8)
    mean = jitcore.jit(jitcore.grad(lambda a: random.gamma(key, jnp.broadcast_to(a, (4000,))).mean()))(np.float32(a))
    np.testing.assert_allclose(mean, 1, atol=0.1)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.5])
def test_ball_of_a_traced_norm(p):
    draw = lambda p: random.ball(random.key(0), 3, p, (40,))  # noqa: E731
    np.testing.assert_allclose(jitcore.jit(draw)(p), draw(p), rtol=1e-5, atol=1e-6)


def test_finest_gumbel():
    ours, theirs = draw_both("gumbel", (4000,), mode="highest")
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call, error", [
    (lambda: random.permutation(random.key(0), 10, axis=3), ValueError),
    (lambda: random.gumbel(random.key(0), mode="other"), ValueError),
    (lambda: random.wrap_key_data(jnp.zeros(2, "uint32"), impl="rbg", dtype=random.key_dtype("rbg")), ValueError),
])
def test_more_errors(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("name", sorted(name for name in random.__all__
                                        if callable(getattr(random, name)) and "out_sharding" in str(inspect.signature(getattr(random, name)))))
def test_samples_lie_where_they_are_asked_for(name):
    sharding = NamedSharding(Mesh(np.array(jitcore.devices()[:1]), ("x",)), PartitionSpec("x"))
    given = {"ball": (3,), "beta": (1.0, 2.0), "categorical": (LOGITS,), "chisquare": (2.0,), "dirichlet": (np.ones(4, np.float32),),
             "f": (2.0, 3.0), "gamma": (2.0,), "generalized_normal": (1.5,), "geometric": (0.3,), "loggamma": (2.0,),
             "multivariate_normal": (np.zeros(2, np.float32), np.eye(2, dtype=np.float32)), "orthogonal": (3,), "pareto": (2.0,),
             "permutation": (6,), "poisson": (2.0,), "randint": ((6,), 0, 9), "rayleigh": (2.0,), "t": (3.0,),
             "triangular": (0.0, 0.5, 1.0), "truncated_normal": (-1.0, 1.0), "wald": (1.0,)}.get(name, ())
    shaped = {} if name in ("permutation", "randint", "categorical") else {"shape": (6,)}
    draw = getattr(random, name)
    np.testing.assert_array_equal(draw(random.key(0), *given, **shaped, out_sharding=sharding), draw(random.key(0), *given, **shaped))
    with pytest.raises((ValueError, TypeError)):
        draw(random.key(0), *given, **shaped, out_sharding="x")


@pytest.mark.parametrize("name, parameters", [
    ("weibull_min", (1.0, 2.0)), ("gamma", (2.0,)), ("normal", ()), ("t", (3.0,)), ("beta", (1.0, 2.0)), ("bernoulli", ()),
    ("double_sided_maxwell", (0.0, 1.0)), ("poisson", (2.0,)), ("ball", (2,)), ("maxwell", ())])
@pytest.mark.parametrize("make_shape", [lambda: [3], lambda: [np.int64(3)], lambda: np.array([3]), lambda: (),
                                        lambda: iter([3]), lambda: (n for n in (2, 3))])
def test_shapes_are_read_once(name, parameters, make_shape):
    def draw(lib):
        try:
            return getattr(lib, name)(lib.key(0), *parameters, shape=make_shape()).shape
        except TypeError:
            return TypeError
    assert draw(random) == draw(jax.random)
