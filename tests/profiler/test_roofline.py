"""What the machine allows: measured once, kept on disk, and told by `cost_analysis`."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cpu.machine import roofline
from jitcore.backends.cpu.machine.roofline import Roofline
from jitcore.config import config

pytestmark = pytest.mark.cpu


@pytest.fixture
def machine(monkeypatch):
    """One of a gigabyte and of ten or five gigaflops a second."""
    made = Roofline("made up", 1, 1e9, 10e9, 5e9)
    monkeypatch.setattr(roofline, "measure", lambda: made)
    return made


def find_cost(function, *arguments):
    return jit(function).lower(*arguments).compile().cost_analysis()


def test_memory_bounds_a_sum_and_arithmetic_a_product(machine):
    x = np.ones((100, 100), np.float32)
    assert find_cost(jnp.add, x, x) == {"flops": 1e4, "bytes accessed": 12e4, "optimal_seconds": 12e4 / 1e9}
    cost = find_cost(jnp.matmul, x, x)
    assert cost == {"flops": 2e6, "bytes accessed": 12e4, "optimal_seconds": pytest.approx(2e6 / 10e9)}
    wide = np.ones((100, 100))
    assert find_cost(jnp.matmul, wide, wide)["optimal_seconds"] == pytest.approx(2e6 / 5e9)


def test_flops_of_convolutions_batches_and_epilogues(machine):
    image, kernel = np.ones((2, 3, 8, 8), np.float32), np.ones((5, 3, 3, 3), np.float32)
    assert find_cost(lambda x, k: lax.conv(x, k, (1, 1), "VALID"), image, kernel)["flops"] == 2 * 27 * 2 * 5 * 6 * 6
    a, b = np.ones((4, 10, 20), np.float32), np.ones((4, 20, 30), np.float32)
    product = 2 * 4 * 10 * 20 * 30
    assert find_cost(jnp.matmul, a, b)["flops"] == product
    assert find_cost(lambda a, b: jnp.matmul(a, b) * 2, a, b)["flops"] == product + 4 * 10 * 30


def test_it_is_measured_once_for_a_machine(tmp_path, monkeypatch):
    measured = []

    def measure(machine, count):
        measured.append(machine)
        return Roofline(machine, count, 1.0, 2.0, 3.0)

    monkeypatch.setattr(roofline, "_measure", measure)
    with config.override(cache_dir=str(tmp_path)):
        found = [roofline.measure.__wrapped__() for _ in range(2)]
    assert found[0] == found[1] and found[0].bandwidth == 1.0 and len(measured) == 1
    assert ", " in measured[0]


def test_a_measurement(monkeypatch):
    for name, value in (("_LEAST_BYTES", 1 << 16), ("_MOST_BYTES", 1 << 20), ("_MATRIX", 64), ("_RUNS", 2)):
        monkeypatch.setattr(roofline, name, value)
    found = roofline._measure("here", 1)
    assert found.machine == "here" and min(found[2:]) > 1e6
