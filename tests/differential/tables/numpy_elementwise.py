"""`jitcore.numpy`: functions of elements. In: names by kind. Out: `NUMPY`."""

from tests.differential.table import ALL, FLOATS, INEXACT, INTEGERS, REAL, Table

NUMPY = Table("numpy")

# -- one argument ------------------------------------------------------------------------------------------------
NUMPY.unary("abs", special=ALL, ulps=1)
NUMPY.unary("fabs negative positive square sign", special=ALL)
NUMPY.unary("reciprocal", ulps=4)
NUMPY.unary("conj real imag", special=INEXACT)
NUMPY.unary("angle", special=INEXACT, ulps=4)
NUMPY.unary("floor ceil trunc rint", special=ALL)
NUMPY.unary("round", special=ALL, ulps=1)
NUMPY.unary("isfinite isinf isnan isneginf isposinf iscomplex isreal signbit logical_not", special=ALL)
NUMPY.unary("invert bitwise_count", [*"b i8 u8 i16 i32 u32 i64".split(), "f32"],
            special=INTEGERS)
NUMPY.unary("sqrt exp expm1 sin cos tan sinh cosh tanh arctan arcsinh", ulps=8)
NUMPY.unary("exp2", ulps=64)
NUMPY.unary("log log2 log10 log1p cbrt", kind="positive", ulps=8)
NUMPY.unary("arcsin arccos arctanh", kind="unit", ulps=8)
NUMPY.unary("arccosh", kind="positive", ulps=8)
NUMPY.unary("deg2rad rad2deg", special=REAL, ulps=2)
NUMPY.unary("sinc i0", ulps=32)
NUMPY.unary("frexp modf spacing", special=FLOATS)
NUMPY.unary("nan_to_num", special=ALL)
NUMPY.add("nan_to_num", "f32.special[13], nan=1.0", "f16.special[13], posinf=2, neginf=-2", "c64.special[9], nan=3.0")
NUMPY.add("round", "f32[2, 3], 1", "f64[3], decimals=2", "i32[3], -1", "f16[3], 1", "c64[3], 1", "i8[3], 1", "b[3], 1")

# -- two arguments -----------------------------------------------------------------------------------------------
NUMPY.binary("add subtract multiply", ulps=1)
NUMPY.add("add", *(f"{one}[2], {other}[2]" for one in ALL for other in ALL))
NUMPY.binary("divide", ulps=8)
NUMPY.binary("floor_divide remainder fmod divmod", [*"u8 i8 i16 i32 u32 i64".split(), *FLOATS])
NUMPY.binary("maximum minimum fmax fmin copysign nextafter heaviside")
NUMPY.binary("hypot arctan2 logaddexp logaddexp2", REAL, ulps=8)
NUMPY.add("logaddexp logaddexp2", "c64[3], c64[3]", "c128[3], f32[3]")
NUMPY.binary("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose")
NUMPY.add("isclose", "f32[3], f32[3], rtol=1.0", "f32.special[13], f32.special[13], equal_nan=True", "f32[3], 1.0, atol=2.0")
NUMPY.binary("bitwise_and bitwise_or bitwise_xor", [*"b i8 u8 i16 i32 u32 i64".split(), "f32"], special=["b", *INTEGERS])
NUMPY.binary("left_shift right_shift", ["b", *INTEGERS], special=INTEGERS)
NUMPY.binary("gcd lcm", ["b", *INTEGERS], special=[])  # JAX does not return from gcd(-2**31, 3)
NUMPY.binary("power float_power", kind="positive", ulps=16, special=REAL)
NUMPY.add("power", "{d}.positive[3], 2", "{d}.positive[3], -1", "{d}.positive[3], 0.5", "2, {d}.count[3]", "{d}[3], 3",
          "{d}[3], 0", d=ALL)
NUMPY.add("ldexp", "f32[3], i32.count[3]", "f64[3], i64.count[3]", "f16[3], 2", "bf16[3], i8.count[3]", "i32[3], 2", "f32[3], f32[3]",
          "f32.special[13, 1], i32.special[12]", "f64.special[13, 1], i32.special[12]", "2.0, 3", "c64[3], 2", "f32[0], i32[0]", ulps=1)
