"""Arrays of calls: many of them, such as share memory, such as are only written; and what a signature knows again.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from jitcore import autojit
from jitcore.autojitted import function as autojit_functions
from jitcore.dispatch import generated_calls
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.call_facts import ArrayFacts
from jitcore.dispatch.generated_calls import any_overlap
from tests.autojit.checking import check


def descend(parameters, slopes):
    for name in parameters:
        parameters[name] -= 0.1 * slopes[name] / (1 + np.abs(slopes[name]))


def make_state(count: int) -> tuple[dict, dict]:
    numbers = np.random.default_rng(0).normal(size=(2, count, 3))
    return tuple({f"p{k}": row.copy() for k, row in enumerate(rows)} for rows in numbers)


def test_many_arrays_are_few_kernels():
    compiled = autojit(strict=True)(descend)
    for count in (100, 1200):
        given, expected = make_state(count), make_state(count)
        compiled(*given), descend(*expected)
        for name in expected[0]:
            np.testing.assert_allclose(given[0][name], expected[0][name], rtol=1e-14)
    assert compiled.inspect("loop program").count("kernel") <= 1200 / 20


@pytest.mark.parametrize("shared", [("p0", "p1"), ("p30", "p7")])
def test_many_arrays_that_share_memory(shared):
    """Where one that is written is seen through another one, plain Python gives the result."""
    compiled = autojit(strict=True)(descend)
    compiled(*make_state(40))
    results = []
    for function in (compiled, descend):
        parameters, slopes = make_state(40)
        memory = np.linspace(0.0, 1.0, 5)
        parameters[shared[0]], slopes[shared[1]] = memory[1:4], memory[2:]
        function(parameters, slopes)
        results.append(np.concatenate([*parameters.values(), *slopes.values()]))
    np.testing.assert_array_equal(*results)


def test_overlaps_of_many():
    memory = np.zeros(40)
    parts = [memory[4 * k : 4 * k + 4] for k in range(10)]
    assert not any_overlap(parts[:5], parts[5:])
    assert not any_overlap([np.zeros(3)], [np.zeros(3)] * 2)
    assert any_overlap(parts[:5], [memory[6:7]]) and any_overlap([*parts, memory[3:4]], [])
    assert not any_overlap(parts[:5], [memory[30:], memory[25:]])  # none of these is written
    assert not any_overlap([memory[::2]], [memory[1::2]])
    assert any_overlap([memory[::2]], [memory]) and not any_overlap([memory[:0]], [memory])


# -- arrays that are only written ----------------------------------------------------------------------------
def fill(a, b, out):
    out[:] = a * b + a


def fill_two(a, one, two):
    one[:] = a * 2
    two[...] = one - a
    a += 1
    return two * one


def fill_a_part(a, b, out):
    out[1:] = a[1:] * b[:-1]


ROWS, FORTRAN = np.arange(60.0).reshape(6, 10), np.zeros((6, 10), order="F")
FILLED = {
    "rows": (fill, ROWS.copy(), ROWS.copy(), np.zeros((6, 10))),
    "by columns": (fill, ROWS.copy(), ROWS.copy(), FORTRAN),
    "all by columns": (fill, np.asfortranarray(ROWS), np.asfortranarray(ROWS), FORTRAN),
    "a view": (fill, ROWS[2:4], ROWS[4:], np.zeros((6, 10))[1:3]),
    "strides": (fill, ROWS[:, :5].copy(), ROWS[:, 5:].copy(), np.zeros((6, 10))[:, ::2]),
    "another dtype": (fill, ROWS.copy(), ROWS.copy(), np.zeros((6, 10), np.float32)),
    "broadcast": (fill, ROWS[0].copy(), ROWS[1].copy(), np.zeros((6, 10))),
    "nothing": (fill, ROWS[:0].copy(), ROWS[:0].copy(), np.zeros((0, 10))),
    "two": (fill_two, ROWS.copy(), np.zeros((6, 10)), np.zeros((6, 10))),
    "a part": (fill_a_part, ROWS.copy(), ROWS.copy(), np.ones((6, 10))),
}


@pytest.mark.parametrize("name", FILLED)
def test_arrays_that_are_only_written(name):
    function, *arguments = FILLED[name]
    check(function, *arguments)


def test_results_are_made_where_they_belong():
    def write(a, b, out):
        out[:] = a * b + a

    compiled = autojit(strict=True)(write)
    compiled(ROWS, ROWS + 1, np.zeros((6, 10)))
    (owner,) = [one for one in autojit_functions._all_functions if one.function is write]
    (signature,) = owner.signatures
    out = np.zeros((6, 10))
    (made,) = signature.entry.run(ROWS, ROWS + 1, out)
    assert made is out
    np.testing.assert_array_equal(out, ROWS * (ROWS + 1) + ROWS)


def test_an_array_that_is_only_written_over_what_is_read():
    memory, expected = np.arange(20.0), np.arange(20.0)
    compiled = autojit(strict=True)(fill)
    compiled(np.zeros(10), np.ones(10), np.ones(10))
    for function, given in ((compiled, memory), (fill, expected)):
        function(given[:10], given[10:], given[5:15])
    np.testing.assert_array_equal(memory, expected)


# -- what native code knows again ----------------------------------------------------------------------------
def make_check(arrays, functions=(), written=()):
    specs = [ArrayFacts(array.dtype, array.shape, array.flags.num & 0x503, k in written)
             for k, array in enumerate(arrays)]
    codes = [(function, function.__code__) for function in functions]
    state = generated_calls.state_variable, generated_calls.silent
    found = find_backend("cpu").make_check(specs, 0x503, codes, state)
    if found is None:
        pytest.skip("objects are laid out in another way")
    return found


A, B, C = np.zeros((2, 3)), np.zeros(3, np.int32), np.array(1.0)
OTHERS = {"shape": np.zeros((3, 2)), "rank": np.zeros((2, 3, 1)), "dtype": np.zeros((2, 3), np.float32),
          "layout": np.zeros((3, 2)).T, "list": [[0.0]], "subclass": np.ma.zeros((2, 3)), "none": None}


def test_known_arrays():
    is_known = make_check((A, B, C))
    assert is_known(A, B, C) == is_known(A.copy(), B.copy(), C.copy()) == 2
    assert is_known(A, B) == is_known(B, A, C) == 0 and make_check(())() == 2
    assert make_check((A, A))(A, A.copy()) == 2 and make_check((A, A))(A, A) == 0
    assert make_check([A] * 20)(*[A] * 20) == 1  # Python looks whether they are different
    frozen = A.copy()
    frozen.flags.writeable = False
    assert is_known(frozen, B, C) == 0


@pytest.mark.parametrize("kind", OTHERS)
def test_other_arrays(kind):
    assert make_check((B, A))(B, OTHERS[kind]) == 0


def test_known_codes_and_states():
    function, other = (lambda: 1), (lambda: 2)
    is_known = make_check((A,), (function,))
    assert is_known(A) == 2
    with np.errstate(all="raise"):
        assert is_known(A) == 0
    with np.errstate(all="ignore"):
        generated_calls.is_silent()  # looks at the state, which is another one
        assert is_known(A) == 2
    generated_calls.is_silent()
    function.__code__ = other.__code__
    assert is_known(A) == 0


def test_places_of_known_arrays():
    memory = np.zeros(100)
    parts = memory[:10], memory[10:20], memory[20:40]
    assert make_check(parts, written=(1,))(*parts) == 2
    assert make_check(parts, written=(1,))(parts[0], memory[9:19], parts[2]) == 1
    assert make_check(parts, written=(2,))(parts[0], memory[9:19], parts[2]) == 2
    assert make_check(parts, written=(0, 1, 2))(memory[90:], memory[80:90], memory[60:80]) == 2
    assert make_check(parts, written=(0,))(memory[90:], memory[20:30], memory[71:91]) == 1
    columns = memory.reshape(10, 10)[:, 0], memory.reshape(10, 10)[:, 1]
    assert make_check(columns, written=(0,))(*columns) == 1  # Python looks


def test_thousands_of_numbers_in_a_text_are_not_compiled():
    """Each is an output of the program; without a limit this takes half a minute."""
    def tell(values, count):
        return "\n".join(f"{values * i}" for i in range(1, count + 1))

    compiled = autojit(tell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled((1.0, 2.0, 3.0), 100) == tell((1.0, 2.0, 3.0), 100)
    assert compiled.report().compiled == 0
