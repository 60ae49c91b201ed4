"""One table of calls for every public function of `jitcore.numpy`: what tests compare with JAX and NumPy.

`CASES[name]` lists calls as (args, kwargs). ndarrays in them are the arrays that a test may trace or widen
to 64 bits;
everything else is static. Names of `linalg` and `fft` are written with a dot.
"""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(7)


def case(*args, **kwargs):
    return args, kwargs


def real(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def positive(*shape):
    return real(*shape, low=0.2, high=3.0)


def integer(*shape, low=-9, high=9):
    return rng.integers(low, high, shape).astype(np.int32)


def boolean(*shape):
    return rng.random(shape) > 0.5


def complex_(*shape):
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def with_nan(*shape):
    x = real(*shape)
    x.reshape(-1)[::3] = np.nan
    return x


def definite(n):
    x = real(n, n)
    return (x @ x.T + n * np.eye(n)).astype(np.float32)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], np.float32)
X, Y, V, I, B, C = real(3, 4), real(3, 4), real(4), integer(3, 4), boolean(3, 4), complex_(3, 4)  # noqa: E741
SORTED = np.sort(real(6))
MASK = boolean(3, 4)

CASES: dict[str, list] = {}

for name in ("exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh cbrt sinc fabs deg2rad rad2deg radians degrees "
             "atan asinh i0 spacing").split():
    CASES[name] = [case(X), case(I)]
for name in "log log2 log10 log1p sqrt arccosh acosh reciprocal".split():
    CASES[name] = [case(positive(3, 4) + 1), case(integer(5, low=1, high=9))]
for name in "arcsin arccos arctanh asin acos atanh".split():
    CASES[name] = [case(real(3, 4, low=-0.9, high=0.9))]
for name in "exp sin log sqrt tanh".split():
    CASES[name].append(case(C))
for name in "square negative absolute abs sign positive".split():
    CASES[name] = [case(X), case(I), case(C), case(SPECIAL)]
for name in "floor ceil trunc rint round around".split():
    CASES[name] = [case(X * 3), case(I), case(np.array([0.5, 1.5, -0.5, 2.5], np.float32))]
CASES["round"] += [case(X, 2), case(C, 1)]
for name in "add subtract multiply divide true_divide maximum minimum fmax fmin equal not_equal less less_equal " \
            "greater greater_equal logical_and logical_or logical_xor".split():
    CASES[name] = [case(X, Y), case(X, V), case(I, 3), case(X, I), case(2.5, I), case(C, C.T.copy().T), case(C, X)]
CASES["maximum"].append(case(SPECIAL, SPECIAL[::-1].copy()))
CASES["fmax"].append(case(SPECIAL, SPECIAL[::-1].copy()))
for name in "floor_divide remainder mod fmod divmod".split():
    CASES[name] = [case(X, Y), case(X, 2), case(I, 4), case(integer(9), integer(9, low=1)), case(I, -3), case(-7.5, Y)]
for name in "power pow float_power".split():
    CASES[name] = [case(positive(3, 4), Y), case(X, 3), case(2, X), case(positive(4), 0.5), case(positive(2), -2)]
CASES["power"] += [case(I, 2), case(integer(5, low=1), integer(5, low=0, high=6)), case(3, integer(4, low=0))]
for name in "arctan2 atan2 copysign hypot logaddexp logaddexp2 nextafter heaviside".split():
    CASES[name] = [case(X, Y), case(X, V), case(I, 2)]
CASES["heaviside"].append(case(SPECIAL, 0.5))
for name in "bitwise_and bitwise_or bitwise_xor".split():
    CASES[name] = [case(I, integer(4)), case(I, 5), case(B, MASK)]
for name in "left_shift right_shift bitwise_left_shift bitwise_right_shift".split():
    CASES[name] = [case(I, integer(4, low=0, high=5)), case(I, 2)]
for name in "bitwise_not invert bitwise_invert".split():
    CASES[name] = [case(I), case(B)]
for name in "gcd lcm".split():
    CASES[name] = [case(I, integer(3, 4)), case(I, 6)]
