"""`jitcore.scipy` but its linear algebra. In: names by kind."""

from tests.differential.table import ALL, FLOATS, INEXACT, Table

SPECIAL, STATS, SIGNAL = Table("scipy.special"), Table("scipy.stats"), Table("scipy.signal")
NDIMAGE, INTEGRATE, INTERPOLATE = Table("scipy.ndimage"), Table("scipy.integrate"), Table("scipy.interpolate")
VQ, ROTATION = Table("scipy.cluster.vq"), Table("scipy.spatial.transform")

REAL = ["b", "i8", "u8", "i32", "i64", *FLOATS]
LOOSE = {"ulps": 256, "of_largest": True}

# -- special functions ---------------------------------------------------------------------------------------------------
SPECIAL.unary("erf erfc", [*REAL, "c64"], ulps=16)
SPECIAL.unary("erfinv", [*REAL, "c64"], kind="unit", ulps=16)
SPECIAL.unary("logit", [*REAL, "c64"], kind="probability", ulps=32)
SPECIAL.unary("expit", [*REAL, "c64"], ulps=16)
SPECIAL.unary("entr i0 i0e i1 i1e", [*REAL, "c64"], kind="positive", ulps=64)
SPECIAL.unary("digamma gammaln gamma gammasgn factorial", [*REAL, "c64"], kind="positive", **LOOSE)
SPECIAL.unary("loggamma", [*REAL, "c64"], kind="positive", special=[], **LOOSE)
SPECIAL.unary("ndtr log_ndtr erfcx dawsn", [*REAL, "c64"], **LOOSE)
SPECIAL.unary("ndtri", [*REAL, "c64"], kind="probability", **LOOSE)
# JAX does not return from exp1, loggamma and gammainc of some special values.
SPECIAL.unary("exp1 expi spence", [*REAL, "c64"], kind="positive", special=[], **LOOSE)
SPECIAL.unary("sici fresnel wofz", [*REAL, "c64"], kind="positive", ulps=4096, of_largest=True)
SPECIAL.binary("xlogy xlog1py rel_entr kl_div", ["b", "i8", "i32", *FLOATS, "c64"], kind="positive", special=FLOATS, ulps=32)
SPECIAL.binary("gammainc gammaincc", ["i8", "i32", *FLOATS], kind="positive", special=[], **LOOSE)
SPECIAL.binary("betaln beta zeta polygamma poch boxcox boxcox1p comb owens_t", ["i8", "i32", *FLOATS], kind="positive", special=["f32", "f64"], **LOOSE)
SPECIAL.add("betaln", "3e4 * {d}.positive[3], {d}.positive[3]", "3e4 * {d}.positive[3], 2e4 * {d}.positive[3]", "{d}.positive[3], 3e6 * {d}.positive[3]", d=["f32", "f64"])
SPECIAL.add("betainc", "{d}.positive[3], {d}.positive[3], {d}.probability[3]", "f32.positive[2, 1], 2, f32.probability[3]", "f32.positive[3], f32.positive[3], f32.special[3]", "f32[0], f32[0], f32[0]", d=REAL, **LOOSE)
SPECIAL.add("expn", "2, {d}.positive[3]", "i32.count[3], f32.positive[3]", "0, f32.positive[3]", "5, 2.0", "2.5, f32.positive[3]", d=["i32", "f32", "f64"], **LOOSE)
SPECIAL.add("multigammaln", "{d}.positive[3] + 3, 2", "f32.positive[3], 0", "f32.positive[3], 2.5", "7.0, 3", "f32.positive[3] + 3, i32[3]", d=REAL, **LOOSE)
SPECIAL.add("bernoulli", "5", "0", "1", "20", "-1", "2.5", ulps=8)
SPECIAL.add("bessel_jn", "f32.positive[3], v=2", "f64.positive[3], v=3, n_iter=30", "f32.positive[3], v=-1", "2.0, v=1", "i32.positive[3], v=1", **LOOSE)
SPECIAL.add("hyp1f1", "1.5, 2.5, {d}.positive[3]", "f32.positive[3], 2.0, f32.positive[3]", "1, 2, 0.5", d=["i32", "f32", "f64"], ulps=4096, of_largest=True)
SPECIAL.add("hyp2f1", "1.5, 2.5, 3.5, {d}.unit[3]", "f32.positive[3], 2.0, 3.0, f32.small[3]", "1, 2, 3, 0.5", d=["f32", "f64"], ulps=4096, of_largest=True)
SPECIAL.add("sph_harm_y", "jnp.array([2]), jnp.array([1]), f64.positive[1], f64.positive[1]", "jnp.array([0, 3]), jnp.array([0, -2]), f64.positive[2], f64.positive[2]", "jnp.array([2]), jnp.array([1]), f32.positive[1], f32.positive[1], n_max=4", **LOOSE)
SPECIAL.reduction("softmax log_softmax logsumexp", [*REAL, "c64"], ulps=64, of_largest=True, where=False)
SPECIAL.add("logsumexp", "f32[2, 3], b=f32[3]", "f32[3], b=f32[3], return_sign=True", "f32[2, 3], axis=0, b=2", "f32[3], return_sign=True", "c64[3], b=f32[3]", "f32[2, 3], axis=1, where=b[2, 3]")
SPECIAL.transforms("erf erfc expit ndtr log_ndtr erfcx dawsn")
SPECIAL.transforms("digamma gammaln gamma i0 i0e i1 i1e entr exp1 expi spence factorial loggamma", kind="positive")
SPECIAL.transforms("logit ndtri erfinv", kind="probability")
SPECIAL.transforms("xlogy xlog1py rel_entr kl_div betaln beta boxcox boxcox1p", "1.5", kind="positive")

