"""Narrow dtypes: bytes that are stored, moved, passed to jitted functions and converted, bit by bit as
ml_dtypes converts them."""

import ml_dtypes
import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import dtypes, lax, vmap
from jitcore.config import config
from jitcore.errors import TypePromotionError

FLOATS = [dtype for dtype in dtypes.NARROW if dtypes.is_narrow_float(dtype)]
INTEGERS = [dtype for dtype in dtypes.NARROW if not dtypes.is_narrow_float(dtype)]
WIDE = ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool", "complex64"]
by_name = pytest.mark.parametrize("dtype", dtypes.NARROW, ids=lambda dtype: dtype.name)


def all_codes(dtype) -> np.ndarray:
    return np.arange(1 << dtypes.itemsize_bits(dtype), dtype=np.uint8).view(dtype)


def hard_floats(dtype) -> np.ndarray:
    """float32 numbers of all sizes, those of `dtype`, the middles between these and their neighbours."""
    rng = np.random.default_rng(0)
    own = all_codes(dtype).astype(np.float32)
    finite = own[np.isfinite(own)].astype(np.float64)
    middles = ((finite[:, None] + finite) / 2).astype(np.float32).ravel()
    edges = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 2.0**-127, 2.0**-149, 3.4e38, -3.4e38]
    any_bits = rng.integers(0, 2**32, 20000, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        near = [np.nextafter(middles, np.float32(side)) for side in (np.inf, -np.inf)]
        usual = (rng.normal(size=5000) * 2.0 ** rng.integers(-20, 20, 5000)).astype(np.float32)
        return np.concatenate([own, middles, *near, np.array(edges, np.float32), any_bits, usual])


def bits(x) -> np.ndarray:
    return np.asarray(x).view(np.uint8)


def convert(x, dtype):
    """By a jitted function; one operation at a time gives the same."""
    found = jitcore.jit(lambda x: x.astype(dtype))(x)
    eager = jnp.asarray(x).astype(dtype)
    assert found.dtype == eager.dtype == dtypes.canonicalize(dtype)
    np.testing.assert_array_equal(*(np.asarray(x).astype(np.complex128) for x in (found, eager)))
    return np.asarray(found)


@pytest.mark.parametrize("target", WIDE)
@by_name
def test_every_code_is_read_as_ml_dtypes_reads_it(dtype, target):
    codes, target = all_codes(dtype), dtypes.canonicalize(target)
    wide = codes.astype(np.float32 if dtypes.is_narrow_float(dtype) else np.int8)
    with np.errstate(over="ignore"):
        want = lax.convert_element_type.primitive.impl(wide, new_dtype=target, weak_type=False)
    found = convert(codes, target)
    np.testing.assert_array_equal(found.astype(np.complex128), want.astype(np.complex128))


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_floats_are_rounded_as_ml_dtypes_rounds(dtype, source):
    with np.errstate(all="ignore"):
        x = hard_floats(dtype).astype(dtypes.canonicalize(source))
        want = x.astype(dtype)
    np.testing.assert_array_equal(bits(convert(x, dtype)), bits(want))


@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "bool"])
@by_name
def test_integers_are_converted_as_ml_dtypes_does(dtype, source):
    x = np.random.default_rng(1).integers(-2**62, 2**62, 3000) >> np.arange(3000) % 62
    x = x.astype(source)
    np.testing.assert_array_equal(bits(convert(x, dtype)), bits(x.astype(dtype)))


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.name)
def test_floats_as_narrow_integers_are_truncated_and_saturate(dtype):
    info = jnp.iinfo(dtype)
    x = np.array([0.9, -0.9, 1.9, 1e9, -1e9, np.inf, -np.inf, np.nan], np.float32)
    want = np.clip([0, 0, 1, 2**31, -2**31, 2**31, -2**31, 0], int(info.min), int(info.max))
    np.testing.assert_array_equal(convert(x, dtype).astype(np.int8), want)


@by_name
def test_one_narrow_dtype_as_another(dtype):
    for other in (dtypes.NARROW[0], dtypes.NARROW[8], dtypes.NARROW[13]):
        codes = all_codes(dtype)
        if dtype != other:
            wide = codes.astype(np.float32 if dtypes.is_narrow_float(dtype) else np.int8)
            np.testing.assert_array_equal(bits(convert(codes, other)), bits(convert(wide, other)))