NUMPY.binary("array_equal array_equiv allclose")
NUMPY.add("array_equal", "f32.special[13], f32.special[13], equal_nan=True", "f32[3], f32[2]")

# -- methods -----------------------------------------------------------------------------------------------------
_METHODS = ("{f}.reduce({d}[2, 3])", "{f}.reduce({d}[2, 3], axis=1, keepdims=True)", "{f}.accumulate({d}[2, 3])", "{f}.accumulate({d}[2, 3], axis=1)",
            "{f}.accumulate({d}[0, 3])", "{f}.outer({d}[2], {d}[3])", "{f}.at({d}[5], jnp.array([0, 3, 3]), {d}[3], inplace=False)",
            "{f}.at({d}[2, 3], 1, {d}[3], inplace=False)", "{f}.reduceat({d}[5], jnp.array([0, 3, 1]))")
NUMPY.add("add multiply", *_METHODS, d=ALL, ulps=8, of_largest=True)
NUMPY.add("maximum minimum", *_METHODS, d=ALL)
NUMPY.add("logical_and logical_or logical_xor", *_METHODS, d=ALL)
NUMPY.add("bitwise_and bitwise_or bitwise_xor", *_METHODS, d=["b", *INTEGERS])
NUMPY.add("logaddexp", "{f}.at({d}.positive[5], 1, {d}.positive[()], inplace=False)", "{f}.outer({d}.positive[2], {d}.positive[3])",
          d=["b", "u8", "i32", *FLOATS], ulps=8)
NUMPY.add("subtract arctan2 hypot divide", "{f}.outer({d}[2], {d}[3])", d=REAL, ulps=8)

# -- of three arguments, and options --------------------------------------------------------------------------------
NUMPY.add("clip", "{d}[2, 3], 0, 2", "{d}[3], {d}[3], {d}[3]", "{d}.special[13], 1, None", "{d}[3], max=1", d=ALL)
NUMPY.add("clip", "f32[3], -0.5, 1.5", "i32[3], -0.5, 1.5", "i8[3], -300, 300", "f32[2, 3], f32[3], 1", "f32.special[13], nan", "f32[0], 0, 1",
          "u8[3], -1, 5", "f32[3]", "2, 0, 1", "f16[3], f32[3], None", "i32[3], f64[3]", "f32[3], max=f32[3], min=0")
NUMPY.add("where", "b[2, 3], {d}[2, 3], {d}[3]", "b[3], {d}[3], 1", "b[3], 2.5, {d}[3]", "b[3], {d}[3], i16[3]", d=ALL)
NUMPY.add("where", "f32[3], 1, 2", "i32[3], 1.0, 2", "b[3], 1j, f32[3]", "True, f32[3], 0", "b[0], f32[0], 1", "b[2, 1], f32[3], i32[2, 1]",
          "b[2], f32[3], 1", "b[3], f32[3]", "b[3], f16[3], bf16[3]", "b[6]", "b[2, 3]", "b[6], size=4", "b[6], size=4, fill_value=9", "c64[3], 1, 2")
