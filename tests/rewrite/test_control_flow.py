"""Python control flow on traced values, against plain Python."""

from __future__ import annotations

import io

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import errors, grad, jit, make_jaxpr, vmap
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.rewriter.errors import ControlFlowError
from jitcore.rewriter.functions import rewrite_function
from tests.rewrite.control_flow_cases import CASES
from tests.rewrite.random_functions import write_function

CALLS = [pytest.param(function, inputs, id=f"{function.__name__}{inputs}")
         for function, cases in CASES for inputs in cases]


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_rewritten_functions_on_python_values(function, inputs):
    expected = function(*inputs)
    found = rewrite_function(function)(*inputs)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_rewritten_functions_on_traced_values(function, inputs):
    np.testing.assert_allclose(jit(function, rewrite=True)(*inputs), function(*inputs), rtol=1e-5)


def square_or_triple(x):
    if x > 0:
        return x * x
    return 3.0 * x


def newton(a):
    x = a + 1
    while abs(x * x - a) > 1e-5:
        x = 0.5 * (x + a / x)
    return x


def count_up(x, n):
    i = 0
    while i < n:
        i += 1
    return x + i


def test_the_tutorial_s_failing_functions():
    with pytest.raises(errors.TracerBoolConversionError, match="rewrite=True"):
        jit(square_or_triple)(10.0)
    assert jit(count_up, rewrite=True)(10, 20) == 30
    assert [eqn.primitive.name for eqn in make_jaxpr(rewrite_function(count_up))(10, 20).eqns] == ["gt", "while", "add"]
    branches = make_jaxpr(rewrite_function(square_or_triple))(1.0)
    assert "cond" in [eqn.primitive.name for eqn in branches.eqns]


XS = np.array([1.0, -2.0, 9.0], np.float32)
SLOPES = np.array([2.0, 3.0, 18.0])


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_transformations(wrap):
    branch, loop = rewrite_function(square_or_triple), rewrite_function(newton)
    np.testing.assert_allclose(wrap(vmap(branch))(XS), [1.0, -6.0, 81.0])
    np.testing.assert_allclose(wrap(vmap(grad(branch)))(XS), SLOPES)
    np.testing.assert_allclose([wrap(grad(branch))(float(x)) for x in XS], SLOPES)
    np.testing.assert_allclose(wrap(vmap(loop))(np.abs(XS)), np.sqrt(np.abs(XS)), rtol=1e-5)
    np.testing.assert_allclose(wrap(vmap(grad(loop)))(np.abs(XS)), 0.5 / np.sqrt(np.abs(XS)), rtol=1e-3)
    np.testing.assert_array_equal(wrap(vmap(rewrite_function(count_up)))(np.arange(3), np.arange(3)), [0, 2, 4])


def test_shapes_that_do_not_fit_are_named():
    def differ(x):
        y = jnp.zeros(3) if x > 0 else jnp.zeros(2)
        return y * 2

    def grow(n):
        values = jnp.zeros(2)
        while n > 0:
            values = jnp.concatenate([values, values])
            n -= 1
        return values

    with pytest.raises(ControlFlowError, match=r"shape \(3,\) and \(2,\) on the two sides"):
        jit(differ, rewrite=True)(1.0)
    with pytest.raises(ControlFlowError, match=r"'values' has shape \(2,\) and \(4,\) before and behind"):
        jit(grow, rewrite=True)(1)


def test_errors_inside_a_branch_say_where():
    def fail(x):
        if x > 0:
            return x + undefined_name  # noqa: F821
        return x

    with pytest.raises(NameError) as caught:
        jit(fail, rewrite=True)(1.0)
    assert any("the true side of the traced condition" in note for note in caught.value.__notes__)


def test_generators_are_left_alone_with_a_warning():
    def generate(x):
        yield x

    with pytest.warns(RuntimeWarning, match="generate at .* is not rewritten: a generator"):
        assert rewrite_function(generate) is generate


