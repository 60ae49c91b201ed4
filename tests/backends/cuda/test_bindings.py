"""Every call that the backend makes, against the real `cuda.bindings.driver` of an environment that has it.

There is no driver behind it: its functions convert their arguments, find no library, and say so. What they
cannot convert they refuse before. Where a driver is, the tests that run on GPUs say more.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from jitcore.backends.cuda.runtime import driver as drivers, linking
from jitcore.backends.cuda.runtime.gpu import HALF, GpuRuntime
from jitcore.backends.cuda.runtime.graphs import DECIDE
from tests.backends.cuda.fake_driver import FakeDriver, PlainTypes

real = pytest.importorskip("cuda.bindings.driver")
SOURCE = Path(drivers.__file__).parent
PTX = ".version 7.8\n.target sm_90\n.visible .entry none(.param .u64 to) { ret; }"
ONE = (1, 1, 1)
#: Where `CUgraphNodeParams` has the address of the bodies of a conditional node.
BODIES_AT = 32


def is_without_driver() -> bool:
    try:
        real.cuInit(0)
    except RuntimeError:
        return True
    return False


class ConvertingDriver(FakeDriver):
    """Gives each call to the real function first."""

    def __getattr__(self, name):
        found = super().__getattr__(name)
        if not re.match("cu[A-Z]", name) or name == "cuuint64_t":
            return found

        def call(*arguments):
            with pytest.raises(RuntimeError, match="libcuda|driver library"):
                getattr(real, name)(*arguments)
            return found(*arguments)

        return call

    def _give_body(self, given, body):
        self.bodies = (ctypes.c_void_p * 1)(int(body))
        ctypes.c_void_p.from_address(given.getPtr() + BODIES_AT).value = ctypes.addressof(self.bodies)


@pytest.fixture
def driver(monkeypatch):
    if not is_without_driver():
        pytest.skip("a driver is here")
    monkeypatch.setattr(linking, "find_version", lambda: "1.2")
    monkeypatch.setattr(linking, "_link", lambda *given: (b"\x7fELF", ""))
    made = ConvertingDriver({"none": lambda *given: None}, types=real)
    made.kernels["decide"] = lambda driver, arguments, *given: driver.conditions.update({arguments[0]: next(rounds)})
    rounds = iter([True, True, False])
    return made


def test_every_call_is_one_of_the_real_driver(driver):
    drivers.start_driver(driver)
    assert drivers.list_names(driver) == ["Fake GPU"]
    runtime = GpuRuntime(0, driver)
    assert runtime.facts()["bytes"] == 1 << 30
    first, second = runtime.allocate(3 * HALF), runtime.allocate(3 * HALF)
    value = np.arange(3 * HALF, dtype=np.uint8)
    runtime.copy_in(first, value)
    runtime.copy(second, first, value.nbytes)
    found = np.empty_like(value)
    runtime.copy_out(found, second)
    np.testing.assert_array_equal(found, value)
    runtime.start_copy_out(second, value.nbytes).finish(found)

    kernel = runtime.load(PTX).find_kernel("none")
    launch, given = (kernel, ONE, ONE), np.array([first], np.uint64)
    runtime.launch(*launch, given)
    graph = runtime.make_graph([launch] * 3)
    graph.launch([given] * 3)
    graph.launch([given + 1] * 3)
    loop = runtime.make_loop([launch], [launch])
    loop.launch([given], [given], (first, 1), [(first, second, 100)])

    runtime.follow(1)
    runtime.precede(1)
    runtime.retire(value)
    assert runtime.find_ordinal(first) == 0
    with pytest.raises(MemoryError):
        runtime.allocate(2 << 30)
    driver.current.context = 12345  # another library's
    runtime.facts()
    runtime.wait_for_others()
    runtime.free(first)
    del kernel, launch, graph, loop, runtime

    named = {name for path in SOURCE.glob("*.py") for name in re.findall(r"\bcu[A-Z]\w+", path.read_text())}
    assert named == set(driver.count())


def test_types_and_names_are_those_of_the_real_driver():
    for name, kind in vars(PlainTypes).items():
        if not name.startswith("_"):
            for member in getattr(kind, "__members__", ()):
                assert hasattr(getattr(real, name), member), f"{name}.{member}"
            assert hasattr(real, name), name
    for name in drivers.STICKY:
        assert hasattr(real.CUresult, name), name


def test_the_linker_makes_machine_code():
    if linking._load_linker() is None:
        pytest.skip("the linker is not installed")
    for machine in ("sm_75", "sm_90"):
        code, said = linking._link(DECIDE.encode(), machine, "-Xptxas=-v")
        assert code[:4] == b"\x7fELF" and "decide" in said
    for text, machine in ((b"nonsense", "sm_90"), (DECIDE.encode(), "sm_999")):
        assert linking._link(text, machine)[0] is None
