"""Loops over single elements, as people write them for compilers: sorts, tables, graphs, automata.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`); some make
it leave its arrays.
"""

import math

import numpy as np

from tests.autojit.programs import I, R, program


@program(lambda: (R(20),), lambda: (R(1),), lambda: (-np.arange(9.0),))
def insertion_sort(a):
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


@program(lambda: (np.abs(R(60)) % 1, 7), lambda: (np.array([0.5, np.nan]), 3))
def histogram(x, bins):
    h = np.zeros(bins, np.int64)
    for v in x:
        k = int(v * bins)
        if k >= 0 and k < bins:
            h[k] += 1
    return h


@program(lambda: (I(0, 9, 12, 2), 9), lambda: (I(0, 4, 12, 2), 2))
def union_find(edges, n):
    parent = np.arange(n)
    for k in range(edges.shape[0]):
        a, b = edges[k, 0], edges[k, 1]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
    c = 0
    for i in range(n):
        if parent[i] == i:
            c += 1
    return c


@program(lambda: (np.array([300]),), lambda: (np.array([1]),), lambda: (np.array([30000]),))
def sieve_while(na):
    n = na[0]
    p = np.ones(20001, np.bool_)
    i = 2
    while i * i <= n:
        if p[i]:
            j = i * i
            while j <= n:
                p[j] = False
                j += i
        i += 1
    return p


