"""Every elementwise primitive on the CPU backend against its NumPy implementation, for every dtype it
accepts."""

import numpy as np
import pytest

from jitcore import dtypes, jit, lax
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.config import config
from jitcore.core import jaxpr
from jitcore.core.primitive import registry
from jitcore.lax.control_flow import control  # noqa: F401  registers every primitive

#: The one that all tests run on, which an option of the test run names.
BACKEND = config.default_backend or "cpu"
# Functions of mathematical physics that SciPy computes, as library calls.
LIBRARY_ONLY = {"igamma", "igammac", "igamma_grad_a", "regularized_incomplete_beta", "dawsn", "exp1",
                "expi", "expn", "fresnel_sine", "fresnel_cosine", "sine_integral", "cosine_integral", "jv", "owens_t",
                "spence", "hyp1f1", "hyp2f1"}

DTYPES = [d for d in dtypes.SUPPORTED]
#: Elements that are too few for lanes. All sizes of a program differ, so that each has a loop of its own.
SHORT = {"float32": 5, "float64": 4, "complex64": 1}
# Relative tolerance by dtype: both sides are within a few ulp of the exact value.
RTOL = {"f": {2: 1e-2, 4: 2e-6, 8: 2e-14}, "c": {8: 1e-5, 16: 1e-12}}


def elementwise_cases():
    import jitcore.lax  # noqa: F401

    for name, primitive in sorted(registry.items()):
        traits = primitive.traits
        if traits.get("family") == "elementwise" and "accepts" in traits and name != "integer_pow":
            for dtype in DTYPES:
                if dtypes.kind_of(dtype) in traits["accepts"] and not (
                    name == "complex" and dtype.itemsize == 2
                ):
                    yield primitive, dtype


def sample(primitive, dtype, size, seed):
    """Operands drawn from the primitive's domain (integers: the whole small range, corner values
    included)."""
    rng = np.random.default_rng(seed)
    low, high = primitive.traits.get("domain") or (-10, 10)
    operands = []
    for _ in range(primitive.traits["arity"]):
        if dtype == np.bool_:
            operands.append(rng.integers(0, 2, size).astype(bool))
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            values = rng.integers(max(info.min, -12), 12, size)
            values[: size // 10] = rng.choice([info.min, info.max, 0], size // 10) if size >= 10 else 0
            operands.append(values.astype(dtype))
        elif dtypes.is_complex(dtype):
            operands.append((rng.uniform(low, high, size) + 1j * rng.uniform(low, high, size)).astype(dtype))
        else:
            operands.append(rng.uniform(low, high, size).astype(dtype))
    return operands


def assert_close(actual, expected, dtype, name=""):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    kind = dtypes.kind_of(actual.dtype)
    if kind not in "fc":
        np.testing.assert_array_equal(actual, expected, err_msg=name)
        return
    wide = np.complex128 if kind == "c" else np.float64
    tolerance = RTOL[kind][actual.dtype.itemsize]
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), tolerance, tolerance, err_msg=name)


def check_primitives(cases) -> None:
    """cases: primitives with dtypes and sizes, all in one program."""
    operands = [sample(*case, seed=case[2]) for case in cases]
    found = jit(lambda operands: [case[0].bind(*given) for case, given in zip(cases, operands)], backend=BACKEND)(operands)
    for (primitive, dtype, size), given, actual in zip(cases, operands, found):
        with np.errstate(all="ignore"):
            expected = np.asarray(primitive.impl(*given))
        result = primitive.aval(*map(jaxpr.aval_of, given))
        assert_close(actual, expected.astype(result.dtype), dtype, f"{primitive} {dtype} {size}")


