# ruff: noqa: E701, E702, E731, E741
"""Programs of array functions: indexing, layouts, dtypes, special values, linear algebra.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""


import numpy as np

from tests.autojit.programs import I, R, program


@program(lambda: (R(5, 4), I(0, 5, 3), I(0, 4, 3)), lambda: (R(5, 4, seed=1), I(-5, 5, 3), I(-4, 4, 3)), lambda: (R(5, 4, seed=1), np.array([0, 7, 1]), I(-4, 4, 3)), lambda: (R(3, 3), I(0, 3, 2, 2), I(0, 3, 2, 2)))
def fancy(x, i, j):
    return x[i], x[i, j], x[:, j], x[i[:, None], j], x[i, :2], x[..., j], x[np.ix_(i.ravel(), j.ravel())], x[i, None, j]

@program(lambda: (R(5, 4), I(0, 5, 3)), lambda: (R(5, 4, seed=1), np.array([1, 1, 1])), lambda: (R(5, 4), np.array([-1, 0, 9])))
def fancy_write(x, i):
    x[i] += 1
    np.add.at(x, i, 10.0)
    x[i, 0] = np.arange(len(i))
    x[i[0]:, 1:3] *= -1
    x[x > 5] = 5
    x[:, ::2][i] = 0
    return x.sum()

@program(lambda: (R(5, 4),), lambda: (R(5, 4, seed=1),), lambda: (np.asfortranarray(R(3, 3)),), lambda: (R(6, 8)[::-2, ::2],), lambda: (R(3, 0),))
def mask_ops(x):
    m = x > 0
    y = np.where(m, x, -1)
    x[m] *= 2
    x[~m] = np.arange((~m).sum())
    return y, x[m].sum(), m.sum(0), np.count_nonzero(m), np.argwhere(m), np.flatnonzero(m), np.nonzero(m), x[m].shape, np.where(m)[0], np.extract(m, x), np.compress([True, False, True], x, axis=0)

@program(lambda: (R(10),), lambda: (np.round(R(10, seed=1)),), lambda: (np.array([3., np.nan, 1, 1]),), lambda: (I(0, 4, 12),))
def sort_family(x):
    o = np.argsort(x, kind="stable")
    u, inv, cnt = np.unique(x, return_inverse=True, return_counts=True)
    return np.sort(x), x[o], np.sort(x)[::-1], o, u, inv, cnt, np.searchsorted(np.sort(x), [0.0, 1], side="right"), np.partition(x, 2)[2], np.argmin(x), np.argmax(x), np.lexsort((o, x))

@program(lambda: (R(3, 4), R(4, 5), R(5)), lambda: (R(3, 4, seed=1), R(4, 5), R(5)), lambda: (R(2, 2), R(2, 2), R(2)))
def einsums(a, b, c):
    return np.einsum("ij,jk,k->i", a, b, c), np.einsum("ij->ji", a), np.einsum("ij->", a), np.einsum("ij,ij->i", a, a), np.tensordot(a, b, 1), np.tensordot(a, a, axes=([0, 1], [0, 1])), np.linalg.multi_dot([a, b, c]), np.inner(a, a), np.vdot(a, a), np.kron(a[:2, :2], b[:2, :2]), np.outer(c, c)

@program(lambda: (R(4, 6),), lambda: (R(4, 6, seed=1),), lambda: (R(6, 4).T,), lambda: (R(2, 2, 6)[0],))
def shapes(x):
    return (x.reshape(-1), x.reshape(3, -1), x.T, x.ravel("F"), x[:, None, :].shape, np.swapaxes(x, 0, 1), np.moveaxis(x[None], 0, -1), x.flatten(),
            np.squeeze(x[None]), np.expand_dims(x, 1).shape, np.stack([x, x], -1), np.concatenate([x, x], 1), np.hstack([x, x]), np.vstack([x, x[:1]]), np.dstack([x, x]).shape,
            np.tile(x, (2, 1)), np.repeat(x, 2, axis=1), np.flip(x), np.rot90(x), np.roll(x, (1, 2), (0, 1)), np.split(x, 2), np.array_split(x, 3), np.broadcast_to(x, (2, 4, 6) if x.shape == (4, 6) else (2,) + x.shape), np.atleast_3d(x).shape)

@program(lambda: (R(4, 6),), lambda: (R(4, 6, seed=1),), lambda: (R(6, 4).T,))
def cumulative(x):
    return x.cumsum(), x.cumsum(1), x.cumprod(0), np.diff(x), np.diff(x, 2, axis=0), np.ediff1d(x), np.gradient(x), np.trapezoid(x, dx=.1), np.maximum.accumulate(x, axis=1), np.add.reduceat(x[0], [0, 2, 4] if x.shape[1] > 4 else [0, 2]), np.add.outer(x[0], x[1]), np.convolve(x[0], [1, 2, 1], "same"), np.correlate(x[0], x[1], "full")

@program(lambda: (I(0, 255, 6).astype(np.uint8), I(0, 255, 6, seed=1).astype(np.uint8)), lambda: (I(0, 255, 6, seed=3).astype(np.uint8), np.zeros(6, np.uint8)), lambda: (I(0, 255, 3).astype(np.int8), I(0, 255, 3, seed=1).astype(np.int8)))
def wrap_u8(a, b):
    return a + b, a - b, a * b, a // np.maximum(b, 1), a % np.maximum(b, 1), a / 2, a << 1, a >> 1, ~a, -a, a ^ b, a.sum(), a.mean(), a.cumsum(), a ** 2, a + 1, a * 1.0, a @ b, np.dot(a, b), a > b, np.minimum(a, b), a.astype(np.int8), np.add(a, b, dtype=np.int32), a.max() - b.min(), a.prod(), np.abs(a.astype(np.int8))

@program(lambda: (np.uint8(200), 100), lambda: (np.uint8(200), 55), lambda: (np.uint8(3), 300), lambda: (np.int16(3), 5))
def nep50(a, k):
    return a + k, a * 2, a / k, a // 2, a + 1.0, a + np.float32(1), np.float32(k) * 2.0, a ** 2

@program(lambda: (np.array([2**63 - 1, -2**63, 5]),), lambda: (np.array([2**62, -2**62, 7]),))
def wrap_i64(a):
    return a + 1, a * 2, abs(a), -a, a // -1, a.sum(), a ** 2, a % 3, a // 3, np.square(a), a.astype(np.int32), a.astype(np.uint64), a.astype(float), a >> 62, a.view(np.uint64) >> 1, np.sign(a), a.prod(), np.diff(a)

@program(lambda: (np.array([1., np.inf, -np.inf, np.nan, -0., 0.]),), lambda: (np.array([1e300, 1e-310, -1e300, 2, 3, 4]),))
def specials(x):
    return (x + x, x - x, x * x, x / x, 1 / x, x.sum(), x.max(), np.nanmax(x), x.argmax(), x.argmin(), np.nanargmin(x), np.isnan(x), np.isinf(x), np.isfinite(x), np.sqrt(x), np.log(x), np.exp(x), np.sin(x), np.arctan(x), np.tanh(x), x == x, x < 0, np.minimum(x, 0), np.fmin(x, 0), np.fmax(x, 1), np.maximum(x, np.nan), np.clip(x, -1, 1), np.nan_to_num(x), np.sort(x), np.unique(x), np.cumsum(x), x ** 0, x ** .5, 0 ** x, np.hypot(x, 3), np.arctan2(x, -0.0), np.power(x, 3), np.cbrt(x), np.logaddexp(x, 1), np.heaviside(x, .5), np.sinc(x), np.rad2deg(x))

@program(lambda: (R(4) + 1j * R(4, seed=1),), lambda: (R(4, seed=3) + 1j * R(4, seed=1),), lambda: (np.array([0, 1j, -1, np.inf]),))
def cplx(z):
    return z * z, z / (z + 1), abs(z), np.angle(z), z.conj(), z.real, z.imag, np.exp(1j * z.real), z ** 2, np.sqrt(z), z.sum(), z @ z, np.vdot(z, z), z.mean(), np.abs(z) ** 2, (z * z.conj()).real, z == z, np.exp(z.real) + 0j, z.prod(), z.cumsum(), z[::-1]

@program(lambda: (R(4) + 1j * R(4, seed=1),), lambda: (R(4, seed=3) + 1j * R(4, seed=1),), lambda: (R(3) + 0j,))
def cplx_write(z):
    z.real[0] = 5
    z.imag += 1
    z.real = z.imag
    z[1] = 2
    z *= 1j
    v = z.view(float)
    v[::2] -= 1
    return z, v

@program(lambda: (np.zeros(0),), lambda: (np.zeros((0, 3)),), lambda: (np.zeros((2, 0)),))
def empties(x):
    return x.sum(), x.prod(), x + 1, x.shape, x.size, x.T, x.reshape(-1), np.concatenate([x, x]), x > 0, x.any(), x.all(), len(x), x.cumsum(), np.sort(x), x.sum(0), x.mean(axis=0) if x.ndim > 1 and x.shape[0] else None, x.copy(), x[x > 0], np.unique(x)

@program(lambda: (np.zeros(0),), lambda: (np.zeros((0, 3)),), lambda: (np.ones(3),))
def empty_max(x):
    return x.max()

@program(lambda: (np.zeros(0),), lambda: (np.zeros((0, 3)),), lambda: (np.ones(3),))
def empty_argmin(x):
    return np.argmin(x)

@program(lambda: (np.array(2.5),), lambda: (np.array(3.5),), lambda: (np.array(4),))
def zero_d(x):
    x += 1
    y = x * 2
    return x, y, type(y).__name__, x[()], x[...], x.item(), float(x), x.reshape(1), np.sin(x), x.sum(), x + np.ones(2), x.ndim, x.T, abs(x), x.copy(), x > 2, -x, x[None]

@program(lambda: (np.asfortranarray(R(4, 5)),), lambda: (np.asfortranarray(R(4, 5, seed=1)),), lambda: (R(8, 5)[::2],), lambda: (R(4, 10)[:, ::-2],), lambda: (R(4, 5)[::-1],))
def layouts(x):
    y = x + 1
    z = x.copy()
    w = x.ravel()
    v = np.empty_like(x)
    v[...] = x
    x[0] = 9
    return y, z, w, v, x.T @ x, x.reshape(-1)[3], y.flags.c_contiguous, np.ascontiguousarray(x), np.asarray(x) is x, np.zeros_like(x), x.sum(axis=0), np.exp(x), x.T.copy()

def readonly(a):
    a.flags.writeable = False
    return a

@program(lambda: (readonly(R(4)),), lambda: (readonly(R(4, seed=2)),), lambda: (R(4),))
def write_readonly(x):
    y = x * 2
    x[0] = 1
    return y

@program(lambda: (readonly(R(4)),), lambda: (readonly(R(4, seed=2)),), lambda: (R(4),))
def view_readonly(x):
    return x[1:], x, x.T, x + 0

def alias(n, lo=1):
    a = R(n)
    return a, a[lo:], a

@program(lambda: alias(6), lambda: alias(6), lambda: alias(8, 2), lambda: (R(5), R(4), R(5)))
def aliasing(a, b, c):
    a[0] += 1
    b[0] = 7
    c[-1] = b[0] + a[1]
    b += 1
    return a.sum(), c is a, a, b

def overlap(n):
    a = R(n)
    return a[:-1], a[1:]

@program(lambda: overlap(6), lambda: overlap(6), lambda: overlap(9), lambda: (R(5), R(5, seed=3)))
def overlap_shift(a, b):
    a[:] = b
    b += a
    for i in range(len(a)):
        a[i] += b[i]
    return a

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def self_overlap(x):
    x[1:] = x[:-1]
    x[1:] += x[:-1]
    x[:-1] = x[1:] * 2
    x[::-1] += x
    y = x[::-1]
    y[0] = 100
    x[:2], x[1:] = x[1:3].copy(), x[:-1]
    return x, y

@program(lambda: (R(6, 6),), lambda: (R(6, 6, seed=1),), lambda: (R(3, 3),))
def diag_views(x):
    x.flat[::7] = 0
    np.fill_diagonal(x, 5)
    i = np.arange(len(x))
    x[i, i] += 1
    x[np.triu_indices(len(x), 1)] = -1
    x[np.tril_indices_from(x, -1)] *= 2
    d = np.diagonal(x)
    return x, d, x.trace(), np.diag(d), np.tril(x), np.triu(x, 1)

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def out_args(x):
    b = np.empty_like(x)
    np.add(x, 1, out=b)
    np.multiply(b, 2, b)
    np.sqrt(np.abs(x), out=x)
    np.clip(x, .1, .5, out=x)
    np.cumsum(x, out=b)
    np.sum(x, out=b[0:1].reshape(()))
    np.copyto(x, b, where=b > 1)
    np.putmask(x, x > 1, 0)
    np.add(x, 1, out=x, where=x > 0)
    return b, x

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def methods_inplace(x):
    y = x.copy()
    y.sort()
    x.fill(2)
    z = x.tolist()
    w = y.clip(0)
    y.itemset if False else None
    x.put([0, 1], [7, 8])
    y.partition(1)
    return y, z, w, x, x.take([0, 0]), y.searchsorted(0.0), x.repeat(2), y.argsort(), x.nbytes, x.itemsize, y.dtype.name, x.any(), y.round(1), y.ptp() if False else 0, x.astype(int), y.tolist()[0]

@program(lambda: (R(4, 3),), lambda: (R(4, 3, seed=1),), lambda: (R(3, 3),))
def linalgs(a):
    g = a.T @ a + np.eye(3)
    w, v = np.linalg.eigh(g)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    q, r = np.linalg.qr(a)
    return np.linalg.inv(g), np.linalg.det(g), np.linalg.solve(g, np.ones(3)), w, s, (u * s) @ vt, np.linalg.cholesky(g), np.linalg.norm(a, axis=1), np.linalg.matrix_rank(a), np.linalg.lstsq(a, np.ones(len(a)), rcond=None)[0], np.linalg.pinv(a), np.linalg.slogdet(g), np.linalg.matrix_power(g, 3), np.trace(g), abs(q @ r), np.linalg.cond(g)

@program(lambda: (np.zeros((2, 2)),), lambda: (np.ones((2, 3)),), lambda: (np.eye(2),))
def singular(a):
    return np.linalg.inv(a)

@program(lambda: (np.zeros((2, 2)),), lambda: (np.eye(2),))
def singular_caught(a):
    try:
        return np.linalg.solve(a, np.ones(2))
    except np.linalg.LinAlgError as e:
        return str(e)

@program(lambda: (R(5), 3), lambda: (R(5), 4), lambda: (R(9), 2), lambda: (R(5), 5), lambda: (R(5), 6))
def sliding(x, w):
    c = np.cumsum(np.insert(x, 0, 0))
    ma = (c[w:] - c[:-w]) / w
    v = np.lib.stride_tricks.sliding_window_view(x, w)
    return ma, v.max(axis=1), v.shape

@program(lambda: (R(20), 3), lambda: (R(20, seed=1), 4), lambda: (R(20), 5))
def sets_bins(x, nb):
    d = np.digitize(x, np.linspace(-2, 2, nb))
    return d, np.bincount(d), np.histogram(x, nb), np.intersect1d(d, [1, 2]), np.isin(d, [1]), np.union1d(d, [9]), np.setdiff1d(d, [1])

@program(lambda: (R(5), I(0, 3, 5)), lambda: (R(5, seed=1), I(0, 3, 5)), lambda: (R(7), I(0, 3, 7)))
def groupby(v, k):
    s = np.zeros(3)
    np.add.at(s, k, v)
    n = np.bincount(k, minlength=3)
    m = np.full(3, -np.inf)
    np.maximum.at(m, k, v)
    means = np.array([v[k == g].mean() if (k == g).any() else 0.0 for g in range(3)])
    o = np.argsort(k, kind="mergesort")
    return s, n, m, means, v[o], np.bincount(k, weights=v, minlength=3)

@program(lambda: (R(6).astype(np.float32), 2.0), lambda: (R(6, seed=1).astype(np.float32), 3.0), lambda: (R(3).astype(np.float16), 2.0))
def f32(x, s):
    return x * s, x + 1, x / 3, x.sum(), x.mean(), np.exp(x), x * np.float64(s), x ** 2, x.astype(float) * s, x.std(), np.sqrt(x * x), x @ x, x.dtype, np.float32(1) / 3, x.max() * s

@program(lambda: (R(6), I(-3, 3, 6)), lambda: (R(6, seed=1), I(-3, 3, 6)), lambda: (R(2), I(-3, 3, 2)))
def conversions(x, k):
    return x.astype(int), k.astype(float), k.astype(bool), x.astype(np.uint8), x > k, k / 2, k // 2, k % 2, -k % 5, k ** 2, 2.0 ** k, np.float64(k[0]), int(x[0]), bool(k[0]), float(k[1]), str(k.dtype), k.sum(dtype=float), np.array([1, 2.5, True]), np.array([k[0], 1]), np.asarray([x[0], x[1]]), np.result_type(x, k), np.array(x, dtype=np.float32), complex(x[0])

@program(lambda: (R(3, 4, 5),), lambda: (R(3, 4, 5, seed=1),), lambda: (R(2, 2, 2),))
def axes3(x):
    return x.sum((0, 2)), x.mean(-1), x.max(1, keepdims=True), np.argmax(x, axis=1), x.transpose(2, 0, 1), x.std(axis=(0, 1)), np.median(x, axis=1), np.take_along_axis(x, np.argsort(x, 1), 1), np.apply_along_axis(lambda v: v.sum() * v[0], 0, x), x[..., -1], x[:, 1, ::-1], x[[0, 1], [1, 0]], x[[0, 1], :, [1, 0]], x.any(axis=0), np.percentile(x, 30, axis=0), np.count_nonzero(x > 0, axis=2), np.cross(x[0, :, :3], x[1, :, :3]) if x.shape[2] > 2 else 0, np.linalg.norm(x, axis=(0, 1))

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def polys(x):
    return np.polyval([1, 2, 3], x), np.polyfit(x, x ** 2, 2), np.polyder([1., 2, 3]), np.roots([1, -3, 2.]), np.polymul([1, 2], [3, 4.])

@program(lambda: (R(6),), lambda: (R(6, seed=1),), lambda: (R(3),))
def piecewise(x):
    return np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2]), np.select([x < -1, x > 1], [0, x], default=np.nan), np.choose(x > 0, [x, -x]), np.vectorize(lambda v: v + 1 if v > 0 else 0.0)(x), np.digitize(x, [0])

@program(lambda: (R(6), True), lambda: (R(6, seed=1), False), lambda: (R(3), True))
def view_or_copy(x, copy):
    y = x[2:] if not copy else x[2:].copy()
    y[:] = 0
    z = x if x[0] > 0 else x.copy()
    z[1] = 42
    return x, y, z is x

@program(lambda: (R(3, 3),), lambda: (R(3, 3, seed=1),), lambda: (R(2, 2),))
def iterate_rows(a):
    for row in a:
        row /= row.sum()
    for i, j in np.ndindex(*a.shape):
        a[i, j] += i * j
    for k, v in np.ndenumerate(a):
        a[k] = v * 2
    for v in a.flat:
        pass
    for col in a.T:
        col[0] = 0
    it = np.nditer(a)
    return a, v, [float(t) for t in it]

@program(lambda: (R(5),), lambda: (R(5, seed=3),), lambda: (R(2),))
def ravel_write(x):
    m = np.zeros((len(x), 2))
    m.ravel()[:] = np.arange(m.size)
    m.reshape(2, -1)[0] = -1
    m.T[0] = x
    m.T.ravel()[:] = 0
    m[:, ::-1][0] = [8, 9]
    m.flatten()[0] = 77
    f = m.flat
    f[3] = 33
    return m, m.flat[2], list(m.flat)[:2]

@program(lambda: (R(8),), lambda: (R(8, seed=1),), lambda: (R(4),))
def delete_insert(x):
    return np.delete(x, 1), np.insert(x, 1, 9.0), np.append(x, 5), np.append(x[:, None], x[:, None], 1), np.resize(x, 3), np.trim_zeros(np.array([0, 1, 0])), np.pad(x, (1, 2)), np.pad(x, 1, mode="wrap"), np.pad(x, 2, mode="reflect"), np.r_[x, 1, 2:4], np.c_[x, x], np.block([[x[:2], x[:2]]]), np.array_equal(x, x), np.allclose(x, x + 1e-12), np.isclose(x[0], 1)

@program(lambda: (R(3, 3),), lambda: (R(3, 3, seed=1),), lambda: (R(2, 2),))
def einsum_views(a):
    np.einsum("ii->i", a)[:] = 1
    t = np.einsum("ij->ji", a)
    t[0] = 7
    return a, t, np.einsum("ij->i", a)

@program(lambda: (R(3, 3),), lambda: (R(3, 3, seed=1),), lambda: (R(2, 2),))
def flat_copies(a):
    y = a.flat[::2]
    y[0] = 100
    a.flat[1] = 5
    a.flat[[0, 3]] = 6
    z = a.flat[[1, 2]]
    z += 1
    a.T.flat[2] = -1
    s = 0.0
    for v in a.flat:
        s += v
    return a, y, z, s, a.flat[2], np.sum(a.flat)

@program(lambda: (R(3, 4),), lambda: (R(3, 4, seed=1),), lambda: (R(4, 3).T,), lambda: (R(6, 3)[::2],))
def orders(a):
    b = np.ascontiguousarray(a.T)
    b[0] = 5
    c = np.asfortranarray(a)
    return b, c + 1, a.sum()

@program(lambda: (R(3, 4),), lambda: (R(3, 4, seed=1),))
def orders_write(a):
    b = np.asfortranarray(a)
    b[0] = 5
    c = np.asarray(a, order="F")
    c[1] = 5
    d = np.ascontiguousarray(a)
    d[2] = -5
    e = np.asarray(a.T, order="C")
    e[0] = 17
    return b, c, d, e, d is a

@program(lambda: (np.arange(4),), lambda: (np.arange(3),), lambda: (np.arange(3).astype(np.uint8),), lambda: (np.arange(-2, 3).astype(np.int32),))
def reciprocals(n):
    return np.reciprocal(n), n ** 2