NUMPY.add("select", "[b[3], b[3]], [{d}[3], {d}[3]]", "[b[3]], [{d}[3]], 7", d=ALL)
NUMPY.add("select", "[b[3]], [f32[3], f32[3]]", "[], []", "[i32[3]], [f32[3]]", "[b[3]], [i32[3]], 2.5", "[b[3], b[3]], [i8[3], f16[3]]")
NUMPY.add("piecewise", "{d}[4], [b[4], b[4]], [1, 2, 3]", "{d}[4], [b[4]], [lambda x: -x, lambda x: x * 2]", d=["i8", "i32", "f16", "f32", "c64"])
NUMPY.add("piecewise", "f32[4], [b[4]], [1]", "f32[4], [b[4]], [1, 2, 3]", "f32[4], b[4], [lambda x, k: x + k, 0], 3")
NUMPY.add("interp", "{d}[3], {d}.sorted[4], {d}[4]", d=["i32", *FLOATS, "c64"], ulps=32)
NUMPY.add("interp", "f32[3], f32.sorted[4], c64[4]", "f32[3], f32.sorted[4], f32[4], left=-1, right=1", "f32[3], f32.sorted[4], f32[4], period=2.0",
          "1.5, f32.sorted[4], f32[4]", "f32[0], f32.sorted[4], f32[4]", "f32[3], f32.sorted[4], f32[3]", "f32.special[13], f32.sorted[4], f32[4]",
          "f32[2, 3], f64.sorted[4], f32[4]", "f32[3], f32.sorted[1], f32[1]", "f32[3], f32[0], f32[0]", "f32[3], f32.sorted[4], f32[4], left='extrapolate'")
NUMPY.add("unwrap", "{d}[2, 5]", "{d}[5], discont=4", "{d}[5], period=2", d=["i32", *FLOATS], ulps=8, of_largest=True)
NUMPY.add("astype", *(f"{one}{kind}[3], '{other}'" for kind, other in (("", "int8"), ("", "uint8"), ("", "float32"), ("", "complex64"),
          ("", "bool"), ("", "bfloat16"), ("", "int64"), (".special", "int32"), (".special", "float16")) for one in ALL))
NUMPY.add("astype", "f32.special[13], '{d}'", "f32[3], {d}", d=["bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "bfloat16", "complex64"])

# -- derivatives and vmap ------------------------------------------------------------------------------------------
NUMPY.transforms("sin cos tan sinh cosh tanh arctan arcsinh exp exp2 expm1 square negative", complex_too=True)
NUMPY.transforms("log log2 log10 log1p sqrt cbrt reciprocal arccosh", kind="positive")
NUMPY.transforms("arcsin arccos arctanh", kind="unit")
NUMPY.transforms("abs fabs sign floor ceil rint deg2rad rad2deg sinc i0 nan_to_num conj")
NUMPY.transforms("add multiply divide maximum minimum fmax fmin hypot arctan2 logaddexp remainder fmod copysign heaviside where",
                 "f32[3]")
NUMPY.transforms("power", "1.5", kind="positive")
NUMPY.transforms("clip", "-0.5, 1.5")
NUMPY.add("power", "grad(lambda y: jnp.sum({f}(f32.positive[3], y)))(f32[3])", "grad(lambda x: jnp.sum({f}(x, 2)))(f32.special[13])",
          "grad(lambda x: jnp.sum({f}(x, 0)))(f32[3])", "grad(lambda x: {f}(x, 3))(-2.0)", "grad(lambda y: {f}(0.0, y))(2.0)")
NUMPY.add("maximum minimum", "grad(lambda x: {f}(x, 0.0))(0.0)", "grad(lambda x: {f}(x, x))(1.0)")
NUMPY.add("abs", "grad({f})(0.0)", "grad({f})(2)", "grad({f})(1j)", "jvp({f}, (f32.special[13],), (f32[13],))",
          "grad(lambda x: jnp.sum({f}(x)))(c64[3])", "grad(lambda x: jnp.sum({f}(x)), holomorphic=True)(f32[3])")
NUMPY.add("sin exp log sqrt tanh square", "jvp({f}, (f32.special[13],), (f32[13],))",
          "grad(lambda x: jnp.sum({f}(x)), holomorphic=True)(c64[3])", "grad({f})(f32[1])", "grad({f})(True)", "grad({f})(2)", "grad({f})(2.0)")

NUMPY.alias("absolute=abs conjugate=conj around=round bitwise_not=invert bitwise_invert=invert radians=deg2rad degrees=rad2deg true_divide=divide mod=remainder "
            "bitwise_left_shift=left_shift bitwise_right_shift=right_shift pow=power acos=arccos acosh=arccosh asin=arcsin asinh=arcsinh atan=arctan atan2=arctan2 atanh=arctanh")
