"""Combinations of parameters, for tests in which the product of all of them says nothing more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any


def spread(first: Sequence, second: Sequence, times: int) -> list[tuple[Any, Any]]:
    """Pairs in which each value is met at least so often, each time beside another one.

    >>> spread("abc", [1, 2], times=1)
    [('a', 1), ('b', 2), ('c', 1)]
    """
    turns = itertools.product(range(times), range(max(len(first), len(second))))
    if len(first) >= len(second):
        return [(first[k], second[(k + turn) % len(second)]) for turn, k in turns]
    return [(first[(k + turn) % len(first)], second[k]) for turn, k in turns]


def pairwise(*parameters: Sequence) -> list[tuple[Any, ...]]:
    """Few combinations in which each value meets each value of each other parameter.

    >>> len(pairwise("abcd", [1, 2, 3], [True, False]))
    12
    """
    places = [range(len(values)) for values in parameters]
    missing = {frozenset(pair) for pair in itertools.combinations(
        [(k, place) for k, each in enumerate(places) for place in each], 2) if len(dict(pair)) == 2}
    found = []
    while missing:
        best = max(
            itertools.product(*places), key=lambda chosen: len(missing.intersection(_list_pairs(chosen)))
        )
        missing -= _list_pairs(best)
        found.append(tuple(values[place] for values, place in zip(parameters, best)))
    return found


def _list_pairs(chosen: tuple[int, ...]) -> set[frozenset]:
    return set(map(frozenset, itertools.combinations(enumerate(chosen), 2)))
