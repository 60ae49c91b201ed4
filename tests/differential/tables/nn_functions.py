"""`jitcore.nn`, `nn.initializers`, `ops`, `image`. In: names by kind. Out: `NN`, `INITIALIZERS`, `OPS`, `IMAGE`."""

from tests.differential.table import ALL, FLOATS, INEXACT, REAL, Table

NN, OPS, IMAGE = Table("nn"), Table("ops"), Table("image")
INITIALIZERS = Table("nn.initializers")

ACTIVATIONS = ("celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
               "sparse_sigmoid squareplus swish tanh")
NN.unary(ACTIVATIONS, ulps=64, of_largest=True, special=INEXACT)
NN.unary("log1mexp", [*REAL, "c64"], kind="positive", ulps=32)
NN.transforms(ACTIVATIONS)
NN.transforms("log1mexp", kind="positive")
NN.add(ACTIVATIONS, "jvp({f}, (f32.special[13],), (f32[13],))", "grad({f})(0.0)", "grad({f})(1)")
NN.add("celu elu leaky_relu squareplus", "f32[3], 0.5", "f16[3], 2", "i32[3], 0.5", "f32[3], f32[3]", "bf16[2, 3], 0.25")
NN.add("gelu", "f32[3], approximate=False", "f16[3], False", "c64[3], False", "grad(lambda x: jnp.sum({f}(x, False)))(f64[3])", "f32.special[13], False")
NN.add("glu", "{d}[2, 4]", "f32[4, 2], 0", "f32[3]", "f32[()]", "f32[0]", "[1, 2]", d=ALL, ulps=16)
NN.reduction("softmax log_softmax", [*REAL, "c64"], ulps=32, where=False, of_largest=True)
NN.add("softmax log_softmax", "f32[2, 3], axis=0, where=b[2, 3]", "f32[3], where=False", "f32[3], axis=None", "f32[2, 3], axis=(0, 1)", "jnp.full(3, -jnp.inf)", "jnp.full(3, 1e30, 'float32')")
NN.reduction("logsumexp", ulps=32, of_largest=True)
NN.add("logsumexp", "f32[2, 3], b=f32[3]", "f32[3], b=f32[3], return_sign=True", "f32[2, 3], axis=0, b=2", "f32[3], return_sign=True", "c64[3], b=f32[3]", "f32[2, 3], axis=1, where=b[2, 3], keepdims=True", "jnp.full(3, -jnp.inf)", "i32[3], b=2")
NN.reduction("logmeanexp", [*REAL, "c64"], ulps=32, of_largest=True)
NN.reduction("standardize", [*REAL, "c64"], ulps=64, of_largest=True)
NN.add("standardize", "f32[2, 3], mean=0.5", "f32[2, 3], variance=2.0", "f32[2, 3], epsilon=0.1", "f32[2, 3], mean=f32[2, 1], variance=f32.positive[2, 1], axis=1")
NN.transforms("softmax log_softmax logsumexp standardize logmeanexp")
NN.add("one_hot", "i32.count[3], 4", "i32[5], 4", "f32.count[3], 3", "2, 3", "i32.count[2, 2], 3, dtype='int8'", "i32.count[3], 4, axis=0", "b[3], 2", "i32[3], 0", "i32.count[3], 3, dtype='bfloat16'", "i32[0], 3", "c64[2], 3", "i32.count[3], -1", "i32.count[3], 2.5", "[0, 1], 2", "i32.count[2, 2], 3, axis=-2", "u8.count[3], 5")
QKV = "{d}[1, 4, 2, 3], {d}[1, 5, 2, 3], {d}[1, 5, 2, 3]"
NN.add("dot_product_attention", QKV, "{d}[4, 2, 3], {d}[5, 2, 3], {d}[5, 2, 3]", d=["f16", "bf16", "f32", "f64"], ulps=64, of_largest=True)
F32 = QKV.replace("{d}", "f32")
NN.add("dot_product_attention", f"{F32}, is_causal=True", f"{F32}, scale=0.5", f"{F32}, bias=f32[1, 2, 4, 5]", f"{F32}, mask=b[1, 2, 4, 5]", "f32[1, 4, 4, 3], f32[1, 5, 2, 3], f32[1, 5, 2, 3]", "f32[1, 4, 2, 3], f32[1, 5, 2, 3], f32[1, 6, 2, 3]", f"{F32}, local_window_size=1",
       f"{F32}, query_seq_lengths=jnp.asarray([3]), key_value_seq_lengths=jnp.asarray([2])", "f32[4, 3], f32[5, 3], f32[5, 3]", "i32[4, 2, 3], i32[5, 2, 3], i32[5, 2, 3]", "f32[4, 2, 3], f16[5, 2, 3], f32[5, 2, 3]", f"{F32}, implementation='other'", f"{F32}, return_residual=True")

