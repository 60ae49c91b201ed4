"""Functions whose behaviour depends on more than values: exceptions, unbound variables, containers, objects.

Each row is (section, function, inputs). What plain Python does with an input, a result or an exception, is what
the rewritten function does under `jit`, unless the row says in which way it differs.
"""

from __future__ import annotations

import contextlib

CASES: list = []


def case(section: str, *inputs):
    """Registers a function under a section, with the tuples of arguments that it is called with."""

    def add(function):
        CASES.append((section, function, inputs))
        return function

    return add


SIGNS = ((-2,), (0,), (3,))
COUNTS = ((0,), (1,), (4,))


# -- raise --------------------------------------------------------------------------------------------------
@case("raise", *SIGNS)
def raise_under_condition(x):
    if x < 0:
        raise ValueError("negative")
    return x + 1


@case("raise", *SIGNS)
def raise_in_the_else_branch(x):
    if x >= 0:
        y = x * 2
    else:
        raise KeyError("no such sign")
    return y


@case("raise", *SIGNS)
def raise_in_an_elif_chain(x):
    if x < 0:
        raise ValueError("negative")
    elif x == 0:
        raise ZeroDivisionError("zero")
    return 10 / x


@case("raise", *SIGNS)
def raise_both_ways_deep_inside(x):
    y = 0
    if x != 3:
        if x < 0:
            raise ValueError("negative")
        else:
            raise LookupError("zero")
    return x + y


def check_sign(x):
    if x < 0:
        raise ValueError("negative in a helper")
    return x


def check_twice(x):
    return check_sign(x) + check_sign(x + 1)


@case("raise", *SIGNS)
def raise_in_a_helper(x):
    return check_twice(x) * 2


@case("raise", *SIGNS)
def raise_in_a_helper_under_a_condition(x):
    y = 1
    if x != 0:
        y = check_twice(x)
    return y + 1


@case("raise", *COUNTS)
def raise_in_a_loop(n):
    total = 0
    for i in range(n):
        if i == 3:
            raise OverflowError("three")
        total += i
    return total


@case("raise", (5,), (4,), (-3,))
def raise_is_the_only_way_out(n):
    while True:
        if n == 0:
            break
        if n < 0:
            raise ValueError("never zero")
        n -= 2
    return n


@case("raise", *COUNTS)
def raise_in_a_loop_over_a_list(n):
    for limit in [5, 3, 2]:
        if n > limit:
            raise ValueError("too many")
        n += 1
    return n


@case("raise", *COUNTS)
def raise_whenever_the_loop_runs(n):
    while n > 0:
        raise StopIteration("at once")
    return n


@case("raise", *SIGNS)
def raise_with_a_cause(x):
    if x < 0:
        raise ValueError("outer") from KeyError("inner")
    return x


@case("raise", *SIGNS)
def raise_an_own_class(x):
    if x < 0:
        raise Refused(3, "reason")
    return x


class Refused(Exception):
    def __init__(self, code, reason):
        super().__init__(f"{code}: {reason}")


@case("raise", *SIGNS)
def raise_and_catch_here(x):
    try:
        if x < 0:
            raise ValueError("negative")
        y = x
    except ValueError:
        y = 100
    return y


@case("raise", *SIGNS)
def raise_and_catch_another_class(x):
    try:
        if x < 0:
            raise ValueError("negative")
        y = x
    except KeyError:
        y = 100
    return y


@case("raise", *SIGNS)
def raise_through_finally(x):
    y = 0
    try:
        if x < 0:
            raise ValueError("negative")
        y = x
    finally:
        y += 5
    return y


@case("raise", *SIGNS)
def raise_in_a_helper_through_finally(x):
    y = 0
    try:
        y = check_sign(x)
    finally:
        y += 5
    return y


@case("raise", *SIGNS)
def raise_again(x):
    try:
        if x < 0:
            raise ValueError("negative")
    except ValueError:
        raise
    return x


@case("raise", *SIGNS)
def catch_inside_a_helper(x):
    return raise_and_catch_here(x) + 1


