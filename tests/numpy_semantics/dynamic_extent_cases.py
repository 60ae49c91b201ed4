"""Functions with slices whose extents depend on loop counters or on contents: name -> (function, arguments)."""

from __future__ import annotations

import numpy as np

CASES = {}


def case(*make_arguments):
    """Decorator: a function and what makes its arguments, given a random generator."""

    def register(function):
        CASES[function.__name__] = (function, make_arguments)
        return function

    return register


def matrix(*shape):
    return lambda rng: rng.uniform(-1, 1, shape)


def whole(low, high, *shape, dtype=np.int64):
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def positive_definite(n):
    def make(rng):
        a = rng.uniform(-1, 1, (n, n))
        return a @ a.T + n * np.eye(n)

    return make


def value(x):
    return lambda rng: x


# -- linear algebra -----------------------------------------------------------------------------------------
@case(positive_definite(9))
def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@case(positive_definite(9))
def lu(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


@case(positive_definite(9), matrix(9))
def solve_triangular(A, b):
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(A.shape[0]):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(A.shape[0] - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


@case(value(1.5), value(1.2), matrix(7, 7), matrix(7, 5))
def rank_k_update(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


@case(value(1.5), value(1.2), matrix(7, 5), matrix(7, 7), matrix(7, 5))
def symmetric_product(alpha, beta, C, A, B):
    temp2 = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2


@case(value(1.5), matrix(7, 7), matrix(7, 5))
def triangular_product(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


@case(matrix(12))
def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@case(matrix(8, 6))
def covariance(data):
    M = data.shape[1]
    data -= np.mean(data, axis=0)
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = cov[i, i:M] = data[:, i] @ data[:, i:M] / (8 - 1.0)
    return cov


@case(value(np.array([0, 2, 2, 5, 6, 9])), whole(0, 7, 9, dtype=np.int32), matrix(9), matrix(7))
def sparse_product(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in range(A_row.size - 1):
        cols = A_col[A_row[i] : A_row[i + 1]]
        vals = A_val[A_row[i] : A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


@case(matrix(6, 6), matrix(6, 6))
def leading_products(A, B):
    out = np.zeros((6, 6))
    for i in range(A.shape[0]):
        out[: i + 1, : i + 1] += A[: i + 1, :i] @ B[:i, : i + 1]
        out[i:, 0] += A[i:, :i] @ B[:i, 2]
    return out


# -- masks --------------------------------------------------------------------------------------------------
@case(matrix(40), matrix(40), value(5))
def bin_means(data, radius, count):
    radius = np.abs(radius)
    res = np.zeros(count, dtype=np.float64)
    for i in range(count):
        mask = np.logical_and(i / count <= radius, radius < (i + 1) / count)
        res[i] = data[mask].mean()
    return res


@case(value(9), value(8), value(7))
def escape_times(xn, yn, maxiter):
    X = np.linspace(-2, 0.5, xn, dtype=np.float64)
    Y = np.linspace(-1, 1, yn, dtype=np.float64)
    C = X + Y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for n in range(maxiter):
        inside = np.less(abs(Z), 2.0)
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[N == maxiter - 1] = 0
    return Z, N


@case(matrix(5, 4))
def masked_power(x):
    x[x > 0] = x[x > 0] ** (-1.5)


@case(matrix(5, 4), matrix(5, 4))
def masked_sum_in_place(x, y):
    mask = x > y
    x[mask] += y[mask]
    return x[mask].sum(), x[mask].size, len(y[mask])


@case(matrix(30))
def picked_statistics(x):
    v = x[x > 0.2]
    return (
        v.sum(),
        v.min(),
        v.max(),
        v.mean(),
        v.std(),
        v.var(ddof=1),
        v.prod(),
        np.ptp(v),
        v.argmax(),
        v.argmin(),
    )


@case(matrix(12), matrix(12))
def unequal_masks(x, y):
    v = x[x > 0]
    x[x > 0] = np.cumsum(v)
    x[x <= 0] = y[x <= 0]
    return x[x > 0][0], v[-1], v[1:3].sum()


# -- extents ------------------------------------------------------------------------------------------------
@case(matrix(10), matrix(10))
def shifted_sums(x, y):
    out = np.zeros(10)
    for k in range(1, 10):
        out[k] = (x[: 10 - k] * y[k:]).sum() + (x[k:] - y[:-k]).max()
        x[:k] += 0.5 * x[:k][::-1]
        y[k:] = x[: 10 - k]
    return out


@case(matrix(11))
def strided(x):
    out = np.zeros(11)
    for k in range(1, 11):
        out[k] = x[:k:2].sum() + x[k - 1 :: -2].sum() - x[k::-1].mean()
        x[:k:3] = k
        x[k:0:-2] *= 1.5
    return out


@case(matrix(9))
def copies(x):
    out = np.zeros((9, 9))
    for k in range(9):
        t = x[:k].copy()
        t *= 2
        t[: k // 2] = -1
        out[k, :k] = t
        out[k, k:] = np.sort(x[k:])
        out[:k, k] += np.cumsum(x[:k])
    return out


@case(whole(-5, 6, 9, dtype=np.int32), matrix(9))
def whole_numbers(x, y):
    out = np.zeros(9, np.int64)
    for k in range(1, 9):
        out[k] = x[:k].sum() + x[k:].max() - np.dot(x[:k], x[:k]) + np.count_nonzero(y[:k] > 0)
        y[:k] = x[:k] // 2
        x[:k] -= k
    return out


@case(matrix(6, 7))
def both_axes(A):
    out = np.zeros((6, 7))
    s = 0.0
    for i in range(6):
        for j in range(7):
            s += A[:i, j:].sum() + np.mean(A[i:, : j + 1])
            out[i:, j:] += A[i:, j:] * 0.5
            out[:i, j] -= A[:i, :j].sum(axis=1)
            out[i, :j] += A[: i + 1, :j].max(axis=0)
    return out, s


@case(whole(0, 8, 6), matrix(8))
def bounds_from_contents(n, x):
    s = 0.0
    for i in range(5):
        a = x[n[i] : n[i + 1]]
        s = s + a.sum() * a.shape[0] + x[-n[i] :].sum() + x[: -n[i]].sum() + x[n[i] - 4 : n[i] + 2].sum()
    return s


@case(whole(0, 8, 6), matrix(8))
def listed_elements(n, x):
    out = np.zeros(8)
    for i in range(6):
        out[i] = x[n[:i]].sum()
        x[n[i:]] = i
    return out


@case(matrix(9))
def traced_loop(x):
    s = 0.0
    for k in range(9):
        for v in x[:k]:
            s += v * k
        for i in range(len(x[k:])):
            s -= x[k:][i]
    return s


@case(value(np.mgrid[0:9, 0:8]), value(12))
def escape_of_the_rest(places, itermax):
    Xi, Yi = places[0].copy(), places[1].copy()
    X = np.linspace(-2, 0.5, 9, dtype=np.float64)[Xi]
    Y = np.linspace(-1, 1, 8, dtype=np.float64)[Yi]
    C = X + Y * 1j
    N_ = np.zeros(C.shape, dtype=np.int64)
    Z_ = np.zeros(C.shape, dtype=np.complex128)
    Xi.shape = Yi.shape = C.shape = 72
    Z = np.zeros(C.shape, np.complex128)
    for i in range(itermax):
        if not len(Z):
            break
        np.multiply(Z, Z, Z)
        np.add(Z, C, Z)
        escaped = abs(Z) > 2.0
        N_[Xi[escaped], Yi[escaped]] = i + 1
        Z_[Xi[escaped], Yi[escaped]] = Z[escaped]
        np.logical_not(escaped, escaped)
        Z = Z[escaped]
        Xi, Yi = Xi[escaped], Yi[escaped]
        C = C[escaped]
    return Z_.T, N_.T
