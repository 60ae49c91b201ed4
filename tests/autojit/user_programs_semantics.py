# ruff: noqa: E701, E702, E731, E741
"""Programs about what is seldom thought of: layouts of results, attributes of classes and functions, what an
item takes, which object a list holds behind a loop.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import functools

import numpy as np

from tests.autojit.programs import R, program

F = lambda *shape: np.asfortranarray(R(*shape))


# -- the order of axes in memory: whether `reshape` gives a view --------------------------------------------------
@program(*[functools.partial(lambda n: (R(2, 3), n), n) for n in (0, 1, 2, 5)])
def turned_in_a_loop(x, n):
    y = x.T + 1
    for _ in range(n):
        y = y * 2
    v = y.reshape(-1)
    v[0] = 5
    w = y.ravel()
    w[1] = 7
    return y, v

@program(lambda: (R(2, 3), 0.5), lambda: (R(2, 3), -1.0), lambda: (R(2, 3), 2.0))
def turned_by_a_choice(x, c):
    y = x.T + 1
    if c > 0:
        y = y * 2
    y.reshape(-1)[0] = 5
    return y

@program(lambda: F(2, 3), lambda: R(2, 3), lambda: R(3, 2).T)
def made_in_fortran_order(x):
    made = [np.zeros_like(x), np.zeros((2, 3), order="F"), np.array(x, order="F"), np.full((2, 2), 1.5, order="F"), np.copy(x),
            np.where(x > 1, x, 0), np.sort(x, axis=0), x.cumsum(0), np.concatenate([x, x]), np.stack([x, x]), x.copy("K")]
    for y in made:
        y.reshape(-1)[0] = 100
    return made

@program(lambda: R(3, 4), lambda: F(3, 4))
def columns_by_numbers(x):
    y = x[:, [2, 0]]
    y.reshape(-1)[0] = 5
    z = x[[2, 0]]
    z.reshape(-1)[1] = 7
    return y, z, y.flags.c_contiguous, z.flags.c_contiguous

@program(lambda: R(2, 3), lambda: R(2, 3) * 1j)
def conjugate_of_reals(x):
    y = x.conj()
    return y, y is x


# -- which object it is ---------------------------------------------------------------------------------------
@program(*[functools.partial(lambda n: (R(3), np.ones(3), n), n) for n in (0, 1, 2, 5)])
def lists_copied_in_a_loop(a, b, n):
    held = [a, b]
    for _ in range(n):
        held = list(held)
    return held

@program(*[functools.partial(lambda n: (R(3), np.ones(3), n), n) for n in (0, 1, 2, 5)])
def lists_copied_and_written(a, b, n):
    held = [a, b]
    for i in range(n):
        held = list(held)
        held[0][0] += i
    a[1] = 7
    return held


# -- attributes of classes and functions ------------------------------------------------------------------------
class Counter:
    count = 0
    cache = {}
    scale = 2.0
    log = []
    last = None

class Special(Counter):
    pass

def helper(x):
    return x * helper.factor

helper.factor = 3.0

def set_back():
    Counter.count, Counter.scale, helper.factor = 0, 2.0, 3.0
    Counter.cache.clear(); Counter.log.clear()
    if "scale" in vars(Special): del Special.scale

@program(lambda: R(2), lambda: R(2))
def counted_in_a_class(x):
    Counter.count += 1
    return x * Counter.count, Counter.count

@program(lambda: (R(2), 1), lambda: (R(2), 2), lambda: (R(2), 1), lambda: (R(2), 3))
def cached_in_a_class(x, n):
    if n not in Counter.cache: Counter.cache[n] = n * 2.5
    return x * Counter.cache[n], dict(Counter.cache)

@program(lambda: R(2), lambda: R(2))
def logged_in_a_class(x):
    Counter.log.append(len(Counter.log))
    return x, len(Counter.log)

@program(lambda: R(2), lambda: R(2), lambda: R(2))
def counted_in_a_function(x):
    helper.calls = getattr(helper, "calls", 0) + 1
    return x * helper.calls

def read_scale(x):
    return x * Counter.scale + Special.scale + helper(x)

@program(lambda: (R(2), 2.0), lambda: (R(2), 5.0))
def attributes_that_change(x, scale):
    set_back()
    before = read_scale(x)
    Counter.scale = scale
    middle = read_scale(x)
    Special.scale = 7.0
    helper.factor = scale
    found = before, middle, read_scale(x)
    set_back()
    return found


# -- what an item takes -----------------------------------------------------------------------------------------
def _list_items(kind, values):
    return [functools.partial(lambda kind, value: (np.array([1, 2, 3], kind), value), kind, value) for value in values]

@program(*_list_items("i8", (1.5, -1.5, np.nan, np.inf, 1e30, 9.3e18, -2.0**63)), *_list_items("i1", (127.9, 128.0, -128.9, -129.0)),
         *_list_items("u1", (255.9, 256.0, -0.5, -1.0)))
def floats_into_ints(a, v):
    a[0] = v
    return a

@program(*_list_items("i1", ([1, 2, 3], (100, 127, 5), [300, 1, 2], range(3), [-129, 1, 1])), *_list_items("u1", ([1, 2, 3], [-1, 2, 3])))
def lists_into_ints(a, v):
    a[:] = v
    return a

@program(lambda: (R(3), np.array([4.0])), lambda: (R(3), np.array(4.0)), lambda: (R(3), np.float64(4.0)))
def arrays_into_elements(a, v):
    a[0] = v
    return a

@program(*[functools.partial(lambda s: (R(8), s), s) for s in (slice(None), slice(1, 5), slice(None, None, -2), slice(-3, None))])
def slices_as_arguments(x, s):
    return x[s], x[s].sum()
