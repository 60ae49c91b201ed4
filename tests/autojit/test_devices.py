"""`autojit(device=...)`: programs run there, arrays go and results come back."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import autojit
from jitcore.errors import BackendNotFoundError
from jitcore.process.effort import counters

DEVICES = ["cuda:emulated", jitcore.devices("cuda:emulated")[0], "reference", "xla"]


def place(device):
    if device == "xla":
        pytest.importorskip("jax")
    return device


def relax(u, rounds):
    for _ in range(rounds):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return u.sum(), u[::2]


def describe(x, scale=2.0):
    y = np.sin(x) * scale
    return {"values": y, "largest": y.max(), "place": y.argmax()}


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_arrays_of_the_caller_are_changed_and_viewed(device):
    compiled = autojit(relax, device=place(device), strict=True)
    for _ in range(2):
        found, expected = np.linspace(0, 1, 20) ** 2, np.linspace(0, 1, 20) ** 2
        (total, view), (right, _) = compiled(found, 5), relax(expected, 5)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        np.testing.assert_allclose(total, right, rtol=1e-14)
        assert np.shares_memory(view, found)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_results_are_of_numpy(device):
    compiled, x = autojit(describe, device=place(device), strict=True), np.linspace(-2, 2, 30)
    found, expected = compiled(x), describe(x)
    assert found.keys() == expected.keys() and type(found["values"]) is np.ndarray
    for name, value in expected.items():
        assert type(found[name]) is type(value) and found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=1e-14)


def test_it_runs_on_the_device(monkeypatch):
    from jitcore.backends.cuda.emulated import EmulatedDevice

    launches = []
    monkeypatch.setattr(EmulatedDevice, "launch", lambda *args, real=EmulatedDevice.launch: launches.append(1) or real(*args))

    @autojit(device="cuda:emulated", strict=True)
    def double(x):
        return x * 2

    before = counters.compiles
    np.testing.assert_array_equal(double(np.arange(5.0)), np.arange(5) * 2.0)
    double(np.arange(5.0))
    assert len(launches) == 2 and counters.compiles == before + 1


def test_what_is_no_device():
    with pytest.raises(BackendNotFoundError, match="nowhere"):
        autojit(relax, device="nowhere")
    with pytest.raises(TypeError, match="autojit: device must be one of"):
        autojit(relax, device=0)