# -- statistics ------------------------------------------------------------------------------------------------------------
STATS.add("mode", "{d}.count[9]", "f32.special[26]", "i32.count[3, 4], axis=1", "i32.count[3, 4], keepdims=True", "i32.count[3, 4], axis=None", "f32[0]", "f32[()]", "f32.special[13], nan_policy='omit'", "i32.count[3, 4], axis=2", "f32[0, 3]", d=ALL)
STATS.add("rankdata", *(f"{{d}}.count[7], '{m}'" for m in ("average", "min", "max", "dense", "ordinal")), "f32[2, 3]", "f32[2, 3], axis=1", "f32.special[13]", "f32[0]", "f32[3], 'other'", "2.0", d=["b", "i8", "i32", "f16", "f32", "f64"])
STATS.add("sem", "{d}[5]", "f32[2, 3], axis=1", "f32[2, 3], axis=None", "f32[5], ddof=0", "f32[2, 3], keepdims=True", "f32[1]", "f32[0]", "f32.special[13], nan_policy='omit'", "f32[3], nan_policy='other'", "f32[3], axis=1", d=ALL, ulps=32, of_largest=True)
STATS.add("gaussian_kde", *(f"{{f}}(f64[20]){rest}" for rest in ("(f64[3])", ".evaluate(f64[3])", ".pdf(f64[3])", ".logpdf(f64[3])", ".integrate_box_1d(-1.0, 1.0)", ".integrate_gaussian(0.5, 1.0)", ".d", ".n", ".covariance", ".neff", "(f64[2, 3])")),
          "{f}(f32[20], bw_method='silverman')(f32[3])", "{f}(f32[20], bw_method=0.5)(f32[3])", "{f}(f64[20], weights=f64.positive[20])(f64[3])", "{f}(f64[2, 20])(f64[2, 3])", "{f}(f32[20], bw_method='other')", "{f}(f32[1])", "{f}(i32[5])", "{f}(f32[5], weights=f32[4])", **LOOSE)
