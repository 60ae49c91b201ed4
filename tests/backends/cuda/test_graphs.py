"""Launches that are given to a GPU at once: nodes, their arguments, loops; and which programs use them."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda import CudaBackend
from jitcore.backends.cuda.runtime import linking
from jitcore.backends.cuda.runtime.driver import CudaError
from jitcore.backends.cuda.runtime.gpu import GpuRuntime
from jitcore.backends.cuda.runtime.graphs import DECIDE, MAX_LOOPS
from jitcore.dispatch import backend as backends
from tests.backends.cuda.cells import get, numbers, put
from tests.backends.cuda.fake_driver import FakeDriver, find_entries

PTX = """
.version 7.8
.target sm_90
.visible .entry add(.param .u64 to, .param .u64 step) { ret; }
.visible .entry double(.param .u64 to) { ret; }
.visible .entry check(.param .u64 to, .param .u64 from, .param .u64 limit) { ret; }
"""
ONE = (1, 1, 1)


def add(driver, arguments, grid, block):
    driver.view(arguments[0], np.int64, 1)[:] += arguments[1]


def double(driver, arguments, grid, block):
    driver.view(arguments[0], np.int64, 1)[:] *= 2


def check(driver, arguments, grid, block):
    to, source, limit = arguments
    driver.view(to, np.uint8, 1)[:] = driver.view(source, np.int64, 1) < limit


@pytest.fixture(autouse=True)
def without_linker(monkeypatch):
    monkeypatch.setattr(linking, "find_version", lambda: "")


def make():
    driver = FakeDriver({"add": add, "double": double, "check": check})
    runtime = GpuRuntime(0, driver)
    module = runtime.load(PTX)
    return driver, runtime, {name: (module.find_kernel(name), ONE, ONE) for name in ("add", "double", "check")}


# -- graphs -------------------------------------------------------------------------------------------------
def test_launches_run_in_their_order_with_the_arguments_of_each_call():
    driver, runtime, kernels = make()
    graph = runtime.make_graph([kernels["add"], kernels["double"], kernels["add"]])
    x, y = put(runtime, 3), put(runtime, 10)
    graph.launch([numbers(x, 1), numbers(x), numbers(x, 5)])
    graph.launch([numbers(y, 1), numbers(y), numbers(y, 5)])  # before the first has run
    graph.launch([numbers(x, 0), numbers(x), numbers(x, 1)])
    assert (get(runtime, x), get(runtime, y)) == (27, 27)
    count = driver.count()
    assert (count["cuGraphAddKernelNode"], count["cuGraphInstantiate"], count["cuGraphLaunch"]) == (3, 1, 3)
    assert count["cuLaunchKernel"] == 0


def test_only_arguments_that_differ_are_written():
    driver, runtime, kernels = make()
    graph, x = runtime.make_graph([kernels["add"]] * 3), put(runtime, 0)
    for steps, changed in (((1, 2, 3), 0), ((1, 2, 3), 0), ((1, 7, 3), 1), ((2, 7, 4), 3)):
        graph.launch([numbers(x, step) for step in steps])
        assert driver.count()["cuGraphExecKernelNodeSetParams"] == changed
    assert get(runtime, x) == 6 + 6 + 11 + 13


def test_a_call_in_the_middle_of_another_has_a_graph_of_its_own():
    driver, runtime, kernels = make()
    graph, x, y = runtime.make_graph([kernels["add"]] * 3), put(runtime, 0), put(runtime, 100)
    graph.launch([numbers(x, 1)] * 3)
    prepare, inner = driver._cuGraphExecKernelNodeSetParams, [[numbers(y, 10)] * 3]

    def interrupted(*given):
        while inner:
            graph.launch(inner.pop())
        return prepare(*given)

    driver._cuGraphExecKernelNodeSetParams = interrupted
    graph.launch([numbers(x, 2)] * 3)
    assert (get(runtime, x), get(runtime, y)) == (9, 130)
    assert driver.count()["cuGraphInstantiate"] == 2


def test_a_graph_that_fails_is_made_anew_and_all_are_given_back():
    driver, runtime, kernels = make()
    graph, x = runtime.make_graph([kernels["add"]] * 3), put(runtime, 0)
    graph.launch([numbers(x, 1)] * 3)
    driver.fail("cuGraphLaunch", *["CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"] * 2)
    with pytest.raises(CudaError, match="(?s)cuGraphLaunch .*last is add"):
        graph.launch([numbers(x, 1)] * 3)
    graph.launch([numbers(x, 1)] * 3)
    assert get(runtime, x) == 6
    del graph
    count = driver.count()
    assert count["cuGraphInstantiate"] == count["cuGraphExecDestroy"] == count["cuGraphDestroy"] == 2


# -- loops --------------------------------------------------------------------------------------------------
def test_a_loop_runs_until_its_predicate_fails_without_the_host():
    driver, runtime, kernels = make()
    loop = runtime.make_loop([kernels["check"]], [kernels["add"], kernels["double"]])
    predicate = runtime.allocate(1)
    for start, limit, expected in ((1, 100, 190), (200, 100, 200), (1, 50, 94)):
        x = put(runtime, start)
        calls = len(driver.calls)
        loop.launch([numbers(predicate, x, limit)], [numbers(x, 1), numbers(x)], (predicate, 1))
        assert driver.names_since(calls)[-1] == "cuGraphLaunch"
        assert get(runtime, x) == expected


def test_loops_are_kept_for_arguments_that_come_again():
    driver, runtime, kernels = make()
    loop = runtime.make_loop([kernels["check"]], [kernels["add"]])
    predicate, places = runtime.allocate(1), [put(runtime, 0) for _ in range(MAX_LOOPS + 1)]

    def run(place):
        loop.launch([numbers(predicate, place, 5)], [numbers(place, 1)], (predicate, 1))
        return driver.count()["cuGraphInstantiate"]

    assert [run(place) for place in (*places[:2], *places[:2])] == [1, 2, 2, 2]
    assert [run(place) for place in places] == [2, 2, 3, 4, 5]
    assert run(places[0]) == 6  # the one that was not used for longest went
    assert driver.count()["cuGraphExecDestroy"] == 2
    assert [get(runtime, place) for place in places] == [5] * len(places)


def test_moves_end_each_round():
    driver, runtime, kernels = make()
    loop = runtime.make_loop([kernels["check"]], [kernels["add"]])
    predicate, x, following = runtime.allocate(1), put(runtime, 0), put(runtime, 0)
    loop.launch([numbers(predicate, x, 5)], [numbers(following, 1)], (predicate, 1), [(x, following, 8)])
    assert get(runtime, x) == 5


def test_the_kernel_that_decides_says_so():
    assert find_entries(DECIDE) == {"decide": 3}
    assert DECIDE.count("cudaGraphSetConditional") == 2 and "0xffffffff" in DECIDE


# -- programs -----------------------------------------------------------------------------------------------
@pytest.fixture
def gpu(monkeypatch):
    """A driver, and the backend "cuda" on it; kernels do nothing unless a test says what."""
    driver = FakeDriver()
    driver.other_kernels = lambda name: lambda *given: None
    backends.list_backends()
    monkeypatch.setitem(backends._tried.loaded, "cuda", CudaBackend(driver))
    jitcore.clear_caches()
    yield driver
    jitcore.clear_caches()


def test_results_of_programs_come_from_their_kernels(gpu):
    def run(driver, arguments, grid, block):
        source, to = arguments[:2]
        driver.view(to, np.float32, 3)[:] = 2 * driver.view(source, np.float32, 3) + 1
        seen.append((grid, block))

    seen: list = []
    gpu.kernels["k0"] = run
    function = jit(lambda x: x * 2 + 1, backend="cuda")
    first = function(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(function(first), [3, 7, 11])  # which stays on the device
    assert first.device == jitcore.devices("cuda")[0] and first.device.device_kind == "Fake GPU"
    assert seen == [((1, 1, 1), (128, 1, 1))] * 2
    assert gpu.count()["cuMemcpyHtoDAsync"] == 1 and gpu.count()["cuLaunchKernel"] == 2


def test_three_launches_in_a_row_are_a_graph(gpu):
    @jit(backend="cuda")
    def function(x):
        return jnp.cumsum(x - x.mean()) / x.sum(), x.max()

    x = np.ones(100_000, np.float32)
    out = function(x)
    count = gpu.count()
    assert count["cuGraphLaunch"] == 1 and count["cuGraphAddKernelNode"] >= 3 and count["cuLaunchKernel"] == 0
    function(x)
    assert gpu.count()["cuGraphInstantiate"] == 1 and gpu.count()["cuGraphLaunch"] == 2
    assert len(out) == 2


def test_loops_whose_kernels_are_many_are_run_by_the_gpu(gpu):
    @jit(backend="cuda")
    def function(x):
        return lax.fori_loop(0, 100, lambda i, c: 0.25 * (jnp.roll(c, 1) + jnp.roll(c, -1)) + c.sum(), x)

    gpu.kernels["decide"] = lambda driver, arguments, *given: driver.conditions.update({arguments[0]: next(rounds)})
    rounds = iter([True, True, False])
    function(np.ones(100_000, np.float32)).block_until_ready()
    assert not list(rounds)
    count = gpu.count()
    assert count["cuGraphConditionalHandleCreate"] == 1 and count["cuMemcpyDtoHAsync"] == 0
    assert count["cuGraphAddMemcpyNode"] == 1  # of the carry, which would change places



def test_older_drivers_let_the_host_read_the_condition(monkeypatch):
    driver = FakeDriver(version=12030)
    rounds = iter([True, True, False])

    driver.other_kernels = lambda name: lambda *given: None
    backends.list_backends()
    monkeypatch.setitem(backends._tried.loaded, "cuda", CudaBackend(driver))
    jitcore.clear_caches()
    copy_out = GpuRuntime.copy_out

    def read(runtime, array, address):
        copy_out(runtime, array, address)
        array[...] = next(rounds)

    monkeypatch.setattr(GpuRuntime, "copy_out", read)
    jit(lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: jnp.cumsum(c), x), backend="cuda")(np.ones(100_000, np.float32))
    assert not list(rounds) and driver.count()["cuGraphConditionalHandleCreate"] == 0
    jitcore.clear_caches()
