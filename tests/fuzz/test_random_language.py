"""Random programs about Python's and NumPy's language, compiled and in plain Python."""

from __future__ import annotations

import pytest

from tests.fuzz.language_programs import write_program
from tests.fuzz.state_runs import NotJudged, compare


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_language(first):
    check(range(first, first + 20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(60, 4060, 200))
def test_more_random_language(first):
    check(range(first, first + 200))


def check(seeds):
    failed = {}
    for seed in seeds:
        try:
            if found := compare(write_program(seed)):
                failed[seed] = str(found)
        except NotJudged:
            continue
    assert not failed


def test_programs_are_what_they_should_be():
    """That a change of the generator loses no kind of statement."""
    text = "\n".join(map(write_program, range(1500)))
    wanted = ["match ", "case {", "case [", "except*", "raise ValueError", "finally:", "nonlocal ", "yield", "lambda", ":=", "np.add.at", "np.uint8)", "Wrapped(", "@dataclass",
              "Colour.RED", "printoptions", "errstate", "del ", "class Own", "[::-1]", "out=u", "np.matrix", "np.ma.", "datetime64", "f'", "print(", "while True", "SHARED"]
    assert not [one for one in wanted if one not in text]