KEY = "__import__('numpy').array([0, 7], 'uint32')"
INITIALIZERS.add("zeros ones", *(f"{{f}}({KEY}, {rest})" for rest in ("(2, 3)", "(2,), 'float16'", "(), 'int8'", "(0, 2), 'complex64'", "(2,), 'bool'", "(2, 3), int", "(-1,)", "3")))
INITIALIZERS.add("constant", *(f"{{f}}({rest})" for rest in (f"2.5)({KEY}, (2, 3)", f"2, 'int8')({KEY}, (3,)", f"2.5, 'int32')({KEY}, (2,)", f"f32[3])({KEY}, (2, 3)", f"f32[2])({KEY}, (2, 3)", f"1j)({KEY}, (2,), 'complex64'", f"1)({KEY}, (2,), 'bfloat16'", f"True)({KEY}, (2,)", f"jnp.nan)({KEY}, (2,)")))
INITIALIZERS.add("uniform normal truncated_normal variance_scaling glorot_uniform he_normal lecun_normal orthogonal delta_orthogonal", *(f"{{f}}()({KEY}, {rest}).{what}" for rest in ("(3, 2)", "(3, 2), 'float16'", "(3,)", "(2, 3, 4), 'float32'", "(3, 2), 'int32'") for what in ("shape", "dtype")))
for row in (INITIALIZERS.rows["variance_scaling"],):
    row.calls = [call.replace("variance_scaling()", "variance_scaling(1.0, 'fan_in', 'normal')") for call in row.calls]
INITIALIZERS.add("variance_scaling", "{f}(1.0, 'other', 'normal')" + f"({KEY}, (2, 3))", "{f}(1.0, 'fan_avg', 'other')" + f"({KEY}, (2, 3))")

SEGMENTS = "segment_sum segment_prod segment_max segment_min"
OPS.add(SEGMENTS, "{d}[5], i32.count[5]", "{d}[5, 2], i32.count[5], 4", d=ALL, ulps=8, of_largest=True)
OPS.add(SEGMENTS, "f32[5], i32[5], num_segments=3", "f32[5], i32.count[5], 7", "f32[5], i32.sorted[5], 4, indices_are_sorted=True", "f32[5], i32.count[4], 3", "f32[0], i32[0], 3", "f32[0], i32[0]", "f32[5], f32.count[5], 5", "f32[5], u8.count[5], 5", "f32[2, 2], i32.count[2, 2], 5", "f32[5], i32.count[5], 0",
        "f32[5], i32.count[5], -1", "f32[6], i32.count[6], 5, bucket_size=2", "f32.special[13], i32.count[13], 5", "f32[5], i32[5], 3, mode='clip'", "[1, 2], [0, 1]", "f32[5], i32.count[5], 2.5", "f32[5], i32[5], 3, mode='fill'", "f32[2], 0, 3",
        "grad(lambda x: jnp.sum({f}(x, jnp.asarray([0, 0, 2]), 4)))(f32[3])", "vmap(lambda x: {f}(x, jnp.asarray([0, 0, 2]), 4))(f32[2, 3])", "jvp(lambda x: {f}(x, jnp.asarray([0, 0, 2]), 4), (f64[3],), (f64[3],))")

IMAGE.add("resize", *(f"{{d}}[4, 5], (7, 3), '{m}'" for m in ("nearest", "linear", "cubic", "area")), d=["b", "u8", "i32", *FLOATS, "c64"], ulps=64, of_largest=True)
IMAGE.add("resize", *(f"f32[4, 5], (3, 8), '{m}'" for m in ("lanczos3", "lanczos5", "bilinear", "bicubic", "trilinear", "triangle", "other")), "f32[4, 5, 3], (2, 2, 3), 'linear'", "f32[4, 5], (2, 2), 'linear', antialias=False", "f32[4, 5], (8,), 'linear'", "f32[4, 5], (0, 3), 'linear'", "f32[4, 5], (4, 5), 'cubic'",
          "f32[1, 1], (3, 3), 'linear'", "[[1, 2]], (2, 2), 'linear'", "f32.special[13], (5,), 'linear'", "f32[0, 3], (2, 3), 'linear'", "grad(lambda x: jnp.sum({f}(x, (5,), 'cubic') ** 2))(f32[3])", "vmap(lambda x: {f}(x, (5,), 'linear'))(f32[2, 3])")
IMAGE.add("scale_and_translate", *(f"f32[4, 5], (6, 6), (0, 1), f32.positive[2], f32[2], '{m}'" for m in ("linear", "cubic", "lanczos3", "nearest")), "f32[4, 5], (4, 6), (1,), f32.positive[1], f32[1], 'linear'", "f16[4, 5], (6, 6), (0, 1), f32.positive[2], f32[2], 'linear'",
          "f32[4, 5], (6, 6), (0, 1), f32.positive[2], f32[2], 'linear', antialias=False", "f32[4, 5], (6,), (0,), f32.positive[1], f32[1], 'linear'", "i32[4, 5], (6, 6), (0, 1), f32.positive[2], f32[2], 'linear'", ulps=256, of_largest=True)
