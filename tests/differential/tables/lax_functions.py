"""`jitcore.lax`. In: names by kind. Out: `LAX`."""

from tests.differential.table import ALL, COMPLEX, FLOATS, INEXACT, INTEGERS, REAL, Table

LAX = Table("lax")

LAX.unary("abs", special=ALL, ulps=1)
LAX.unary("neg sign square", special=ALL)
LAX.unary("floor ceil round is_finite", [*FLOATS, "i32"], special=FLOATS)
LAX.unary("real imag conj", [*COMPLEX, "f32"])
LAX.unary("bitwise_not clz population_count", ["b", *INTEGERS, "f32"], special=INTEGERS)
LAX.unary("exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh logistic", [*INEXACT, "i32"], ulps=8)
LAX.unary("log log1p sqrt rsqrt cbrt acosh", [*INEXACT, "i32"], kind="positive", ulps=8)
LAX.unary("asin acos atanh erf_inv", [*INEXACT, "i32"], kind="unit", ulps=8)
LAX.unary("erf erfc", [*FLOATS, "i32", "c64"], ulps=16)
LAX.unary("lgamma digamma", [*FLOATS, "i32", "c64"], kind="positive", ulps=64, of_largest=True)
LAX.unary("bessel_i0e bessel_i1e", [*FLOATS, "i32"], ulps=32)
LAX.unary("reciprocal", [*INEXACT, "i32"], special=INEXACT, ulps=2)
LAX.transforms("exp log1p sin tanh logistic erf erfc square abs expm1 atan asinh rsqrt cbrt", kind="positive")
LAX.transforms("erf_inv asin acos atanh", kind="unit")
LAX.transforms("lgamma digamma bessel_i0e", kind="positive")

LAX.binary("add sub mul", ulps=1)
LAX.binary("div", ulps=8)
LAX.binary("rem max min eq ne lt le gt ge", [*INTEGERS, *FLOATS])
LAX.binary("nextafter", [*FLOATS, "i32"])
LAX.binary("atan2", FLOATS, ulps=8)
LAX.binary("bitwise_and bitwise_or bitwise_xor", ["b", *INTEGERS, "f32"], special=INTEGERS)
LAX.binary("shift_left shift_right_arithmetic shift_right_logical mulhi", [*INTEGERS, "f32"], special=INTEGERS)
LAX.binary("pow", INEXACT, kind="positive", ulps=16, special=FLOATS)
LAX.binary("complex", ["f32", "f64", "f16"])
LAX.add("integer_pow", "{d}[3], 2", "{d}[3], 0", "{d}[3], -1", "{d}.special[13], 3", d=[*INTEGERS, *INEXACT], ulps=8)
LAX.add("igamma igammac zeta polygamma", "{d}.positive[3], {d}.positive[3]", "{d}.positive[3], 2.0", "{d}.special[5, 1], {d}.positive[5]",
        d=[*FLOATS, "i32"], ulps=256, of_largest=True)
LAX.add("betainc", "{d}.positive[3], {d}.positive[3], {d}.probability[3]", d=[*FLOATS, "i32"], ulps=256, of_largest=True)
LAX.add("clamp", "{d}[3], {d}[3], {d}[3]", "{d}[()], {d}[2, 3], {d}[()]", "0, {d}[3], 2", d=REAL)
LAX.add("clamp", "f32[2], f32[3], f32[3]", "0.0, f32.special[13], 1.0", "f32[3], i32[3], f32[3]", "2.5, i32[3], 3")
LAX.add("select", "b[3], {d}[3], {d}[3]", "b[()], {d}[3], {d}[3]", d=ALL)
LAX.add("select", "b[3], f32[3], i32[3]", "i32[3], f32[3], f32[3]", "b[3], f32[2], f32[2]", "True, 1, 2", "b[3], f32[3], 0.0")
LAX.add("select_n", "b[3], {d}[3], {d}[3]", "i32.count[3], {d}[3], {d}[3], {d}[3]", d=ALL)
LAX.add("select_n", "i32[()], f32[3], f32[3]", "b[3], f32[3], f32[3], f32[3]", "f32[3], f32[3], f32[3]", "i8.count[3], f32[3], f32[3]", "True, 1, 2")

