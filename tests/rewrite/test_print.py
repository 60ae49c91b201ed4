"""`print` in functions under `jit(rewrite=True)`, texts of traced values, and refusals in the user's `try`."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import errors, grad, jit, vmap
from jitcore.rewriter.functions import rewrite_function


def compiled(function, **options):
    return jit(function, rewrite=True, **options)


def test_prints_are_in_order_and_on_the_taken_way(capsys):
    @compiled
    def f(x, n):
        print("begin", x, sep=": ", end=";\n")
        if n > 2:
            print("large")
        else:
            print(f"small {n}")
        i = 0
        while i < n:
            print("step", i, x[0] * i)
            i += 1
        for k in range(20):
            if k % 9 == 0:
                print(k)
        return x

    capsys.readouterr()
    f(np.array([1.5, 2.0]), 1)
    assert capsys.readouterr().out == "begin: [1.5 2. ];\nsmall 1\nstep 0 0.0\n0\n9\n18\n"
    f(np.array([1.5, 2.0]), 3)
    assert capsys.readouterr().out == (
        "begin: [1.5 2. ];\nlarge\nstep 0 0.0\nstep 1 1.5\nstep 2 3.0\n0\n9\n18\n"
    )


def test_what_is_not_traced_is_printed_while_tracing(capsys):
    @compiled
    def f(x):
        print("tracing", x.shape)
        return x + 1

    f(np.ones(2)), f(np.zeros(2))
    assert capsys.readouterr().out == "tracing (2,)\n"


def test_values_and_texts(capsys):
    def f(x, n):
        print(
            [x[0], n], {"n": n}, (x,), f"{x[1]:.2f}", "%d of %.1f" % (n, x[0]), "{:>6.2f}|{}".format(x[0], n)
        )
        print(str(x[0]) + "!", repr(n), format(x[1], ".1e"), f"{x[0]:>{8}}".upper())

    x = jnp.array([1.5, 2.25])
    f(x, jnp.int32(3))
    expected = capsys.readouterr().out
    compiled(f)(x, jnp.int32(3))
    assert capsys.readouterr().out == expected


def test_files(capsys, tmp_path):
    path = tmp_path / "log"

    @compiled
    def f(x):
        print("out", x, file=file, flush=True)
        return x

    with open(path, "w") as file:
        f(1.0), f(2.0)
    assert path.read_text() == "out 1.0\nout 2.0\n"
    assert capsys.readouterr().out == ""


def test_under_transformations(capsys):
    def f(x):
        print("x", x)
        return x * x

    g = rewrite_function(f)
    assert jit(grad(g))(3.0) == 6.0
    assert capsys.readouterr().out == "x 3.0\n"
    jit(vmap(g))(np.arange(3.0))
    assert capsys.readouterr().out == "x 0.0\nx 1.0\nx 2.0\n"


def test_equal_prints_are_one_program():
    def f(x):
        print("value", x, f"{x:.2f}")
        return x

    before = compiled(f)
    before(1.0)
    again = compiled(lambda x: f(x))
    assert str(again.trace(1.0).jaxpr) == str(again.trace(2.0).jaxpr)


def test_texts_are_carried(capsys):
    @compiled
    def f(x):
        text = f"{x:.1f}"
        while x > 1:
            x = x / 2
            text = f"{x:.1f}"
        if x > 0.6:
            x, text = x + 1, f"{x * 10:.1f}"
        print(text)
        return x

    for x, expected in ((5.0, "6.2"), (4.0, "10.0"), (0.5, "0.5"), (2.2, "0.6")):
        f(x)
        assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize(
    "use", [len, lambda text: {text}, lambda text: text == "1", lambda text: text.split()]
)
def test_a_text_that_is_needed_while_tracing(use):
    with pytest.raises(errors.ConcretizationTypeError, match="needs the value of what is traced in it"):
        compiled(lambda x: [use(f"{x}"), x][1])(1.0)


def test_messages_of_errors_may_contain_traced_values():
    @compiled
    def f(x):
        if x.shape:
            raise ValueError(f"not {x}")
        return x

    with pytest.raises(ValueError, match="not Traced<"):
        f(np.ones(2))


# -- refusals are not caught ---------------------------------------------------------------------------------
def catches_all(x):
    try:
        return jnp.zeros(int(x)).shape
    except Exception:
        return x


def catches_bare(x):
    try:
        return [1, 2][x]
    except:  # noqa: E722
        return x


def catches_a_base(x):
    try:
        return np.asarray(x) + 1
    except (ValueError, TypeError):
        return x


class Suppress:
    def __enter__(self):
        return self

    def __exit__(self, *info):
        closed.append(1)
        return True


closed: list = []


def suppresses(x):
    with Suppress():
        x = float(np.asarray(x))
    return x


@pytest.mark.parametrize("function", [catches_all, catches_bare, catches_a_base, suppresses])
def test_the_users_handlers_do_not_catch_refusals(function):
    with pytest.raises(errors.JitcoreTypeError):
        compiled(function)(1)


def test_exit_is_called_all_the_same():
    closed.clear()
    with pytest.raises(errors.JitcoreTypeError):
        compiled(suppresses)(1)
    assert closed == [1]


def test_a_handler_that_names_a_refusal_gets_it():
    @compiled
    def f(x):
        try:
            return jnp.zeros(int(x))
        except (KeyError, errors.ConcretizationTypeError):
            return x + 1

    assert f(1.0) == 2.0


def test_other_errors_are_caught():
    @compiled
    def f(x):
        try:
            x = {"a": x}["b"]
        except KeyError as error:
            x = x * len(error.args)
        except:  # noqa: E722
            x = -1
        return x

    assert f(3.0) == 3.0
