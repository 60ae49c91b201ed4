"""Random programs about memory, compiled and plain: values, which objects are one, which arrays share memory."""

from __future__ import annotations

import collections
import linecache
import warnings

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, jit
from jitcore.autojitted import function as autojit_function
from jitcore.autojitted.tiers.report import Tier
from jitcore.errors import ControlFlowError
from jitcore.rewriter.functions import rewrite_function
from tests.codegens import codegen, pytest_generate_tests  # noqa: F401
from tests.fuzz.memory_programs import (LAYOUTS, NUMBERS, load, make_arguments, make_pure_arguments, put,
                                        without_in_place, write_program, write_pure_program)
from tests.rewrite.identity import look_out_always

_FILE = "<memory program {}>"


def note(value, seen: dict, arrays: list):
    """What can be seen of a value: types, dtypes, elements, which objects are one. seen: places of objects by id;
    arrays: those that were met."""
    if isinstance(value, (tuple, list, dict, np.ndarray)) or hasattr(value, "__dict__"):
        if id(value) in seen and not isinstance(value, tuple):
            return "object", seen[id(value)]
        seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return value.dtype.str, value.shape, value.flags.writeable, value.tolist()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [note(one, seen, arrays) for one in value]
    if isinstance(value, dict):
        return "dict", [(key, note(one, seen, arrays)) for key, one in value.items()]
    if hasattr(value, "__dict__"):
        return type(value).__name__, note(vars(value), seen, arrays)
    return type(value).__name__, repr(value)


def observe(function, layout: str, numbers: tuple, space: dict) -> tuple:
    """What a call returns and leaves behind, or its error."""
    arguments = make_arguments(layout, numbers, space)
    error = result = None
    try:
        result = function(*arguments)
    except Exception as raised:
        error = type(raised).__name__, str(raised)
    seen, arrays = {}, []
    found = note([*arguments, space["BUFFER"], space["LAST"], result], seen, arrays)
    sharing = [(i, j) for i, one in enumerate(arrays) for j in range(i) if np.shares_memory(one, arrays[j])]
    return error, found, sharing


def check_program(seed: int, layouts: list[str], source: str = "") -> collections.Counter:
    """Returns: how many layouts were traced, had some calls or loops traced, ran in plain Python.
    source: of a program that stands for that of the seed."""
    source, name, served = source or write_program(seed), _FILE.format(seed), collections.Counter()
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    for layout in layouts:
        spaces = load(source, name), load(source, name)
        plain, compiled = spaces[0]["f"], autojit(spaces[1]["f"])
        for numbers in NUMBERS:
            expected = observe(plain, layout, numbers, spaces[0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = observe(compiled, layout, numbers, spaces[1])
            assert found == expected, f"seed {seed}, {layout}, {numbers}"
        tiers = {tier for region in compiled.report().regions for tier in region.tiers}
        served["traced" if tiers == {Tier.TRACED} else "partly" if Tier.TRACED in tiers else "python"] += 1
    linecache.cache.pop(name)
    return served


def check_programs(seeds: range) -> collections.Counter:
    """Checks programs with one layout of arguments each."""
    names, served = list(LAYOUTS), collections.Counter()
    for seed in seeds:
        served += check_program(seed, [names[seed % len(names)]])
    return served


# -- the same rewritten, on ordinary values ---------------------------------------------------------------------
def check_rewritten(seed: int) -> None:
    source, name, layout = write_program(seed), _FILE.format(seed), list(LAYOUTS)[seed % len(LAYOUTS)]
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    spaces = load(source, name), load(source, name)
    plain, rewritten = spaces[0]["f"], rewrite_function(spaces[1]["f"])
    for numbers in NUMBERS:
        expected = observe(plain, layout, numbers, spaces[0])
        with look_out_always():
            assert observe(rewritten, layout, numbers, spaces[1]) == expected, (
                f"seed {seed}, {layout}, {numbers}"
            )
    linecache.cache.pop(name)


@pytest.mark.parametrize("first", range(0, 50, 50))
def test_random_memory_rewritten(first):
    for seed in range(first, first + 50):
        check_rewritten(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 2050, 50))
def test_more_random_memory_rewritten(first):
    for seed in range(first, first + 50):
        check_rewritten(seed)


# -- the same in the JAX style: lists, dicts, objects that change, arrays that do not ----------------------------------
def check_jitted(seed: int) -> bool:
    """Whether the program was traced: some change lists so that the sides of a condition have no common form."""
    source, name = write_pure_program(seed), _FILE.format(f"{seed} in the JAX style")
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    plain, traced = load(without_in_place(source), name), load(source, name)
    plain |= {"np": np, "put": put}
    traced |= {"np": jnp, "put": lambda u, place, value: u.at[place].set(value)}
    compiled = jit(traced["f"], rewrite=True, static_argnames=("n", "flag"), backend="reference")
    for numbers in NUMBERS:
        arguments = make_pure_arguments(numbers)
        try:
            expected = plain["f"](*arguments)
        except UnboundLocalError as error:
            expected = error
        try:
            found = compiled(*arguments)
        except (UnboundLocalError, ControlFlowError) as error:
            if type(error) is not type(expected) and isinstance(error, UnboundLocalError):
                raise
            return False
        assert flatten(found) == flatten(expected), f"seed {seed}, {numbers}"
    linecache.cache.pop(name)
    return True


def flatten(value) -> list:
    """The elements of nested lists and tuples of arrays."""
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in flatten(item)]
    return [np.shape(value), np.asarray(value, np.float64).tolist()]


@pytest.mark.parametrize("first", range(0, 20, 20))
def test_random_memory_in_the_jax_style(first):
    assert sum(map(check_jitted, range(first, first + 20))) > 12


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 1020, 50))
def test_more_random_memory_in_the_jax_style(first):
    for seed in range(first, first + 50):
        check_jitted(seed)


@pytest.fixture(autouse=True)
def _keep_traced(monkeypatch):
    monkeypatch.setattr(autojit_function.Probe, "_is_slower", lambda self, copies: False)


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_random_memory(first):
    served = check_programs(range(first, first + 25))
    assert served["traced"] > 7


@pytest.mark.slow
@pytest.mark.parametrize("first", range(150, 2150, 50))
def test_more_random_memory(first):
    check_programs(range(first, first + 50))


def test_programs_are_what_they_should_be():
    """Which statements the default programs have, so that a change of the generator cannot lose one."""
    text = "\n".join(write_program(seed) for seed in range(150))
    for wanted in ("out=", ".fill(", ".sort()", "break", "continue", "while ", "in range(n)", "in range(t)", " in grid:", "BUFFER",
                   "held = [", "held[0] =", "items[0] =", "box.x =", "box.set(", "box.grow(", "pick(", "late(", "[::-1]", " else ",
                   ".reshape(", "grid.T", " is ", "LAST = ", "p += "):
        assert text.count(wanted) > 1, wanted