# -- conversions -----------------------------------------------------------------------------------------------------
LAX.add("convert_element_type", *(f"{one}{kind}[5], '{other}'" for one in ALL for kind, other in (
    ("", "int8"), ("", "uint32"), ("", "float16"), ("", "complex64"), (".special", "int16"), (".special", "uint8"), (".special", "bfloat16"),
    (".special", "float32"), (".special", "bool"))), "2, 'int8'", "2.5, int", "f32[2], 'other'", "3, float", "f32[2], None")
LAX.add("bitcast_convert_type", "f32.special[13], 'int32'", "i32[3], 'float32'", "f16[3], 'uint16'", "bf16[3], 'int16'", "f32[3], 'uint8'", "u8[2, 4], 'float32'", "f64[2], 'int32'", "b[3], 'uint8'", "f32[3], 'int64'",
        "u8[3], 'float32'", "c64[2], 'float32'", "i8[3], 'bool'", "u8[2, 2], 'bfloat16'", "i16[2, 4], 'int64'")
LAX.add("reduce_precision", "f32[5], 5, 10", "f64[5], 8, 7", "f32.special[13], 4, 3", "f16[3], 4, 2", "bf16[3], 5, 3", "i32[3], 5, 10", "f32[3], 0, 3", "c64[3], 5, 10")

# -- shapes ----------------------------------------------------------------------------------------------------------
LAX.add("broadcast", "{d}[3], (2,)", "f32[()], (0, 2)", "2, (3,)", "f32[3], (-1,)", d=ALL)
LAX.add("broadcast_in_dim", "{d}[3], (3, 2), (0,)", "f32[3], (2, 3), (0,)", "f32[1], (2, 3), (1,)", "2.0, (2,), ()", "f32[2, 3], (2, 3), (1, 0)", "f32[3], (3,), (1,)", "f32[2, 3], (3, 2), (1, 0)", d=ALL)
LAX.add("broadcast_to_rank", "f32[3], 3", "f32[2, 3], 1")
LAX.add("broadcast_shapes", "(2, 1), (2, 3)", "(3,), (2, 3)", "(2,), (3,)", "(1,), (0,)")
LAX.add("broadcasted_iota", "'int32', (2, 3), 1", "'float16', (3,), 0", "'bool', (2,), 0", "'int8', (2, 3), 2", "'complex64', (2,), 0")
LAX.add("iota", "'{d}', 4", "int, 3", "'int32', 0", "'int32', -1", "float, 2.5", d=["int8", "uint8", "float16", "bfloat16", "float32", "int64", "complex64", "bool"])
LAX.add("collapse", "f32[2, 3, 4], 1", "f32[2, 3, 4], 0, 2", "f32[2, 3], 0, 5", "f32[2, 3, 4], -2", "f32[0, 3], 0")
LAX.add("concatenate", "[{d}[2, 3], {d}[1, 3]], 0", "[f32[2], i32[2]], 0", "[f32[2, 3], f32[2, 1]], 1", "[f32[2], f32[2, 2]], 0", "[], 0", "[f32[2]], 1", "[f32[0], f32[2]], 0", d=ALL)
LAX.add("expand_dims", "f32[3], (0,)", "f32[3], (0, 2)", "f32[3], (4,)", "2, (0,)", "f32[3], (-1,)")
LAX.add("squeeze", "f32[1, 3], (0,)", "f32[1, 3], (1,)", "f32[1, 1], (0, 1)", "f32[1], (0, 0)", "f32[3, 1], (-1,)")
LAX.add("reshape", "{d}[2, 3], (3, 2)", "f32[2, 3], (4,)", "f32[2, 3], (3, 2), (1, 0)", "f32[0], (0, 2)", "f32[2, 3], (-1,)", "2, (1,)", d=ALL)
LAX.add("rev", "{d}[2, 3], (0,)", "f32[2, 3], (0, 1)", "f32[2, 3], (2,)", "f32[2, 3], (0, 0)", "f32[0], (0,)", "f32[2, 3], ()", "f32[2, 3], (-1,)", d=ALL)
LAX.add("transpose", "{d}[2, 3], (1, 0)", "f32[2, 3, 4], (2, 0, 1)", "f32[2, 3], (0, 0)", "f32[2, 3], (0,)", "2, ()", d=ALL)
LAX.add("pad", "{d}[3], {d}[()], [(1, 2, 0)]", "{d}[3], {d}[()], [(1, -1, 1)]", "f32[3], 0.0, [(0, 0, 2)]", "f32[3], i32[()], [(1, 1, 0)]", "f32[3], 0, [(1, 1, 0)]", "f32[3], 0.0, [(-2, -2, 0)]", "f32[3], 0.0, [(1, 1)]", "f32[0], 1.0, [(1, 1, 0)]",
        "f32[2, 3], 0.0, [(1, 1, 0)]", "f32[3], 0.0, [(1, 1, -1)]", "f32[0], 1.0, [(0, 0, 3)]", d=ALL)
