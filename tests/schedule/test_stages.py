"""The list of transformations: which ones a program enters, and the numbers that they go by."""

import dataclasses

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.backends.cpu.compiler import CpuTarget
from jitcore.loopir.text import format_program
from jitcore.schedule import STAGES, lower_program
from jitcore.schedule.tuning import Tuning


def lower(function, *args, stages=STAGES, **numbers):
    """The text of a loop program. numbers: those of `Tuning` that differ."""

    class Target(CpuTarget):
        tuning = Tuning(**numbers)

    return format_program(lower_program(jitcore.jit(function).trace(*args)._program.compiled_jaxpr, Target, stages=stages))


def watch(entered: list):
    """The stages, which note their names where they are entered."""
    def run(stage):
        return lambda *given: entered.append(stage.name) or stage.run(*given)

    return [stage._replace(run=run(stage)) for stage in STAGES]


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


X = np.linspace(-2, 2, 1000, dtype=np.float32)


@pytest.mark.parametrize("function, args, expected", [
    (selu, (X,), set()),
    (selu, (X.reshape(100, 10),), set()),  # its axes collapse at once
    (lambda x: x.sum(), (X,), {"blocks"}),
    (lambda x: jnp.pad(x, 1)[2:] + x[:1], (X,), {"join pieces"}),
    (lambda x: x[:, None] + x, (X,), {"transposed operands", "collapse"}),
    (lambda x: lax.fori_loop(0, 3, lambda k, x: jnp.sort(x) + k, x), (X,), {"aliasing", "settle", "epilogue", "results in place", "temporaries"}),
])
def test_a_program_enters_what_it_has_something_of(function, args, expected):
    entered = []
    assert lower(function, *args, stages=watch(entered)) == lower(function, *args)
    assert set(entered) == expected


def test_each_stage_says_what_it_is_about():
    assert all(stage.needs and stage.reason for stage in STAGES)


@pytest.mark.parametrize("function, numbers", [
    (selu, {"grain_work": 1024}),
    (lambda x: jnp.sum(x * x), {"block_work": 16}),
    (lambda x: (jnp.tanh(x)[:, None] * x).sum(0), {"broadcast_limit": 100}),
])
def test_other_numbers_make_another_schedule(function, numbers):
    assert lower(function, X) != lower(function, X, **numbers)


def test_numbers_stay():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Tuning().short = 3
