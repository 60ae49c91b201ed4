"""Loops that leave names of one array behind: what is one array in Python is one behind the compiled loop.

Each function returns arrays, and works on an object; both are compared with what plain Python leaves, in values and
in which of them are one array, or views of one.
"""

import itertools

import numpy as np
import pytest

import jitcore


class Model:
    def __init__(self):
        self.x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
        self.y = self.x + 2.0
        self.out = self.x
        self.values = [self.x, np.zeros((2, 3))]

    def forward(self, x):
        self.out = np.tanh(x + 0.5)
        return self.out

    def collect(self, x):
        self.values = [x]
        for _ in range(2):
            x = x * 0.5 + 1.0
            self.values.append(x)
        return x


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@case
def attribute_and_result(m, n):
    for _ in range(n):
        out = m.forward(m.y)
        m.y = m.y - 0.1 * out
    return out


@case
def attribute_and_variable_before(m, n):
    out = m.out
    for _ in range(n):
        m.y += out
        out = m.forward(m.y)
    return out


@case
def last_of_a_list(m, n):
    for _ in range(n):
        out = m.collect(m.y)
        m.y *= 0.9
    return out


@case
def two_names(m, n):
    for _ in range(n):
        a = m.x * 2.0
        b = a
        m.x = m.x + b
    return a, b


@case
def two_names_of_which_one_is_written(m, n):
    for k in range(n):
        a = m.x * 2.0
        b = a
        b += k
        m.x = m.x + a
    return a, b


@case
def names_that_part_sometimes(m, n):
    for k in range(n):
        a = m.x + k
        b = a
        if m.x[0, 0] > 2.0:
            b = a + 1.0
        m.x = m.x + 0.5
    return a, b


@case
def the_same_argument_again(m, n):
    for _ in range(n):
        z = m.x
        z += 1.0
    return z


@case
def a_view(m, n):
    for _ in range(n):
        part = m.x[:, 1:]
        part *= 1.5
        m.x[:, 0] = part[:, 0]
    return part


@case
def the_last_of_two(m, n):
    for _ in range(n):
        for z in (m.x, m.y):
            z[0] = z[1] + 0.25
    return z


@case
def one_or_the_other(m, n):
    for k in range(n):
        z = m.x if k % 2 else m.y
        m.out = z * 2.0
    return z


@case
def left_early(m, n):
    for k in range(n):
        part = m.x[:1]
        part += 1.0
        out = m.forward(part)
        if m.x[0, 0] > 3.5:
            break
    return part, out, k


@case
def exchanged(m, n):
    for _ in range(n):
        m.x, m.y = m.y, m.x * 0.5
        last = m.x
    return last


@case
def kept_from_the_iteration_before(m, n):
    previous = m.x
    for _ in range(n):
        current = previous * 1.25
        m.out = current
        previous = current
    return previous, current


@case
def in_a_tuple(m, n):
    for _ in range(n):
        a = m.x + 1.0
        pair = (a, a)
        m.x = pair[1]
    return pair


def list_arrays(found, m):
    found = found if isinstance(found, tuple) else (found,)
    return [x for x in (*found, m.x, m.y, m.out, *m.values) if isinstance(x, np.ndarray)]


def describe(function, n):
    m = Model()
    arrays = list_arrays(function(m, n), m)
    pairs = list(itertools.combinations(arrays, 2))
    relations = [(one is other, np.shares_memory(one, other)) for one, other in pairs]
    arrays[0][...] = 7.25  # must be seen where it is seen in Python
    return [x.copy() for x in arrays], relations


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_what_is_one_array_stays_one(name, n):
    compiled = jitcore.autojit(CASES[name])
    expected, relations = describe(CASES[name], n)
    for _ in range(2):
        found, own = describe(compiled, n)
        assert own == relations
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


#: What a carry of fixed types, and memory that is one array or another, keep from being compiled.
IN_PYTHON = {"exchanged", "left_early", "names_that_part_sometimes", "one_or_the_other"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - IN_PYTHON))
def test_they_are_compiled(name):
    jitcore.autojit(CASES[name], strict=True)(Model(), 4)