def test_random_functions_agree_with_python():
    """A few programs of the generator; each on five inputs, as they are and traced."""
    inputs = [(0, 0), (3, -2), (-5, 7), (12, 4), (1, 30)]
    for seed in range(12):
        space: dict = {}
        exec(compile(write_function(seed), f"<program {seed}>", "exec"), space)
        expected = [space["f"](*pair) for pair in inputs]
        rewritten = rewrite_function(space["f"])
        assert [rewritten(*pair) for pair in inputs] == expected, seed
        traced = make_jaxpr(rewritten)(0, 0)
        operands = [[np.asarray(value, np.int32) for value in pair] for pair in inputs]
        assert [int(run_jaxpr_numpy(traced, pair)[0]) for pair in operands] == expected, seed


def test_long_ranges_are_compiled_as_loops():
    def power(x, n):
        for _ in range(n):
            x = x * 0.5 + 1
        return x

    def count(n):
        return len(make_jaxpr(lambda x: rewrite_function(power)(x, n))(2.0).eqns)

    assert count(100) == count(1000) < count(16)
    np.testing.assert_allclose(jit(lambda x: rewrite_function(power)(x, 100))(2.0), power(2.0, 100), rtol=1e-3)
    assert rewrite_function(power)(2.0, 100) == power(2.0, 100)


def test_ranges_whose_elements_python_needs_are_unrolled():
    weights = list(range(40))

    def weigh(x):
        shapes = []
        for i in range(30):
            x = x + weights[i]
            shapes.append(i)
            if x > 100:
                x = x - i
        return x + len(shapes)

    for x in (0, 60):
        assert int(jit(weigh, rewrite=True)(x)) == weigh(x)


def test_nested_long_ranges():
    def triangle(x):
        total = x
        for i in range(20):
            for j in range(i, 40):
                if j % 3 == 0:
                    continue
                total += j - i
                if total > 5000:
                    return total
        return total

    for x in (0, 4000, -(10**4)):
        assert int(jit(triangle, rewrite=True)(x)) == triangle(x)


def test_errors_in_long_ranges_are_those_of_python():
    def fail(x):
        for i in range(100):
            x = x + missing_name  # noqa: F821
        return x

    with pytest.raises(NameError, match="missing_name"):
        jit(fail, rewrite=True)(1.0)


