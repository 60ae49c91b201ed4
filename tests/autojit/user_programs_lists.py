# ruff: noqa: E701, E702, E731, E741
"""Lists that programs fill: histories, paths, stacks, filters by comprehensions.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import numpy as np

from tests.autojit.programs import I, R, program


# -- one element in each iteration ------------------------------------------------------------------------
@program(lambda: R(40), lambda: R(40, seed=1))
def history_of_numbers(x):
    h = []
    for i in range(30):
        x = x * 0.9 + i
        h.append(x.sum())
    return h, np.array(h), np.mean(h), h[-1], len(h)

@program(lambda: R(40))
def history_of_arrays(x):
    h = [x.copy()]
    for _ in range(30):
        x = x * 0.9
        h.append(x)
    return np.array(h), np.stack(h[3:9])

@program(lambda: R(40))
def last_element_is_a_variable(x):
    h = [x.copy()]
    for _ in range(30):
        x = x * 0.9
        h.append(x)
    x[0] = 7
    return h, x

@program(lambda: R(4))
def elements_are_one_array(x):
    h = []
    for _ in range(30):
        x += 1
        h.append(x)
    return h, x

@program(lambda: R(4))
def element_is_written_later(x):
    h = []
    for _ in range(30):
        x[0] = 5
        x = x * 0.5
        h.append(x)
    return h, x

@program(lambda: R(4))
def element_is_the_variable_before(x):
    h, g = [], [(7, 1.0)]
    for i in range(30):
        prev = x
        x = x * 0.5
        h.append(x); g.append((i, float(x[0])))
    prev[0] = 100
    return h, x, g, prev

@program(lambda: R(20))
def two_lists_and_parts(x):
    a, b = [], []
    for i in range(40):
        x = x + 1
        a.append(x[1:].copy()); b.append(i); b.append(x[0])
    return a[5], a[-1], b[:4], len(a), len(b)

@program(lambda: ([1.0], R(4)), lambda: ([], R(4)))
def list_of_the_caller(h, x):
    for _ in range(40):
        x = x + 1
        h.append(float(x[0]))
    return sum(h), np.mean(h), max(h), len(h), h[-1], h[3:5]

@program(lambda: R(5))
def two_names(x):
    h = []
    g = h
    for _ in range(20):
        x = x * 0.5
        h.append(x[0])
    return g is h, g

@program(lambda: R(4))
def history_in_a_dict(x):
    hs = {"a": [], "b": []}
    for _ in range(20):
        x = x * 1.01
        hs["a"].append(x[0]); hs["b"].append(x.mean())
    return hs

@program(lambda: R(6))
def list_is_read_in_the_loop(x):
    h = [float(x[0])]
    for i in range(50):
        h.append(h[-1] * 0.5 + i)
        if len(h) > 30: x = x + 1
    return h, x

@program(lambda: (R(40), {"w": R(40, seed=1), "b": 0.5}))
def items_in_place(x, p):
    losses = []
    for _ in range(30):
        loss = (p["w"] * x).sum() + p["b"]
        losses.append(loss)
        p["w"] -= 0.001 * loss * x
        p["b"] -= 0.01 * loss
    return losses


# -- elements that a condition lets in ---------------------------------------------------------------------
@program(lambda: R(40), lambda: R(40, seed=1) - 9, lambda: R(3))
def above_zero(x):
    h = []
    for v in x:
        if v > 0: h.append(v)
    return h, len(h), np.array(h), isinstance(h, list), bool(h)

@program(lambda: R(40), lambda: R(3), lambda: np.arange(9.0))
def peaks(x):
    p = []
    for i in range(1, len(x) - 1):
        if x[i] > x[i - 1] and x[i] > x[i + 1]:
            p.append(i)
    return np.array(p), x[p], len(p), p

@program(lambda: (R(4) + 3, 1e-3), lambda: (R(4), 0.5), lambda: (R(4), -1.0))
def until_small(x, tol):
    h = [float(x[0])]
    for i in range(200):
        x = x * 0.5
        h.append(float(x[0]))
        if abs(x[0]) < tol: break
    return h, i, h[-1], sum(h), np.mean(h), max(h), min(h)

@program(lambda: R(10))
def pairs_of_two_loops(x):
    h = []
    for i in range(5):
        for v in x:
            if v > i: h.append((i, v))
    return h, len(h)

@program(lambda: np.abs(R(4)) + 1, lambda: np.abs(R(4)) * 0)
def while_large(x):
    h = []
    while x[0] > 1e-3:
        x = x * 0.9
        h.append(x[0])
    s = 0.0
    for v in h: s += v * 2
    return s, h

@program(lambda: 27, lambda: 6, lambda: 7, lambda: 1, lambda: 97)
def collatz(n):
    c = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        c.append(n)
    return c, c[::-1]

@program(lambda: R(40))
def two_ways(x):
    a, b = [], []
    for v in x:
        if v > 0: a.append(v)
        else: b.append(float(v))
    return a, b

@program(lambda: R(40))
def two_types(x):
    h = []
    for v in x:
        if v > 0: h.append(v)
        else: h.append(1)
    return h

@program(lambda: (R(20), [3.0]), lambda: (R(20), []))
def list_of_the_caller_filtered(x, h):
    for v in x:
        if v > 0: h.append(v)
    return h

@program(lambda: R(20) + 3)
def records(x):
    best = []
    for _ in range(50):
        x = x * 0.99
        if len(best) == 0 or x.sum() < best[-1]:
            best.append(x.sum())
    return best

@program(lambda: I(0, 3, 30), lambda: I(0, 3, 30, seed=1), lambda: I(0, 3, 1))
def run_lengths(x):
    values, lengths = [], []
    prev, count = x[0], 1
    for v in x[1:]:
        if v == prev:
            count += 1
        else:
            values.append(prev); lengths.append(count)
            prev, count = v, 1
    values.append(prev); lengths.append(count)
    return values, lengths

@program(lambda: (R(30), 4), lambda: (R(30), 40), lambda: (R(30), 31))
def stack_of_places(x, start):
    stack, seen = [start], []
    while stack:
        k = stack.pop()
        if k < len(x) and x[k] < 1:
            seen.append(k)
            stack.append(2 * k); stack.append(k + 3)
    return seen, len(seen)

@program(lambda: (R(12), R(15, seed=1)))
def warping_path(a, b):
    n, m = len(a), len(b)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            D[i, j] = abs(a[i - 1] - b[j - 1]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    i, j = n, m
    path = [(i - 1, j - 1)]
    while i > 1 or j > 1:
        step = np.argmin([D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]])
        if step == 0:
            i -= 1; j -= 1
        elif step == 1:
            i -= 1
        else:
            j -= 1
        path.append((i - 1, j - 1))
    return D[n, m], path[::-1]


# -- comprehensions ------------------------------------------------------------------------------------------
@program(lambda: R(40), lambda: R(3), lambda: R(40) - 9)
def filtered(a):
    return [v for v in a if v > 1], len([v for v in a if v < 0]), [i for i in range(len(a)) if a[i] > 0]

@program(lambda: R(40), lambda: R(6, seed=1))
def filtered_and_used(a):
    t = 0.0
    for v in [w for w in a if w > 0]: t += v
    b = [x for x in a if x > 0]
    return t, np.array([v * 2 for v in b]), [x for x in b if x < 1], sum(b)

@program(lambda: (R(60), -1.0, 1.0), lambda: (R(60), -2.0, 0.5))
def without_outliers(x, lo, hi):
    clean = [v for v in x if lo <= v <= hi]
    return np.array(clean).mean(), len(clean), max(clean), min(clean)

@program(lambda: R(12))
def filters_of_several(a):
    return ([(i, v) for i, v in enumerate(a) if v > 0], [x + y for x in a[:4] for y in a[:3] if x < y],
            [[v for v in a if v > i] for i in range(3)], [v if v > 0 else 0.0 for v in a])

@program(lambda: R(40))
def filter_of_nothing(a):
    return [v for v in a if v > 1000], np.array([v for v in a if v > 1000])

@program(lambda: I(0, 9, 30))
def filter_of_integers(a):
    even = [x for x in a if x % 2 == 0]
    return even, np.array(even), [int(x) for x in a if x in (1, 2)]

@program(lambda: R(40))
def appended_behind(a):
    b = [x for x in a if x > 0]
    b.append(3.0)
    return b

@program(lambda: R(4, 10))
def rows(a):
    return [a[i].sum() for i in range(3)], [row.max() for row in a], [a[0, i:i + 3].copy() for i in range(7)]


# -- variables that comprehensions share ---------------------------------------------------------------------
@program(lambda: (R(60, 2), R(3, 2, seed=1), 8), lambda: (R(60, 2), R(3, 2, seed=1), 0), lambda: (R(9, 2), R(3, 2), 3), lambda: (R(9, 2), R(3, 2), 4))
def kmeans_by_comprehension(X, c, n):
    for _ in range(n):
        labels = ((X[:, None] - c[None]) ** 2).sum(axis=2).argmin(axis=1)
        c = np.array([X[labels == j].mean(axis=0) if np.any(labels == j) else c[j] for j in range(3)])
    return labels, c, sum(((X[labels == j] - c[j]) ** 2).sum() for j in range(3))
