"""`jitcore.numpy`: reductions, sorts, searches, statistics. In: names by kind."""

from tests.differential.table import ALL, FLOATS, INTEGERS, REAL
from tests.differential.tables.numpy_elementwise import NUMPY

NUMPY.reduction("sum prod nansum nanprod", ulps=8, of_largest=True, dtype=True, initial="2")
NUMPY.reduction("mean nanmean", ulps=8, of_largest=True, dtype=True)
NUMPY.reduction("var std nanvar nanstd", ulps=16, of_largest=True)
NUMPY.add("var std nanvar nanstd", "{d}[2, 3], dtype='float32'", d=["b", "u8", "i32", "f16", "f64"])
NUMPY.add("var std nanvar nanstd", "f32[2, 3], ddof=1", "f32[2, 3], axis=1, ddof=3", "f32[2, 3], correction=1", "f32[2, 3], axis=0, ddof=0.5")
NUMPY.add("sum", "f32[2, 3], promote_integers=False", "i8[2, 3], promote_integers=False", "i8[2, 3], initial=1.5")
NUMPY.reduction("max min nanmax nanmin", initial="2")
NUMPY.reduction("any all count_nonzero", where=False)
NUMPY.add("any all", "f32[2, 3], axis=1, where=b[2, 3]", "i32[0]", "f32[0, 3], axis=0, keepdims=True")
NUMPY.reduction("argmax argmin nanargmax nanargmin", where=False)
NUMPY.reduction("ptp", where=False)
NUMPY.reduction("median nanmedian", REAL, ulps=4, where=False)
NUMPY.add("percentile nanpercentile", "{d}[2, 5], 30", "{d}.special[13], 50.0", "{d}[4], [10, 20]", d=REAL, ulps=8)
NUMPY.add("quantile nanquantile", "{d}[2, 5], 0.3", "{d}.special[13], 0.5", "{d}[4], {d}.probability[2]", d=REAL, ulps=8)
NUMPY.add("quantile nanquantile", "f32[2, 5], 0.3, axis=1, keepdims=True", *(f"f32[7], 0.4, method='{m}'" for m in (
    "linear", "lower", "higher", "nearest", "midpoint", "weibull")), "f32[0], 0.5", "f32[5], 2.0", "f32[5], 0", "f32[2, 5], f32.probability[2, 2], axis=0",
    "f32[2, 5], 0.5, axis=(0, 1)", "c64[3], 0.5", "f32[5], 0.5, 0, None, False, 'linear', True")
NUMPY.add("average", "{d}[2, 3]", "{d}[2, 3], axis=0, weights={d}.positive[2]", d=ALL, ulps=8, of_largest=True)
NUMPY.add("average", "f32[3], weights=f32.positive[3], returned=True", "f32[2, 3], weights=f32[3]", "f32[2, 3], keepdims=True", "f32[0]",
          "f32[2, 3], axis=(0, 1), weights=f32.positive[2, 3]", "i32[3], weights=i8.positive[3]", "f32[2, 3], returned=True")
NUMPY.add("cumsum cumprod nancumsum nancumprod", "{d}[2, 3]", "{d}[2, 3], axis=1", "{d}.special[13]", d=ALL, ulps=8, of_largest=True)
NUMPY.add("cumulative_sum cumulative_prod", "{d}[5]", "{d}[2, 3], axis=1, include_initial=True", d=ALL, ulps=8, of_largest=True)
NUMPY.add("cumsum cumprod nancumsum nancumprod", "f32[3], dtype='int32'", "i8[3], dtype='float16'", "f32[0]", "f32[()]", "3", "f32[2, 3], axis=2", "b[5], dtype='int8'")
NUMPY.add("cumulative_sum cumulative_prod", "f32[2, 3]", "f32[()]", "i8[3], dtype='float32'", "f32[0]", "f32[0], include_initial=True")

# -- sorts and searches --------------------------------------------------------------------------------------------
NUMPY.add("sort argsort", "{d}[2, 5]", "{d}[2, 3], axis=0", "{d}.special[26]", "{d}[5], descending=True", "{d}.special[26], descending=True",
          "{d}[2, 3], axis=None", d=ALL)