for name in "isnan isfinite isinf signbit".split():
    CASES[name] = [case(SPECIAL), case(I)]
for name in "isposinf isneginf".split():
    CASES[name] = [case(SPECIAL)]
for name in "real imag conj conjugate angle isreal iscomplex iscomplexobj isrealobj".split():
    CASES[name] = [case(C), case(X)]
CASES |= {
    "bitwise_count": [case(I), case(integer(4, low=0).astype(np.uint8))], "logical_not": [case(X), case(B)],
    "ldexp": [case(X, integer(4))], "frexp": [case(X), case(SPECIAL)], "modf": [case(X * 3), case(SPECIAL[3:])],
    "clip": [case(X, -1, 1), case(X, None, 0.5), case(I, 0, 4), case(X, V - 1, V + 1), case(X, min=0)],
    "nan_to_num": [case(SPECIAL), case(SPECIAL, nan=1.0, posinf=9.0), case(I)], "fix": [],
    "isscalar": [case(3.0), case(X)], "iterable": [case(X), case(3)],
    "isclose": [case(X, X + 1e-7), case(SPECIAL, SPECIAL, equal_nan=True), case(I, I)],
    "allclose": [case(X, X), case(X, Y)], "array_equal": [case(X, X), case(SPECIAL, SPECIAL, equal_nan=True)],
    "array_equiv": [case(X, X[:1]), case(V, V)],
}
# reductions
for name in "sum prod max min amax amin mean var std all any nansum nanprod nanmax nanmin nanmean nanvar nanstd".split():
    CASES[name] = [case(X), case(X, 0), case(X, axis=(0, 1), keepdims=True), case(I, axis=-1), case(with_nan(3, 4), axis=1),
                   case(B, 0)]
for name in "sum prod mean var any all nansum".split():
    CASES[name].append(case(X, axis=1, where=MASK))
for name in "mean var std sum prod".split():
    CASES[name].append(case(C, axis=0))
CASES["max"] += [case(X, axis=0, initial=0.5), case(X, axis=0, initial=-9.0, where=MASK)]
CASES["sum"] += [case(integer(4).astype(np.int8)), case(X, initial=2), case(np.zeros((0, 3), np.float32), 0)]
CASES["var"] += [case(X, 0, ddof=1), case(X, correction=1)]
for name in "argmax argmin nanargmax nanargmin".split():
    CASES[name] = [case(X), case(X, 0), case(I, axis=1, keepdims=True), case(with_nan(3, 4), 1)]
for name in "cumsum cumprod nancumsum nancumprod".split():
    CASES[name] = [case(X), case(X, 0), case(I, axis=1), case(with_nan(5)), case(B, 1)]
for name in "cumulative_sum cumulative_prod".split():
    CASES[name] = [case(V), case(X, axis=1, include_initial=True), case(I, axis=0)]
