"""Tests that need no machine code: loop programs are run as Python, and machine code runs under `-m slow` too.

In: a test module or a conftest imports `codegen` and `pytest_generate_tests` from here. What a pass, a schedule, a
rule of derivatives or a rewritten function computes can be seen without machine code, and a compile is an error
there. Tests that look at machine code, at threads or at what is compiled, or compute for long, are marked
`machine_code`.
"""

import pytest

from jitcore.backends.cpu.backend import CpuExecutable
from jitcore.config import config


def pytest_generate_tests(metafunc):
    if not metafunc.definition.get_closest_marker("machine_code"):
        slow = [pytest.param("llvm", marks=pytest.mark.slow)] * ("not slow" not in metafunc.config.option.markexpr)
        metafunc.parametrize("codegen", ["python", *slow], indirect=True)


@pytest.fixture(autouse=True)
def codegen(request, monkeypatch):
    if getattr(request, "param", "llvm") == "llvm":
        yield
        return

    def refuse(*_):
        raise AssertionError("this test compiles machine code; mark it machine_code if it looks at it")

    monkeypatch.setattr(CpuExecutable, "__init__", refuse)
    with config.override(codegen="python"):
        yield