@by_name
def test_arrays_are_made_printed_and_moved(dtype):
    codes = np.resize(all_codes(dtype), (4, 8))
    x = jnp.asarray(codes)
    assert x.dtype == dtype and dtype.name in repr(x) and dtype.name in str(jnp.zeros(2, dtype.name).dtype)
    assert getattr(jnp, dtype.name) == dtype and getattr(jnp, dtype.name)(1).dtype == dtype

    def move(x):
        return (x.T, x[1], x[:, ::-1], x.reshape(2, 16), jnp.concatenate([x, x]), x[jnp.array([3, 0])],
                jnp.where(jnp.arange(8) > 3, x, x[0]), x.at[1].set(x[2]), jnp.broadcast_to(x[0], (3, 8)),
                jnp.pad(x, 1), jnp.stack([x, x]), jnp.roll(x, 1, 0), jnp.take(x, 2, axis=1), x[2, 3])

    for found, eager in zip(jitcore.jit(move)(x), move(x)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(bits(found), bits(eager))
    np.testing.assert_array_equal(bits(move(x)[0]), bits(codes.T))
    np.testing.assert_array_equal(bits(vmap(lambda row: row[::-1])(x)), bits(codes[:, ::-1]))
    np.testing.assert_array_equal(bits(jitcore.jit(lambda x: x)(x)), bits(codes))


def test_one_jitted_function_tells_them_apart():
    run = jitcore.jit(lambda x: (x[::-1], x.astype(np.float32)))
    for dtype in dtypes.NARROW * 2:
        codes = all_codes(dtype)[:2]
        moved, read = run(codes)
        assert moved.dtype == dtype
        np.testing.assert_array_equal(read, codes.astype(np.float32))


@pytest.mark.parametrize("backend", ["cuda-emulated", "reference", "xla"])
def test_backends_convert_them_alike(backend):
    if backend == "xla":
        pytest.importorskip("jax")
    x = np.array([0.3, -2.7, 1e9, 1.0, 0.0], np.float32)
    for dtype in map(np.dtype, ("float8_e4m3fn", "float8_e5m2fnuz", "int4", "uint2")):

        def round_trip(x, codes):
            return x.astype(dtype), x.astype(dtype).astype(np.float16), codes.astype(bool), codes[::-1]

        codes = all_codes(dtype)
        found = jitcore.jit(round_trip, backend=backend)(x, codes)
        for one, other in zip(found, jitcore.jit(round_trip)(x, codes)):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(*(np.asarray(x).astype(np.float32) for x in (one, other)))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS[:3], ids=lambda dtype: dtype.name)
def test_loops_written_as_python_convert_them_alike(dtype):
    x, codes = np.array([0.3, -2.7, 1e9, -0.0, 0.0, np.nan], np.float32), all_codes(dtype)

    def convert_both(x, codes):
        return x.astype(dtype), codes.astype(np.float32), jnp.where(codes.astype(bool), codes, dtype.type(1))

    native = jitcore.jit(convert_both)(x, codes)
    with config.override(codegen="python"):
        written = jitcore.jit(convert_both)(x, codes)
    for one, other in zip(native, written):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(*(np.asarray(x).astype(np.float32) for x in (one, other)))


def test_a_backend_refuses_what_it_has_no_arrays_of():
    pytest.importorskip("jax")
    with pytest.raises(TypeError, match="no arrays of dtype float6_e2m3fn"):
        jitcore.jit(lambda x: x[::-1], backend="xla")(np.zeros(3, ml_dtypes.float6_e2m3fn))


@by_name
def test_loops_and_branches_carry_them(dtype):
    codes = np.resize(all_codes(dtype), (5, 3))

    def program(x):
        last, rows = lax.scan(lambda c, row: (row, c), x[0], x)
        return lax.cond(x.shape[0] > 2, lambda a: a, lambda a: a[::-1], last), rows

    last, rows = jitcore.jit(program)(codes)
    np.testing.assert_array_equal(bits(last), bits(codes[-1]))
    np.testing.assert_array_equal(bits(rows), bits(np.concatenate([codes[:1], codes[:-1]])))