for module, functions, parameters, kind in (
        ("norm", "pdf logpdf cdf logcdf sf logsf ppf isf", "", ""), ("norm", "pdf cdf ppf", ", 1.0, 2.0", ""), ("uniform", "pdf logpdf cdf ppf", "", ""), ("expon", "pdf logpdf cdf logcdf sf logsf ppf", ", 0.0, 2.0", ""), ("cauchy", "pdf logpdf cdf logcdf sf logsf ppf isf", "", ""), ("laplace", "pdf logpdf cdf", "", ""),
        ("logistic", "pdf logpdf cdf logcdf sf logsf ppf isf".replace(" logcdf", "").replace(" logsf", ""), "", ""), ("gamma", "pdf logpdf cdf logcdf sf logsf", ", 2.0", ".positive"), ("beta", "pdf logpdf cdf logcdf sf logsf", ", 2.0, 1.5", ".probability"), ("chi2", "pdf logpdf cdf logcdf sf logsf", ", 3.0", ".positive"), ("t", "pdf logpdf", ", 3.0", ""), ("pareto", "pdf logpdf cdf logcdf sf logsf ppf", ", 2.0", ".positive"),
        ("truncnorm", "pdf logpdf cdf logcdf sf logsf", ", -1.0, 1.0", ""), ("gennorm", "pdf logpdf cdf", ", 1.5", ""), ("vonmises", "pdf logpdf", ", 2.0", ""), ("wrapcauchy", "pdf logpdf", ", 0.5", ".positive"), ("gumbel_r", "pdf logpdf cdf logcdf sf logsf ppf", "", ""), ("gumbel_l", "pdf logpdf cdf logcdf sf logsf ppf", "", "")):
    STATS.add(module, *(f"{module}.{name}({x}{'.probability' if name in ('ppf', 'isf') else kind}[3]{parameters})".replace(f"{module}.", "{f}.", 1) for name in functions.split() for x in ("f32", "f64", "i32", "f16")), **LOOSE)
    STATS.add(module, *(f"{{f}}.{name}(f32.special[13]{parameters})" for name in functions.split()[:4]), f"{{f}}.{functions.split()[0]}('a'{parameters})", f"{{f}}.{functions.split()[0]}(2{parameters})", f"grad(lambda x: {{f}}.{functions.split()[0]}(x{parameters}))(0.7)",
              f"{{f}}.{functions.split()[0]}(c64[3]{parameters})", f"{{f}}.{functions.split()[0]}(f32[0]{parameters})", f"vmap(lambda x: {{f}}.{functions.split()[-1]}(x{parameters}))(f32.probability[3])")
for module, functions, parameters in (("bernoulli", "pmf logpmf cdf ppf", ", 0.4"), ("poisson", "pmf logpmf cdf", ", 2.5"), ("geom", "pmf logpmf", ", 0.4"), ("binom", "pmf logpmf", ", 5, 0.4"), ("nbinom", "pmf logpmf", ", 3, 0.4"), ("betabinom", "pmf logpmf", ", 5, 1.5, 2.0")):
    STATS.add(module, *(f"{{f}}.{name}({x}[4]{parameters})" for name in functions.split() for x in ("i32.count", "f32.count", "f64.probability", "i8", "f16.count", "f32.special")), f"{{f}}.pmf(2{parameters})", f"{{f}}.pmf('a'{parameters})", f"{{f}}.logpmf(i32[0]{parameters})", **LOOSE)
STATS.add("multinomial", "{f}.pmf(jnp.array([1, 2]), 3, jnp.array([0.4, 0.6]))", "{f}.logpmf(jnp.array([1, 1]), 3, jnp.array([0.4, 0.6]))", "{f}.logpmf(i32.count[2], 4, f64.probability[2])", **LOOSE)
STATS.add("dirichlet", "{f}.pdf(jnp.array([0.4, 0.6]), jnp.array([1.5, 2.0]))", "{f}.logpdf(jnp.array([0.4, 0.6]), jnp.array([1, 2]))", "{f}.logpdf(jnp.array([0.4, 0.7]), jnp.array([1.5, 2.0]))", "{f}.logpdf(jnp.array([0.4]), jnp.array([1.5, 2.0]))", "{f}.logpdf(f32.probability[3], f32.positive[2])", **LOOSE)
STATS.add("multivariate_normal", "{f}.pdf(f64[3], f64[3], f64.definite[3, 3])", "{f}.logpdf(f32[2, 3], f32[3], f32.definite[3, 3])", "{f}.logpdf(f64[3], 0.0, 2.0)", "{f}.logpdf(f64[3], f64[3], f64[2, 3])", "{f}.logpdf(f64[3], f64[2], f64.definite[3, 3])", "{f}.logpdf(f64[()], 0.5, 2)", "{f}.logpdf(i32[3], i32[3], f32.definite[3, 3])", **LOOSE)

