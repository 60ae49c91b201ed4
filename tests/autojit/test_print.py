"""`print` under autojit: what plain Python prints, in its order, once; also where a program gives up."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
import warnings

import numpy as np
import pytest

import jitcore
from jitcore.numpy_semantics.errors import NotTraceable
from tests.autojit.checking import assert_same


def run(function, *arguments):
    """(result or exception, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = function(*arguments)
        except Exception as error:
            result = type(error).__name__, str(error)
    progress = re.compile(r"jitcore: compiling .*\n")  # on a busy machine
    return result, out.getvalue(), progress.sub("", err.getvalue())


def check(function, *calls, strict=True):
    """Compares calls with plain Python's, each three times; with `strict`, the first is traced."""
    made = jitcore.autojit(function, strict=strict)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in (*calls, *calls, *calls):
            copies = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
            expected, found = run(function, *arguments), run(made, *copies)
            assert_same(expected[0], found[0])
            assert expected[1:] == found[1:]
            assert_same(list(arguments), copies)


def prints_values(x, n, z):
    print("values", x, x[0], x.sum(), n, z, None, True, "text", x[1:], x > 1, x.astype(np.int32)[2])
    print(float(x[1]), int(x[2]), bool(x[0] > 0), x[0] > 0, np.float32(x[0]), n + 1, n / 3, x.mean().item())
    print([x[0], n], (x[1], [n, "a"]), {"k": x[:2], 1: n}, x.shape, x.dtype, sep="; ", end="!\n")
    print()
    print(x.reshape(2, 2), x.T[::-1], flush=True)
    print("error", x[3], file=sys.stderr)
    print("out", x[3], file=sys.stdout, end="")
    return x * 2


def test_values_are_shown_as_python_shows_them():
    check(prints_values, (np.array([1.5, -2.25, 3.0, 1e-7]), 4, 2.5 + 1j),
          (np.array([np.nan, np.inf, -1.0, 1e22]), 7, -1j))
    check(prints_values, (np.array([1, 20, -3, 4]), 4, 1.0))


def makes_texts(x, n):
    name = "x"
    print(f"{x[0]:.3f} {x[1]!r:>20} {n:>5d} {name!s} {x} {x[0]:{n}.2f} {n!a}")
    print("%s: %.2e %d%% %s" % (name, x[0], n, x))
    print("%.1f" % x[1], "{0:8.3f}|{n:03d}|{1[0]}".format(x[0:1].sum(), [x[1]], n=n))
    text = "sum " + str(x.sum()) + ", " + repr(n * 2) + "." * 3
    print(text.upper().ljust(40) + "|", text[:5], ", ".join([f"{v:g}" for v in (x[0], x[1])]))
    return f"total {x.sum():.4f}", [str(n), text]


def test_texts_are_made_when_the_program_runs():
    check(makes_texts, (np.array([1.5, -2.25]), 12), (np.array([1e9, 3.0]), 10))


def prints_in_loops(x, n, limit):
    total = 0.0
    for i in range(n):
        total += x[i]
        if i % 3 == 0:
            print("step", i, total)
        elif total > limit:
            print(f"{i}: over {limit}")
            if total > 2 * limit:
                print("leaves")
                break
    else:
        print("through")
    while total > 1:
        total = total / 2
        print(total, end=" ")
    k = 0
    for row in x.reshape(2, -1):
        for v in row:
            print(k, v)
            k += 1
    return total


def test_prints_under_conditions_and_in_loops():
    x = np.arange(10.0)
    check(prints_in_loops, (x, 10, 100.0), (x, 9, 8.0), (x, 0, 1.0), (-x, 5, 3.0))


def helper(label, value):
    print(label, value)
    return value + 1


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __repr__(self):
        return f"Point({self.x}, {self.y:.2f})"

    def report(self):
        print("at", self.x, self)


def prints_elsewhere(x):
    point = Point(helper("first", x[0]), helper("second", x[1]))
    point.report()
    print([point], (lambda v: f"<{v}>")(x[1]))
    return point.x


def test_prints_of_called_functions_and_objects():
    check(prints_elsewhere, (np.array([1.0, 2.0]),))


def prints_parts(x, n):
    head = x[x > 0]
    print(head, len(head), x[:n], head.sum())
    k = 0 if n > 2 else x[0]
    print(k, k + 1)
    return k


def test_arrays_of_traced_extent_and_numbers_of_either_type():
    made = jitcore.autojit(prints_parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (1, 2, 3, 4, 2):
            x = np.array([1.0, -1.0, 2.0, 4.0])
            assert run(made, x.copy(), n) == run(prints_parts, x, n)


# -- programs that give up -----------------------------------------------------------------------------------
def fails_late(x, n):
    print("begin", n)
    for i in range(n):
        x[i] += 1
        print(i, x[i])
        print("error", i, file=sys.stderr, end=";")
    print("end", x.sum())
    return x


def raises_late(x):
    for i in range(len(x)):
        print(i, 1 / float(x[i]))
        if x[i] > 3:
            print("bad")
            raise ValueError(f"{x[i]} is too large")
    return x


def test_nothing_is_printed_twice():
    check(fails_late, (np.zeros(4), 4), (np.zeros(4), 6))
    check(raises_late, (np.ones(3),), (np.array([1.0, 2.0, 4.0, 0.0]),), (np.array([2.0, 0.0, 4.0]),))


def fails_in_a_loop(x, n, log):
    log.append(n)
    for i in range(n):
        print("loop", i, x[i])
        x[i] *= 2
    print("behind")
    return x


def test_a_loop_that_gives_up_goes_on_where_it_is():
    class Unknown(list):
        __slots__ = ()

    made = jitcore.autojit(fails_in_a_loop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (3, 3, 5, 3, 5):
            one, other = np.arange(1.0, 4.0), np.arange(1.0, 4.0)
            assert run(made, one, n, Unknown())[1:] == run(fails_in_a_loop, other, n, Unknown())[1:]
            assert one.tolist() == other.tolist()
    assert "traced" in str(made.report())
    assert type(sys.stdout).__name__ != "Skipper"


def test_streams_are_those_of_the_call(capsys):
    made = jitcore.autojit(lambda x: print("x", x[0]), strict=True)
    for _ in range(6):  # beyond the calls that are timed, and compared with plain Python
        made(np.ones(2))
    assert capsys.readouterr().out == "x 1.0\n" * 6
    assert run(made, np.ones(2))[1] == "x 1.0\n"
    made(np.zeros(2))
    print("between")
    made(np.ones(2))
    assert capsys.readouterr().out == "x 0.0\nbetween\nx 1.0\n"


def test_what_is_printed_appears_at_once():
    seen = []

    class Stream(io.StringIO):
        def write(self, text):
            seen.append((text, x[0]))
            return len(text)

    def fill(x, n):
        for i in range(n):
            print(i)
        x[0] = x[n]

    made, x = jitcore.autojit(fill, strict=True), np.ones(3)
    with contextlib.redirect_stdout(Stream()):
        made(x, 2)
    assert [text for text, _ in seen] == ["0", "\n", "1", "\n"]


def test_threads_print_their_own():
    def work(x, n):
        for i in range(n):
            if i % 5 == 0:
                print(x[0], i)
        return x[n]  # out of range for some

    made, failures = jitcore.autojit(work), []

    def call(number):
        for k in range(20):
            try:
                made(np.full(30, float(number)), 20 + 20 * (k % 4 == 0))
            except IndexError:
                if k % 4:
                    failures.append(k)

    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        made(np.zeros(30), 20)
        threads = [threading.Thread(target=call, args=(number,)) for number in range(1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


# -- what is refused -----------------------------------------------------------------------------------------
def keeps_a_word(x):
    words = {f"{x[0]:.0f}": 1}
    return len(words)


def asks_a_text(x):
    text = f"{x[0]}"
    return len(text), text == "1.0", text.split(".")


def prints_to_a_file(x):
    file = io.StringIO()
    print(x[0], file=file)
    return file.getvalue()


@pytest.mark.parametrize("function", [keeps_a_word, asks_a_text, prints_to_a_file])
def test_a_text_that_is_needed_while_tracing(function):
    with pytest.raises(NotTraceable):
        jitcore.autojit(function, strict=True)(np.ones(2))
    check(function, (np.ones(2),), (np.array([12.5, 0.0]),), strict=False)


def test_wrong_options_raise_as_python_does():
    def wrong(x):
        print(x, sep=1)

    check(wrong, (np.ones(2),), strict=False)


class Formatted:
    """Shown by a `__format__` of its own."""

    def __init__(self, value):
        self.value = value

    def __format__(self, spec):
        return f"<{spec}|{self.value:{spec or '.1f'}}>"


def formats_an_object(x):
    shown = Formatted(x[0])
    print(f"{shown} {shown:.3f}", format(shown, ".2f"))
    return f"{shown:5.1f}"


def test_an_object_is_formatted_by_its_own_method():
    check(formats_an_object, (np.array([1.25, 0.0]),), (np.array([-3.0, 2.0]),))
    check(lambda x: print("{} {:.2f}".format(Formatted(x[0]), x[1])), (np.ones(2),), strict=False)


def prints_what_cannot_be_formatted(x):
    print("first", x[0])
    print(f"{x[1]:.2f}", f"{x[0]:d}")
    return x[0]


def test_a_print_that_fails_has_printed_nothing():
    check(prints_what_cannot_be_formatted, (np.ones(2),), (np.zeros(2),))


def prints_in_a_generator(v):
    print("first", v)
    return any(print(v) for _ in range(2))


def prints_by_map(v):
    print("first", v)
    list(map(print, [v, 1]))
    print("last")


@pytest.mark.parametrize("function", [prints_in_a_generator, prints_by_map])
def test_print_that_other_code_calls(function):
    check(function, (1.5,), (2.5,), strict=False)