NUMPY.add("sort argsort", "f32[0]", "f32[()]", "3.0", "f32[2, 3], axis=2", "f32[5], stable=False", "f32[5], kind='mergesort'", "f32[0, 3]", "f32[5], order='x'", "[3, 1, 2]")
NUMPY.add("sort_complex", "{d}[5]", "{d}[2, 3]", d=ALL)
NUMPY.add("partition", "{f}({d}[2, 5], 2)[..., 2]", "{f}(f32[5], -1)[-1]", "{f}(f32[2, 5], 1, axis=0)[1]", "f32[5], 7", d=["i8", "u8", "i32", "f32", "f64", "bf16"])
NUMPY.add("argpartition", "{f}(f32[2, 5], 2)[..., 2]", "{f}(i32[5], -1).shape", "f32[5], 7", "{f}(f32[2, 5], 1, axis=0).dtype")
NUMPY.add("lexsort", "({d}[5], {d}[5])", "({d}.special[13], {d}.special[13])", d=["b", "i8", "i32", "f32", "bf16"])
NUMPY.add("lexsort", "(f32[2, 3], f32[2, 3]), axis=0", "f32[2, 5]", "f32[5]", "()")
NUMPY.add("searchsorted", "{d}.sorted[5], {d}[2, 3]", "{d}.sorted[5], {d}[3], side='right'", d=REAL)
NUMPY.add("searchsorted", "f32.sorted[5], f32.special[13]", "i32.sorted[5], f32[3]", "i32.sorted[5], 2", "f32.sorted[5], 2", "f32[0], f32[3]", "f32.sorted[5], f32[0]",
          "f32[5], f32[3], sorter=jnp.argsort(f32[5])", *(f"f32.sorted[9], f32[4], method='{m}'" for m in ("scan", "scan_unrolled", "sort", "compare_all")),
          "f32[2, 3], 1", "f32.sorted[5], f32[3], side='middle'", "i8.sorted[5], u8[3]", "f16.sorted[5], bf16[3]")
NUMPY.add("digitize", "{d}[3], {d}.sorted[5]", "{d}[3], {d}.sorted[5], right=True", "{d}[3], {d}.sorted[5][::-1]", d=["i8", "i32", *FLOATS])
NUMPY.add("digitize", "f32[3], f32[0]", "2, i32.sorted[5]", "f32.special[13], f32.sorted[5]", "f32[3], f32[2, 3]", "i32[3], f32.sorted[4]")
NUMPY.add("nonzero flatnonzero argwhere", "{d}[5]", "{d}.count[2, 3]", d=ALL)
NUMPY.add("nonzero flatnonzero argwhere", "f32[()]", "i32.count[2, 3], size=3", "i32.count[2, 3], size=9, fill_value=-1", "f32[0]", "3", "f32.special[13]")
NUMPY.add("unique", "{d}.count[9]", "{d}.count[9], return_index=True, return_inverse=True, return_counts=True", "{d}.special[26]", d=ALL)
NUMPY.add("unique", "i32.count[4, 2], axis=0", "i32.count[2, 4], axis=1, return_counts=True", "i32.count[9], size=3", "i32.count[9], size=7, fill_value=-3", "f32[0]",
          "i32.count[2, 3]", "i32.count[2, 3], return_inverse=True", "f32.special[26], equal_nan=False", "f32.special[26], size=4", "3", "f32[0, 3], axis=1", "f32[0, 3], axis=0",
          "i32.count[9], return_counts=True, size=7", "i32.count[9], return_inverse=True, size=2")
NUMPY.add("unique_all unique_counts unique_inverse unique_values", "{d}.count[9]", "f32.special[26]", "f32[0]", "i32.count[9], size=3", "i32.count[2, 3]", d=ALL)
NUMPY.add("isin", "{d}.count[5], {d}.count[2]", d=ALL)
NUMPY.add("isin", "i32[5], f32[2], invert=True", "i32[0], i32[2]", "i32[2], i32[0]", "3, i32[5]", "f32.special[13], f32.special[4]", *(f"i32.count[5], i32.count[3], method='{m}'"
          for m in ("compare_all", "binary_search", "sort", "auto", "other")), "i8[5], u8[3]", "i32.count[5], i32.count[3], assume_unique=True")
NUMPY.add("sum prod", "b[3], promote_integers=False", "b[3], dtype='bool'", "i8[3], promote_integers=False", "f32[3], initial=f32[2]", "f32[3], initial=f32[1]")
NUMPY.add("max min", "f32[3], initial=f32[2]")
NUMPY.add("cumsum cumprod cumulative_sum cumulative_prod", "b[5], dtype='bool'", "i32[5], dtype='bool'", "b[2, 3], axis=1, dtype='bool'")
NUMPY.add("var std nanvar nanstd", "c64[3], dtype='float32'", "c64[3], dtype='complex64'", "f32[3], dtype='complex64'")
NUMPY.add("intersect1d union1d setdiff1d setxor1d", "{d}.count[5], {d}.count[3]", d=ALL)
NUMPY.add("intersect1d union1d setdiff1d setxor1d", "i8.count[5], f16.count[3]", "i32[0], i32[3]", "f32.special[13], f32.special[13]", "i32.count[5], i32.count[3], size=4",
          "i32.count[5], i32.count[3], size=8, fill_value=-1", "i32.count[2, 3], i32.count[3]", "[1, 2], [2.5]", "i32[0], f32[0]")