@pytest.mark.parametrize("primitive", dict.fromkeys(primitive for primitive, _ in elementwise_cases()), ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_primitive(primitive):
    kinds = [dtype for other, dtype in elementwise_cases() if other is primitive]
    cases = [(primitive, dtype, 100 + place) for place, dtype in enumerate(kinds)]
    check_primitives([*cases, *((primitive, dtype, SHORT[dtype.name]) for dtype in kinds if dtype.name in SHORT)])


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_few_elements(size):
    check_primitives([(*case, size) for case in elementwise_cases() if case[1].name in ("float32", "float64")])


#: XLA takes numbers below the smallest normal one for zero.
TINY = 1e-40 if BACKEND == "cpu" else 1e-30
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, TINY, -TINY, 1e30, -1e30]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("name", ["add", "mul", "max", "min", "sign", "abs", "floor", "ceil", "trunc", "is_finite", "eq", "ne",
                                  "lt", "neg", "copysign", "signbit", "round_half_even", "sqrt", "sub", "div"])
def test_special_values_are_bitwise_numpys(name, dtype):
    primitive = registry[name]
    grid = np.array([(a, b) for a in SPECIAL for b in SPECIAL]).astype(dtype)
    operands = [np.ascontiguousarray(grid[:, k]) for k in range(primitive.traits["arity"])]
    with np.errstate(all="ignore"):
        expected = primitive.impl(*operands)
    actual = np.asarray(jit(primitive.bind, backend=BACKEND)(*operands))
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype == dtype and name not in ("max", "min"):  # which zero wins is open there, as in C
        comparable = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[comparable], np.signbit(expected)[comparable])


@pytest.mark.parametrize("source", DTYPES, ids=lambda d: d.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversion(source):
    """To all dtypes, in one program of as many loops."""
    from jitcore.lax import convert_element_type

    if source.kind in "biu":
        info = np.iinfo(source) if source.kind != "b" else None
        values = np.array([0, 1] if info is None else [info.min, 0, 1, 2, 77, info.max]).astype(source)
    else:
        values = np.array(
            [0.0, -0.0, 1.5, -2.5, 3e9, -3e9, 1e20, np.inf, -np.inf, np.nan, 0.1, TINY]
        ).astype(source)
    given = [np.resize(values, values.size + place) for place in range(len(DTYPES))]
    convert = lambda given: [convert_element_type(x, target) for x, target in zip(given, DTYPES)]  # noqa: E731
    with np.errstate(all="ignore"):
        expected = list(map(np.asarray, convert(given)))
    for one, other, target in zip(map(np.asarray, jit(convert, backend=BACKEND)(given)), expected, DTYPES):
        assert one.dtype == target
        wide = np.complex128 if dtypes.kind_of(target) in "fc" else target
        np.testing.assert_array_equal(one.astype(wide), other.astype(wide), err_msg=target.name)


def test_every_float32_elementwise_primitive_has_native_code():
    import jitcore.lax  # noqa: F401
    from jitcore.core.jaxpr import Equation, ShapedArray, Var

    missing = []
    for name, primitive in registry.items():
        traits = primitive.traits
        if traits.get("family") != "elementwise" or "f" not in traits.get("accepts", ""):
            continue
        operands = [Var(ShapedArray((3,), dtypes.float32)) for _ in range(traits["arity"])]
        if not CpuTarget.can_render(Equation(primitive, operands, [], {})):
            missing.append(name)
    assert set(missing) == LIBRARY_ONLY


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_floats_as_integers_in_lanes(source, target):
    """The nearest integer there is for what lies outside, 0 for NaN; in whole vectors and in the rest."""
    limits = np.iinfo(target)
    ends = [float(limits.min), float(limits.max), float(limits.max) + 1, float(limits.max) / 2]
    with np.errstate(over="ignore"):
        some = np.array([0, -0.0, 0.5, -0.5, 0.99, 1, -1, 3.7, -3.7, np.nan, np.inf, -np.inf, *ends], source)
        x = np.tile(np.concatenate([some, np.nextafter(some, np.array(np.inf, source)),
                                    np.nextafter(some, np.array(-np.inf, source))]), 3)

    def convert(value):
        if np.isnan(value):
            return 0
        return int(value) if np.isfinite(value) else limits.max if value > 0 else limits.min

    wanted = [min(max(convert(float(value)), limits.min), limits.max) for value in x]
    got = np.asarray(jit(lambda x: lax.convert_element_type(x, target))(x))
    np.testing.assert_array_equal(got, np.array(wanted, target))