CASES |= {
    "ptp": [case(X), case(I, 1)], "count_nonzero": [case(I), case(B, axis=0, keepdims=True)],
    "average": [case(X), case(X, 0), case(X, 1, V), case(X, weights=positive(3, 4)), case(I, 0, returned=True)],
    "diff": [case(X), case(X, 2), case(I, axis=0), case(V, prepend=0.0, append=V), case(B)],
    "ediff1d": [case(X), case(V, to_end=np.float32(1.0))],
    "gradient": [case(V), case(X), case(X, 0.5), case(X, axis=1), case(V, np.array([0.0, 1.0, 2.5, 3.0], np.float32))],
    "trapezoid": [case(V), case(X, dx=0.5, axis=0), case(V, np.sort(V))],
    "median": [case(X), case(X, 1), case(with_nan(3, 4), 0), case(I, keepdims=True)],
    "nanmedian": [case(with_nan(3, 4)), case(with_nan(3, 4), 1)],
    "quantile": [case(X, 0.3), case(X, np.array([0.1, 0.5], np.float32), 1), case(I, 0.5, method="lower"),
                 case(X, 0.7, 0, method="nearest", keepdims=True)],
    "percentile": [case(X, 30.0), case(X, np.array([10.0, 90.0], np.float32), 0, method="midpoint")],
    "nanquantile": [case(with_nan(3, 4), 0.3), case(with_nan(3, 4), np.array([0.2, 0.9], np.float32), 1)],
    "nanpercentile": [case(with_nan(3, 4), 40.0)],
    "cov": [case(X), case(X, rowvar=False), case(V, V * 2), case(X, ddof=0), case(X, fweights=np.array([1, 2, 1, 3], np.int32)),
            case(X, aweights=positive(4)), case(C)],
    "corrcoef": [case(X), case(V, V[::-1].copy())],
    "histogram": [case(X), case(X, 5, range=(-1, 1)), case(V, SORTED), case(X, 4, density=True), case(V, 3, weights=positive(4))],
    "histogram_bin_edges": [case(X, 4), case(V, SORTED), case(X, 3, range=(0, 1))],
    "histogram2d": [case(V, V[::-1].copy(), 3), case(X.reshape(-1), Y.reshape(-1), [2, 3], density=True)],
    "histogramdd": [case(real(9, 2), 3), case(real(9, 2), [2, 4], weights=positive(9))],
    "bincount": [case(integer(9, low=0), length=10), case(integer(9, low=0), positive(9), length=12)],
}
# shapes
CASES |= {
    "reshape": [case(X, (4, 3)), case(X, -1), case(X, (2, -1)), case(X, (6, 2), order="F")],
    "ravel": [case(X), case(X, order="F")], "resize": [case(X, (2, 9)), case(V, (2,))],
    "transpose": [case(X), case(real(2, 3, 4), (1, 0, 2))], "permute_dims": [case(X, (1, 0))],
    "matrix_transpose": [case(real(2, 3, 4))], "swapaxes": [case(real(2, 3, 4), 0, -1)],
    "moveaxis": [case(real(2, 3, 4), 0, -1), case(real(2, 3, 4), (0, 1), (2, 0))],
    "rollaxis": [case(real(2, 3, 4), 2), case(real(2, 3, 4), 0, 3)],
    "squeeze": [case(real(1, 3, 1)), case(real(1, 3, 1), 0)], "expand_dims": [case(X, 1), case(X, (0, 3))],
    "atleast_1d": [case(X), case(np.float32(3))], "atleast_2d": [case(V), case(V, X)], "atleast_3d": [case(V), case(X)],
    "broadcast_to": [case(V, (3, 4)), case(X[:, :1].copy(), (3, 4))], "broadcast_arrays": [case(V, X)],
    "broadcast_shapes": [case((3, 1), (4,))],
    "concatenate": [case([X, Y]), case([X, Y], 1), case([X, I], axis=None), case((X, X, Y), -1)],
    "concat": [case([X, Y], axis=1)], "stack": [case([X, Y]), case([X, Y], -1), case([V, V * 2, V], axis=1)],
    "vstack": [case([V, V]), case([X, V])], "hstack": [case([V, V]), case([X, Y])], "dstack": [case([X, Y]), case([V, V])],
    "column_stack": [case([V, V]), case([X, X[:, :2].copy()])], "block": [case([[X, Y], [Y, X]]), case([V, V])],
    "append": [case(X, Y), case(X, Y, 0)], "split": [case(X, 2, 1), case(X, [1, 2], 0)],
    "array_split": [case(X, 3, 1), case(V, 3)], "vsplit": [case(X, 3)], "hsplit": [case(X, 2)],
    "dsplit": [case(real(2, 3, 4), 2)], "unstack": [case(X), case(X, axis=1)],
    "flip": [case(X), case(X, 0), case(X, (0, 1))], "fliplr": [case(X)], "flipud": [case(X)],
    "rot90": [case(X), case(X, 2), case(X, 3), case(X, -1)], "roll": [case(X, 1), case(X, -2, 1), case(X, (1, 2), (0, 1))],
    "unpackbits": [case(np.arange(0, 240, 20, dtype=np.uint8))],
    "tile": [case(V, 2), case(X, (2, 1)), case(V, (2, 2))],
    "repeat": [case(X, 2), case(X, 3, 1), case(V, 2, total_repeat_length=6)],
    "astype": [case(X, "int32"), case(I, "float32"), case(X, "bool")], "shape": [case(X)], "ndim": [case(X)],
    "size": [case(X), case(X, 0)],
    "pad": [case(X, 1), case(X, ((1, 0), (2, 1)), constant_values=3.0), case(V, 2, mode="edge"), case(V, 2, mode="reflect"),
            case(V, 2, mode="wrap"), case(V, 2, mode="symmetric"), case(X, (1, 2), mode="mean"),
            case(V, 2, mode="linear_ramp", end_values=1.0), case(X, 1, mode="maximum")],
}
# products and linear algebra
for name in "dot inner".split():
    CASES[name] = [case(V, V), case(X, V), case(real(2, 4), X), case(2.0, X)]