# -- signals -----------------------------------------------------------------------------------------------------------------
SIGNAL.add("convolve correlate fftconvolve", "{d}[5], {d}[3]", "{d}[3], {d}[5], 'same'", "f32[5], f32[3], mode='valid'", "f32[3, 4], f32[2, 2]", "f32[3, 4], f32[2, 2], 'same'", "f32[5], i8[3]", "f32[5], f32[2, 2]", "f32[5], f32[3], 'other'", "f32[0], f32[3]", "f32[()], f32[()]", "[1, 2], [3]", d=ALL, ulps=64, of_largest=True)
SIGNAL.add("convolve correlate", "f32[5], f32[3], method='fft'", "f32[5], f32[3], method='direct'", "f32[5], f32[3], method='other'", "f32[5], f32[3], precision='highest'")
SIGNAL.add("convolve2d correlate2d", "{d}[3, 4], {d}[2, 2]", "f32[3, 4], f32[2, 2], 'same'", "f32[3, 4], f32[2, 2], mode='valid'", "f32[3, 4], f32[2, 2], boundary='wrap'", "f32[3], f32[2]", "f32[3, 4], f32[2, 2], boundary='fill', fillvalue=1", "f32[2, 2], f32[3, 4]", "f32[3, 4], i8[2, 2]", "f32[2, 4], f32[3, 2], mode='valid'", d=ALL, ulps=64, of_largest=True)
SIGNAL.add("fftconvolve", "f32[3, 4], f32[2, 4], axes=0", "f32[3, 4], f32[2, 2], axes=(0, 1)")
SIGNAL.add("detrend", "{d}[9]", "f32[9], type='constant'", "f32[2, 9], axis=0", "f32[9], bp=[3, 6]", "f32[9], type='other'", "f32[9], bp=[30]", "f32[2, 9], overwrite_data=True", d=["i32", "f32", "f64", "c64"], ulps=512, of_largest=True)
SIGNAL.add("stft", "f64[32], nperseg=8", "f32[32], nperseg=8, noverlap=2", "f32[32], fs=2.0, window='hamming', nperseg=8", "c64[32], nperseg=8", "f32[32], nperseg=8, boundary=None, padded=False", "f32[32], nperseg=8, detrend='constant'", "f32[32], nperseg=8, noverlap=9", "f32[2, 32], nperseg=8, axis=-1", "f32[32], nperseg=8, scaling='psd'", "f32[0]", "f32[32], window='other', nperseg=8",
           "f32[32], nperseg=8, boundary='other'", "f32[32], nperseg=8, return_onesided=False", "i32[32], nperseg=8", ulps=256, of_largest=True)
SIGNAL.add("istft", "{f}(jnp.ones((5, 9), 'complex64'), nperseg=8)", "{f}(c128[5, 9], nperseg=8)[1].dtype", "{f}(c64[5, 9], nperseg=8, noverlap=6)[1].shape", "{f}(c64[5], nperseg=8)", "{f}(c64[5, 9], nperseg=8, input_onesided=False)[1].shape", **LOOSE)
SIGNAL.add("welch", "f64[32], nperseg=8", "f32[32], nperseg=8, scaling='spectrum'", "f32[2, 32], nperseg=8, average='median'", "c64[32], nperseg=8", "f32[32], nperseg=8, window='boxcar'", "f32[32], nperseg=8, detrend=False", "f32[32], nperseg=8, average='other'", "i32[32], nperseg=8", "f32[0]", "f32[32], nperseg=8, fs=10, nfft=16", "f32[32], nperseg=64", "f32[32], nperseg=-1", ulps=512, of_largest=True)
SIGNAL.add("csd", "f64[32], f64[32], nperseg=8", "f32[32], f32[32], nperseg=8, noverlap=0", "f32[32], None, nperseg=8", "f32[32], f32[20], nperseg=8", "f32[32], f32[32], nperseg=8, scaling='other'", "c64[32], f32[32], nperseg=8", ulps=512, of_largest=True)

# -- the others --------------------------------------------------------------------------------------------------------------
NDIMAGE.add("map_coordinates", "{d}[4, 5], [f32.positive[3], f32.positive[3]], 1", "{d}[4, 5], [f32.positive[3], f32.positive[3]], 0", *(f"f32[5], [f32[7] * 4], {order}, mode='{m}'" for order in (0, 1) for m in ("constant", "nearest", "wrap", "mirror", "reflect", "other")), "f32[5], [f32[3] * 4], 1, cval=2.0", "f32[5], [f32[3]], 2",
            "f32[4, 5], [f32[3]], 1", "f32[5], [i32.count[3]], 1", "f32[5], f32[1, 3], 1", "f32[5], [f64[3]], 1", "c64[5], [f32[3]], 1", "f32[5], [f32[0]], 1", "i32[5], [f32[3] * 4], 1, mode='nearest'", "f32[5], [1.5], 1", "f32[5], [f32[3]], order=1, mode='constant', cval=jnp.nan",
            "grad(lambda x: jnp.sum({f}(x, [jnp.array([0.5, 1.2])], 1)))(f32[4])", "grad(lambda c: jnp.sum({f}(f32[5], [c], 1)))(f32.positive[3])", "vmap(lambda x: {f}(x, [jnp.array([0.5, 1.2])], 1))(f32[2, 4])", d=ALL, ulps=32, of_largest=True)