LAX.add("slice", "{d}[5], (1,), (4,)", "f32[5], (0,), (5,), (2,)", "f32[5], (1,), (9,)", "f32[5], (3,), (1,)", "f32[5], (-1,), (3,)", "f32[2, 3], (0,), (2,)", "f32[5], (0,), (5,), (0,)", "f32[5], (2,), (2,)", d=ALL)
LAX.add("slice_in_dim", "f32[5], 1, 4", "f32[2, 5], -3, None, 2, axis=1", "f32[5], None, None", "f32[5], 4, 1", "f32[5], 0, 99", "f32[5], 0, 3, axis=1")
LAX.add("index_in_dim", "f32[2, 3], 1", "f32[2, 3], -1, 1, keepdims=False", "f32[2, 3], 2", "f32[2, 3], 0, 2")
LAX.add("dynamic_slice", "{d}[5], (1,), (3,)", "f32[5], (i32[()],), (2,)", "f32[5], (4,), (3,)", "f32[5], (-2,), (3,)", "f32[5], (0,), (6,)", "f32[2, 3], (0, 1), (2, 2)", "f32[5], (1.0,), (2,)", "f32[5], i32[1], (2,)", "f32[2, 3], (0,), (1,)",
        "f32[2, 3], (i8[()], 0), (1, 1)", "f32[5], (u8[()],), (2,)", "f32[5], (0,), (0,)", "f32[5], (i8[()],), (2,)", "f32[2, 3], (i8[()], i32[()]), (1, 1)", d=ALL)
