# ruff: noqa: E701, E702, E731, E741
"""Programs in which two names may mean one array, depending on values; and errors with texts.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""


import numpy as np

from tests.autojit.programs import R, program


@program(lambda: (R(4), 1.0, 1.0), lambda: (R(4), 1.0, -1.0), lambda: (R(4), -1.0, 1.0))
def nested_alias(x, c, d):
    if c > 0:
        if d > 0:
            z = x
        else:
            z = x + 1
    else:
        z = x + 2
    z[0] = 5
    return z

@program(lambda: (R(4), 1.0, 1.0), lambda: (R(4), 1.0, -1.0), lambda: (R(4), -1.0, 1.0))
def nested_alias_ret(x, c, d):
    if c > 0:
        if d > 0:
            z = x
        else:
            z = x + 1
    else:
        z = x + 2
    return z

@program(lambda: (R(4), R(4), 5), lambda: (R(4), R(4), 6), lambda: (R(4), R(4), 0),lambda: (R(4), R(4), 7),lambda: (R(4), R(4), 8),lambda: (R(4), R(4), 9))
def pingpong(u, v, n):
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, v = v, u
    return u

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def loop_nested(x, c):
    i = 0
    z = x
    while i < c:
        if x[0] > i:
            z = x
        else:
            z = z + 1
        i += 1
    z[0] = 7
    return x[0]

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def loop_in_if(x, c):
    y = np.zeros(4)
    if c > 0:
        z = x
        i = 0
        while i < c - 5.5:
            z = z + 1
            i += 1
    else:
        z = y
    z[0] = 7
    return x[0], y

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def alias_list(x, c):
    l = [x]
    if c > 5.5:
        if c > 0:
            l[0] = x + 1
    else:
        l[0] = x * 2
    l[0][0] = 7
    return x

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def alias_ifexp(x, c):
    z = (x if c > 5.5 else x + 1) if c > 0 else x + 2
    w = z[1:]
    w += 1
    return x, w

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def alias_loop_twice(x, c):
    z = x
    for i in range(3):
        for j in range(3):
            if z[j] < c:
                z = z + 1
    z[:] = 0
    return x

@program(lambda: (R(4), 5.), lambda: (R(4), 6.), lambda: (R(4), -1.0))
def alias_while_noloop(x, c):
    z = x
    if c > 0:
        while c < 5.5:
            z = z + 1
            c += 1
    else:
        z = x * 2
    z[:] = 0
    return x

@program(lambda: (R(6), 5), lambda: (R(6), 6), lambda: (R(6), 0),lambda: (R(6), 7),lambda: (R(6), 40))
def pingpong2(u, n):
    v = u.copy()
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, v = v, u
    return u

@program(lambda: (R(6), 1e-1), lambda: (R(6), 1e-2), lambda: (R(6), 1e3),lambda: (R(6), 1e-5))
def pingpong3(u, tol):
    v = u.copy()
    d = 1.0
    while d > tol:
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        d = abs(u - v).max()
        u, v = v, u
    return u

@program(lambda: (R(6), 1.), lambda: (R(6), -1.))
def rebind_arg(x, c):
    if c > 0:
        x = x.copy()
    x[0] = 5
    return x

@program(lambda: (R(6), 1.), lambda: (R(6), -1.))
def rebind_arg2(x, c):
    if c > 0:
        x = x.copy()
    return x

@program(lambda: (R(6), 1e-1), lambda: (R(6), 1e-2), lambda: (R(6), 1e3),lambda: (R(6), 1e-5))
def pingpong4(u, tol):
    v = u.copy()
    d = 1.0
    while d > tol:
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        d = abs(u - v).max()
        u, v = v, u
    return d

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.))
def alias_body(x, n):
    u = x
    i = 0
    s = 0.0
    while i < n:
        x[0] = 100 + i
        s += u[0]
        u = u + 1
        i += 1
    return s

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.))
def alias_body2(x, n):
    u = x
    i = 0
    while i < n:
        x[0] += 100
        u = u + 1
        x[1] = u[0]
        i += 1
    return u

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.))
def write_after(x, n):
    u = x
    i = 0
    while i < n:
        u = u + 1
        i += 1
    u[0] = 50
    return u

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def back_into(x, n):
    u = x
    i = 0
    while i < n:
        u = u + 1
        i += 1
    x[:] = u * 2
    return u

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def ret_view(x, n):
    u = x[1:]
    i = 0
    while i < n:
        u = u + 1
        i += 1
    return u[::2], u, x

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def if_ret(x, c):
    y = x * 2
    z = x if c > 2 else y
    return z, y

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def if_ret2(x, c):
    l = [x]
    if x[0] > c:
        z = x
    else:
        z = np.abs(x)
    d = {"z": z, "zz": z, "v": z[2:]}
    return d, l

@program(lambda: (R(6), R(6, seed=4)), lambda: (R(6, seed=4), R(6)))
def argmax_arr(x, y):
    best = x
    if y.sum() > best.sum():
        best = y
    return best

@program(lambda: (R(6),1), lambda: (R(6, seed=4),-1), lambda: (R(6, seed=4),-10))
def twoloops(x, n):
    for k in range(3):
        x = x + k
    i = 0
    while i < x[0] + n:
        x = x * 0.5
        i += 1
    for k in range(4):
        x = np.sqrt(x * x)
    return x

@program(lambda: (R(6),1), lambda: (R(6, seed=4),-1), lambda: (R(6, seed=4),-10))
def rename_zero(x, n):
    for k in range(n):
        x = x + k
    return x
class Box: pass

@program(lambda: (R(6),1.), lambda: (R(6, seed=4),-1.), lambda: (R(6, seed=4),-10.))
def box(x, n):
    b = Box()
    b.x = x
    i = 0
    while i < n + 5 * x[1]:
        b.x = b.x + 1
        i += 1
    return b

@program(lambda: (np.asfortranarray(R(3, 4)),1.), lambda: (np.asfortranarray(R(3, 4)),-1.), lambda: (R(6, 4)[::2],-10.), lambda: (R(6, 4)[::2],10.))
def layouts_zero(x, n):
    i = 0
    while i < n - x[1, 0]:
        x = x + 1
        i += 1
    return x

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def same_handle(x, c):
    y = x * 2
    w = x * 3
    z = w if x[0] > c else y
    y[0] = 5
    return z

@program(lambda: (R(6), 5.), lambda: (R(6), 1.), lambda: (R(6), -1.), lambda: (R(6), 3.))
def min_max(x, c):
    y = x * 2
    lo, hi = (x, y) if x[0] > c else (y, x)
    return lo, hi

@program(lambda: (R(6, 4), 5.), lambda: (R(6, 3), 1.), lambda: (R(1, 5), -1.))
def rows_view(a, c):
    row = a[0]
    s = 0.0
    for i in range(1, len(a)):
        row = a[i]
        row[0] = i
        a[i, 1] += row[2]
        s += row.sum()
    return s

@program(lambda: (R(6, 4), 5.), lambda: (R(6, 3), 1.), lambda: (R(1, 5), -1.))
def rows_view2(a, c):
    s = 0.0
    for k in range(3):
        for i in range(len(a)):
            row = a[i]
            for j in range(len(row)):
                row[j] += s
            s += row.sum()
    return s, row

@program(lambda: (R(6, 4), 5.), lambda: (R(6, 3), 1.), lambda: (R(1, 5), -1.))
def prev_row(a, c):
    prev = a[0]
    for i in range(1, len(a)):
        cur = a[i]
        cur += prev
        prev = cur
    return prev

@program(lambda: (R(6, 4), 5.), lambda: (R(6, 3), 1.), lambda: (R(1, 5), -1.))
def rows_then_all(a, c):
    for i in range(len(a)):
        row = a[i]
        row += i
    a *= 2
    for row in a:
        row -= row.mean()
    a += 1
    return a.sum()
BUF = np.arange(4.0)

@program(lambda: (R(4), 5.), lambda: (R(4), 1.), lambda: (R(4), -1.))
def global_alias(x, c):
    w = BUF if x[1] + c > 2 else x + 1
    w[0] = 17
    return BUF[0]

@program(lambda: (R(4), 5.), lambda: (R(4), 1.), lambda: (R(4), -1.))
def global_ret(x, c):
    w = BUF if x[1] + c > 2 else x + 1
    return w
def helper_min(p, q):
    if p.sum() < q.sum():
        return p
    return q

@program(lambda: (R(4), 5.), lambda: (R(4), 1.), lambda: (R(4), -1.))
def helper_alias(x, c):
    y = x * 2
    m = helper_min(x, y)
    m[0] = 9
    return y

@program(lambda: (R(4), 5.), lambda: (R(4), 1.), lambda: (R(4), -1.))
def helper_alias2(x, c):
    y = x * 2
    m = helper_min(x, y)
    return y, m

@program(lambda: (R(4), 5.), lambda: (R(4), 1.), lambda: (R(4), -1.))
def closure_alias(x, c):
    y = x * 2
    def pick():
        return y if y[0] > c else x
    m = pick()
    m += 3
    return y

@program(lambda: (R(4), 5.), lambda: (R(4), .1), lambda: (R(4), -1.))
def global_store_in_arm(x, c):
    if x[0] > c:
        BUF[1] = c
    return x[0]

@program(lambda: (R(4), 5.), lambda: (R(4), .1), lambda: (R(4), -1.))
def global_loop_alias(x, c):
    i = 0
    w = x
    while i < c:
        w = BUF
        i += 1
        w[0] += 1
    w[2] = -3
    return w.sum()

@program(lambda: (R(5) ** 2,), lambda: (R(5) ** 2 * 2,), lambda: (-R(5),), lambda: (R(3) ** 2,))
def raises_with_text(x):
    total = 0.0
    for k in range(len(x)):
        if x[k] < 0:
            raise ValueError(f"x[{k}] = {x[k]:.3f} is negative")
        total += np.sqrt(x[k])
    if not np.isfinite(total):
        raise FloatingPointError("total %g after %d" % (total, len(x)))
    assert total < 1e6, "total is {}".format(total)
    return total
def check(x):
    if x.min() < 0:
        msg = "min " + str(x.min()) + " at " + repr(int(x.argmin()))
        raise ValueError(msg)

@program(lambda: (R(5) ** 2,), lambda: (R(5) ** 2 * 2,), lambda: (-R(5),), lambda: (R(3) ** 2,))
def raises_in_helper(x):
    try:
        check(x)
    except ValueError as e:
        return str(e)
    return x.sum()

@program(lambda: (R(5) ** 2,), lambda: (R(5) ** 2 * 2,), lambda: (-R(5),), lambda: (R(3) ** 2,))
def raises_caught_inside(x):
    try:
        if x.min() < 0:
            raise ValueError("min {:.2f}".format(x.min()))
        return x.sum()
    except ValueError:
        return -1.0

_ITEMS = [lambda: (R(3), R(3, seed=1), [R(3), R(3, seed=2)], np.int64(2)), lambda: (R(3), R(3, seed=1), [R(3), R(3, seed=2)], np.int64(1)),
          lambda: (R(3), R(3, seed=1), [R(3), R(3, seed=2)], np.int64(3)), lambda: (R(3), R(3, seed=1), [R(3), R(3, seed=2)], np.int64(0))]

@program(*_ITEMS)
def list_returned_with_others(x, y, l, t):
    p = x + 1
    if t > 1: return l, p
    return l, p

@program(*_ITEMS)
def list_in_two_ways(x, y, l, t):
    z = l if t > 1 else [x, y]
    z[0] = x + 7
    return l

@program(*_ITEMS)
def list_with_two_names(x, y, l, t):
    if t > 1:
        z = w = [x, y + 1]
    else:
        z = w = [x + 1, y]
    z[0] = x + 7
    return w, z

@program(*_ITEMS)
def list_with_two_names_on_one_side(x, y, l, t):
    z, w = [x, y], [y, x]
    if t > 1:
        z = w
    z[0] = x + 7
    return w, z

@program(*_ITEMS)
def list_replaced_in_loop(x, y, l, t):
    m = l
    for i in range(t):
        l = [l[0] + 1, l[1]]
    l[0] = y + 9
    return m[0].sum()

@program(*_ITEMS)
def list_replaced_in_while(x, y, l, t):
    z = [x, y]
    w = z
    i = 0
    while i < t:
        z = [z[0] * 2, z[1]]
        i += 1
    z[1] = x + 5
    return w[1].sum(), z[0].sum()

@program(*_ITEMS)
def list_in_tuple_in_loop(x, y, l, t):
    r = (l, x * 1.0)
    for i in range(t):
        r = (l, r[1] + 1)
    r[0][0] = y * 3
    return l[0].sum(), r[1]

@program(*_ITEMS)
def list_stored_then_replaced(x, y, l, t):
    for i in range(t):
        l[0] = l[0] + 1
        l = [l[0], y * 2]
    return l[0].sum()

@program(*_ITEMS)
def list_two_names_behind_loop(x, y, l, t):
    q = w = [x, y]
    for i in range(t):
        q = [x + i, y]
        w = q
    q[0] = y + 100
    return w[0].sum()

@program(*_ITEMS)
def lists_swapped_in_loop(x, y, l, t):
    z, w = [x * 2, y * 2], [x * 3, y * 3]
    for i in range(t):
        z, w = w, z
        z[0] = z[0] + 1
    return z[0].sum(), w[0].sum()

@program(*_ITEMS)
def list_copied_in_loop(x, y, l, t):
    z = [x * 2]
    w = z
    for i in range(t):
        z = list(z)
    z[0] = y + 4
    return w[0].sum(), z[0].sum()

@program(*_ITEMS)
def view_before_its_array(x, y, l, t):
    if t > 1:
        x = np.where(x > 0, x, y)
    return x[::2], x

@program(*_ITEMS)
def identity_of_arrays(x, y, l, t):
    z = y + 1 if x[0] > 0 or t > 1 else x
    if z is x:
        return 1
    return 2

@program(*[lambda t=t, s=s: (R(3), 2, s, np.int64(t)) for t in (3, 2) for s in (0.5, -0.5)])
def fails_on_both_sides(x, n, s, t):
    if n > 2:
        c = x
    if t == 2:
        if s > 0 and c[1] < 1:
            return x
    else:
        raise ValueError("no")
class Solver:
    class Diverged(Exception):
        def __init__(self, n, r):
            super().__init__(f"diverged after {n}: {r:.1e}")
            self.n = n
    def run(self, x):
        n = 0
        while abs(x * x - 2) > 1e-12:
            x = (x + 2 / x) / 2
            n += 1
            if n > 20:
                raise Solver.Diverged(n, x)
        return x, n

@program(lambda: (Solver(), 1.0), lambda: (Solver(), 3.0), lambda: (Solver(), 1e200), lambda: (Solver(), 0.0))
def raises_own_class(s, x):
    return s.run(x)

@program(*[lambda n=n: (R(6), n) for n in (0, 1, 2, 5)])
def second_name_of_what_an_inner_loop_writes(a, n):
    b = a + 1
    c = a + 2
    d = a + 3
    for i in range(n):
        b, c, d = c, d, b
        d = c
        for _ in range(n):
            c[1:-1] = 0.5 * c[2:] - 0.25 * b[:-2]
    return b, c, d

@program(*[lambda x=x, y=y: (x, y) for x, y in ((-5, 7), (-2, 7), (3, 1), (np.float64(-5), 7))])
def stores_behind_an_early_return(x, y):
    values = [x, [2, y]]
    if x < 1:
        if x > -3:
            return values
        values[1][0] = x + 40
        inner = values[1]
    else:
        inner = [y, x]
    inner[1] = y + 1
    return values, inner, values[1] is inner
