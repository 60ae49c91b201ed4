"""Affine forms add, scale, divide and substitute as the numbers that they stand for do."""

import itertools
import random

import pytest

from jitcore.core.algebra import Affine

ATOMS = "abc"
VALUES = {"a": 5, "b": -3, "c": 11}


def evaluate(form):
    return form.const + sum(VALUES[atom] * coefficient for atom, coefficient in form.terms)


def make_form(rng):
    form = Affine((), rng.randrange(-9, 9))
    for atom in ATOMS:
        form = form + Affine.of(atom) * rng.randrange(-3, 4)
    return form


@pytest.fixture
def forms():
    rng = random.Random(0)
    return [make_form(rng) for _ in range(20)]


def test_sums_and_multiples(forms):
    for one, other in itertools.product(forms, forms):
        assert evaluate(one + other) == evaluate(one) + evaluate(other)
        assert evaluate(one - other * 3) == evaluate(one) - 3 * evaluate(other)
        assert evaluate(-one + 4) == 4 - evaluate(one)


def test_what_cancels_is_not_there(forms):
    for form in forms:
        assert form - form == Affine() and hash(form - form) == hash(Affine())
        assert form * 1 is form and form * 0 == Affine() and form + 0 is form


def test_parts_of_a_form():
    form = Affine.of("a") * 2 + Affine.of("b") - 7
    assert [form.coefficient(atom) for atom in ATOMS] == [2, 1, 0]
    assert form.without("a") == Affine.of("b") - 7
    assert repr(form) == "2*'a' + 'b' + -7" and repr(Affine()) == "0" and repr(Affine.of("a")) == "'a'"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_quotients(forms, size):
    for form in forms:
        quotient, rest = form.divide(size)
        assert evaluate(quotient) * size + evaluate(rest) == evaluate(form)
        assert 0 <= rest.const < size and all(coefficient % size for _, coefficient in rest.terms)


def test_substitution(forms):
    replaced = {"a": Affine.of("b") + 1, "b": Affine.of("b"), "c": Affine((), 4)}
    for form in forms:
        new = form.substitute(replaced.get)
        expected = form.const + sum(evaluate(replaced[atom]) * c for atom, c in form.terms)
        assert evaluate(new) == expected and "a" not in dict(new.terms)