LAX.add("dynamic_slice_in_dim", "f32[5], 1, 2", "f32[2, 3], -1, 2, axis=1", "f32[5], 1, 9", "f32[5], i32[()], 3")
LAX.add("dynamic_index_in_dim", "f32[2, 3], 1", "f32[2, 3], -1, 1, keepdims=False", "f32[2, 3], 9", "f32[2, 3], i32[()]")
LAX.add("dynamic_update_slice", "{d}[5], {d}[2], (1,)", "f32[5], f32[2], (4,)", "f32[5], i32[2], (0,)", "f32[5], f32[9], (0,)", "f32[2, 3], f32[2], (0, 0)", "f32[5], f32[2], (-1,)", "f32[5], f32[0], (1,)", "f32[5], [1.0], (0,)", d=ALL)
LAX.add("dynamic_update_slice_in_dim", "f32[5], f32[2], 1, 0", "f32[2, 3], f32[2, 1], -1, 1", "f32[5], 2.0, 1, 0")
LAX.add("dynamic_update_index_in_dim", "f32[2, 3], f32[3], 1, 0", "f32[2, 3], f32[2, 1], -1, 1", "f32[5], 2.0, 9, 0", "f32[5], 1, 0, 0")
LAX.add("full", "(2,), 3", "(2,), 2.5, 'int32'", "(), 1j", "(2,), f32[()]", "(2,), f32[2]", "(-1,), 2", "2, 3", "(2,), True", "(2,), 3, 'bfloat16'")
LAX.add("full_like", "f32[2], 3", "i8[2], 2.5", "f32[2], 1, 'int8'", "2, 3", "f32[2], 1, shape=(3,)", "f32[2], f32[2]")
LAX.add("split", "f32[5], (2, 3)", "f32[5], (2, 2)", "f32[2, 4], (1, 3), axis=1", "f32[5], ()", "f32[3], (3, 0)")
LAX.add("stack", "[f32[3], f32[3]]", "[f32[3], i8[3]]", "[f32[2, 3]], 1", "[f32[3], f32[2]]")
LAX.add("tile", "f32[3], (2,)", "f32[2, 3], (1, 2)", "f32[3], (2, 2)", "f32[2, 3], (2,)", "f32[3], (0,)")
LAX.add("unstack", "f32[2, 3]", "f32[2, 3], 1")
LAX.add("shape_as_value", "(2, 3)", "()")
LAX.add("empty", "(0, 2), 'float32'")

# -- reductions --------------------------------------------------------------------------------------------------------
LAX.add("reduce_sum reduce_prod", "{d}[2, 3], (0,)", "{d}[2, 3], (0, 1)", d=ALL[1:], ulps=8, of_largest=True)
LAX.add("reduce_max reduce_min", "{d}[2, 3], (0,)", "{d}.special[3, 13], (0,)", d=ALL)
LAX.add("reduce_and reduce_or reduce_xor", "{d}[2, 3], (1,)", d=["b", *INTEGERS, "f32"])
LAX.add("reduce_sum reduce_prod reduce_max reduce_min", "f32[0, 3], (0,)", "i8[0], (0,)", "f32[2, 3], ()", "f32[2, 3], (2,)", "f32[2, 3], (0, 0)", "f32[2, 3], (-1,)", "b[3], (0,)", "f32[2, 3], 0")
LAX.add("argmax argmin", "{d}[2, 5], 1, 'int32'", "{d}.special[13], 0, 'int32'", "f32[2, 5], 0, 'int8'", "f32[5], 1, 'int32'", "f32[0], 0, 'int32'", "f32[5], 0, 'float32'", "f32[2, 5], -1, 'int64'", d=ALL)
LAX.add("cumsum cumprod cummax cummin", "{d}[2, 3], 1", "{d}.special[13]", "f32[5], reverse=True", "f32[0]", "f32[3], 1", "f32[2, 3], -1", d=ALL, ulps=8, of_largest=True)
LAX.add("cumlogsumexp", "{d}[2, 3], 1", "f32.special[13]", "f32[5], reverse=True", d=[*FLOATS, "i32", "c64"], ulps=16, of_largest=True)
LAX.add("reduce", "{d}[2, 3], {d}[()], lax.add, (0,)", "{d}[2, 3], {d}[()], lax.max, (0, 1)", d=["i8", "i32", "f16", "f32"], ulps=4, of_largest=True)
LAX.add("reduce", "f32[2, 3], 0.0, lambda x, y: x * y + 1, (1,)", "(f32[3], i32[3]), (0.0, 0), lambda x, y: (x[0] + y[0], x[1] * y[1]), (0,)", "f32[0, 2], 3.0, lax.add, (0,)", "f32[3], 0, lax.add, (0,)")
WINDOW = "(2,), (1,), 'VALID'"
LAX.add("reduce_window", f"{{d}}[5], {{d}}[()], lax.add, {WINDOW}", f"{{d}}[5], 0, lax.max, {WINDOW}", "f32[5], 0.0, lax.add, (3,), (2,), 'SAME'", "f32[5], 0.0, lax.add, (2,), (1,), [(1, 1)]", "f32[5], 0.0, lax.add, (2,), (1,), 'VALID', (2,)",
        "f32[5], 0.0, lax.add, (2,), (1,), 'VALID', None, (2,)", "f32[2, 5], -np.inf, lax.max, (1, 2), (1, 2), 'SAME'", "f32[0], 0.0, lax.add, (2,), (1,), 'VALID'", "f32[5], 1.0, lambda x, y: x * y + x, (2,), (1,), 'VALID'", d=["i8", "i32", "f16", "f32"], ulps=8, of_largest=True)
