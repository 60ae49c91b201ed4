"""Functions with Python control flow, and inputs for them: what plain Python gives is the reference.

Each is called with Python numbers as they are, rewritten, and rewritten under `jit`, where all decide traced.
"""

from __future__ import annotations

import math

CASES: list = []


def case(*inputs):
    """Registers a function with the tuples of arguments that it is called with."""

    def add(function):
        CASES.append((function, inputs))
        return function

    return add


SIGNS = ((-2,), (0,), (3,))
COUNTS = ((0,), (1,), (5,), (8,))


@case(*SIGNS)
def if_else(x):
    if x > 0:
        y = x + 1
    else:
        y = x * 2
    return y


@case(*SIGNS)
def elif_chain(x):
    if x < -1:
        return x * 10
    elif x < 1:
        y = x - 5
    elif x == 3:
        y = x * x
    else:
        return 0 * x
    return y + 1


@case(*SIGNS)
def if_without_else(x):
    y = 1
    if x > 0:
        y = x
    if x > 1:
        y += 10
    return y


@case((-2, 1), (0, 0), (3, -1), (2, 5))
def nested_if(x, y):
    if x > 0:
        if y > 0:
            z = x + y
        else:
            z = x - y
        z *= 2
    else:
        if y == 0:
            return 7
        z = y
    return z


@case((-2, 1), (0, 0), (3, -1), (2, 5))
def logic(x, y):
    a = 1 if x > 0 and y > 0 else 0
    b = 2 if x > 0 or y > 0 else 0
    c = 4 if not x > 0 else 0
    d = 8 if 0 <= x < 3 else 0
    return a + b + c + d


@case((-2, 1), (0, 0), (3, -1), (2, 5))
def values_of_logic(x, y):
    return (x and y) + 10 * (x or y)


@case(*SIGNS)
def membership(x):
    y = 2
    return (1 if x in (1, 3) else 0) + (10 if y in [0, x + 2] else 0) + (100 if 5 not in (x, y) else 0)


@case(*COUNTS)
def while_loop(n):
    i = 0
    total = 0
    while i < n:
        total += i * i
        i += 1
    return total


@case(*COUNTS)
def while_break(n):
    i = 0
    while True:
        if i >= n:
            break
        i += 2
    return i


@case(*COUNTS)
def while_else(n):
    i = 0
    while i < n:
        if i == 3:
            r = 100
            break
        i += 1
    else:
        r = -1
    return r + i


@case(*COUNTS)
def while_continue(n):
    i = odd = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        odd += i
    return odd


@case(*COUNTS)
def early_return_in_loop(n):
    i = 0
    while i < n:
        if i * i > 10:
            return i * 1000
        i += 1
    return i


@case((0, 3), (2, 0), (3, 4))
def nested_loops(n, m):
    total = i = 0
    while i < n:
        j = 0
        while j < m:
            if j > i:
                break
            total += i * 10 + j
            j += 1
        i += 1
    return total


@case(*COUNTS)
def for_range(n):
    total = 0
    for i in range(n):
        total += i
    return total


@case((0, 5, 2), (5, 0, -1), (2, 2, 1), (1, 10, 3))
def for_range_step(a, b, s):
    total = 0
    for i in range(a, b, s):
        total = total * 3 + i
    return total


@case(*COUNTS)
def for_break_else(n):
    for i in range(10):
        if i > n:
            found = i
            break
    else:
        found = -1
    return found


