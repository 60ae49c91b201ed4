"""Symbolic dimensions: every operation agrees with the same operation on integers, for random sizes."""

import operator
import pickle
import threading

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from jitcore.core import symbolic
from jitcore.core.symbolic import (DimExpr, DimVar, InconclusiveDimensionOperation, bounds, definitely_equal,
                                   dim_max, dim_min, evaluate, shape_str, substitute)

n, m = DimVar("n"), DimVar("m")
LIMITS = {"n": (1, None), "m": (1, None), "k": (0, 6), "z": (None, 4), "free": (None, None)}
VARIABLES = [DimVar(name, *limits) for name, limits in LIMITS.items()]
BINARY = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "//": (operator.floordiv, operator.floordiv),
    "%": (operator.mod, operator.mod),
    "max": (dim_max, max),
    "min": (dim_min, min),
}


def build(tree, leaf, column):
    """Compute a random expression: `leaf` gives a variable, `column` chooses dimensions (0) or ints (1)."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return leaf(tree)
    symbol, left, right = tree
    return BINARY[symbol][column](build(left, leaf, column), build(right, leaf, column))


leaves = st.sampled_from(list(LIMITS)) | st.integers(-6, 6)
symbols = st.sampled_from(list(BINARY))
trees = st.recursive(leaves, lambda inner: st.tuples(symbols, inner, inner), max_leaves=6)
ring_symbols = st.sampled_from(["+", "-", "*"])
polynomials = st.recursive(leaves, lambda inner: st.tuples(ring_symbols, inner, inner), max_leaves=6)
sizes = st.fixed_dictionaries({
    name: st.integers(-8 if low is None else low, 9 if high is None else high)
    for name, (low, high) in LIMITS.items()
})


def build_both(tree, values):
    """The expression and its value; examples that divide by zero are passed over."""
    by_name = dict(zip(LIMITS, VARIABLES))
    try:
        return build(tree, by_name.get, 0), build(tree, values.get, 1)
    except ZeroDivisionError:
        assume(False)


@given(trees, sizes)
@example(("//", ("-", 0, "n"), 3), dict.fromkeys(LIMITS, 2))
@example(("-", "n", ("//", "n", 2)), dict.fromkeys(LIMITS, 3))
def test_agrees_with_integers(tree, values):
    expression, value = build_both(tree, values)
    try:
        assert evaluate(expression, values) == value
    except ZeroDivisionError:
        assume(False)
    low, high = bounds(expression)
    assert (low is None or low <= value) and (high is None or value <= high)


@given(trees, sizes)
def test_substitution_of_some_variables_agrees(tree, values):
    expression, value = build_both(tree, values)
    try:
        partly = substitute(expression, {"n": values["n"], "k": values["k"]})
        assert evaluate(partly, values) == value
    except ZeroDivisionError:
        assume(False)


@given(trees, trees, sizes)
def test_comparisons_that_are_decided_are_right(first, second, values):
    (left, left_value), (right, right_value) = build_both(first, values), build_both(second, values)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        try:
            assert compare(left, right) == compare(left_value, right_value)
        except InconclusiveDimensionOperation:
            assert isinstance(left, DimExpr) or isinstance(right, DimExpr)
    if left == right:
        assert left_value == right_value and hash(left) == hash(right)


@given(trees, trees, trees)
def test_ring_laws_give_equal_expressions(first, second, third):
    a, b, c = (build_both(tree, dict.fromkeys(LIMITS, 1))[0] for tree in (first, second, third))
    for left, right in [
        (a + b, b + a), (a * b, b * a), ((a + b) + c, a + (b + c)), ((a * b) * c, a * (b * c)),
        (a * (b + c), a * b + a * c), (a - a, 0), (a + 0, a), (a * 1, a), (a - b, -(b - a)),
        ((a + b) * (a - b), a * a - b * b),
    ]:
        assert left == right and hash(left) == hash(right)


@given(polynomials, st.integers(1, 6))
def test_division_laws_give_equal_expressions(tree, k):
    a, _ = build_both(tree, dict.fromkeys(LIMITS, 1))
    assert (a // k) * k + a % k == a
    assert (a * k) // k == a and (a * k) % k == 0
    assert (a + 3 * k) // k == a // k + 3 and (a + 3 * k) % k == a % k
    assert -(-a // k) == (a + k - 1) // k
    assert a % k >= 0 and a % k < k


@pytest.mark.slow
def test_many_more_random_expressions():
    for test in (
        test_agrees_with_integers,
        test_comparisons_that_are_decided_are_right,
        test_division_laws_give_equal_expressions,
        test_ring_laws_give_equal_expressions,
    ):
        settings(max_examples=5000, deadline=None)(test)()


@pytest.mark.parametrize("left, right", [
    (lambda: n + n, lambda: 2 * n),
    (lambda: (n + 1) * (n - 1), lambda: n * n - 1),
    (lambda: 2 * n // 2, lambda: n),
    (lambda: n // 2 // 3, lambda: n // 6),
    (lambda: (4 * n + 2) // 4, lambda: (2 * n + 1) // 2),
    (lambda: n * m // m, lambda: n),
    (lambda: (n * m + m) // (n + 1), lambda: m),
    (lambda: n % -3, lambda: -(-n % 3)),
    (lambda: (n - 1) // n, lambda: 0),
    (lambda: (n - 1) % n, lambda: n - 1),
    (lambda: -1 % n, lambda: n - 1),
    (lambda: n**2, lambda: n * n),
    (lambda: dim_max(n, 1), lambda: n),
    (lambda: dim_max(3, n), lambda: dim_max(n, 3)),
    (lambda: dim_max(1, n, 2 * n), lambda: 2 * n),
    (lambda: dim_min(n, n + m), lambda: n),
    (lambda: +n, lambda: n),
])
def test_equal_expressions_are_one_object(left, right):
    assert left() is right()


def test_divmod():
    assert divmod(n, 2) == (n // 2, n % 2) and divmod(7, n) == (7 // n, 7 % n)


def test_different_expressions_are_unequal():
    for left, right in [(n, m), (n, 1), (n + 1, n), (n * m, n), (n // 2, n // 3), (DimVar("n", 0), n)]:
        assert left != right and not definitely_equal(left, right)


@pytest.mark.parametrize("expression, text", [
    (n, "n"),
    (2 * n, "2*n"),
    (n + 1, "n + 1"),
    (1 - n, "-n + 1"),
    (n // 2, "floordiv(n, 2)"),
    (n % 3, "mod(n, 3)"),
    (n * m + 2 * n - 1, "m*n + 2*n - 1"),
    (n * n, "n^2"),
    (dim_max(n, 3), "max(n, 3)"),
    (dim_min(m, n), "min(m, n)"),
    (2 * (n // 2) + n % 2, "2*floordiv(n, 2) + mod(n, 2)"),
    (n // m, "floordiv(n, m)"),
    (n * (n // 2), "n*floordiv(n, 2)"),
])
def test_prints(expression, text):
    assert str(expression) == repr(expression) == text


def test_shapes_print_and_compare():
    assert shape_str((n, 3, n + 1)) == "n,3,n + 1"
    assert (n, 3) == (DimVar("n"), 3) and hash((n + 1, 3)) == hash((1 + n, 3)) and (n, 3) != (m, 3)


@pytest.mark.parametrize("question, answer", [
    (lambda: n >= 1, True), (lambda: n > 0, True), (lambda: n < 1, False), (lambda: 0 >= n, False),
    (lambda: 2 * n >= n + 1, True), (lambda: n * n >= n, True), (lambda: n * m >= m, True),
    (lambda: n <= n + m, True),
    (lambda: n - n // 2 >= 1, True), (lambda: (n + 2) // 3 >= 1, True), (lambda: n % 5 < 5, True),
    (lambda: DimVar("k", 2, 4) ** 2 <= 16, True), (lambda: dim_min(n, 5) <= 5, True),
])
def test_bounds_decide(question, answer):
    assert question() is answer


def test_bounds():
    assert bounds(n) == (1, None) and bounds(7) == (7, 7) and bounds(-n) == (None, -1)
    assert bounds(n // 2) == (0, None) and bounds(n % 3) == (0, 2) and bounds(5 // n) == (0, 5)
    assert bounds(DimVar("k", 2, 4) * DimVar("l", 0, 3) - 1) == (-1, 11)
    assert bounds(DimVar("one", 1, 1) * n - n) == (0, 0)


@pytest.mark.parametrize("use", [int, bool, operator.index, range, np.zeros], ids=lambda use: use.__name__)
def test_use_as_a_number_is_an_error(use):
    with pytest.raises(InconclusiveDimensionOperation, match="Symbolic dimension n used"):
        use(n)


def test_undecided_comparison_names_question_and_bounds():
    with pytest.raises(InconclusiveDimensionOperation, match="n > k is inconclusive") as caught:
        n > DimVar("k", 0, 6)  # noqa: B015
    assert "1 <= n" in str(caught.value) and "0 <= k <= 6" in str(caught.value)


@pytest.mark.parametrize("other", ["2", None, [1]])
def test_other_types_are_refused(other):
    for operation in (operator.add, operator.mod, operator.lt):
        with pytest.raises(TypeError):
            operation(n, other)
    assert n != other


def test_numbers_are_made_of_dimensions_in_traces_alone():
    for operation in (operator.add, operator.mul, operator.truediv):
        with pytest.raises(InconclusiveDimensionOperation):
            operation(n, 1.5)
    for operation in (operator.mod, operator.lt):
        with pytest.raises(TypeError):
            operation(n, 1.5)


def test_numpy_integers_and_bools_are_accepted():
    assert np.int64(3) * n + np.uint8(1) == 3 * n + 1
    assert type((n * np.int32(2) - 2 * n)) is int
    assert evaluate(2 * n, {"n": np.int64(4)}) == 8


def test_evaluate_names_what_is_wrong():
    with pytest.raises(KeyError, match="no value for m in m\\*n"):
        evaluate(n * m, {"n": 3})
    with pytest.raises(ValueError, match="n = 0 is outside its bounds 1 <= n"):
        evaluate(n + 1, {"n": 0})
    with pytest.raises(ValueError, match="exceeds"):
        DimVar("n", 3, 2)
    for divide in (operator.floordiv, operator.mod):
        with pytest.raises(ZeroDivisionError):
            divide(n, 0)


def test_substitute_can_rename():
    assert substitute(n * n + m, {"n": m + 1}) == m * m + 3 * m + 1


@pytest.mark.parametrize("expression", [n, n * m - 2, (n + 1) // 2, n % 3 + dim_max(n, m), DimVar("k", 0, 6)])
def test_pickle_gives_the_same_object(expression):
    assert pickle.loads(pickle.dumps(expression)) is expression


def test_unused_expressions_are_forgotten():
    import gc

    gc.collect()
    before = len(symbolic._interned)
    kept = [DimVar(f"temporary{i}") // 2 + i for i in range(1, 51)]
    assert len(symbolic._interned) >= before + 150
    del kept
    gc.collect()
    assert len(symbolic._interned) <= before


def test_threads_agree_on_one_object():
    results = []

    def work():
        results.append([(DimVar(f"threaded{i}") + i) * 2 for i in range(200)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for other in results[1:] for a, b in zip(results[0], other))