NUMPY.add("intersect1d union1d setdiff1d setxor1d", "jnp.array([inf, 1, inf, -inf]), jnp.array([2, inf, -inf, -inf])",
          "jnp.array([inf, 1, inf, -inf]), jnp.array([2, -inf, -inf]), size=4")
NUMPY.add("intersect1d", "i32.count[5], i32.count[3], return_indices=True", "i32.count[5], i32.count[3], return_indices=True, size=4")
NUMPY.add("setdiff1d setxor1d", "jnp.unique(i32[5]), jnp.unique(i32[3]), assume_unique=True")

# -- statistics ----------------------------------------------------------------------------------------------------
NUMPY.add("cov corrcoef", "{d}[3, 5]", d=ALL, ulps=64, of_largest=True)
NUMPY.add("cov", "f32[3, 5], rowvar=False", "f32[5], f32[5]", "f32[3, 5], bias=True", "f32[3, 5], ddof=0", "f32[3, 5], fweights=i32.positive[5]", "f32[3, 5], aweights=f32.positive[5]",
          "f32[5]", "f32[1]", "f32[3, 5], fweights=f32[5]", "f32[0]", "f32[0, 5]", "i32[3, 5], f64[5]", "f32[2, 2, 2]", "f32[3, 5], ddof=0.5", "f32[3, 5], fweights=i32[4]")
NUMPY.add("corrcoef", "f32[5], f32[5]", "f32[5, 3], rowvar=False", "f32[5]", "f32[1]", "f32[2, 2, 2]")
NUMPY.add("histogram histogram_bin_edges", "{d}[20]", "{d}[20], 4", "{d}[20], 4, range=(-2, 2)", d=["b", *INTEGERS, *FLOATS], ulps=8, of_largest=True)
NUMPY.add("histogram", "f32[20], 5, density=True", "f32[20], f32.sorted[4]", "f32[20], 4, weights=f32.positive[20]", "i32[20], 4, weights=i32[20]", "f32[0]", "f32[2, 5], 3", "f32[5], 0",
          "f32[5], 3, range=(2, 1)", "f32[5], 3, range=(1, 1)", "f32[20], 4, weights=f32[5]", "i32[20], i32.sorted[5]", "f32[5], 'auto'", "c64[5], 3", "f32[20], [1, 2, 3]")
NUMPY.add("histogram_bin_edges", "f32[0]", "f32[5], f32.sorted[4]", "f32[5], 3, range=(1, 1)", "f32[5], 'auto'", "f32[1]", "i32[5], 3, weights=f32[5]")
NUMPY.add("histogram2d", "{d}[20], {d}[20], 3", d=["i32", "f16", "f32", "f64"], ulps=8, of_largest=True)
NUMPY.add("histogram2d", "f32[20], f32[20], [2, 3]", "f32[20], f32[20], [f32.sorted[3], f32.sorted[4]], density=True", "f32[20], f32[20], 3, range=[[-1, 1], [-2, 2]]",
          "f32[20], f32[20], 3, weights=f32[20]", "f32[20], f32[19], 3", "f32[20], f32[20], f32.sorted[4]")
NUMPY.add("histogramdd", "f32[20, 2], 3", "f32[20, 3], [2, 3, 2], density=True", "f64[20, 2], 3, weights=f64.positive[20]", "f32[20, 2], [3]", "i32[20, 2], 3", "f32[20, 2], 3, [[-1, 1], [-1, 1]]",
          ulps=8, of_largest=True)
NUMPY.add("bincount", "{d}.count[9]", d=[*INTEGERS, "b", "f32"], ulps=4)
NUMPY.add("bincount", "i32.count[9], f32[9]", "i32.count[9], i8[9], minlength=7", "i32.count[9], length=3", "i32[9], length=4", "i32[0]", "i32.count[9], f16[9]", "i32.count[9], minlength=-1",
          "i32.count[2, 3]", "i32.count[9], c64[9]", "[1, 2]", "i32.count[9], f32[4]", "i32[0], minlength=3", "i32.count[9], length=3, minlength=5", "i32.count[9], f64[9]")

NUMPY.transforms("sum prod mean var std max min median cumsum cumprod sort nansum nanmean nanmax average ptp nanprod")
NUMPY.transforms("sum mean max cumsum", "axis=0")
NUMPY.transforms("quantile percentile", "0.3")
NUMPY.transforms("argmax argsort any all")
NUMPY.add("max min sort prod", "grad(lambda x: jnp.sum({f}(x)))(jnp.asarray([1., 2., 2., 0.]))", "jvp({f}, (f32.special[13],), (f32[13],))")
NUMPY.alias("amax=max amin=min")