CASES["dot"] = [case(V, V), case(X, V), case(real(2, 3), X), case(2.0, X), case(real(2, 3, 4), real(4, 2)), case(I, I.T.copy())]
CASES |= {
    "matmul": [case(X, X.T.copy()), case(V, V), case(X, V), case(V, X.T.copy()), case(real(2, 3, 4), real(2, 4, 5)),
               case(real(2, 1, 3, 4), real(3, 4, 2)), case(C, X.T.copy()), case(X, real(5, 4, 2))],
    "vdot": [case(V, V), case(C, C)], "outer": [case(V, V), case(X, I)],
    "tensordot": [case(X, X, axes=2), case(real(2, 3, 4), real(4, 3, 2), axes=([1, 2], [1, 0])), case(V, V, 0)],
    "vecdot": [case(X, Y), case(C, C, axis=0), case(X, V)], "matvec": [case(real(2, 3, 4), V)],
    "vecmat": [case(real(2, 3), real(3, 4))], "kron": [case(X, Y), case(V, X)],
    "cross": [case(real(5, 3), real(5, 3)), case(real(3), real(5, 3)), case(real(3, 5), real(3, 5), axis=0)],
    "einsum": [case("ij,kj->ik", X, Y), case("ii->i", definite(3)), case("ij->", X), case("ij,jk,kl->il", X, X.T.copy(), Y),
               case("bij,bjk->bik", real(2, 3, 4), real(2, 4, 5)), case("i,j", V, V), case("...j,j->...", X, V),
               case("ij,ij->j", X, Y), case("iij->j", real(3, 3, 2))],
    "einsum_path": [], "trace": [case(X), case(real(3, 3, 2), 1), case(I)],
    "diagonal": [case(X), case(X, 1), case(real(2, 3, 3), -1, 1, 2)], "diag": [case(X), case(V), case(V, -1), case(X, 1)],
    "diagflat": [case(X), case(V, 1)], "eye": [case(3), case(3, 4, 1), case(2, dtype="int32")], "identity": [case(3)],
    "tri": [case(3), case(3, 4, -1)], "tril": [case(X), case(X, -1), case(real(2, 3, 3))], "triu": [case(X), case(X, 1), case(I)],
    "fill_diagonal": [case(X, 9.0, inplace=False), case(definite(3), V[:3].copy(), inplace=False)],
    "vander": [case(V), case(V, 3), case(V, 3, increasing=True)],
    "tril_indices": [case(3), case(3, 1, 4)], "triu_indices": [case(3, -1)], "tril_indices_from": [case(X)],
    "triu_indices_from": [case(X, 1)], "diag_indices": [case(3), case(2, 3)], "diag_indices_from": [case(definite(3))],
    "mask_indices": [],
    "linalg.norm": [case(X), case(V, 1), case(X, "nuc"), case(X, 2), case(X, -2), case(X, np.inf), case(X, axis=1), case(V, 3),
                    case(X, 1, keepdims=True), case(V, -np.inf), case(V, 0), case(C), case(X, "fro", axis=(0, 1))],
    "linalg.vector_norm": [case(X), case(X, axis=0, ord=1)], "linalg.matrix_norm": [case(X), case(X, ord=1)],
    "linalg.inv": [case(definite(3)), case(np.stack([definite(2), definite(2)]))], "linalg.pinv": [case(X)],
    "linalg.solve": [case(definite(3), V[:3].copy()), case(definite(4), real(4, 2)), case(np.stack([definite(2)] * 2), real(2, 2, 3)),
                     case(integer(3, 3) + 20 * np.eye(3, dtype=np.int32), V[:3].copy())],
    "linalg.det": [case(definite(3)), case(np.stack([definite(2), definite(2)])), case(real(4, 4))],
    "linalg.slogdet": [case(definite(3)), case(real(4, 4))],
    "linalg.cholesky": [case(definite(3)), case(definite(3), upper=True)],
    "linalg.qr": [case(X), case(X, "r")], "linalg.svd": [case(X, compute_uv=False)], "linalg.svdvals": [case(X)],
    "linalg.eigh": [case(definite(3))], "linalg.eigvalsh": [case(definite(3))], "linalg.eigvals": [case(definite(3))],
    "linalg.eig": [], "linalg.lstsq": [case(real(5, 3), real(5)), case(real(5, 3), real(5, 2))],
    "linalg.matrix_power": [case(definite(3), 3), case(definite(3), -2), case(definite(3), 0)],
    "linalg.matrix_rank": [case(X), case(np.ones((3, 3), np.float32)), case(V)],
    "linalg.multi_dot": [case([X, X.T.copy(), Y]), case([V, X.T.copy(), X])],
    "linalg.cond": [case(X), case(definite(3), 1)], "linalg.trace": [case(real(2, 3, 3))], "linalg.diagonal": [case(X)],
    "linalg.tensorsolve": [case(real(2, 3, 6) + 5 * np.eye(6, dtype=np.float32).reshape(2, 3, 6), real(2, 3))],
    "linalg.tensorinv": [case(real(2, 3, 6) + 5 * np.eye(6, dtype=np.float32).reshape(2, 3, 6))],
    "linalg.cross": [case(real(5, 3), real(5, 3))], "linalg.matmul": [case(X, X.T.copy())], "linalg.outer": [case(V, V)],
    "linalg.tensordot": [case(X, X)], "linalg.vecdot": [case(X, Y)], "linalg.matrix_transpose": [case(X)],
}
# searching, sorting, sets
CASES |= {
    "sort": [case(X), case(X, 0), case(with_nan(6)), case(I, None), case(I, descending=True)],
    "argsort": [case(X), case(I, 0), case(with_nan(6)), case(I, descending=True)], "lexsort": [case((integer(6, low=0, high=3), real(6)))],
    "partition": [case(np.sort(V), 2)], "argpartition": [case(np.sort(V), 2)], "sort_complex": [case(C), case(V)],
    "searchsorted": [case(SORTED, V), case(SORTED, X, side="right"), case(np.array([1, 2, 2, 5], np.int32), 2),
                     case(SORTED, SPECIAL)],
    "digitize": [case(V, SORTED), case(V, SORTED[::-1].copy(), True), case(X, SORTED, right=True)],
    "nonzero": [case(I, size=6), case(B, size=12, fill_value=-1)],
    "argwhere": [case(I, size=5)], "flatnonzero": [case(I, size=5, fill_value=7)],
    "unravel_index": [case(integer(5, low=0, high=12), (3, 4))],
    "ravel_multi_index": [case((integer(5, low=0, high=3), integer(5, low=0, high=4)), (3, 4), mode="clip"),
                          case((integer(5), integer(5)), (3, 4), mode="wrap")],
    "where": [case(MASK, X, Y), case(MASK, X, 0), case(X, 1, 2.5), case(MASK[0], X, V), case(B, size=4), case(True, I, X)],
    "select": [case([X > 0, Y > 0], [X, Y]), case([X > 0], [I], 7)],
    "choose": [case(integer(4, low=0, high=3), [V, V * 2, V * 3], mode="clip"), case(integer(4), [V, V + 1], mode="wrap")],
    "piecewise": [case(X, [X < 0, X > 1], [-1, 2, 0.5])], "compress": [case(np.array([True, False, True]), X, 0, size=2)],
    "extract": [case(MASK, X, size=4)],
    "take": [case(X, integer(5, low=0, high=3), 0), case(X, 2), case(X, integer(2, 2, low=0), axis=None), case(X, integer(3), 1, mode="clip"),
             case(X, integer(3), 1, mode="wrap"), case(X, integer(4), 0, mode="fill")],
    "take_along_axis": [case(X, integer(3, 2, low=0, high=4), 1), case(X, integer(1, 4, low=-3, high=3), 0)],
    "put": [case(X, np.array([0, 5], np.int32), np.array([9.0, 8.0], np.float32), inplace=False)],
    "put_along_axis": [case(X, integer(3, 1, low=0, high=4), 7.0, 1, inplace=False)],
    "place": [case(X, MASK, V, inplace=False)], "delete": [case(X, 1, 0), case(X, slice(1, 3), 1)],
    "insert": [case(V, 1, 9.0), case(X, 1, V, 0)], "trim_zeros": [], "ix_": [case(integer(2), integer(3))],
    "unique": [case(integer(9, low=0, high=4), size=5), case(integer(9, low=0, high=4), True, True, True, size=6),
               case(with_nan(6), size=4), case(integer(6, 2, low=0, high=2), axis=0, size=5)],
    "unique_values": [case(integer(9, low=0, high=4), size=5)], "unique_counts": [case(integer(9, low=0, high=4), size=5)],
    "unique_inverse": [case(integer(9, low=0, high=4), size=5)], "unique_all": [case(integer(9, low=0, high=4), size=5)],
    "isin": [case(I, integer(4)), case(X, V, invert=True)], "intersect1d": [], "union1d": [case(integer(4), integer(5), size=9)],
    "setdiff1d": [case(integer(6, low=0, high=5), np.array([1, 2], np.int32), size=6)], "setxor1d": [],
}
# polynomials and signals
CASES |= {
    "polyval": [case(V, X), case(V, 2.0), case(integer(3), I)], "polyadd": [case(V, V[:2].copy())], "polysub": [case(V[:2].copy(), V)],
    "polymul": [case(V, V[:3].copy())], "polydiv": [case(V, V[:2].copy() + 3)], "polyder": [case(V), case(V, 2), case(integer(4))],
    "polyint": [case(V), case(V, 2, k=np.array([1.0, 2.0], np.float32))], "polyfit": [case(SORTED, real(6), 2), case(SORTED, real(6), 1, w=positive(6))],
    "poly": [case(V)], "roots": [],
    "interp": [case(X, SORTED, real(6)), case(V, SORTED, real(6), left=-1.0, right=2.0), case(V, SORTED, real(6), period=1.5)],
    "convolve": [case(V, V[:3].copy()), case(V, V[:2].copy(), "same"), case(V[:2].copy(), SORTED, "valid"), case(integer(5), integer(3))],
    "correlate": [case(SORTED, V[:3].copy()), case(V[:2].copy(), SORTED, "full"), case(SORTED, V, "same"), case(V[:2].copy(), SORTED, "same"), case(C[0], C[1, :2].copy(), "full")],
    "unwrap": [case(np.cumsum(positive(9))), case(np.array([0, 1, 2, -1, 0], np.int32), period=4)],
}
for name in "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn".split():
    data = X if name in ("rfft", "rfft2", "rfftn", "ihfft") else C
    CASES[f"fft.{name}"] = [case(data), case(data, norm="ortho")]