INTEGRATE.add("trapezoid", "{d}[2, 5]", "{d}[5], {d}.sorted[5]", "f32[2, 5], dx=0.5, axis=0", "f32[5], f32[2, 5]", "f32[0]", "f32[1]", "f32[5], f32[4]", "[1, 2, 3]", d=ALL, ulps=16, of_largest=True)
GRID = "(jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 1.0]))"
INTERPOLATE.add("RegularGridInterpolator", "{f}(" + GRID + ", {d}[3, 2])(f64.probability[4, 2])", *("{f}(" + GRID + f", f64[3, 2]{options})({points})" for options in ("", ", method='nearest'", ", bounds_error=False, fill_value=None", ", fill_value=1.5", ", method='other'", ", bounds_error=True") for points in ("f32.probability[4, 2]", "f64[4, 2] * 2", "f32[3]", "jnp.array([nan, 0.5])".replace("nan", "jnp.nan"))),
                "{f}(" + GRID + ", f32[3, 3])", "{f}((f32.sorted[4],), f32[4])(f32[3, 1])", "{f}((f32[4],), f32[4])(f32[3, 1])", "{f}((jnp.array([0.0, 1.0]),), f32[2, 3])(f32.probability[2, 1])", d=["i32", *INEXACT], ulps=64, of_largest=True)
VQ.add("vq", "{d}[5, 3], {d}[2, 3]", "f32[5], f32[2]", "f32[5, 3], f32[2, 2]", "f32[5, 3], f32[3]", "f32[0, 3], f32[2, 3]", "f32[5, 3], f32[2, 3], check_finite=False", "f32[5, 3], f64[2, 3]", d=["i32", *FLOATS, "c64"], ulps=32, of_largest=True)
for method in ("as_quat()", "as_matrix()", "as_euler('xyz')", "as_euler('ZYX', degrees=True)", "as_rotvec()", "as_mrp()", "magnitude()", "inv().as_quat()", "apply(f64[3])", "apply(f64[3], inverse=True)", "single", "as_rotvec(degrees=True)", "as_quat(canonical=True)", "as_quat(scalar_first=True)", "mean().as_quat()", "as_euler('xyx')", "as_euler('xy')"):
    ROTATION.add("Rotation", "{f}.from_quat(f64[4])." + method, "{f}.from_quat(f32[3, 4])." + method, ulps=2048, of_largest=True)
ROTATION.add("Rotation", *("{f}." + call + ".as_quat()" for call in ("from_euler('x', 0.5)", "from_euler('xyz', f64[3])", "from_euler('ZYX', f64[2, 3], degrees=True)", "from_euler('xq', f64[2])", "from_rotvec(f64[3])", "from_rotvec(f32[2, 3], degrees=True)", "from_rotvec(jnp.zeros(3))", "from_matrix(jnp.eye(3))", "from_mrp(f64[3])", "identity()",
             "identity(2)", "concatenate([Rotation.identity(), Rotation.from_rotvec(f64[3])])", "from_quat(jnp.zeros(4))", "from_quat(f32[3])", "from_rotvec(f32[2])", "from_matrix(f32[2, 2])")), "({f}.from_quat(f64[4]) * {f}.from_quat(f64[4])).as_quat()", "len({f}.from_quat(f64[3, 4]))", "len({f}.from_quat(f64[4]))", "{f}.from_quat(f64[3, 4])[1].as_quat()",
             "{f}.from_quat(i32[4]).as_quat()")
ROTATION.add("Slerp", "{f}(jnp.array([0.0, 1.0, 2.0]), Rotation.from_rotvec(f64[3, 3]))(0.5).as_quat()", "{f}(jnp.array([0.0, 1.0]), Rotation.from_rotvec(f64[2, 3]))(jnp.array([0.1, 0.9])).as_rotvec()", "{f}(jnp.array([0.0]), Rotation.from_rotvec(f64[1, 3]))", "{f}(jnp.array([0.0, 1.0]), Rotation.from_rotvec(f64[3, 3]))", ulps=2048, of_largest=True)
