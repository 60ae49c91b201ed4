# ruff: noqa: E701, E702, E731, E741
"""Scripts as tutorials have them: epidemics, images, finance, learning, roots and splines.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import math

import numpy as np

from tests.autojit.programs import I, R, program


def G(seed=0):
    return np.random.default_rng(seed)

def IMG(n=24, seed=0):
    return G(seed).random((n, n)) * 255

def IMG8(n=24, seed=0):
    return G(seed).integers(0, 256, (n, n)).astype(np.uint8)


@program(lambda: (0.3, 0.1, 999.0, 1.0, 0.0, 0.5, 200))
def sir(beta, gamma, s, i, r, dt, steps):
    S, I_, R_ = [s], [i], [r]
    N = s + i + r
    for _ in range(steps):
        new_inf = beta * S[-1] * I_[-1] / N * dt
        new_rec = gamma * I_[-1] * dt
        S.append(S[-1] - new_inf)
        I_.append(I_[-1] + new_inf - new_rec)
        R_.append(R_[-1] + new_rec)
    return np.array(S), np.array(I_), np.array(R_)

@program(lambda: (np.array([10.0, 5.0]), 0.0, 20.0, 60))
def lotka(y0, t0, t1, n):
    alpha, beta, delta, gamma = 1.1, 0.4, 0.1, 0.4
    def deriv(t, y):
        x, z = y
        return np.array([alpha * x - beta * x * z, delta * x * z - gamma * z])
    t = np.linspace(t0, t1, n)
    y = np.zeros((n, 2))
    y[0] = y0
    for k in range(n - 1):
        h = t[k + 1] - t[k]
        k1 = deriv(t[k], y[k])
        k2 = deriv(t[k] + h / 2, y[k] + h / 2 * k1)
        k3 = deriv(t[k] + h / 2, y[k] + h / 2 * k2)
        k4 = deriv(t[k] + h, y[k] + h * k3)
        y[k + 1] = y[k] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return t, y

@program(lambda: (R(200, 3), R(4, 3), 50))
def kmeans_given(X, centroids, max_iter):
    k = len(centroids)
    for it in range(max_iter):
        d = np.linalg.norm(X[:, None] - centroids[None], axis=2)
        labels = np.argmin(d, axis=1)
        new = np.array([X[labels == j].mean(axis=0) if np.any(labels == j) else centroids[j] for j in range(k)])
        if np.allclose(new, centroids):
            break
        centroids = new
    inertia = sum(((X[labels == j] - centroids[j]) ** 2).sum() for j in range(k))
    return labels, centroids, inertia

@program(lambda: (R(100, 5), 2))
def pca(X, k):
    Xc = X - X.mean(axis=0)
    cov = np.cov(Xc, rowvar=False)
    w, v = np.linalg.eigh(cov)
    order = np.argsort(w)[::-1]
    w, v = w[order], v[:, order]
    comps = v[:, :k]
    comps = comps * np.sign(comps[np.abs(comps).argmax(axis=0), range(k)])
    return Xc @ comps, w / w.sum()

@program(lambda: (R(100, 5), 2))
def pca_svd(X, k):
    Xc = X - X.mean(0)
    U, S, Vt = np.linalg.svd(Xc, full_matrices=False)
    signs = np.sign(Vt[np.arange(len(Vt)), np.abs(Vt).argmax(1)])
    Vt *= signs[:, np.newaxis]
    var = S ** 2 / (len(X) - 1)
    return Xc @ Vt[:k].T, var / var.sum(), np.cumsum(var) / np.sum(var)

@program(lambda: (R(100, 3), R(100, seed=1), 0.05, 200))
def linreg_gd(X, y, lr, epochs):
    m, n = X.shape
    w, b = np.zeros(n), 0.0
    history = []
    for epoch in range(epochs):
        y_pred = X @ w + b
        error = y_pred - y
        dw = (2 / m) * X.T @ error
        db = (2 / m) * np.sum(error)
        w -= lr * dw
        b -= lr * db
        history.append(np.mean(error ** 2))
    return w, b, history

@program(lambda: (10000,))
def mc_pi(n):
    rng = np.random.default_rng(0)
    x, y = rng.random(n), rng.random(n)
    return 4 * np.mean(x ** 2 + y ** 2 <= 1)

@program(lambda: (G(), 10000))
def mc_pi_rng(rng, n):
    inside = 0
    for _ in range(10):
        p = rng.random((n // 10, 2))
        inside += np.count_nonzero((p ** 2).sum(axis=1) < 1)
    return 4 * inside / n

@program(lambda: (np.where(R(12, 12) > 0, 1, -1), 0.4, G(), 2))
def ising(spins, beta, rng, sweeps):
    n = len(spins)
    for s in range(sweeps):
        for _ in range(n * n):
            i, j = rng.integers(0, n, 2)
            nb = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
            dE = 2 * spins[i, j] * nb
            if dE <= 0 or rng.random() < np.exp(-beta * dE):
                spins[i, j] *= -1
    return abs(spins.mean())

@program(lambda: (np.where(R(12, 12) > 0, 1, -1), 0.4, G().random((5, 12, 12))))
def ising_checker(spins, beta, noise):
    n = spins.shape[0]
    mags = []
    parity = np.indices((n, n)).sum(0) % 2
    for u in noise:
        for p in (0, 1):
            nb = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            dE = 2 * spins * nb
            flip = (u < np.exp(-beta * dE)) & (parity == p)
            spins[flip] *= -1
        mags.append(spins.mean())
    return np.array(mags), spins

@program(lambda: (50, 50, 0.1, 40))
def heat2d(nx, ny, alpha, steps):
    u = np.zeros((nx, ny))
    u[nx // 4:3 * nx // 4, ny // 4:3 * ny // 4] = 100.0
    for n in range(steps):
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] + alpha * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
        u[0, :] = u[-1, :] = u[:, 0] = u[:, -1] = 0
    return u, u.max()

@program(lambda: (30, 0.5, 40))
def wave1d(n, c, steps):
    x = np.linspace(0, 1, n)
    u_prev = np.exp(-100 * (x - 0.5) ** 2)
    u = u_prev.copy()
    frames = []
    for t in range(steps):
        u_next = np.zeros_like(u)
        u_next[1:-1] = 2 * u[1:-1] - u_prev[1:-1] + c ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u_prev, u = u, u_next
        if t % 20 == 0:
            frames.append(u.copy())
    return np.stack(frames)

@program(lambda: (np.sin(2 * np.pi * 5 * np.linspace(0, 1, 200)) + 0.3 * R(200), 200.0, 10.0))
def fft_lowpass(signal, fs, cutoff):
    spectrum = np.fft.fft(signal)
    freqs = np.fft.fftfreq(len(signal), d=1 / fs)
    spectrum[np.abs(freqs) > cutoff] = 0
    filtered = np.fft.ifft(spectrum).real
    power = np.abs(np.fft.rfft(signal)) ** 2
    peak = np.fft.rfftfreq(len(signal), 1 / fs)[np.argmax(power[1:]) + 1]
    return filtered, peak

@program(lambda: (IMG(), 3))
def box_blur(img, k):
    pad = k // 2
    padded = np.pad(img, pad, mode="edge")
    out = np.zeros_like(img, dtype=float)
    for dy in range(k):
        for dx in range(k):
            out += padded[dy:dy + img.shape[0], dx:dx + img.shape[1]]
    return out / (k * k)

@program(lambda: (IMG8(),))
def otsu(img):
    hist, _ = np.histogram(img.ravel(), bins=256, range=(0, 256))
    total = img.size
    sum_total = np.dot(np.arange(256), hist)
    w_b, sum_b, best, threshold = 0, 0.0, 0.0, 0
    for t in range(256):
        w_b += hist[t]
        if w_b == 0:
            continue
        w_f = total - w_b
        if w_f == 0:
            break
        sum_b += t * hist[t]
        m_b = sum_b / w_b
        m_f = (sum_total - sum_b) / w_f
        between = w_b * w_f * (m_b - m_f) ** 2
        if between > best:
            best, threshold = between, t
    return threshold, img > threshold

@program(lambda: (IMG(),))
def sobel(img):
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    ky = kx.T
    h, w = img.shape
    gx = np.zeros((h - 2, w - 2)); gy = np.zeros((h - 2, w - 2))
    for i in range(h - 2):
        for j in range(w - 2):
            patch = img[i:i + 3, j:j + 3]
            gx[i, j] = np.sum(patch * kx)
            gy[i, j] = np.sum(patch * ky)
    mag = np.hypot(gx, gy)
    return (mag / mag.max() * 255).astype(np.uint8), np.arctan2(gy, gx)

@program(lambda: (IMG8(),))
def hist_eq(img):
    hist = np.bincount(img.flatten(), minlength=256)
    cdf = hist.cumsum()
    cdf_m = np.ma.masked_equal(cdf, 0) if False else cdf[cdf > 0]
    lut = np.round((cdf - cdf_m.min()) / (img.size - cdf_m.min()) * 255).astype(np.uint8)
    return lut[img]

@program(lambda: (60, 20, 1e-6))
def newton_fractal(n, max_iter, tol):
    x = np.linspace(-2, 2, n)
    z = x[None, :] + 1j * x[:, None]
    roots = np.array([1, np.exp(2j * np.pi / 3), np.exp(-2j * np.pi / 3)])
    for _ in range(max_iter):
        with np.errstate(all="ignore"):
            z = z - (z ** 3 - 1) / (3 * z ** 2)
    idx = np.full(z.shape, -1)
    for k, r in enumerate(roots):
        idx[np.abs(z - r) < tol] = k
    return idx

@program(lambda: (-0.7 + 0.27015j, 50, 60, 50))
def julia(c, h, w, max_iter):
    y, x = np.ogrid[-1.2:1.2:h * 1j, -1.6:1.6:w * 1j]
    z = x + 1j * y
    div = np.zeros(z.shape, dtype=int) + max_iter
    for i in range(max_iter):
        mask = np.abs(z) <= 2
        z[mask] = z[mask] ** 2 + c
        escaped = (np.abs(z) > 2) & (div == max_iter)
        div[escaped] = i
    return div

@program(lambda: (2.5, 4.0, 100, 100, 20))
def bifurcation(rmin, rmax, n, warm, keep):
    r = np.linspace(rmin, rmax, n)
    x = 1e-5 * np.ones(n)
    lyap = np.zeros(n)
    points = []
    for i in range(warm + keep):
        x = r * x * (1 - x)
        lyap += np.log(np.abs(r - 2 * r * x) + 1e-12)
        if i >= warm:
            points.append(np.column_stack([r, x]))
    return np.concatenate(points)[:0], lyap.shape

@program(lambda: (R(60, 2), np.where(R(60, 2)[:, 0] > 0.1, 1, -1), 0.1, 20))
def perceptron(X, y, lr, epochs):
    w = np.zeros(X.shape[1] + 1)
    errors = []
    for _ in range(epochs):
        err = 0
        for xi, target in zip(X, y):
            update = lr * (target - np.where(np.dot(xi, w[1:]) + w[0] >= 0.0, 1, -1))
            w[1:] += update * xi
            w[0] += update
            err += int(update != 0.0)
        errors.append(err)
        if err == 0:
            break
    return w, errors

@program(lambda: (np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float), np.array([[0], [1], [1], [0]], float), 0.5, 30))
def mlp_xor(X, y, lr, epochs):
    np.random.seed(1)
    W1 = np.random.randn(2, 4); b1 = np.zeros((1, 4))
    W2 = np.random.randn(4, 1); b2 = np.zeros((1, 1))
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    for _ in range(epochs):
        a1 = sigmoid(X @ W1 + b1)
        a2 = sigmoid(a1 @ W2 + b2)
        d2 = (a2 - y) * a2 * (1 - a2)
        d1 = d2 @ W2.T * a1 * (1 - a1)
        W2 -= lr * a1.T @ d2
        b2 -= lr * d2.sum(axis=0, keepdims=True)
        W1 -= lr * X.T @ d1
        b1 -= lr * d1.sum(axis=0, keepdims=True)
    return a2, np.mean((a2 - y) ** 2)

@program(lambda: (R(50, 4), I(0, 3, 50), {"W1": 0.1 * R(4, 8, seed=2), "b1": np.zeros(8), "W2": 0.1 * R(8, 3, seed=3), "b2": np.zeros(3)}, 0.1, 20))
def mlp_dict(X, y, params, lr, epochs):
    Y = np.eye(3)[y]
    losses = []
    for epoch in range(epochs):
        h = np.maximum(0, X @ params["W1"] + params["b1"])
        logits = h @ params["W2"] + params["b2"]
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        loss = -np.mean(np.log(p[np.arange(len(y)), y] + 1e-12))
        losses.append(loss)
        dz = (p - Y) / len(X)
        grads = {"W2": h.T @ dz, "b2": dz.sum(0)}
        dh = dz @ params["W2"].T
        dh[h <= 0] = 0
        grads["W1"] = X.T @ dh
        grads["b1"] = dh.sum(0)
        for key in params:
            params[key] -= lr * grads[key]
    return losses, (p.argmax(1) == y).mean()

@program(lambda: ((R(20, 20) > 0.5).astype(float), 0.85, 1e-8))
def pagerank(adj, d, tol):
    n = adj.shape[0]
    out = adj.sum(axis=1)
    M = np.where(out[:, None] > 0, adj / np.maximum(out, 1)[:, None], 1.0 / n).T
    r = np.ones(n) / n
    it = 0
    while True:
        new = d * M @ r + (1 - d) / n
        it += 1
        if np.linalg.norm(new - r, 1) < tol:
            break
        r = new
    return r, it, np.argsort(-r, kind="stable")[:5]

@program(lambda: (G(0), 5.0, 1e-3, 0.95))
def annealing(rng, T, Tmin, cooling):
    def f(x): return x ** 2 + 10 * math.sin(3 * x)
    x = 3.0
    best, best_f = x, f(x)
    while T > Tmin:
        cand = x + rng.normal(0, 1)
        delta = f(cand) - f(x)
        if delta < 0 or rng.random() < math.exp(-delta / T):
            x = cand
            if f(x) < best_f:
                best, best_f = x, f(x)
        T *= cooling
    return best, best_f

@program(lambda: (0, 20, 8, 15))
def genetic(seed, pop_size, n_bits, gens):
    rng = np.random.default_rng(seed)
    pop = rng.integers(0, 2, (pop_size, n_bits))
    best = []
    for _ in range(gens):
        fit = pop.sum(axis=1)
        order = np.argsort(fit, kind="stable")[::-1]
        pop = pop[order]
        best.append(fit.max())
        parents = pop[:pop_size // 2]
        a = parents[rng.permutation(len(parents))]
        cut = n_bits // 2
        kids = np.hstack([parents[:, :cut], a[:, cut:]])
        mut = rng.random(kids.shape) < 0.05
        kids[mut] = 1 - kids[mut]
        pop = np.vstack([parents, kids])
    return pop, best

@program(lambda: (R(40, 3), (R(40, 3)[:, 1] > 0.2).astype(int)))
def stump(X, y):
    best_gini, best_feature, best_thr = 1.0, None, None
    n = len(y)
    for f in range(X.shape[1]):
        for thr in np.unique(X[:, f]):
            left = y[X[:, f] <= thr]
            right = y[X[:, f] > thr]
            g = 0.0
            for part in (left, right):
                if len(part) == 0:
                    continue
                p = part.mean()
                g += len(part) / n * (1 - p ** 2 - (1 - p) ** 2)
            if g < best_gini:
                best_gini, best_feature, best_thr = g, f, thr
    return best_gini, best_feature, best_thr

@program(lambda: (R(50), I(0, 50, 100, 50)))
def bootstrap_idx(data, idx):
    means = np.array([data[i].mean() for i in idx])
    lo, hi = np.percentile(means, [2.5, 97.5])
    return means.std(ddof=1), lo, hi

@program(lambda: (100.0, 105.0, 0.05, 0.2, 1.0, 50, 200))
def bs_mc(S0, K, r, sigma, T, steps, paths):
    np.random.seed(0)
    dt = T / steps
    S = np.full(paths, S0)
    for _ in range(steps):
        S *= np.exp((r - 0.5 * sigma ** 2) * dt + sigma * np.sqrt(dt) * np.random.standard_normal(paths))
    payoff = np.maximum(S - K, 0)
    return np.exp(-r * T) * payoff.mean(), payoff.std() / np.sqrt(paths)

@program(lambda: (100.0, 105.0, 0.05, 0.2, 1.0))
def bs_formula(S, K, r, sigma, T):
    def N(x): return 0.5 * (1 + math.erf(x / math.sqrt(2)))
    d1 = (math.log(S / K) + (r + sigma ** 2 / 2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    return {"call": S * N(d1) - K * math.exp(-r * T) * N(d2), "delta": N(d1)}

@program(lambda: (R(100), 20))
def autocorr(x, nlags):
    x = x - np.mean(x)
    result = np.correlate(x, x, mode="full")
    result = result[result.size // 2:]
    direct = np.array([1.0] + [np.corrcoef(x[:-k], x[k:])[0, 1] for k in range(1, nlags)])
    return result[:nlags] / result[0], direct

@program(lambda: (R(50), 7, 2))
def savgol(y, window, order):
    half = (window - 1) // 2
    b = np.array([[k ** i for i in range(order + 1)] for k in range(-half, half + 1)])
    m = np.linalg.pinv(b)[0]
    first = y[0] - np.abs(y[1:half + 1][::-1] - y[0])
    last = y[-1] + np.abs(y[-half - 1:-1][::-1] - y[-1])
    y = np.concatenate((first, y, last))
    return np.convolve(m[::-1], y, mode="valid")

@program(lambda: (np.sort(G().random(40)) * 10, R(40), np.linspace(0.5, 10, 30)))
def lomb_scargle(t, y, freqs):
    y = y - y.mean()
    P = np.zeros(len(freqs))
    for i, w in enumerate(2 * np.pi * freqs):
        tau = np.arctan2(np.sum(np.sin(2 * w * t)), np.sum(np.cos(2 * w * t))) / (2 * w)
        c, s = np.cos(w * (t - tau)), np.sin(w * (t - tau))
        P[i] = 0.5 * ((y @ c) ** 2 / (c @ c) + (y @ s) ** 2 / (s @ s))
    return P / y.var(), freqs[np.argmax(P)]

@program(lambda: (np.array([0.0, 1, 2.5, 4, 5]), np.array([1.0, 2, 0, 3, 1]), np.linspace(0, 5, 11)))
def cubic_spline(x, y, xq):
    n = len(x)
    h = np.diff(x)
    A = np.zeros((n, n)); rhs = np.zeros(n)
    A[0, 0] = A[-1, -1] = 1
    for i in range(1, n - 1):
        A[i, i - 1], A[i, i], A[i, i + 1] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    c = np.linalg.solve(A, rhs)
    b = (y[1:] - y[:-1]) / h - h * (2 * c[:-1] + c[1:]) / 3
    d = (c[1:] - c[:-1]) / (3 * h)
    out = []
    for q in xq:
        k = min(max(np.searchsorted(x, q) - 1, 0), n - 2)
        t = q - x[k]
        out.append(y[k] + b[k] * t + c[k] * t ** 2 + d[k] * t ** 3)
    return np.array(out)

@program(lambda: (np.array([0.5, 0.5, 0.5, 0.5]), R(10, 3)))
def quat_rotate(q, pts):
    def mul(a, b):
        w1, x1, y1, z1 = a
        w2, x2, y2, z2 = b
        return np.array([w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                         w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2])
    q = q / np.linalg.norm(q)
    conj = q * np.array([1, -1, -1, -1])
    return np.array([mul(mul(q, np.r_[0.0, p]), conj)[1:] for p in pts])

@program(lambda: (16, 12))
def raytrace(w, h):
    spheres = [{"center": np.array([-0.2, 0, -1]), "radius": 0.7, "color": np.array([1.0, 0, 0])},
               {"center": np.array([0.1, -0.3, 0]), "radius": 0.1, "color": np.array([0.0, 1, 0])}]
    cam = np.array([0, 0, 1]); light = np.array([5, 5, 5])
    def intersect(c, r, o, d):
        b = 2 * np.dot(d, o - c)
        disc = b ** 2 - 4 * (np.linalg.norm(o - c) ** 2 - r ** 2)
        if disc > 0:
            t1 = (-b + np.sqrt(disc)) / 2
            t2 = (-b - np.sqrt(disc)) / 2
            if t1 > 0 and t2 > 0:
                return min(t1, t2)
        return None
    img = np.zeros((h, w, 3))
    for i, y in enumerate(np.linspace(0.75, -0.75, h)):
        for j, x in enumerate(np.linspace(-1, 1, w)):
            d = np.array([x, y, 0]) - cam
            d = d / np.linalg.norm(d)
            nearest, dist = None, np.inf
            for s in spheres:
                t = intersect(s["center"], s["radius"], cam, d)
                if t is not None and t < dist:
                    nearest, dist = s, t
            if nearest is None:
                continue
            p = cam + dist * d
            n = (p - nearest["center"]) / nearest["radius"]
            l = (light - p) / np.linalg.norm(light - p)
            img[i, j] = np.clip(nearest["color"] * max(np.dot(n, l), 0), 0, 1)
    return img

@program(lambda: (R(4, 4) @ R(4, 4).T, 1e-10))
def power_iter(A, tol):
    v = np.ones(A.shape[1]) / np.sqrt(A.shape[1])
    lam_old = 0
    for i in range(1000):
        w = A @ v
        lam = v @ w
        v = w / np.linalg.norm(w)
        if abs(lam - lam_old) < tol:
            break
        lam_old = lam
    return lam, v, i

@program(lambda: (R(10, 10) @ R(10, 10).T + 10 * np.eye(10), R(10), 1e-10))
def cg(A, b, tol):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for i in range(len(b)):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        if np.sqrt(rs_new) < tol:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x, i + 1

@program(lambda: (R(40, 2), I(0, 3, 40), R(4, 2, seed=1), 5))
def knn(X, y, Q, k):
    preds = []
    for q in Q:
        d = np.sqrt(((X - q) ** 2).sum(axis=1))
        nearest = y[np.argsort(d)[:k]]
        values, counts = np.unique(nearest, return_counts=True)
        preds.append(values[np.argmax(counts)])
    return np.array(preds)

@program(lambda: (R(60, 3), I(0, 2, 60), R(10, 3, seed=4)))
def naive_bayes(X, y, Q):
    classes = np.unique(y)
    means, vars_, priors = [], [], []
    for c in classes:
        Xc = X[y == c]
        means.append(Xc.mean(axis=0)); vars_.append(Xc.var(axis=0)); priors.append(len(Xc) / len(X))
    scores = np.array([np.log(p) - 0.5 * np.sum(np.log(2 * np.pi * v)) - 0.5 * np.sum((Q - m) ** 2 / v, axis=1)
                       for m, v, p in zip(means, vars_, priors)])
    return classes[np.argmax(scores, axis=0)]

@program(lambda: (I(0, 4, 50), I(0, 4, 50, seed=1)))
def confusion(y_true, y_pred):
    n = max(y_true.max(), y_pred.max()) + 1
    cm = np.zeros((n, n), dtype=int)
    for t, p in zip(y_true, y_pred):
        cm[t, p] += 1
    acc = np.trace(cm) / cm.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.diag(cm) / cm.sum(axis=0)
        recall = np.diag(cm) / cm.sum(axis=1)
    return cm, acc, precision, recall, 2 * precision * recall / (precision + recall)

@program(lambda: (IMG(16),))
def floyd_steinberg(img):
    img = img.astype(float).copy()
    h, w = img.shape
    for y in range(h):
        for x in range(w):
            old = img[y, x]
            new = 255 * (old > 127)
            img[y, x] = new
            err = old - new
            if x + 1 < w: img[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0: img[y + 1, x - 1] += err * 3 / 16
                img[y + 1, x] += err * 5 / 16
                if x + 1 < w: img[y + 1, x + 1] += err * 1 / 16
    return img.astype(np.uint8)

@program(lambda: (R(15, 15) > 0.3,))
def label_components(mask):
    h, w = mask.shape
    labels = np.zeros((h, w), dtype=int)
    current = 0
    for i in range(h):
        for j in range(w):
            if mask[i, j] and labels[i, j] == 0:
                current += 1
                stack = [(i, j)]
                while stack:
                    y, x = stack.pop()
                    if 0 <= y < h and 0 <= x < w and mask[y, x] and labels[y, x] == 0:
                        labels[y, x] = current
                        stack.extend([(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)])
    return labels, current

@program(lambda: (R(30, 2), 0.5, 3))
def dbscan(X, eps, min_pts):
    n = len(X)
    labels = np.full(n, -1)
    D = np.sqrt(((X[:, None, :] - X[None, :, :]) ** 2).sum(-1))
    neighbors = [np.where(D[i] <= eps)[0] for i in range(n)]
    cluster = 0
    visited = set()
    for i in range(n):
        if i in visited or len(neighbors[i]) < min_pts:
            continue
        queue = [i]
        while queue:
            j = queue.pop()
            if j in visited:
                continue
            visited.add(j)
            labels[j] = cluster
            if len(neighbors[j]) >= min_pts:
                queue.extend(k for k in neighbors[j] if k not in visited)
        cluster += 1
    return labels

@program(lambda: (R(30, 2),))
def convex_hull(points):
    pts = points[np.lexsort((points[:, 1], points[:, 0]))]
    def cross(o, a, b): return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
    lower = []
    for p in pts:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    return np.array(lower)

@program(lambda: (R(50), np.linspace(-3, 3, 40)))
def kde(data, grid):
    h = 1.06 * data.std(ddof=1) * len(data) ** (-1 / 5)
    u = (grid[:, None] - data[None, :]) / h
    dens = np.exp(-0.5 * u ** 2).sum(axis=1) / (len(data) * h * np.sqrt(2 * np.pi))
    return dens, np.trapezoid(dens, grid)

@program(lambda: (np.cumsum(R(100)) + 100, 10))
def finance(prices, window):
    returns = np.diff(prices) / prices[:-1]
    sma = np.convolve(prices, np.ones(window) / window, mode="valid")
    ewma = [prices[0]]
    alpha = 2 / (window + 1)
    for p in prices[1:]:
        ewma.append(alpha * p + (1 - alpha) * ewma[-1])
    peak = np.maximum.accumulate(prices)
    drawdown = ((prices - peak) / peak).min()
    sharpe = np.sqrt(252) * returns.mean() / returns.std(ddof=1)
    gains = np.where(returns > 0, returns, 0).mean()
    rsi = 100 - 100 / (1 + gains / -np.where(returns < 0, returns, 0).mean())
    return sma, np.array(ewma), drawdown, sharpe, rsi

@program(lambda: (0.0, math.pi, 100))
def quadratures(a, b, n):
    f = lambda x: np.sin(x) * x
    x = np.linspace(a, b, n + 1)
    y = f(x)
    h = (b - a) / n
    trap = h * (0.5 * y[0] + y[1:-1].sum() + 0.5 * y[-1])
    simpson = h / 3 * (y[0] + 4 * y[1:-1:2].sum() + 2 * y[2:-2:2].sum() + y[-1])
    nodes, weights = np.polynomial.legendre.leggauss(5)
    gauss = 0.5 * (b - a) * np.sum(weights * f(0.5 * (b - a) * nodes + 0.5 * (a + b)))
    return trap, simpson, gauss

@program(lambda: (np.array([0.0, 1, 2, 4]), np.array([1.0, 3, 2, 5]), np.linspace(0, 4, 9)))
def lagrange(x, y, q):
    total = np.zeros_like(q)
    for i in range(len(x)):
        term = y[i] * np.ones_like(q)
        for j in range(len(x)):
            if j != i:
                term *= (q - x[j]) / (x[i] - x[j])
        total += term
    return total

@program(lambda: (R(5, 5) + R(5, 5).T, 1e-12))
def jacobi_eig(A, tol):
    A = A.copy()
    n = len(A)
    V = np.eye(n)
    while True:
        off = np.abs(A - np.diag(np.diag(A)))
        p, q = np.unravel_index(off.argmax(), off.shape)
        if off[p, q] < tol:
            break
        theta = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
        c, s = np.cos(theta), np.sin(theta)
        J = np.eye(n)
        J[p, p] = J[q, q] = c
        J[p, q], J[q, p] = s, -s
        A = J.T @ A @ J
        V = V @ J
    return np.sort(np.diag(A))

@program(lambda: (np.array([2.0, 1.0, 0.0, 0.0]), 9.81, 0.01, 100))
def double_pendulum(s, g, dt, n):
    def rhs(s):
        t1, t2, w1, w2 = s
        d = t1 - t2
        den = 2 - np.cos(d) ** 2
        a1 = (-g * 2 * np.sin(t1) - g * np.sin(t1 - 2 * t2) - 2 * np.sin(d) * (w2 ** 2 + w1 ** 2 * np.cos(d))) / (2 * den)
        a2 = (2 * np.sin(d) * (w1 ** 2 * 2 + g * 2 * np.cos(t1) + w2 ** 2 * np.cos(d))) / (2 * den)
        return np.array([w1, w2, a1, a2])
    out = [s]
    for _ in range(n):
        k1 = rhs(s); k2 = rhs(s + 0.5 * dt * k1); k3 = rhs(s + 0.5 * dt * k2); k4 = rhs(s + dt * k3)
        s = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(s)
    return np.array(out)

@program(lambda: (G().random((40, 3)) * 5, 5.0, 20))
def rdf(pos, box, nbins):
    n = len(pos)
    hist = np.zeros(nbins)
    dr = box / 2 / nbins
    for i in range(n - 1):
        d = pos[i + 1:] - pos[i]
        d -= box * np.round(d / box)
        r = np.sqrt(np.sum(d ** 2, axis=1))
        r = r[r < box / 2]
        idx = (r / dr).astype(int)
        np.add.at(hist, idx, 2)
    edges = np.arange(nbins + 1) * dr
    shell = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    return hist / (shell * n * n / box ** 3)

@program(lambda: (np.cumsum(R(60, 2), axis=0),))
def msd(traj):
    n = len(traj)
    out = []
    for lag in range(1, n // 2):
        disp = traj[lag:] - traj[:-lag]
        out.append((disp ** 2).sum(axis=1).mean())
    lags = np.arange(1, len(out) + 1)
    slope, intercept = np.polyfit(np.log(lags), np.log(out), 1)
    return np.array(out), slope

@program(lambda: (R(40), I(0, 5, 40)))
def groupby(values, groups):
    result = {}
    for g in np.unique(groups):
        sel = values[groups == g]
        result[int(g)] = (sel.mean(), sel.std(), len(sel))
    return result

@program(lambda: (R(80),))
def outliers(x):
    q1, q3 = np.percentile(x, [25, 75])
    iqr = q3 - q1
    lo, hi = q1 - 1.5 * iqr, q3 + 1.5 * iqr
    clean = [v for v in x if lo <= v <= hi]
    z = np.abs((x - x.mean()) / x.std())
    return np.array(clean), x[z > 2], len(clean)

@program(lambda: (R(100),))
def local_peaks(x):
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            peaks.append(i)
    return np.array(peaks), x[peaks]

@program(lambda: (R(200), 0.3))
def zero_crossings(x, level):
    s = np.sign(x - level)
    idx = np.where(np.diff(s) != 0)[0]
    t = idx + (level - x[idx]) / (x[idx + 1] - x[idx])
    return t, np.diff(t).mean()

@program(lambda: (IMG(8), 5, 1.0))
def gauss_blur(img, size, sigma):
    ax = np.arange(-size // 2 + 1, size // 2 + 1)
    k = np.exp(-ax ** 2 / (2 * sigma ** 2))
    k /= k.sum()
    tmp = np.apply_along_axis(lambda r: np.convolve(r, k, mode="same"), 1, img)
    return np.apply_along_axis(lambda c: np.convolve(c, k, mode="same"), 0, tmp)

@program(lambda: (IMG(16), 5))
def svd_compress(img, k):
    U, s, Vt = np.linalg.svd(img, full_matrices=False)
    approx = (U[:, :k] * s[:k]) @ Vt[:k]
    return approx, np.linalg.norm(img - approx) / np.linalg.norm(img), 1 - (s[:k] ** 2).sum() / (s ** 2).sum()

@program(lambda: (30,))
def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(n ** 0.5) + 1):
        if is_prime[i]:
            is_prime[i * i::i] = False
    return np.nonzero(is_prime)[0]

@program(lambda: (R(30, 4), np.abs(R(30, seed=1)), 1.0))
def ridge(X, y, lam):
    Xb = np.c_[np.ones(len(X)), X]
    beta = np.linalg.solve(Xb.T @ Xb + lam * np.eye(Xb.shape[1]), Xb.T @ y)
    res = y - Xb @ beta
    r2 = 1 - res @ res / ((y - y.mean()) ** 2).sum()
    se = np.sqrt(np.diag(np.linalg.inv(Xb.T @ Xb)) * (res @ res) / (len(y) - Xb.shape[1]))
    return beta, r2, beta / se

@program(lambda: (R(60, 3), (R(60, seed=2) > 0).astype(float), 10))
def logistic_newton(X, y, n):
    Xb = np.hstack((np.ones((X.shape[0], 1)), X))
    w = np.zeros(Xb.shape[1])
    for _ in range(n):
        p = 1 / (1 + np.exp(-Xb @ w))
        W = np.diag(p * (1 - p))
        H = Xb.T @ W @ Xb
        step = np.linalg.inv(H) @ Xb.T @ (y - p)
        w = w + step
        if np.max(np.abs(step)) < 1e-8:
            break
    return w, ((p > 0.5) == y).mean()

@program(lambda: (np.array([-1.2, 1.0]), 1e-3, 100))
def rosenbrock_gd(x, lr, n):
    f = lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    path = [x.copy()]
    for _ in range(n):
        g = np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])
        x = x - lr * g
        path.append(x.copy())
        if np.linalg.norm(g) < 1e-6:
            break
    return x, f(x), len(path)

@program(lambda: (np.array([[0.0, 0], [1, 0], [0, 1]]), 1e-8, 200))
def nelder_mead(simplex, tol, n):
    f = lambda p: (p[0] - 1) ** 2 + (p[1] - 2.5) ** 2
    for _ in range(n):
        simplex = simplex[np.argsort([f(p) for p in simplex])]
        if abs(f(simplex[-1]) - f(simplex[0])) < tol:
            break
        c = simplex[:-1].mean(axis=0)
        refl = c + (c - simplex[-1])
        if f(refl) < f(simplex[0]):
            exp = c + 2 * (c - simplex[-1])
            simplex[-1] = exp if f(exp) < f(refl) else refl
        elif f(refl) < f(simplex[-2]):
            simplex[-1] = refl
        else:
            con = c + 0.5 * (simplex[-1] - c)
            if f(con) < f(simplex[-1]):
                simplex[-1] = con
            else:
                simplex[1:] = simplex[0] + 0.5 * (simplex[1:] - simplex[0])
    return simplex[0], f(simplex[0])

@program(lambda: (2, 40, 0.3, 8))
def brownian(seed, n, sigma, paths):
    np.random.seed(seed)
    steps = np.random.normal(0, sigma, size=(paths, n))
    walks = np.cumsum(steps, axis=1)
    first = [int(np.argmax(np.abs(w) > 0.5)) if (np.abs(w) > 0.5).any() else -1 for w in walks]
    return walks, first

@program(lambda: (np.array([[0.9, 0.1], [0.5, 0.5]]), 50))
def markov(P, n):
    state = np.array([1.0, 0.0])
    hist = [state]
    for _ in range(n):
        state = state @ P
        hist.append(state)
    w, v = np.linalg.eig(P.T)
    stat = v[:, np.argmin(np.abs(w - 1))].real
    return np.array(hist), stat / stat.sum()

@program(lambda: (np.array([1.0, -6.0, 11.0, -6.0]),))
def poly_roots(c):
    r = np.roots(c)
    return np.sort(r), np.polyval(c, 2.5), np.polyder(c)

@program(lambda: (R(200), R(200, seed=1)))
def hist2d(x, y):
    H, xe, ye = np.histogram2d(x, y, bins=8)
    p = H / H.sum()
    px, py = p.sum(1), p.sum(0)
    nz = p > 0
    mi = np.sum(p[nz] * np.log(p[nz] / np.outer(px, py)[nz]))
    return H, mi, xe, ye

@program(lambda: (R(64), 1.0))
def spectral_derivative(u, L):
    n = len(u)
    k = 2 * np.pi / L * np.fft.fftfreq(n, 1 / n)
    return np.real(np.fft.ifft(1j * k * np.fft.fft(u))), np.fft.fftshift(k)

@program(lambda: (np.sin(np.linspace(0, 60, 256)), 32, 16))
def spectrogram(x, nfft, hop):
    window = np.hanning(nfft)
    frames = [x[i:i + nfft] * window for i in range(0, len(x) - nfft + 1, hop)]
    S = np.abs(np.fft.rfft(np.array(frames), axis=1)) ** 2
    return 10 * np.log10(S.T + 1e-10)

@program(lambda: (np.array([[4.0, 3], [6, 3]]),))
def lu_doolittle(A):
    n = A.shape[0]
    L, U = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for k in range(i, n):
            U[i, k] = A[i, k] - sum(L[i, j] * U[j, k] for j in range(i))
        for k in range(i, n):
            if i == k:
                L[i, i] = 1
            else:
                L[k, i] = (A[k, i] - sum(L[k, j] * U[j, i] for j in range(i))) / U[i, i]
    return L, U

@program(lambda: (R(30, 2), np.array([0.5, 0.5]), 0.3, 20))
def mean_shift(X, start, bw, n):
    x = start.copy()
    for i in range(n):
        w = np.exp(-((X - x) ** 2).sum(1) / (2 * bw ** 2))
        new = (w[:, None] * X).sum(0) / w.sum()
        shift = np.linalg.norm(new - x)
        x = new
        if shift < 1e-6:
            break
    return x, i