for name in "fft ifft rfft irfft".split():
    CASES[f"fft.{name}"] += [case(X if name == "rfft" else C, 6), case(X if name == "rfft" else C, 2, 0, norm="forward")]
CASES |= {
    "fft.fftfreq": [case(5), case(6, 0.5)], "fft.rfftfreq": [case(5)], "fft.fftshift": [case(X), case(V, 0)],
    "fft.ifftshift": [case(X), case(X, 1)],
}
# creation
CASES |= {
    "array": [case(X), case([1, 2]), case([1.5, 2]), case(3), case([[True, False]]), case(X, "int32"), case([X[0], X[1]]), case(2.5),
              case(V, ndmin=3), case([])],
    "asarray": [case(X), case([[1, 2], [3, 4]]), case(1j)], "copy": [case(X)], "zeros": [case((2, 3)), case(4, "int32")],
    "ones": [case((2, 3)), case((), bool)], "empty": [case(3)], "full": [case((2, 2), 7), case(3, 1.5, "float16"), case((3, 4), V)],
    "zeros_like": [case(X), case(I, dtype="float32")], "ones_like": [case(X, shape=(2,)), case(B)], "empty_like": [case(X)],
    "full_like": [case(X, 3), case(I, 2.7), case(X, 1, "int32")],
    "arange": [case(5), case(2, 9, 3), case(0.0, 1.0, 0.25), case(5.0), case(5, dtype="float32"), case(9, 0, -2), case(1, 3.5), case(5, step=2)],
    "linspace": [case(0, 1, 5), case(0.0, 3.0, 4, endpoint=False), case(1, 2, 3, retstep=True), case(V, V + 1, 3, axis=1), case(0, 10, 5, dtype="int32"),
                 case(0, 1, 1), case(0, 1, 0)],
    "logspace": [case(0, 2, 5), case(0, 1, 3, base=2.0)], "geomspace": [case(1, 100, 5), case(-1.0, -8.0, 4), case(V + 3, 9.0, 3)],
    "meshgrid": [case(V, real(3)), case(V, real(3), indexing="ij"), case(V, real(3), sparse=True)],
    "indices": [case((2, 3)), case((2, 3), sparse=True)], "fromfunction": [], "frombuffer": [], "fromstring": [],
    "from_dlpack": [], "bartlett": [case(5)], "blackman": [case(5)], "hamming": [case(5)], "hanning": [case(5)], "kaiser": [case(5, 2.0)],
    "result_type": [case(X, I), case("int8", 2.0)], "promote_types": [case("int8", "uint8"), case("float16", "int32")],
    "issubdtype": [case("float32", np.floating), case("int8", np.inexact)], "isdtype": [case("float32", "real floating")],
    "can_cast": [case("int8", "int32")], "finfo": [], "iinfo": [],
}

