# ruff: noqa: E701, E702, E731, E741
"""Scientific codes as people write them: grids, particles, graphs, filters, statistics.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import math

import numpy as np

from tests.autojit.programs import I, R, program


@program(lambda: (np.sin(np.linspace(0, 6, 40)), 0.1, 5), lambda: (R(40), 0.2, 5), lambda: (R(13), 0.2, 7))
def heat1d(u, r, steps):
    for _ in range(steps):
        u[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0], u[-1] = u[1], u[-2]
    return u

@program(lambda: (R(30), 0.5, 4), lambda: (R(30, seed=1), -0.5, 4), lambda: (R(7), 0.1, 3))
def upwind(q, c, n):
    q = q.copy()
    for _ in range(n):
        if c > 0:
            q = q - c * (q - np.roll(q, 1))
        else:
            q = q - c * (np.roll(q, -1) - q)
    return q

def minmod(a, b):
    return np.where(a * b <= 0, 0.0, np.where(np.abs(a) < np.abs(b), a, b))

@program(lambda: (R(30), 0.1, 0.02, 4), lambda: (R(30, seed=1), 0.1, 0.01, 4), lambda: (R(11), 0.1, 0.01, 4))
def muscl_burgers(u, dx, dt, n):
    for _ in range(n):
        s = minmod(u - np.roll(u, 1), np.roll(u, -1) - u)
        ul = u + 0.5 * s
        ur = np.roll(u - 0.5 * s, -1)
        a = np.maximum(np.abs(ul), np.abs(ur))
        f = 0.5 * (0.5 * ul ** 2 + 0.5 * ur ** 2) - 0.5 * a * (ur - ul)
        u = u - dt / dx * (f - np.roll(f, 1))
    return u, u.max(), u.argmax()

@program(lambda: (R(10, 3), R(10, 3, seed=1) * 0.1, np.abs(R(10, seed=2)), 0.01, 5), lambda: (R(10, 3, seed=5), R(10, 3, seed=1) * 0.1, np.abs(R(10, seed=2)), 0.02, 5), lambda: (R(4, 2), R(4, 2), np.ones(4), 0.01, 3))
def nbody(x, v, m, dt, n):
    def acc(x):
        d = x[None, :, :] - x[:, None, :]
        r2 = (d ** 2).sum(-1) + 1e-2
        return (d * (m[None, :, None] / r2[..., None] ** 1.5)).sum(axis=1)
    a = acc(x)
    for i in range(n):
        v += 0.5 * dt * a
        x += dt * v
        a = acc(x)
        v += 0.5 * dt * a
    e = 0.5 * (m * (v ** 2).sum(1)).sum()
    return x, e

@program(lambda: (R(200, 2).clip(-1, 1),), lambda: (R(200, 2, seed=4),), lambda: (R(10, 2, seed=4),))
def monte_carlo_pi(p):
    hits = 0
    for x, y in p:
        if x * x + y * y <= 1:
            hits += 1
    return 4 * hits / len(p), hits

@program(lambda: (I(0, 2, 64).astype(np.int8), 30, 5), lambda: (I(0, 2, 64, seed=3).astype(np.int8), 110, 5), lambda: (I(0, 2, 9).astype(np.int8), 90, 3))
def wolfram(cells, rule, steps):
    table = np.array([(rule >> i) & 1 for i in range(8)], dtype=np.int8)
    hist = [cells.copy()]
    for _ in range(steps):
        idx = 4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1)
        cells = table[idx]
        hist.append(cells)
    return np.array(hist)

@program(lambda: (I(0, 2, 12, 12), 4), lambda: (I(0, 2, 12, 12, seed=9), 4), lambda: (I(0, 2, 5, 8), 2))
def life(g, n):
    for _ in range(n):
        nb = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        g = ((nb == 3) | ((g == 1) & (nb == 2))).astype(int)
    return g, int(g.sum())

@program(lambda: (I(0, 2, 6, 6),), lambda: (I(0, 2, 6, 6, seed=2),), lambda: (I(0, 2, 3, 4),))
def life_loops(g):
    n, m = g.shape
    out = np.zeros_like(g)
    for i in range(n):
        for j in range(m):
            c = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di == 0 and dj == 0:
                        continue
                    a, b = i + di, j + dj
                    if 0 <= a < n and 0 <= b < m:
                        c += g[a, b]
            out[i, j] = 1 if c == 3 or (g[i, j] and c == 2) else 0
    return out

@program(lambda: (I(0, 5, 10), I(0, 5, 8)), lambda: (I(0, 3, 10, seed=1), I(0, 3, 8, seed=2)), lambda: (I(0, 3, 4), I(0, 3, 0)))
def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=int)
    d[:, 0] = np.arange(n + 1)
    d[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]

@program(lambda: (I(1, 10, 6), I(1, 20, 6), 15), lambda: (I(1, 10, 6, seed=1), I(1, 20, 6), 12), lambda: (I(1, 5, 3), I(1, 20, 3), 9))
def knapsack(w, v, cap):
    best = np.zeros(cap + 1, dtype=np.int64)
    for i in range(len(w)):
        for c in range(cap, w[i] - 1, -1):
            best[c] = max(best[c], best[c - w[i]] + v[i])
    return best[-1], best

@program(lambda: (np.where(I(0, 3, 7, 7) == 0, np.inf, np.abs(R(7, 7))),), lambda: (np.where(I(0, 3, 7, 7, seed=8) == 0, np.inf, np.abs(R(7, 7))),), lambda: (np.ones((3, 3)),))
def floyd(d):
    n = d.shape[0]
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d

@program(lambda: (np.abs(R(8, 8)), 0), lambda: (np.abs(R(8, 8, seed=3)), 2), lambda: (np.abs(R(4, 4, seed=3)), 1))
def dijkstra_dense(w, s):
    n = len(w)
    dist = np.full(n, np.inf)
    done = np.zeros(n, bool)
    prev = [-1] * n
    dist[s] = 0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not done[v] and (u < 0 or dist[v] < dist[u]):
                u = v
        done[u] = True
        for v in range(n):
            if dist[u] + w[u, v] < dist[v]:
                dist[v] = dist[u] + w[u, v]
                prev[v] = u
    return dist, prev

@program(lambda: (np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), 0), lambda: (np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), 2), lambda: (np.array([0, 1, 2]), np.array([1, 0]), 1))
def bfs_csr(indptr, indices, src):
    n = len(indptr) - 1
    level = -np.ones(n, dtype=np.int64)
    level[src] = 0
    queue = np.empty(n, dtype=np.int64)
    head, tail = 0, 1
    queue[0] = src
    while head < tail:
        u = queue[head]
        head += 1
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if level[v] == -1:
                level[v] = level[u] + 1
                queue[tail] = v
                tail += 1
    return level

@program(lambda: (np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), 0), lambda: (np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), 2))
def bfs_list(indptr, indices, src):
    seen = {src}
    frontier = [src]
    order = []
    while frontier:
        nxt = []
        for u in frontier:
            order.append(u)
            for v in indices[indptr[u]:indptr[u + 1]]:
                if v not in seen:
                    seen.add(v)
                    nxt.append(v)
        frontier = nxt
    return order

@program(lambda: (R(20), np.array([0, 2, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), R(6)), lambda: (R(20, seed=2), np.array([0, 0, 3, 5, 6]), np.array([1, 2, 3, 0, 3, 1]), R(6)), lambda: (R(20, seed=2), np.array([0, 1]), np.array([1]), R(1)))
def csr_matvec(x, indptr, indices, data):
    y = np.zeros(len(indptr) - 1)
    for i in range(len(y)):
        s = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            s += data[k] * x[indices[k]]
        y[i] = s
    return y

@program(lambda: (R(30, 2), R(3, 2, seed=1), 4), lambda: (R(30, 2, seed=3), R(3, 2, seed=1), 4), lambda: (R(12, 5), R(2, 5, seed=1), 2))
def kmeans(x, c, n):
    for _ in range(n):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        lab = d.argmin(1)
        for k in range(len(c)):
            mask = lab == k
            if mask.any():
                c[k] = x[mask].mean(axis=0)
    return lab, c, np.bincount(lab, minlength=len(c))

@program(lambda: (R(40), np.array([-1.0, 1.0]), np.ones(2), np.ones(2) / 2, 5), lambda: (R(40, seed=4), np.array([-2.0, 1.0]), np.ones(2), np.ones(2) / 2, 5), lambda: (R(14, seed=4), np.array([-2.0, 1.0, 3]), np.ones(3), np.ones(3) / 3, 5))
def em_gmm(x, mu, var, pi, n):
    ll = []
    for _ in range(n):
        p = pi * np.exp(-0.5 * (x[:, None] - mu) ** 2 / var) / np.sqrt(2 * np.pi * var)
        tot = p.sum(axis=1, keepdims=True)
        ll.append(np.log(tot).sum())
        g = p / tot
        nk = g.sum(0)
        mu = (g * x[:, None]).sum(0) / nk
        var = (g * (x[:, None] - mu) ** 2).sum(0) / nk
        pi = nk / len(x)
    return mu, var, pi, ll

@program(lambda: (I(0, 3, 12), np.log(np.abs(R(2, 2)) + .1), np.log(np.abs(R(2, 3)) + .1), np.log(np.array([.5, .5]))), lambda: (I(0, 3, 12, seed=2), np.log(np.abs(R(2, 2, seed=3)) + .1), np.log(np.abs(R(2, 3)) + .1), np.log(np.array([.5, .5]))), lambda: (I(0, 3, 1), np.log(np.abs(R(4, 4)) + .1), np.log(np.abs(R(4, 3)) + .1), np.log(np.ones(4) / 4)))
def viterbi(obs, A, B, p0):
    T, N = len(obs), len(p0)
    delta = np.empty((T, N))
    psi = np.zeros((T, N), dtype=np.intp)
    delta[0] = p0 + B[:, obs[0]]
    for t in range(1, T):
        s = delta[t - 1][:, None] + A
        psi[t] = s.argmax(axis=0)
        delta[t] = s.max(axis=0) + B[:, obs[t]]
    path = [int(delta[-1].argmax())]
    for t in range(T - 1, 0, -1):
        path.append(psi[t, path[-1]])
    return path[::-1], delta[-1].max()

@program(lambda: (I(0, 3, 12), np.abs(R(2, 2)) + .1, np.abs(R(2, 3)) + .1, np.array([.5, .5])), lambda: (I(0, 3, 12, seed=2), np.abs(R(2, 2, seed=3)) + .1, np.abs(R(2, 3)) + .1, np.array([.5, .5])), lambda: (I(0, 3, 3), np.abs(R(4, 4)) + .1, np.abs(R(4, 3)) + .1, np.ones(4) / 4))
def hmm_forward(obs, A, B, p):
    A = A / A.sum(1, keepdims=True)
    B /= B.sum(1)[:, np.newaxis]
    alpha = p * B[:, obs[0]]
    ll = 0.
    for o in obs[1:]:
        c = alpha.sum()
        ll += math.log(c)
        alpha = (alpha / c) @ A * B[:, o]
    return ll + math.log(alpha.sum())

@program(lambda: (R(15, 1), np.array([[1., 1], [0, 1]]), np.array([[1., 0]]), np.eye(2) * .01, np.eye(1)), lambda: (R(15, 1, seed=3), np.array([[1., .5], [0, 1]]), np.array([[1., 0]]), np.eye(2) * .01, np.eye(1)), lambda: (R(3, 1, seed=3), np.array([[1., .5], [0, 1]]), np.array([[1., 0]]), np.eye(2) * .01, np.eye(1)))
def kalman(zs, F, H, Q, Rn):
    x = np.zeros(F.shape[0])
    P = np.eye(F.shape[0])
    out = np.empty((len(zs), len(x)))
    for k, z in enumerate(zs):
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + Rn
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ (z - H @ x)
        P = (np.eye(len(x)) - K @ H) @ P
        out[k] = x
    return out, P

@program(lambda: (np.array([1., 0, 0]), 0.01, 20), lambda: (np.array([1., 2, 3]), 0.02, 20), lambda: (np.ones((3, 4)), 0.02, 5))
def rk4_lorenz(y, h, n):
    def f(y, s=10., r=28., b=8 / 3):
        x, yy, z = y
        return np.array([s * (yy - x), x * (r - z) - yy, x * yy - b * z])
    traj = np.empty((n + 1,) + y.shape)
    traj[0] = y
    for i in range(n):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        traj[i + 1] = y
    return traj

@program(lambda: (1.0, 0.1, 1e-10), lambda: (2.0, 0.5, 1e-10), lambda: (np.float64(2.0), np.float64(.5), 1e-8))
def implicit_euler(y, h, tol):
    steps = 0
    for _ in range(10):
        z = y
        while True:
            g = z - y - h * (-50 * (z - math.cos(z)))
            dg = 1 + 50 * h * (1 + math.sin(z))
            dz = g / dg
            z -= dz
            steps += 1
            if abs(dz) < tol or steps > 1000:
                break
        y = z
    return y, steps

@program(lambda: (lambda_args())[0:3], lambda: lambda_args(1), lambda: lambda_args(2))
def thomas(a, b, d):
    n = len(d)
    c, dd = np.zeros(n), np.zeros(n)
    c[0], dd[0] = a[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * c[i - 1]
        c[i] = a[i] / m
        dd[i] = (d[i] - a[i] * dd[i - 1]) / m
    for i in reversed(range(n - 1)):
        dd[i] -= c[i] * dd[i + 1]
    return dd

def lambda_args(s=0):
    return R(10 + s // 2, seed=s), R(10 + s // 2, seed=s + 1) + 4, R(10 + s // 2, seed=s + 2)

@program(lambda: (R(5, 5),), lambda: (R(5, 5, seed=1),), lambda: (R(3, 3, seed=1),))
def lu_pivot(A):
    A = A.copy()
    n = len(A)
    p = np.arange(n)
    sign = 1
    for k in range(n - 1):
        m = k + np.argmax(np.abs(A[k:, k]))
        if m != k:
            A[[k, m]] = A[[m, k]]
            p[[k, m]] = p[[m, k]]
            sign = -sign
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            A[i, k + 1:] -= A[i, k] * A[k, k + 1:]
    return A, p, sign * np.prod(np.diag(A))

@program(lambda: (R(6, 4),), lambda: (R(6, 4, seed=1),), lambda: (R(3, 3, seed=1),), lambda: (np.asfortranarray(R(3, 3, seed=1)),))
def gram_schmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    Rr = np.zeros((n, n))
    for j in range(n):
        v = A[:, j].copy()
        for i in range(j):
            Rr[i, j] = Q[:, i] @ A[:, j]
            v -= Rr[i, j] * Q[:, i]
        Rr[j, j] = np.linalg.norm(v)
        Q[:, j] = v / Rr[j, j]
    return Q, Rr

@program(lambda: (R(6, 4),), lambda: (R(6, 4, seed=1),), lambda: (R(3, 3, seed=1),))
def householder(A):
    A = A.astype(float)
    m, n = A.shape
    Q = np.eye(m)
    for k in range(n):
        x = A[k:, k]
        e = np.zeros_like(x)
        e[0] = np.copysign(np.linalg.norm(x), x[0])
        v = x + e
        if np.linalg.norm(v) == 0:
            continue
        v = v / np.linalg.norm(v)
        A[k:] -= 2 * np.outer(v, v @ A[k:])
        Q[:, k:] -= 2 * np.outer(Q[:, k:] @ v, v)
    return Q, np.triu(A)

@program(lambda: (R(5, 5),), lambda: (R(5, 5, seed=1),), lambda: (-np.eye(3),))
def cholesky(A):
    A = A @ A.T + 5 * np.eye(len(A)) if A[0, 1] != 0 else A
    n = len(A)
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - L[i, :j] @ L[j, :j]
            if i == j:
                if s <= 0:
                    raise np.linalg.LinAlgError("not positive definite: %d" % i)
                L[i, i] = s ** 0.5
            else:
                L[i, j] = s / L[j, j]
    return L

@program(lambda: (R(20, 20), np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16), lambda: (R(20, 20, seed=3), np.ones((3, 3)) / 9), lambda: (I(0, 255, 9, 8).astype(np.uint8), np.ones((3, 3)) / 9))
def convolve_img(img, k):
    out = np.zeros_like(img, dtype=float)
    p = np.pad(img, 1, mode="edge")
    for i in range(3):
        for j in range(3):
            out += k[i, j] * p[i:i + img.shape[0], j:j + img.shape[1]]
    return out

@program(lambda: (I(0, 256, 10, 10).astype(np.uint8),), lambda: (I(0, 256, 10, 10, seed=4).astype(np.uint8),), lambda: (I(0, 256, 6, 5, seed=4).astype(np.uint8),))
def median3(img):
    h, w = img.shape
    out = img.copy()
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            out[y, x] = np.median(img[y - 1:y + 2, x - 1:x + 2])
    return out

@program(lambda: (R(10), R(10, seed=1), R(5, seed=2)), lambda: (R(10, seed=5), R(10, seed=1), R(5, seed=2)), lambda: (R(4), R(4, seed=1), np.array([-10., 10, np.nan])))
def interp_linear(x, y, q):
    o = np.argsort(x)
    x, y = x[o], y[o]
    k = np.clip(np.searchsorted(x, q) - 1, 0, len(x) - 2)
    t = (q - x[k]) / (x[k + 1] - x[k])
    return (1 - t) * y[k] + t * y[k + 1], np.interp(q, x, y)

@program(lambda: (R(50), 7), lambda: (R(50, seed=1), 7), lambda: (R(20), 3))
def histogram_loop(x, nb):
    lo, hi = x.min(), x.max()
    h = np.zeros(nb, dtype=np.uint32)
    w = (hi - lo) / nb
    for v in x:
        b = int((v - lo) / w)
        if b == nb:
            b -= 1
        h[b] += 1
    return h, w

def fft_rec(x):
    n = len(x)
    if n <= 1:
        return x
    e, o = fft_rec(x[::2]), fft_rec(x[1::2])
    t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * o
    return np.concatenate([e + t, e - t])

@program(lambda: (R(16),), lambda: (R(16, seed=1),), lambda: (R(8) + 1j,))
def fft_recursive(x):
    return fft_rec(x.astype(complex))

@program(lambda: (R(30), np.array([1., -.5]), np.array([.2, .3])), lambda: (R(30, seed=1), np.array([1., -.5]), np.array([.2, .3])), lambda: (R(5, seed=1), np.array([1., -.5, .1]), np.array([.2, .3, .1])))
def iir(x, a, b):
    y = np.zeros_like(x)
    for n in range(len(x)):
        acc = 0
        for k in range(len(b)):
            if n - k >= 0:
                acc += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n - k >= 0:
                acc -= a[k] * y[n - k]
        y[n] = acc / a[0]
    return y

@program(lambda: (R(6, 4),), lambda: (R(6, 4, seed=1),), lambda: (np.where(R(3, 5) > 0, np.nan, R(3, 5)),))
def stats(x):
    m = ~np.isnan(x)
    return dict(mean=x.mean(0, where=m), std=x.std(axis=1, ddof=1, keepdims=True), var=np.var(x, ddof=1),
                nm=np.nanmean(x), ns=np.nanstd(x, axis=0), q=np.quantile(x[m], [.1, .5, .9]), med=np.median(x, axis=0),
                ptp=np.ptp(x[m]), s=x.sum(where=m, initial=2.0), mx=x.max(axis=1, where=m, initial=-5.0))

@program(lambda: (R(9, 3),), lambda: (R(9, 3, seed=1),), lambda: (R(4, 2),))
def standardize(x):
    mu, sd = x.mean(axis=0), x.std(axis=0)
    z = (x - mu) / sd
    c = np.corrcoef(z, rowvar=False)
    return z, c, np.cov(x.T), (z ** 3).mean(0)