@case("raise", (-5,), (-1,), (3,))
def raise_after_a_return(x):
    if x > 0:
        return x
    if x > -3:
        return -x
    raise ValueError("small")


# -- assert -------------------------------------------------------------------------------------------------
@case("assert", *SIGNS)
def assert_without_text(x):
    assert x >= 0
    return x * 2


@case("assert", *SIGNS)
def assert_with_text(x):
    assert x >= 0, "must not be negative"
    assert x != 3, "must not be three"
    return x * 2


@case("assert", *COUNTS)
def assert_in_a_loop(n):
    total = 0
    for i in range(n):
        assert total < 3, "too large"
        total += i
    return total


@case("assert", (-2, 0), (2, 0), (2, 5))
def assert_under_a_condition(x, y):
    if x > 0:
        assert y > 0
        x = x + y
    return x


# -- unbound variables --------------------------------------------------------------------------------------
@case("unbound", *SIGNS)
def unbound_on_one_path(x):
    if x > 0:
        y = 1
    return x + y


@case("unbound", *SIGNS)
def bound_wherever_it_is_used(x):
    if x > 0:
        y = 5
    if x > 0:
        x = x + y
    return x


@case("unbound", *SIGNS)
def bound_and_used_under_two_conditions(x):
    if x > 0:
        y = 5
    if x > 1:
        x = x + y
    return x


@case("unbound", *SIGNS)
def unbound_on_another_path(x):
    if x > 0:
        y = 5
    if x != 0:
        x = x + y
    return x


@case("unbound", *SIGNS)
def unbound_in_a_nest(x):
    if x >= 0:
        if x > 0:
            y = x
    return y


@case("unbound", *SIGNS)
def unbound_tuple(x):
    if x > 0:
        y = (x, 2)
    a, b = y
    return a + b


@case("unbound", *SIGNS)
def unbound_python_object(x):
    if x > 0:
        word = "abc"
    return x + len(word)


@case("unbound", *SIGNS)
def deleted_on_one_path(x):
    y = x
    if x < 0:
        del y
    return y


@case("unbound", *SIGNS)
def bound_again_before_the_use(x):
    if x > 0:
        y = 1
    y = x
    return y


# -- loops without an iteration -----------------------------------------------------------------------------
@case("no iteration", *COUNTS)
def loop_variable_behind_the_loop(n):
    for i in range(n):
        pass
    return i


@case("no iteration", *COUNTS)
def variable_of_the_body_behind_the_loop(n):
    for i in range(n):
        y = i * 2
    return y


@case("no iteration", *COUNTS)
def variable_of_a_while_body(n):
    while n > 0:
        last = n
        n -= 1
    return last


@case("no iteration", *COUNTS)
def python_object_of_the_body(n):
    for i in range(n):
        word = "abc"
    return len(word)


@case("no iteration", *COUNTS)
def variable_of_the_iteration_before(n):
    total = 0
    for i in range(n):
        if i > 0:
            total += before  # noqa: F821
        before = i + 5  # noqa: F841
    return total


@case("no iteration", *COUNTS)
def variable_that_one_iteration_binds(n):
    for i in range(n):
        if i == 2:
            y = i * 10
    return y


@case("no iteration", *COUNTS)
def variable_bound_by_a_break(n):
    for i in range(n):
        if i == 2:
            y = i * 10
            break
    return y


@case("no iteration", (0, 0), (2, 0), (0, 3), (2, 3))
def variable_of_an_inner_body(n, m):
    for i in range(n):
        for j in range(m):
            y = i + j
    return y


# -- containers ---------------------------------------------------------------------------------------------
@case("containers", *SIGNS)
def append_on_both_sides(x):
    found = []
    if x > 0:
        found.append(x)
    else:
        found.append(-1)
    return found[0] + len(found)


@case("containers", *SIGNS)
def items_under_a_condition(x):
    values, table = [1, 2], {"a": 1}
    if x > 0:
        values[0] = x
        table["a"] = 2 * x
    return values[0] + 10 * values[1] + 100 * table["a"]


