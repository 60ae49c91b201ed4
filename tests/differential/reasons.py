"""The rows of `differences`: functions, kind, regular expression of \"call: what differs\", why."""

ROWS = [
    ("*", "accepted", r"requires arguments to have the same dtypes|same dtype|dtypes should match|inconsistent dtypes|integers of the same type|first argument to pow",
     "A Python scalar beside an array gives way in `lax` too; JAX takes it for a strong 64-bit number where wide dtypes are on."),
    ("*", "accepted", r"<class 'list'>|<class 'tuple'>|requires ndarray or scalar|no attribute|is not a valid JAX type",
     "Lists are taken where NumPy takes them."),
    ("*", "accepted", r"does not accept dtype|does not support|not implemented|is not supported|not well defined|input must be float32 or float64|Unsupported dtype|not inexact|must be boolean or int32|integer typed|complex value",
     "More dtypes are taken: what NumPy has a meaning for, and half precision."),
    ("*", "class", r"raises \w*ValueError, no TypeError",
     "A shape or an axis that does not fit is a ValueError, as in NumPy; in JAX it is a TypeError where a primitive notices it."),
    ("*", "class", r"raises \w*TypeError, no ",
     "What an operation does not take is a TypeError; in JAX it depends on the step that notices."),
    ("*", "dtype", r"narrow: .*(: int64, not int32|: float64, not float32|: uint64, not uint32|: complex128, not complex64)",
     "Dtypes of 32 bits that meet in one of 64, as uint32 and int32 do, are not cut."),
    (
        "lax.sign lax.logistic lax.sqrt lax.rsqrt lax.acosh lax.reciprocal lax.reduce_max "
        "lax.reduce_min lax.cummax lax.cummin nn.sigmoid nn.silu nn.swish nn.log1mexp numpy.sign "
        "numpy.reciprocal numpy.sqrt numpy.arccosh numpy.nanmean numpy.max numpy.min numpy.all "
        "numpy.ptp scipy.special.expit scipy.special.log_softmax",
        "value", r"c(64|128)\.special",
        "Complex numbers that are not finite, or lie on a branch cut: C99 and NumPy say what is right, JAX what its formula comes to."),
    ("lax.select", "accepted", r", 0\.0\)", "Scalars go with any shape."),
    ("lax.fft", "accepted", r"f32\[0\]", "A transform of no elements has none."),
    ("scipy.linalg.lu scipy.linalg.block_diag", "accepted", r"2, 3, 3|\[1, 2\]", "Batches, and lists, as SciPy takes them."),
    ("scipy.linalg.hankel", "accepted", r"hankel\(2\.0\)", "A number is a vector of one."),
    ("nn.dot_product_attention", "accepted", r"key_value_seq_lengths", "Lengths may be given for a batch that has none."),
    ("ops.segment_sum ops.segment_prod ops.segment_max ops.segment_min", "accepted", r"i32\[0\]|, 0, 3\)",
     "No elements make no segments; one identifier names all elements."),
    (
        "numpy.array_equiv numpy.piecewise numpy.histogram numpy.histogram_bin_edges numpy.split "
        "numpy.array_split numpy.pad numpy.tril_indices numpy.triu_indices numpy.polyadd numpy.polysub "
        "numpy.polymul numpy.meshgrid numpy.bartlett numpy.blackman numpy.hamming numpy.hanning "
        "numpy.apply_over_axes scipy.spatial.transform.Rotation",
        "accepted", r"f32\[2\], f32\[3\]|b\[4\], \[|f32\[0\]|\[3, 1\]|\[7\]|\[-1\]|\{0: 1\}|\(-[12]\)|\(2, |copy=False|, 1\):|identity",
        "As NumPy and SciPy: shapes that differ are not equal, one condition may be a vector, nothing has bins "
        "from 0 to 1, parts may be empty, widths by axis, windows of no elements, numbers as polynomials of "
        "degree 0, one axis as an int, several unit rotations."),
    ("numpy.tile", "accepted", r"tile\(x, 2\)", "JAX refuses a float dtype's tile while it is batched or differentiated."),
    (
        "lax.scan lax.map nn.glu numpy.cov numpy.histogram numpy.hstack numpy.pad numpy.delete "
        "numpy.ravel_multi_index",
        "class", r"leading axis|divisible by 2|Incompatible shapes|string values|at least one array|padding mode|out of bounds|len\(multi_index\)",
        "Both refuse; in JAX the class is that of what goes wrong inside."),
    (
        "numpy.divide numpy.floor_divide numpy.divmod numpy.power numpy.pow",
        "value", r"special|floor_divide\(i|divmod\(i|mod\(i|remainder\(i",
        "Division by zero of integers, quotients that underflow, and integer powers from the 64th on are NumPy's or exact; XLA multiplies by reciprocals, and JAX reads six bits of an exponent."),
    ("numpy.maximum numpy.minimum numpy.nanmin", "value", r"0\.0|-0|0, not",
     "Which of two zeros is the larger one is not said, as in NumPy."),
    ("lax.sign numpy.sign", "value", r"special",
     "The sign of -0.0 is 0.0, as in NumPy."),
    ("numpy.modf", "value", r"modf\((b|i|u|f|True|-|1|0)",
     "The fraction of a negative whole number is -0.0, and of an infinity 0, as in NumPy."),
    ("lax.digamma scipy.special.digamma", "value", r"special|digamma\(",
     "Poles of digamma at 0 have the sign of the zero, as in SciPy."),
    (
        "numpy.linalg.slogdet numpy.abs numpy.angle numpy.log2 numpy.log10 numpy.heaviside "
        "numpy.logaddexp numpy.logaddexp2 numpy.lcm numpy.choose numpy.linspace "
        "scipy.special.gamma scipy.special.loggamma scipy.special.erfcx scipy.special.dawsn "
        "scipy.special.ndtri scipy.special.exp1 scipy.special.expi scipy.special.spence scipy.special.sici "
        "scipy.special.fresnel scipy.special.rel_entr scipy.special.kl_div scipy.special.owens_t "
        "scipy.special.expn scipy.special.hyp1f1 scipy.special.hyp2f1",
        "weak_type", r"",
        "The result of a Python scalar stays weak; some of JAX's formulas lose that, or have it from a constant."),
    (
        "lax.mulhi lax.convert_element_type scipy.linalg.lu_factor scipy.linalg.toeplitz",
        "weak_type", r"",
        "Whether a type is weak follows from the operands alone, in `lax` and LAPACK too."),
    ("numpy.angle", "dtype", r"",
     "The angle of a 0-dimensional array has the dtype that one of an axis has."),
    ("numpy.spacing", "value", r"f16",
     "Spacings have the sign of the number, as in NumPy; JAX loses it for float16."),
    ("numpy.cumulative_prod", "dtype", r"",
     "Small integers become the default ones, as the array API standard says and as in `cumulative_sum`."),
    ("numpy.insert numpy.take", "refused", r"out of bounds|requires integer indices",
     "A static index out of range, or a bool for an index, is refused (README, differences from JAX)."),
    ("numpy.histogram", "refused", r"bins must be positive|complex64", "There are bins, of numbers that have an order."),
    (
        "numpy.fft.fftfreq numpy.fft.rfftfreq numpy.roll numpy.bartlett numpy.blackman numpy.hamming "
        "numpy.hanning scipy.special.multigammaln",
        "refused", r"float' object cannot be interpreted|negative dimensions|can only specify one unknown|math domain",
        "Extents are integers that are not negative."),
    (
        "numpy.fft.irfft numpy.fft.hfft numpy.fft.rfft2 numpy.fft.irfft2 numpy.fft.rfftn numpy.fft.irfftn "
        "numpy.polymul scipy.signal.fftconvolve scipy.signal.stft scipy.signal.welch",
        "refused", r"number of data points|Parameter Nx|empty|needs a vector|needs one element|Incompatible shapes|zero-size|OverflowError|noverlap must be",
        "An empty operand, or one of too many axes, is refused, as in NumPy and SciPy."),
    ("lax.select lax.select_n", "value", r"i32",
     "Which of two cases an integer chooses that is neither 0 nor 1 is not said; the other functions clamp it."),
    (
        "lax.cumlogsumexp lax.scatter_min lax.scatter_max ops.segment_max ops.segment_min",
        "refused", r"scatter_m|does not accept dtype complex",
        "Complex numbers have no order in `lax`; `jitcore.numpy` sorts them."),
    (
        "ops.segment_sum ops.segment_prod ops.segment_max ops.segment_min",
        "shape", r"",
        "Identifiers of two axes name the elements, as in TensorFlow; JAX repeats the update."),
    ("nn.soft_sign", "value", r"jvp\(|grad\(",
     "The slope that `where` does not choose is dropped (docs/features.md, derivatives)."),
    ("nn.dot_product_attention", "value", r"f64",
     "Softmax is computed in the operands' dtype; JAX computes it in float32."),
    ("scipy.fft.idct scipy.fft.idctn", "value", r"f16",
     "float16 is computed in float32 and rounded once."),
    (
        "numpy.fft.fftfreq numpy.fft.rfftfreq numpy.kaiser scipy.special.kl_div scipy.special.expn "
        "scipy.special.bessel_jn scipy.ndimage.map_coordinates scipy.spatial.transform.Rotation",
        "value", r"f32.*f64|f64.*f32|f32\[\(\)\]|f32.positive",
        "float32 that meets float64 is widened before it is computed with, not after."),
    ("scipy.linalg.pascal", "dtype", r"",
     "Of the default dtype."),
    (
        "scipy.stats.bernoulli scipy.stats.poisson scipy.stats.geom scipy.stats.binom scipy.stats.nbinom "
        "scipy.stats.betabinom",
        "value", r"",
        "Outside of the support, and between integers, probabilities are 0, as in SciPy."),
    (
        "scipy.stats.uniform scipy.stats.expon scipy.stats.cauchy scipy.stats.truncnorm scipy.stats.gumbel_r "
        "scipy.stats.gumbel_l scipy.stats.gamma scipy.stats.wrapcauchy",
        "value", r"special|i32.probability",
        "At infinities, at 0 and 1, and for NaN: as SciPy."),
    ("scipy.stats.logistic", "refused", r"of real numbers", "Complex numbers have no order, and no distribution."),
    ("scipy.stats.norm", "dtype", r"",
     "float32 stays float32, whatever Python scalars location and scale are."),
    ("scipy.special.owens_t", "dtype", r"",
     "float16 and float32 stay what they are."),
    ("scipy.special.owens_t", "refused", r"complex",
     "Of real numbers."),
    (
        "scipy.special.gammaln scipy.special.comb scipy.special.fresnel scipy.special.rel_entr "
        "scipy.special.betaln scipy.special.beta scipy.special.zeta scipy.special.poch scipy.special.boxcox "
        "scipy.special.boxcox1p scipy.special.owens_t scipy.special.softmax scipy.special.log_softmax",
        "value", r"special",
        "At infinities, poles and the ends of numbers: what SciPy gives, or what the formula comes to."),
    ("scipy.special.bernoulli", "value", r"",
     "Bernoulli numbers are exact; JAX sums a series."),
    ("scipy.special.gammaln", "value", r"",
     "Zero at 1, exactly."),
    ("scipy.signal.detrend", "value", r"",
     "A constant has no trend, up to rounding."),
    ("nn.gelu", "value", r"",
     "1 + tanh of a large negative number is rounding; both are as near as float32 allows."),
    ("numpy.ndim numpy.shape numpy.size", "refused", r"",
     "Only of arrays and numbers."),
    (
        "scipy.stats.norm scipy.stats.gamma scipy.stats.beta scipy.stats.chi2 scipy.stats.t "
        "scipy.stats.pareto scipy.stats.truncnorm scipy.stats.gennorm scipy.stats.bernoulli "
        "scipy.stats.poisson scipy.stats.geom scipy.stats.nbinom scipy.stats.betabinom",
        "weak_type", r"",
        "The result of a Python scalar stays weak; some of JAX's formulas lose that, or have it from a constant."),
    ("lax.select_n", "refused", r"boolean or int32", "As JAX's documentation says."),
    ("lax.slice", "refused", r"greater than or equal to zero", "A slice begins inside; JAX gives what stands before the array."),
    ("numpy.linalg.multi_dot", "refused", r"at least two", "As NumPy; JAX gives the first element of one."),
    ("numpy.linalg.vector_norm", "dtype", r"i32", "A norm is a float: JAX cuts that of integers off."),
    ("numpy.arctan2", "refused", r"complex", "Angles are of real numbers, as in NumPy."),
    ("numpy.cov", "dtype", r"f32\[0, 5\]", "No variables have the dtype that others have."),
    ("numpy.promote_types", "dtype", r"float, 'int32'", "Python's float is a weak float32 without wide dtypes."),
    ("numpy.nanpercentile", "value", r"i16", "A difference that cancels; one unit in the last place of its operands."),
    ("numpy.unravel_index", "value", r"\(0, 3\)", "Nothing has no places; NumPy refuses it."),
    ("numpy.roots", "value", r"\[1\., -2\., 0\.\]", "Zeros come last, as in NumPy."),
    ("numpy.geomspace", "value", r"geomspace\(0, 1", "From 0 nothing grows by a factor: NumPy refuses it, JAX gives NaN."),
    ("scipy.special.loggamma scipy.special.exp1 scipy.special.expi scipy.special.hyp2f1", "value", r"True|\(1\)|b\.|f16|f64",
     "As near as the dtype allows; JAX is 5e-7 off at 1, NaN in float16, and sums too few terms near the edge."),
    ("scipy.special.spence", "value", r"grad\(", "The slope at 1 is -1; JAX gives NaN."),
    ("scipy.special.softmax scipy.special.log_softmax", "value", r"u8|i8", "Integers become floats first; in JAX they wrap around."),
    ("scipy.special.bessel_jn", "refused", r"non-negative", "Orders are not negative."),
    ("scipy.special.sph_harm_y", "dtype", r"", "float32 stays what it is, whatever integers the degrees are."),
    ("scipy.stats.sem", "dtype", r"c(64|128)", "An error is real, as in SciPy."),
    ("scipy.interpolate.RegularGridInterpolator", "refused", r"values have 3", "Points and values have to fit, as in SciPy."),
    ("scipy.spatial.transform.Rotation", "refused", r"3, 3", "Rotations are of three axes."),
]

#: The same of calls that are compiled as one program.
COMPILED = [
    ("lax.cumprod numpy.cumprod numpy.nancumprod", "value", r"special",
     "In which order infinities, zeros and what overflows are multiplied is not said."),
    ("nn.celu", "value", r"c(64|128)\.special", "An infinity divided by a real number is NumPy's quotient of complex numbers."),
    ("nn.standardize", "value", r"special", "Squares of the largest numbers overflow on one way to the variance, and not on the other."),
    ("numpy.logaddexp2 scipy.special.kl_div", "value", r"not 0\.0|ulps", "Terms that cancel may be unrounded products."),
]
