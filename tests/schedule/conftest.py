"""Loop programs are run as Python: what a schedule or a pass computes can be seen without machine code.

Tests that look at machine code, at threads or at what is compiled are marked `machine_code`. The others run
with machine code too under `-m slow`.
"""

import pytest

from jitcore.backends.cpu.executable import CpuExecutable
from jitcore.config import config


def pytest_generate_tests(metafunc):
    is_llvm = metafunc.definition.get_closest_marker("machine_code")
    codegens = ["llvm"] if is_llvm else ["python", pytest.param("llvm", marks=pytest.mark.slow)]
    metafunc.parametrize("codegen", codegens, indirect=True)


@pytest.fixture(autouse=True)
def codegen(request, monkeypatch):
    if request.param == "llvm":
        yield
        return

    def refuse(*_):
        raise AssertionError("this test compiles machine code; mark it machine_code if it looks at it")

    monkeypatch.setattr(CpuExecutable, "__init__", refuse)
    with config.override(codegen="python"):
        yield