def test_the_gradient_goes_through_conversions_and_is_rounded_there():
    def loss(x):
        rounded = x.astype(jnp.float8_e4m3fn)
        return (rounded.astype(jnp.float32) ** 2).sum() + rounded[::-1].astype(jnp.float32)[0]

    def squeeze(x):
        return x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)

    x = np.array([1.03, -2.6, 200.0], np.float32)
    want = squeeze(squeeze(2 * squeeze(x)) + [0, 0, 1])
    np.testing.assert_array_equal(jitcore.jit(jitcore.grad(loss))(x), want)
    given = jnp.asarray(x).astype(jnp.float8_e4m3fn)
    slope = jitcore.grad(lambda x: (x.astype(jnp.float32) ** 2).sum())(given)
    assert slope.dtype == jnp.float8_e4m3fn
    np.testing.assert_array_equal(np.asarray(slope).astype(np.float32), squeeze(2 * squeeze(x)))


def test_loops_that_store_them_have_derivatives():
    def last(x, dtype):
        def step(carry, _):
            stored = jnp.sin(carry).astype(dtype)
            return stored.astype(jnp.float32), stored

        carry, stored = lax.scan(step, x, None, length=3)
        return (carry**2).sum() + stored.astype(jnp.float32).sum()

    x = np.linspace(0.1, 1, 7).astype(np.float32)
    rounded, exact = (jitcore.jit(jitcore.grad(lambda x: last(x, dtype)))(x)  # noqa: B023
                      for dtype in (jnp.float8_e4m3fn, jnp.float32))
    np.testing.assert_allclose(rounded, exact, rtol=0.2)


@by_name
def test_promotion_is_that_of_jax(dtype):
    is_float = dtypes.is_narrow_float(dtype)
    for other in (dtype, bool, int, *((float, np.int8, np.uint64) if is_float else ())):
        assert jnp.promote_types(dtype, other) == dtype
    for other in (np.float32, jnp.bfloat16, complex, *(() if is_float else (np.int8, float))):
        with pytest.raises(TypePromotionError, match="no available implicit dtype promotion path"):
            jnp.promote_types(dtype, other)
    assert jnp.issubdtype(dtype, jnp.floating) == is_float and jnp.issubdtype(dtype, jnp.integer) != is_float
    assert jnp.isdtype(dtype, "real floating") == is_float and jnp.isdtype(dtype, "integral") != is_float
    assert jnp.issubdtype(dtype, getattr(jnp, dtype.name)) and not jnp.issubdtype(dtype, jnp.bfloat16)


@by_name
def test_products_accumulate_in_the_dtype_that_is_asked_for(dtype):
    x = np.resize(all_codes(dtype)[:4], (4, 4))
    wide = np.float32 if dtypes.is_narrow_float(dtype) else np.int32
    want = x.astype(wide) @ x.astype(wide)
    for product in (jnp.dot, jnp.matmul, lax.dot):
        found = jitcore.jit(lambda x: product(x, x, preferred_element_type=wide))(x)  # noqa: B023
        assert found.dtype == wide
        np.testing.assert_array_equal(found, want)


@by_name
def test_files_hold_their_bytes_and_not_their_names(dtype, tmp_path):
    x = jnp.asarray(all_codes(dtype))
    with pytest.raises(TypeError, match="jnp.uint8"):
        jnp.save(tmp_path / "x.npy", x)
    with pytest.raises(TypeError, match="jnp.uint8"):
        jnp.savez(tmp_path / "x.npz", x=x)
    jnp.save(tmp_path / "x.npy", x.view(jnp.uint8))
    np.testing.assert_array_equal(bits(jnp.load(tmp_path / "x.npy").view(dtype)), bits(x))


@by_name
def test_arithmetic_says_what_to_do(dtype):
    x = jnp.asarray(all_codes(dtype))
    in_float = (jnp.sin, jnp.mean) if dtypes.is_narrow_float(dtype) else ()  # integers become float32
    for operate in (*in_float, lambda x: x + x, lambda x: x * 2, jnp.sum, lambda x: x < x, lambda x: -x, jnp.max,
                    lambda x: x @ x, jnp.sort, jnp.cumsum, abs, jnp.argmax, lambda x: x**2, jnp.round,
                    lambda x: lax.top_k(x, 1), lambda x: x.at[0].add(x[1])):
        for run in (operate, jitcore.jit(operate)):
            with pytest.raises(TypeError, match="astype"):
                run(x)
