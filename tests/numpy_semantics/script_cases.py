"""Functions as scripts have them: each runs plainly and traced, with equal results and equal mutations."""

from __future__ import annotations

import math

import numpy as np

from tests.numpy_semantics.tracing import Static

RNG = np.random.default_rng(7)


def life(board, steps):
    for _ in range(steps):
        neighbours = np.zeros_like(board)
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if (dx, dy) != (0, 0):
                    neighbours += np.roll(np.roll(board, dx, 0), dy, 1)
        board = np.where((neighbours == 3) | ((board == 1) & (neighbours == 2)), 1, 0)
    return board


def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
    return prime


def runge_kutta(y, dt, steps):
    def slope(y):
        return np.array([y[1], -math.sin(0.5) * y[0] - 0.1 * y[1]])

    path = np.empty((steps + 1, 2))
    path[0] = y
    for k in range(steps):
        k1 = slope(y)
        k2 = slope(y + 0.5 * dt * k1)
        k3 = slope(y + 0.5 * dt * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[k + 1] = y
    return path


def eliminate(a, b):
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i] -= factor * a[k]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return x


def conjugate_gradient(a, b, tolerance):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rr = r @ r
    count = 0
    while math.sqrt(rr) > tolerance and count < 100:
        ap = a @ p
        alpha = rr / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p = r + (new / rr) * p
        rr = new
        count += 1
    return x, count < 100


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for i in range(len(weights)):
        for c in range(capacity, -1, -1):
            if weights[i] <= c:
                best[c] = max(best[c], best[c - weights[i]] + values[i])
    return best


def common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[-1, -1], table


def binary_search(a, x):
    low, high = 0, len(a) - 1
    while low <= high:
        middle = (low + high) // 2
        if a[middle] == x:
            return middle
        if a[middle] < x:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def histogram(data, bins):
    counts = np.zeros(bins, dtype=np.int64)
    low, high = data.min(), data.max()
    for x in data:
        k = int((x - low) / (high - low) * bins)
        if k == bins:
            k -= 1
        counts[k] += 1
    return counts


def escape(width, height, limit):
    out = np.zeros((height, width), dtype=np.int32)
    for row in range(height):
        for column in range(width):
            c = complex(3.0 * column / width - 2, 2.0 * row / height - 1)
            z = 0j
            n = 0
            while abs(z) < 2 and n < limit:
                z = z * z + c
                n += 1
            out[row, column] = n
    return out


def k_means(points, centers, steps):
    for _ in range(steps):
        distances = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        for k in range(len(centers)):
            count, total = 0, np.zeros(points.shape[1])
            for i in range(len(points)):
                if labels[i] == k:
                    count += 1
                    total += points[i]
            if count > 0:
                centers[k] = total / count
    return labels


def insertion_sort(a):
    for i in range(1, len(a)):
        key, j = a[i], i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key


def blur(image):
    height, width = image.shape
    out = image.copy()
    for i in range(height):
        for j in range(width):
            total, count = 0.0, 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if 0 <= i + di < height and 0 <= j + dj < width:
                        total += image[i + di, j + dj]
                        count += 1
            out[i, j] = total / count
    return out


def power_iteration(a, steps):
    v = np.ones(a.shape[0]) / np.sqrt(a.shape[0])
    value = 0.0
    for _ in range(steps):
        w = a @ v
        value = v @ w
        v = w / np.linalg.norm(w)
    return value, v


def running_median(x, half):
    out = np.zeros(len(x))
    for i in range(half, len(x) - half):
        out[i] = np.median(x[i - half : i + half + 1])
    return out


def newton_roots(coefficients, x, steps):
    for _ in range(steps):
        value, slope = 0.0, 0.0
        for c in coefficients:
            slope = slope * x + value
            value = value * x + c
        if slope == 0:
            break
        x = x - value / slope
    return x


def random_numbers(seed, count):
    out = np.empty(count)
    for i in range(count):
        seed = (1103515245 * seed + 12345) % 2147483648
        out[i] = seed / 2147483648
    return out, seed


def distances(points):
    n = points.shape[0]
    d = np.zeros((n, n), dtype=points.dtype)
    for i in range(n):
        for j in range(i):
            diff = points[i] - points[j]
            d[i, j] = d[j, i] = np.sqrt(np.dot(diff, diff))
    return d


def moving_average(x, weight):
    average = x[0]
    for i in range(len(x)):
        average = weight * average + (1 - weight) * x[i]
        x[i] = average
    return x.mean()


def count_islands(grid):
    labels = np.zeros(grid.shape, dtype=np.int64)
    current = 0
    stack = np.zeros((grid.size * 4, 2), dtype=np.int64)
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i, j] and labels[i, j] == 0:
                current += 1
                stack[0] = i, j
                depth = 1
                while depth > 0:
                    depth -= 1
                    r, c = stack[depth]
                    if r < 0 or c < 0 or r >= grid.shape[0] or c >= grid.shape[1]:
                        continue
                    if not grid[r, c] or labels[r, c] != 0:
                        continue
                    labels[r, c] = current
                    stack[depth] = r + 1, c
                    stack[depth + 1] = r - 1, c
                    stack[depth + 2] = r, c + 1
                    stack[depth + 3] = r, c - 1
                    depth += 4
    return current, labels


_SQUARE = RNG.normal(size=(6, 6))
_POINTS = RNG.normal(size=(12, 2))

CASES = [
    (life, (RNG.integers(0, 2, (6, 7)), Static(3))), (sieve, (Static(60),)),
    (runge_kutta, (np.array([1.0, 0.0]), 0.1, Static(8))), (eliminate, (_SQUARE, RNG.normal(size=6))),
    (conjugate_gradient, (_SQUARE @ _SQUARE.T + np.eye(6), RNG.normal(size=6), 1e-10)),
    (knapsack, (np.array([3, 4, 2]), np.array([30, 50, 15]), Static(9))),
    (common_subsequence, (np.array([1, 2, 3, 4, 1]), np.array([3, 4, 1, 2]))),
    (binary_search, (np.arange(0, 40, 3), 12)), (binary_search, (np.arange(0, 40, 3), 13)),
    (histogram, (RNG.normal(size=30), Static(5))), (escape, (Static(6), Static(5), 30)),
    (k_means, (_POINTS, _POINTS[:3].copy(), Static(2))), (insertion_sort, (RNG.normal(size=9),)),
    (blur, (RNG.normal(size=(5, 6)),)), (power_iteration, (_SQUARE, Static(5))),
    (running_median, (RNG.normal(size=12), Static(2))), (newton_roots, (np.array([1.0, -6, 11, -6]), 3.7, 20)),
    (random_numbers, (42, Static(10))), (distances, (_POINTS,)), (distances, (_POINTS.astype(np.float32),)),
    (moving_average, (RNG.normal(size=9), 0.3)), (count_islands, (RNG.integers(0, 2, (5, 6)).astype(bool),)),
]