@case(*COUNTS)
def for_continue(n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        total += i
    return total


@case(*COUNTS)
def for_return(n):
    for i in range(n):
        if i * i > 8:
            return i
    return -1


@case(*COUNTS)
def python_loop_traced_condition(n):
    total = 0
    for i in range(4):
        if i < n:
            total += i
        else:
            total -= 1
    return total


@case(*COUNTS)
def enumerate_range(n):
    total = 0
    for k, i in enumerate(range(n)):
        total += k * i
    return total


@case(*COUNTS)
def zip_ranges(n):
    total = 0
    for a, b in zip(range(n), range(0, 20, 2)):
        total += a * b
    return total


@case(*COUNTS)
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case((10.0,), (2.0,), (0.5,))
def newton(a):
    x = a
    while abs(x * x - a) > 1e-3:
        x = 0.5 * (x + a / x)
    return x


@case((10.0,), (2.0,))
def type_changes_in_loop(a):
    x = 1
    for _ in range(3):
        if a > 1:
            x = x * 0.5
    return x


@case((48, 18), (7, 5), (3, 0))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def helper(x):
    if x > 2:
        return x - 2
    return x


@case(*SIGNS)
def calls_helper(x):
    return helper(helper(x) + 3)


@case(*SIGNS)
def calls_lambda(x):
    pick = lambda v: v if v > 0 else -v  # noqa: E731
    return pick(x) + pick(-x)


@case(*SIGNS)
def closure_with_nonlocal(x):
    count = 0

    def add(v):
        nonlocal count
        if v > 0:
            count += v

    add(x)
    add(x + 1)
    return count


@case(*SIGNS)
def tuples(x):
    pair = (1, 2)
    if x > 0:
        pair = (x, pair[0])
    a, b = pair
    return a * 10 + b


@case(*SIGNS)
def list_items(x):
    values = [1, 2, 3]
    if x > 0:
        values[1] = x
    else:
        values[0] = -x
    return values[0] * 100 + values[1] * 10 + values[2]


@case(*SIGNS)
def dict_items(x):
    values = {"a": 1}
    if x > 0:
        values["a"] = x
    return values["a"]


class Box:
    def __init__(self, value):
        self.value = value

    def grow(self, x):
        if x > 0:
            self.value += x
        return self


@case(*SIGNS)
def attributes(x):
    box = Box(1)
    box.grow(x).grow(x + 1)
    return box.value


@case(*SIGNS)
def builtins_on_traced(x):
    return max(x, 1) + min(x, 2, 0) + abs(x) + int(x) + sum([x, 1]) + round(float(x))


@case((0.5,), (2.0,))
def math_functions(x):
    if math.sin(x) > 0.5:
        return math.exp(x) + math.floor(x)
    return math.sqrt(x)


@case(*SIGNS)
def try_body(x):
    try:
        if x > 0:
            y = x
        else:
            y = -x
    finally:
        z = 1
    return y + z


@case(*COUNTS)
def two_breaks(n):
    i = 0
    while i < 20:
        if i > n:
            r = 1
            break
        i += 1
        if i > 6:
            r = 2
            break
    else:
        r = 3
    return r * 100 + i


@case(*COUNTS)
def break_out_of_nested(n):
    total = 0
    for i in range(n):
        done = False
        for j in range(n):
            total += 1
            if i + j > 4:
                done = True
                break
        if done:
            break
    return total


@case(*SIGNS)
def none_until_set(x):
    r = None
    if x > 0:
        r = x
    if r is None:
        r = -100
    return r


@case(*SIGNS)
def flag_variable(x):
    ok = False
    if x > 0:
        ok = True
    return 5 if ok else 6


@case(*SIGNS)
def keyword_arguments(x, *, scale=3):
    def inner(v, k=2, **others):
        if v > 1:
            return v * k + others.get("z", 0)
        return v

    return inner(x, k=scale, z=1) + inner(v=x)


@case((0, 3), (2, 1), (2, 5), (9, 4), (4, 2))
def break_or_else_break(x, y):
    """The outer iterator comes to the next iteration as it is from the inner `break`, lifted from the `else`."""
    total = 0
    for i in range(3, 0, -1):
        for j in range(1, y):
            if j * i > x:
                break
            total += j
        else:
            if x == i:
                break
        total += 10 * i
    return total


@case(*COUNTS)
def comprehension_with_branch(n):
    return sum([helper(i + n) for i in range(4)])


@case((3,), (0,))
def recursion_on_python_value(x):
    def down(depth, v):
        if depth == 0:
            return v
        return down(depth - 1, v + 1 if v < 5 else v)

    return down(4, x)


@case(*COUNTS)
def loop_variable_after_loop(n):
    i = -1
    for i in range(n):
        pass
    return i


@case(*COUNTS)
def mandelbrot(n):
    a, b, x, y = n / 4 - 1, 0.3, 0.0, 0.0
    k = 0
    while x * x + y * y < 4 and k < 20:
        x, y = x * x - y * y + a, 2 * x * y + b
        k += 1
    return k


@case((3.0, 1.0), (1.0, 3.0), (2.0, 2.0))
def comparisons_of_tuples(x, y):
    found = 0
    if (x, 1) < (y, 0):
        found += 1
    if (x, 1) <= (y, 2):
        found += 10
    if (x, (y, 1)) == (y, (x, 1)):
        found += 100
    if [x, 1] != [y, 1]:
        found += 1000
    if (1, x) > (1, y, 2):
        found += 10000
    return found