LAX.add("sort", "{d}[2, 5]", "{d}.special[13]", "f32[2, 3], 0", "(i32.count[5], f32[5]), num_keys=1", "(i32.count[5], f32[5]), num_keys=2", "f32[()]", "f32[3], 1", "f32[0]", "(f32[3], f32[2])", "f32[5], is_stable=False", "[f32[3], i8[3]]", d=ALL)
LAX.add("sort_key_val", "i32.count[5], f32[5]", "f32.special[13], i32[13]", "f32[2, 3], i32[2, 3], 0", "f32[3], f32[2]")
LAX.add("top_k", "{d}[5], 2", "{d}.special[13], 4", "f32[5], 0", "f32[5], 6", "f32[2, 5], 3", "f32[()], 1", "f32[5], -1", "f32[5, 2], 3, axis=0", "c64[3], 1", d=REAL)
LAX.add("approx_max_k approx_min_k", "f32[9], 3", "f32[2, 9], 2, reduction_dimension=0")

# -- products and convolutions -------------------------------------------------------------------------------------------
LAX.add("dot", "{d}[3], {d}[3]", "{d}[2, 3], {d}[3, 2]", "{d}[2, 3], {d}[3]", d=ALL, ulps=16, of_largest=True)
LAX.add("dot", "f32[3], i8[3]", "f32[3], f32[2]", "f32[2, 3], f32[2, 3]", "i8[3], i8[3], preferred_element_type='int32'", "bf16[3], bf16[3], preferred_element_type='float32'", "f32[0], f32[0]", "f32[()], f32[3]", "i8[3], i8[3], preferred_element_type='float32'")
LAX.add("batch_matmul", "f32[2, 3, 4], f32[2, 4, 2]", "f32[2, 3, 4], f32[3, 4, 2]", "i8[2, 3, 4], i8[2, 4, 1]", ulps=16, of_largest=True)
LAX.add("dot_general", "{d}[2, 3], {d}[3, 2], (((1,), (0,)), ((), ()))", "{d}[2, 3, 4], {d}[2, 4, 3], (((2,), (1,)), ((0,), (0,)))", "f32[2, 3], f32[2, 3], (((), ()), ((0,), (0,)))", "f32[2, 3], f32[2, 4], (((1,), (1,)), ((), ()))",
        "f32[2, 3], f32[3, 2], (((1,), (0,)), ((0,), ()))", "i8[2, 3], i8[3, 2], (((1,), (0,)), ((), ())), preferred_element_type='int32'", "f32[2, 3], bf16[3, 2], (((1,), (0,)), ((), ()))", d=ALL, ulps=16, of_largest=True)
LAX.add("conv", "{d}[1, 2, 5], {d}[3, 2, 2], (1,), 'SAME'", "{d}[1, 2, 5, 4], {d}[3, 2, 2, 2], (2, 1), 'VALID'", "f32[1, 2, 5], f32[3, 1, 2], (1,), 'SAME'", "f32[1, 2, 5], i32[3, 2, 2], (1,), 'SAME'", d=["i32", *FLOATS, "c64"], ulps=32, of_largest=True)
LAX.add("conv_general_dilated", "f32[1, 2, 6], f32[3, 2, 2], (1,), [(1, 2)]", "f32[1, 2, 6], f32[3, 2, 2], (1,), 'SAME', lhs_dilation=(2,)", "f32[1, 2, 6], f32[3, 2, 2], (2,), 'SAME', rhs_dilation=(2,)", "f32[1, 4, 6], f32[4, 2, 2], (1,), 'VALID', feature_group_count=2",
        "f32[2, 2, 6], f32[4, 2, 2], (1,), 'VALID', batch_group_count=2", "f32[1, 6, 2], f32[2, 2, 3], (1,), 'SAME', dimension_numbers=('NHC', 'HIO', 'NHC')", "f32[1, 2, 6], f32[3, 2, 2], (1,), 'OTHER'", "f32[1, 2, 6], f32[3, 2, 2], (1, 1), 'SAME'",
        "i8[1, 2, 6], i8[3, 2, 2], (1,), 'VALID', preferred_element_type='int32'", "f32[0, 2, 6], f32[3, 2, 2], (1,), 'VALID'", "f32[1, 2, 1], f32[3, 2, 2], (1,), 'VALID'", ulps=32, of_largest=True)