def list_primitives(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_the_test_of_a_while_loop_is_its_condition():
    def search(x, n):
        i = 0
        while i < n and i * x < 50:
            i += 1
        return i

    jaxpr = make_jaxpr(rewrite_function(search))(3, 100)
    (loop,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "while"]
    assert list_primitives(loop.params["cond_jaxpr"].jaxpr) == ["lt", "mul", "lt", "and"]
    assert list_primitives(loop.params["body_jaxpr"].jaxpr) == ["add"]
    for pair in ((3, 100), (3, 5), (0, 0)):
        assert int(jit(search, rewrite=True)(*pair)) == search(*pair)


def test_a_test_with_an_effect_stays_in_the_body():
    class Counter:
        calls = 0

        def is_less(self, i, n):
            self.calls = self.calls + 1
            return i < n

    def count(n):
        counter, i = Counter(), 0
        while counter.is_less(i, n):
            i += 1
        return 100 * counter.calls + i

    for n in (0, 1, 5):
        assert int(jit(count, rewrite=True)(n)) == count(n)


def test_loops_of_known_length_are_scans_and_have_derivatives():
    def power(x, values):
        y = 1.0
        for _ in range(20):
            y = y * x
        for i, value in enumerate(values):
            y = y + i * value * x
        return y

    values = np.array([1.0, 2.0, 4.0], np.float32)
    jaxpr = make_jaxpr(rewrite_function(power))(1.1, values)
    assert [eqn.params["length"] for eqn in jaxpr.eqns if eqn.primitive.name == "scan"] == [20, 3]
    assert "while" not in list_primitives(jaxpr)
    slope = grad(rewrite_function(power))(1.1, values)
    np.testing.assert_allclose(slope, 20 * 1.1**19 + 2 + 8, rtol=1e-4)


def test_few_scalar_operations_need_no_branch_and_others_keep_it():
    def choose(x):
        return x + 1 if x > 0 else -x

    def guard(x):
        return jnp.sqrt(x) if x > 0 else 0.0

    assert list_primitives(make_jaxpr(rewrite_function(choose))(1.0))[-1] == "select_n"
    assert list_primitives(make_jaxpr(rewrite_function(guard))(1.0))[-1] == "cond"
    assert float(grad(rewrite_function(guard))(0.0)) == 0.0
    assert float(grad(rewrite_function(choose))(-2.0)) == -1.0


def test_what_a_loop_does_not_change_is_not_carried():
    def f(b, values, n):
        k = 0
        while True:
            k += 1
            if k > 3 or b > 4:
                break
            for b in values:
                if b == b:
                    last = values[n]
            b += 2 + 0 * last
        return b

    traced = rewrite_function(lambda b: f(b, [b, 2, b], 2))
    for b in (0, 3, 9):
        assert int(jit(traced)(b)) == f(b, [b, 2, b], 2)


def test_nested_loops_are_traced_a_few_times_only():
    def nest(n):
        total = 0
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    for _ in range(n):
                        runs.write(".")
                        total += 1 + total * 0.5
        return total

    runs = io.StringIO()
    make_jaxpr(rewrite_function(nest))(3)
    assert 0 < len(runs.getvalue()) < 20


def test_stores_into_numpy_arrays_are_refused_where_python_s_would_be_lost():
    def mark(x):
        flags = np.zeros(3)
        if x > 0:
            flags[0] = 1
        return x + flags.sum()

    with pytest.raises(ControlFlowError, match="ndarray 'flags' is changed under a traced condition"):
        jit(mark, rewrite=True)(1.0)


def test_iterators_with_a_name_are_never_at_two_places():
    """A loop that a traced value ends does not know how far a variable's iterator is behind it."""

    def stop_at(x, bound):
        rest = iter(range(bound))
        for i in rest:
            if x == i:
                break
        found = 0
        for i in rest:
            found = 10 * found + i
        return found

    def count_twice(x, bound):
        rest = iter(range(bound))
        for _ in rest:
            x += 1
        for _ in rest:
            x += 100
        return x

    with pytest.raises(ControlFlowError, match="'rest' is a range_iterator where the condition holds"):
        jit(lambda x: rewrite_function(stop_at)(x, 5))(1)
    for function in (stop_at, count_twice):
        with pytest.raises(ControlFlowError, match="iterator 'rest' is advanced inside a traced loop"):
            jit(function, rewrite=True)(1, 5)
    assert jit(lambda x: rewrite_function(count_twice)(x, 5))(1) == count_twice(1, 5)

    def leave(x):
        rest = iter([1, 2, 3])
        for i in rest:
            if x == i:
                break
        return sum(rest)

    with pytest.raises(ControlFlowError, match="'rest' is <list_iterator .* where the condition holds"):
        jit(leave, rewrite=True)(2)


def test_transformations_of_a_branch():
    """What `vmap`, `grad` and their like made of a function with a branch is rewritten with it."""
    branch = lambda v: v * 2 if v > 0 else v - 1  # noqa: E731
    x = np.array([1.0, -1.0], np.float32)
    assert jit(vmap(branch), rewrite=True)(x).tolist() == rewrite_function(vmap(branch))(x).tolist() == [2, -2]
    assert jit(vmap(grad(branch)), rewrite=True)(x).tolist() == [2, 1]
    assert jit(lambda x: vmap(branch, in_axes=0)(x), rewrite=True)(x).tolist() == [2, -2]
    for derivative in (grad(branch), jitcore.jacfwd(branch), jitcore.checkpoint(grad(branch))):
        assert jit(derivative, rewrite=True)(np.float32(1)) == 2
    assert jit(jitcore.value_and_grad(branch), rewrite=True)(np.float32(-1)) == (-2, 1)