# Results whose length depends on values: traced calls need `size=`, so these run eagerly only.
EAGER_CASES = {
    "nonzero": [case(I), case(B)], "argwhere": [case(I)], "flatnonzero": [case(I)], "where": [case(B)],
    "unique": [case(integer(9, low=0, high=4)), case(integer(9, low=0, high=4), True, True, True), case(with_nan(6)),
               case(integer(6, 2, low=0, high=2), axis=0), case(np.zeros(0, np.float32))],
    "unique_values": [case(I)], "unique_counts": [case(I)], "unique_inverse": [case(I)], "unique_all": [case(I)],
    "union1d": [case(I, integer(4))], "intersect1d": [case(I, integer(9)), case(integer(6), integer(9), return_indices=True)],
    "setdiff1d": [case(I, integer(4))], "setxor1d": [case(integer(6), integer(4))], "compress": [case(np.array([True, False, True]), X, 0)],
    "extract": [case(MASK, X)], "trim_zeros": [case(np.array([0, 1, 0, 2, 0], np.float32))], "bincount": [case(integer(9, low=0))],
    "roots": [case(np.array([1.0, -6.0, 11.0, -6.0], np.float32))], "ravel_multi_index": [case((integer(5, low=0, high=3), integer(5, low=0, high=4)), (3, 4))],
    "choose": [case(integer(4, low=0, high=2), [V, V * 2])], "mask_indices": [case(3, np.triu)],
    "repeat": [case(V, np.array([1, 2, 0, 3]))], "delete": [case(V, np.array([0, 2]))], "insert": [case(X, np.array([0, 2]), 5.0, 1)],
    "array_equal": [case(X, V)], "fromstring": [case("1 2 3", "int32", sep=" ")],
    "frombuffer": [case(b"\x00\x01\x02", "uint8")],
    "polydiv": [case(np.array([1, -3, 2], np.float32), np.array([1, -1], np.float32), trim_leading_zeros=True)],
}
