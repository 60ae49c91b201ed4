"""Numbers of `Tuning`: another one makes another program, and another key."""

import os
import subprocess
import sys

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu import routines
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines.fft.plan import Request, plan_transform
from jitcore.backends.cpu.runtime import threads
from jitcore.config import config
from tests.backends.cpu import other_numbers
from tests.backends.cpu.tuning import tune


@pytest.fixture(autouse=True)
def nothing_is_kept():
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


def text_of(function, stage, *args):
    f = jit(lambda *args: function(*args))
    f(*args)
    return f.inspect(stage)


def module_of(symbol):
    return str(routines._describe_module(symbol)["render"]())


X, M = np.arange(1000.0), np.eye(100) + 1.0


@pytest.mark.parametrize("find, numbers", [
    (lambda: text_of(lambda x: x.sum(0), "loop program", M), {"loops": {"strips": (2,)}}),
    (lambda: text_of(jnp.argmax, "kernel", X), {"loops": {"stretch": 3}}),
    (lambda: text_of(jnp.matmul, "loop program", M, M), {"product": {"loop_work": 1 << 30}}),
    (lambda: module_of("jitcore_product_multiply_f32"), {"product": {"grain_work": 1}}),
    (lambda: text_of(jnp.linalg.cholesky, "loop program", M), {"linalg": {"block_sides": range(0)}}),
    (lambda: module_of("jitcore_lapack64_blocklu_d"), {"linalg": {"panel": 24}}),
    (lambda: module_of("jitcore_sort_values_float32"), {"sort": {"grain": 1}}),
    (lambda: threads._describe_adapter()[2](), {"runtime": {"spins": 7}}),
    (lambda: host.make_key("program"), {"runtime": {"spins": 7}}),
], ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_number_changes_what_is_made(find, numbers, monkeypatch):
    known = find()
    jitcore.clear_caches()
    tune(monkeypatch, **numbers)
    assert find() != known


def test_a_number_changes_how_a_transform_is_cut(monkeypatch):
    def plan():
        return plan_transform(Request(1, (1 << 16,), 4, 16, False, "", host.MACHINE.tuning.fft)).temporary

    assert plan()
    tune(monkeypatch, fft={"shared_points": 1 << 20})
    assert not plan()



def test_other_numbers_give_the_same_results(tmp_path):
    """In a process of its own, as the code of routines is there for all of it; what this one keeps on disk is not
    found."""
    known, changed = tmp_path / "known.npz", tmp_path / "changed.npz"
    with config.override(cache_dir=str(tmp_path / "cache")):
        other_numbers.save_results(known)
    run = [sys.executable, "-m", other_numbers.__name__, str(changed)]
    subprocess.run(run, check=True, env=os.environ | {"JITCORE_CACHE_DIR": str(tmp_path / "cache")})
    one, other = np.load(known), np.load(changed)
    assert one.files == other.files
    for name in one.files:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-9, err_msg=name)
