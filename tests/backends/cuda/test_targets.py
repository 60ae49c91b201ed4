"""Programs compiled for GPUs that are not there."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cuda.architectures import ARCHITECTURES
from jitcore.backends.cuda.render.ptx import OLDER


def compile_for(target, function, *args):
    return jit(function).lower(*args).compile(target=target)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptx_is_of_the_architecture_and_of_the_oldest_version_that_has_it(arch):
    compiled = compile_for(f"cuda:{arch}", lambda x: jnp.tanh(x) * 2, np.ones(1000, np.float32))
    text = compiled.runtime_executable().texts()["ptx"]()
    arch = OLDER.get(arch, arch)
    version = ARCHITECTURES[arch].ptx
    assert f".target {arch}" in text and f".version {version // 10}.{version % 10}" in text
    assert text.count(".entry") == 1 and re.search(r"ld\.global(\.nc)?\.v(4\.[bf]32|2\.b64)", text)


@pytest.mark.skipif(llvm.llvm_version_info < (21,), reason="earlier LLVMs read them one by one")
@pytest.mark.parametrize("function", [lambda x: x.sum(0), lambda x: x[:, 0] * x[:, 1] + x[:, 2] / x[:, 3]], ids=range(2))
def test_elements_side_by_side_are_read_in_one_access(function):
    text = compile_for("cuda:sm_90", function, np.ones((100_000, 4), np.float32)).runtime_executable().texts()["ptx"]()
    assert re.search(r"ld\.global(\.nc)?\.v(4\.[bf]32|2\.b64)", text)


def test_a_program_for_another_machine_says_so_when_it_is_called():
    compiled = compile_for("cuda:sm_90", lambda x: x + 1, np.ones(3))
    with pytest.raises(RuntimeError, match="compiled for cuda:sm_90 ahead of time and does not run here"):
        compiled(np.ones(3))
    assert compiled.cost_analysis() == {"flops": 3.0, "bytes accessed": 48.0}
    assert compiled.memory_analysis().temp_size_in_bytes == 0


def test_an_unknown_target_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown target 'cuda:sm_12': targets are cuda:sm_75, cuda:sm_80"):
        compile_for("cuda:sm_12", lambda x: x, np.ones(3))


def test_programs_are_compiled_once_and_kept_on_disk(tmp_path, monkeypatch):
    from jitcore.backends.cuda.render import ptx

    made = []
    monkeypatch.setattr(ptx, "_translate", lambda *facts, real=ptx._translate: made.append(1) or real(*facts))
    monkeypatch.setenv("JITCORE_CACHE_DIR", str(tmp_path))
    ptx.clear()
    for _ in range(2):
        compile_for("cuda:sm_90", lambda x: x * 3 + 1, np.ones(7)).runtime_executable().texts()["ptx"]()
    assert len(made) == 1