@case("containers", *SIGNS)
def sort_under_a_condition(x):
    values = [3, 1, 2]
    if x > 0:
        values.sort()
    return values[0] * 100 + values[1] * 10 + values[2] + x


@case("containers", *SIGNS)
def append_in_a_known_loop(x):
    found = []
    for i in range(20):
        found.append(x + i)
    return sum(found)


@case("containers", *SIGNS)
def append_in_a_known_loop_with_a_condition(x):
    found = []
    for i in range(18):
        if x > 0:
            found.append(i)
        else:
            found.append(-x)
    return sum(found)


@case("containers", *COUNTS)
def items_in_a_loop(n):
    values = [0, 1]
    for i in range(n):
        values[0], values[1] = values[1], values[0] + values[1]
    return values[0]


@case("containers", *SIGNS)
def containers_in_containers(x):
    values = [[1], [2]]
    if x > 0:
        values[0].append(x)
        values[1].append(2)
    else:
        values[0].append(5)
        values[1].append(6)
    return values[0][1] + values[1][1]


# -- attributes ---------------------------------------------------------------------------------------------
class Counter:
    def __init__(self, count):
        self.count = count

    def add(self, amount):
        if amount > 0:
            self.count += amount
        return self


@case("attributes", *SIGNS)
def attribute_under_a_condition(x):
    counter = Counter(1)
    if x > 0:
        counter.count = x * 10
    return counter.count


@case("attributes", *COUNTS)
def attribute_in_a_loop(n):
    counter = Counter(0)
    for i in range(n):
        counter.add(i)
    return counter.count


@case("attributes", *SIGNS)
def object_made_under_a_condition(x):
    y = 0
    if x > 0:
        y = Counter(x).add(2).count
    return y


# -- with, try, generators, recursion -----------------------------------------------------------------------
class Guard:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log[0] += 1
        return self

    def __exit__(self, *details):
        self.log[1] += 1


@case("with", *SIGNS)
def condition_inside_with(x):
    log = [0, 0]
    with Guard(log):
        if x > 0:
            x = x * 2
    return x + 10 * log[0] + 100 * log[1]


@case("with", *SIGNS)
def with_under_a_condition(x):
    log = [0, 0]
    if x > 0:
        with Guard(log):
            x = x * 2
    return x + 10 * log[0] + 100 * log[1]


@case("with", *SIGNS)
def return_inside_with(x):
    log = [0, 0]
    with Guard(log):
        if x > 0:
            return x * 2
    return x + 10 * log[0] + 100 * log[1]


@case("with", *SIGNS)
def raise_inside_with(x):
    with contextlib.nullcontext():
        if x < 0:
            raise ValueError("negative")
    return x


@case("with", *SIGNS)
def suppressed_inside_with(x):
    with contextlib.suppress(ValueError):
        if x < 0:
            raise ValueError("negative")
        x += 10
    return x


@case("try", *SIGNS)
def condition_inside_try(x):
    try:
        if x > 0:
            y = x * 2
        else:
            y = 1
    except ValueError:
        y = 0
    else:
        y += 5
    return y


@case("try", *COUNTS)
def loop_inside_try_finally(n):
    total = 0
    try:
        for i in range(n):
            if i == 2:
                break
            total += i + 1
    finally:
        total *= 10
    return total


@case("generators", *SIGNS)
def generator_expression(x):
    y = 0
    if x > 0:
        y = sum(x * k for k in range(4))
    return y


def count_to(n):
    for i in range(n):
        yield i


@case("generators", *SIGNS)
def condition_in_a_loop_over_a_generator(x):
    total = 0
    for i in count_to(4):
        if x > i:
            total += i
        else:
            break
    return total


@case("recursion", *SIGNS)
def recursion_of_known_depth(x, depth=3):
    if depth == 0:
        return x
    if x > 0:
        return recursion_of_known_depth(x + 1, depth - 1)
    return recursion_of_known_depth(x - 1, depth - 1)