@program(lambda: (R(20),), lambda: (R(2),))
def heapify(a):
    n = len(a)
    for start in range(n // 2 - 1, -1, -1):
        root = start
        while 2 * root + 1 < n:
            child = 2 * root + 1
            if child + 1 < n and a[child] < a[child + 1]:
                child += 1
            if a[root] < a[child]:
                t = a[root]
                a[root] = a[child]
                a[child] = t
                root = child
            else:
                break
    return a


@program(lambda: (I(1, 6, 6), np.abs(R(6)), 12), lambda: (I(-3, 9, 6), R(6), 5))
def knapsack(w, v, cap):
    best = np.zeros(cap + 1)
    for i in range(len(w)):
        for c in range(cap, w[i] - 1, -1):
            t = best[c - w[i]] + v[i]
            if t > best[c]:
                best[c] = t
    return best[cap]


@program(lambda: (np.full(6, -1),), lambda: (np.full(4, 2),))
def n_queens(col):
    n = len(col)
    count = 0
    row = 0
    while row >= 0:
        col[row] += 1
        if col[row] >= n:
            col[row] = -1
            row -= 1
        else:
            ok = True
            for r in range(row):
                if col[r] == col[row] or abs(col[r] - col[row]) == row - r:
                    ok = False
                    break
            if ok:
                if row == n - 1:
                    count += 1
                else:
                    row += 1
                    col[row] = -1
    return count


@program(lambda: (I(0, 4, 40), np.zeros((64, 64), np.int64)))
def random_walk(noise, visits):
    x = y = 32
    for t in range(len(noise)):
        d = noise[t]
        if d == 0:
            x = (x + 1) % 64
        elif d == 1:
            x = (x - 1) % 64
        elif d == 2:
            y = (y + 1) % 64
        else:
            y = (y - 1) % 64
        visits[x, y] += 1
    return visits


@program(lambda: (R(6, 7), 3), lambda: (R(6, 7), 4))
def jacobi_swap(u, n):
    h, w = u.shape
    v = u.copy()
    for t in range(n):
        for i in range(1, h - 1):
            for j in range(1, w - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


@program(lambda: (I(0, 2, 30),))
def run_length(x):
    values = np.zeros(len(x), np.int64)
    lengths = np.zeros(len(x), np.int64)
    k = -1
    for i in range(len(x)):
        if k < 0 or x[i] != values[k]:
            k += 1
            values[k] = x[i]
        lengths[k] += 1
    return values, lengths, k


@program(lambda: (np.abs(R(7, 7)), 2))
def dijkstra(w, src):
    n = w.shape[0]
    dist = np.full(n, np.inf)
    done = np.zeros(n, np.bool_)
    dist[src] = 0.0
    for _ in range(n):
        u = -1
        best = np.inf
        for v in range(n):
            if not done[v] and dist[v] < best:
                best = dist[v]
                u = v
        if u < 0:
            break
        done[u] = True
        for v in range(n):
            d = dist[u] + w[u, v]
            if d < dist[v]:
                dist[v] = d
    return dist


@program(lambda: (I(0, 10, 40),))
def parse_numbers(x):
    state = 0
    n = 0
    total = 0
    for i in range(len(x)):
        c = x[i]
        if state == 0:
            if c < 5:
                state = 1
                n = c
        elif state == 1:
            if c < 5:
                n = n * 10 + c
                if n > 1000:
                    state = 0
            else:
                total += n
                state = 0
    return total


@program(lambda: (R(9, 3), R(4, 3, seed=1)))
def kmeans_assign(x, c):
    out = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        best = 1e30
        for k in range(len(c)):
            d = 0.0
            for q in range(3):
                t = x[i, q] - c[k, q]
                d += t * t
            if d < best:
                best = d
                out[i] = k
    return out


@program(lambda: (R(7, 3),))
def nbody_forces(p):
    n = p.shape[0]
    f = np.zeros((n, 3))
    for i in range(n):
        for j in range(n):
            if i != j:
                dx = p[j, 0] - p[i, 0]
                dy = p[j, 1] - p[i, 1]
                dz = p[j, 2] - p[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + 1e-3
                inv = 1.0 / (r2 * math.sqrt(r2))
                f[i, 0] += dx * inv
                f[i, 1] += dy * inv
                f[i, 2] += dz * inv
    return f


@program(lambda: (R(6, 6) + 9 * np.eye(6),))
def lu_inplace(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@program(lambda: (np.roll(np.arange(9), 2),), lambda: (np.array([1, 5, 0]),))
def cycle_count(p):
    seen = np.zeros(len(p), np.bool_)
    c = 0
    for i in range(len(p)):
        if not seen[i]:
            c += 1
            j = i
            while not seen[j]:
                seen[j] = True
                j = p[j]
    return c


@program(lambda: (R(15),), lambda: (R(2),))
def quickselect(a):
    lo, hi, k = 0, len(a) - 1, len(a) // 2
    while lo < hi:
        pivot = a[hi]
        s = lo
        for i in range(lo, hi):
            if a[i] < pivot:
                t = a[i]
                a[i] = a[s]
                a[s] = t
                s += 1
        t = a[s]
        a[s] = a[hi]
        a[hi] = t
        if s == k:
            break
        elif s < k:
            lo = s + 1
        else:
            hi = s - 1
    return a[k]


@program(lambda: (np.sort(R(9)), np.sort(R(5, seed=1))), lambda: (np.empty(0), np.sort(R(5))))
def merge(a, b):
    out = np.empty(len(a) + len(b))
    i = j = 0
    for k in range(len(out)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            out[k] = a[i]
            i += 1
        else:
            out[k] = b[j]
            j += 1
    return out


@program(lambda: (I(0, 50, 6, 5),))
def flood_fill(g):
    n, m = g.shape
    seen = np.zeros((n, m), np.bool_)
    stack = np.zeros((n * m * 4, 2), np.int64)
    top = 1
    count = 0
    while top > 0:
        top -= 1
        i = stack[top, 0]
        j = stack[top, 1]
        if i < 0 or j < 0 or i >= n or j >= m:
            continue
        if seen[i, j] or g[i, j] > 40:
            continue
        seen[i, j] = True
        count += 1
        stack[top, 0] = i + 1
        stack[top, 1] = j
        stack[top + 1, 0] = i - 1
        stack[top + 1, 1] = j
        stack[top + 2, 0] = i
        stack[top + 2, 1] = j + 1
        stack[top + 3, 0] = i
        stack[top + 3, 1] = j - 1
        top += 4
    return count