LAX.add("conv_transpose", "f32[1, 5, 2], f32[2, 2, 3], (2,), 'SAME'", "f32[1, 5, 2], f32[2, 2, 3], (1,), 'VALID'", "f32[1, 5, 2], f32[2, 3, 2], (2,), 'VALID', transpose_kernel=True", ulps=32, of_largest=True)

# -- gather and scatter --------------------------------------------------------------------------------------------------
PLAIN = "lax.ScatterDimensionNumbers((), (0,), (0,))"
LAX.add("scatter scatter_add scatter_mul scatter_min scatter_max", f"{{d}}[5], i32[3, 1], {{d}}[3], {PLAIN}", d=[*INTEGERS, *INEXACT], ulps=8)
LAX.add("scatter scatter_add", f"f32[5], i32.count[3, 1], i32[3], {PLAIN}", f"f32[5], i32[3, 1], f32[2], {PLAIN}", f"f32[5], i32[3, 1], f32[3], {PLAIN}, mode='clip'", f"f32[5], f32[3, 1], f32[3], {PLAIN}", f"f32[5], i32[0, 1], f32[0], {PLAIN}", f"b[5], i32[3, 1], b[3], {PLAIN}",
        f"f32[5], u8[3, 1], f32[3], {PLAIN}", f"f32[5], i32[3, 1], f32[3], {PLAIN}, unique_indices=True, mode='promise_in_bounds'".replace("i32[3, 1]", "jnp.arange(3)[:, None]"))
TAKE = "lax.GatherDimensionNumbers((1,), (0,), (0,))"
LAX.add("gather", f"{{d}}[5, 2], i32[3, 1], {TAKE}, (1, 2)", d=ALL)
LAX.add("gather", *(f"{d}[5, 2], i32[3, 1], {TAKE}, (1, 2), mode='{m}'" for d in ("f32", "i8", "u8", "b") for m in ("clip", "fill")), f"f32[5, 2], i32[3, 1], {TAKE}, (1, 2), mode='fill', fill_value=7", f"f32[5, 2], f32[3, 1], {TAKE}, (1, 2)", f"f32[5, 2], i32[3, 1], {TAKE}, (2, 2)",
        f"f32[5, 2], i32[3, 2], {TAKE}, (1, 2)", f"f32[5, 2], u8[3, 1], {TAKE}, (1, 2)", f"f32[5, 2], i32[0, 1], {TAKE}, (1, 2)")
LAX.add("index_take", "f32[5, 2], [i32.count[3]], (0,)", "f32[5, 2], [i32[3], i32[3]], (0, 1)")

# -- control flow --------------------------------------------------------------------------------------------------------
LAX.add("cond", "True, lambda x: x + 1, lambda x: x * 2, f32[3]", "f32[()] > 0, lambda x: x, lambda x: -x, i8[3]", "True, lambda x: x, lambda x: 2.0, f32[3]", "2, lambda: 1, lambda: 2", "f32[3], lambda: 1, lambda: 2", "b[()], lambda: 1, lambda: 2.0", "True, lambda x: (x, 1), lambda x: (x, 2), 3.0",
        "1.5, lambda: 1, lambda: 2", "b[()], lambda x: x, lambda x: x.astype('int8'), f32[3]", ulps=4)
LAX.add("switch", "1, [lambda x: x, lambda x: x * 2], f32[3]", "7, [lambda x: x, lambda x: x * 2], f32[3]", "-1, [lambda: 1, lambda: 2]", "0, []", "1.0, [lambda: 1, lambda: 2]", "i8[()], [lambda: 1, lambda: 2]", "True, [lambda: 1, lambda: 2]", "0, [lambda: 1]", ulps=4)
LAX.add("while_loop", "lambda x: x < 5, lambda x: x + 2, 0", "lambda x: x < 5, lambda x: x + 2.0, 0", "lambda x: x[0] < 5, lambda x: (x[0] + 1, x[1] * 2), (0, f32[3])", "lambda x: x, lambda x: False, True", "lambda x: f32[2], lambda x: x, 1", "lambda x: x < 5, lambda x: (x, x), 0", "lambda x: 1, lambda x: x, 0",
        "lambda x: x < 3, lambda x: x + 1, i8[()]", "lambda x: x < 3, lambda x: x + 1, f16[()]", "lambda x: x < 3, lambda x: jnp.stack([x, x]), f32[()]", ulps=4)
LAX.add("fori_loop", "0, 3, lambda i, x: x + i, 0", "0, 3, lambda i, x: x * 2, f32[3]", "3, 0, lambda i, x: x + 1, 5", "0, i32.positive[()], lambda i, x: x + i, 1.5", "0, 3, lambda i, x: x + 1.5, 0", "0, 3.0, lambda i, x: x, 0", "i8[()], i32[()], lambda i, x: x + 1, 0", "0, 3, lambda i, x: x + i, i8[()]",
        "0, 3, lambda i, x: x, ()", "0, 3, lambda i, x: x[0], f32[3]", ulps=4)
LAX.add("scan", "lambda c, x: (c + x, c * x), 0.0, f32[5]", "lambda c, x: (c + x, c), 0, f32[5]", "lambda c, x: (c + 1, c), 0, None, 4", "lambda c, x: (c + x, None), i8[()], i8[3]", "lambda c, x: (c, x), f32[2], f32[0]", "lambda c, x: (c + x, c), 0.0, f32[5], reverse=True", "lambda c, x: (c, x), 0, (f32[3], i32[2])",
        "lambda c, x: c, 0, f32[3]", "lambda c, x: (c, c), 0, None", "lambda c, x: (c, x), 0, f32[3], 4", "lambda c, x: (c + x, c), 0.0, f32[5], unroll=2", "lambda c, x: (c, x), 0, f32[()]", "lambda c, x: (c + x, c), f16[()], f16[3]", "lambda c, x: (jnp.stack([c, c]), c), f32[()], f32[3]", ulps=4)
LAX.add("map", "lambda x: x * 2, f32[3]", "lambda x: (x, x + 1), i32[3]", "lambda x: x, f32[0]", "lambda x: jnp.sum(x), f32[2, 3]", "lambda x: x, f32[()]", "lambda x: x + 1, f32[5], batch_size=2", ulps=4)
LAX.add("associative_scan", "lax.add, f32[5]", "jnp.multiply, i32[7]", "lax.max, f32[2, 5], axis=1", "lax.add, f32[5], reverse=True", "lax.add, f32[0]", "lax.add, f32[1]", "lambda a, b: a @ b, f32[3, 2, 2]", "lax.add, f32[()]", ulps=8, of_largest=True)
LAX.add("fft", "c64[4], 'fft', (4,)", "c64[4], 'ifft', (4,)", "f32[5], 'rfft', (5,)", "c64[3], 'irfft', (4,)", "c128[2, 4], 'fft', (2, 4)", "f32[4], 'fft', (4,)", "c64[4], 'fft', (3,)", "f32[0], 'rfft', (0,)", "bf16[4], 'rfft', (4,)", ulps=32, of_largest=True)
