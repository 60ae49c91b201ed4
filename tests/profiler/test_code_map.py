"""Names of compiled code: what is written is read back, by these tests and by perf and GDB where they are installed."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

from jitcore import jit
from jitcore.backends.cpu.native import objects
from jitcore.config import config
from jitcore.profiler import code_map
from jitcore.profiler.code_map import Function

pytestmark = pytest.mark.skipif(not objects.can_link(), reason="LLVM loads code here, and tells of none of its functions")

SCRIPT = """import os, sys, time
import numpy as np
import jitcore, jitcore.numpy as jnp

@jitcore.jit
def wave(x):
    y = jnp.sin(x)
    for _ in range(40):
        y = jnp.sin(y) + x
    return (y.sum(axis=1),
            jnp.cumsum(y, axis=0))

x = np.ones((300, 200))
end = time.time() + float(sys.argv[1])
while True:
    wave(x)
    if time.time() >= end:
        break
print(os.getpid())
"""
#: The names of the two kernels, at the lines of their results.
KERNEL = re.compile(r"jitcore: wave \(script\.py:(10|11)\) kernel\d")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def run(script, kind, *before, seconds=0.0, check=True):
    environment = {**os.environ, "JITCORE_CODE_MAP": kind}
    return subprocess.run([*before, sys.executable, str(script), str(seconds)], capture_output=True, text=True,
                          timeout=200, check=check, env=environment, cwd=script.parent)


@pytest.fixture
def remove():
    """Files that are gone after the test."""
    paths = []
    yield paths.append
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def test_perf_map(script, remove):
    path = f"/tmp/perf-{run(script, 'perf').stdout.strip()}.map"
    remove(path)
    with open(path) as file:
        rows = [line.rstrip("\n").split(" ", 2) for line in file]
    places = sorted((int(start, 16), int(size, 16)) for start, size, _ in rows)
    assert all(start + size <= following for (start, size), (following, _) in zip(places, places[1:]))
    lines = {found[1] for *_, name in rows if (found := KERNEL.fullmatch(name))}
    assert lines == {"10", "11"}
    assert any(name.startswith("jitcore: launch ") for *_, name in rows)
    assert not os.path.exists(script.parent / "jit.dump") and os.stat(path).st_mode & 0o077 == 0


def test_jitdump(script, remove):
    done = run(script, "all")
    remove(f"/tmp/perf-{done.stdout.strip()}.map")
    (dump,) = script.parent.glob("jit-*.dump")
    data = dump.read_bytes()
    magic, version, size, machine, _, process, *_ = struct.unpack_from("<IIIIIIQQ", data)
    assert (magic, version, size, machine, process) == (0x4A695444, 1, 40, 62, int(done.stdout))
    names, at, numbers = [], size, []
    while at < len(data):
        kind, length, _ = struct.unpack_from("<IIQ", data, at)
        *_, start, code_size, number = struct.unpack_from("<IIQQQQ", data, at + 16)
        name, _, code = data[at + 56 : at + length].partition(b"\0")
        assert kind == 0 and len(code) == code_size and start
        names.append(name.decode())
        numbers.append(number)
        at += length
    assert at == len(data) and numbers == list(range(len(numbers)))
    assert len(list(filter(KERNEL.fullmatch, names))) == 2


def test_where_nothing_can_be_written_there_is_a_warning(monkeypatch, tmp_path):
    def refuse(functions):
        raise PermissionError("not here")

    monkeypatch.setattr(code_map, "write_perf_map", refuse)
    monkeypatch.setattr(code_map, "_failed", set())
    previous = config.code_map
    config.update("code_map", "perf")
    try:
        with pytest.warns(RuntimeWarning, match="code_map 'perf' ends: not here"):
            assert float(jit(lambda x: x * 5 - 2)(np.float32(1))) == 3
        assert float(jit(lambda x: x * 5 - 3)(np.float32(1))) == 2
    finally:
        config.update("code_map", previous)


def test_elf_file():
    data = code_map.make_elf([Function("first (a.py:1)", 0x1000, bytes(16)), Function("second", 0x1040, bytes(8))])
    assert data.startswith(b"\x7fELF")
    assert code_map.find_symbols(data, ("second", "first (a.py:1)", "third")) == [0x40, 0]


@pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")
def test_perf_names_kernels(script, remove):
    data = script.parent / "perf.data"
    recorded = run(script, "perf", "perf", "record", "-q", "-o", str(data), seconds=0.5, check=False)
    if recorded.returncode or not data.exists():
        pytest.skip(f"perf may not record here: {recorded.stderr[:200]}")
    remove(f"/tmp/perf-{recorded.stdout.strip()}.map")
    report = subprocess.run(["perf", "report", "--stdio", "-i", str(data)], capture_output=True, text=True, timeout=200)
    assert "jitcore: wave (script.py:" in report.stdout


@pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")
def test_perf_reads_the_dump(script):
    data, joined = script.parent / "perf.data", script.parent / "joined.data"
    recorded = run(script, "jitdump", "perf", "record", "-q", "-k", "mono", "-o", str(data), seconds=0.5, check=False)
    if recorded.returncode or not data.exists():
        pytest.skip(f"perf may not record here: {recorded.stderr[:200]}")
    subprocess.run(["perf", "inject", "--jit", "-i", str(data), "-o", str(joined)], timeout=200, check=True,
                   capture_output=True, cwd=script.parent)
    report = subprocess.run(["perf", "report", "--stdio", "-i", str(joined)], capture_output=True, text=True, timeout=200)
    assert "jitcore: wave (script.py:" in report.stdout


@pytest.mark.skipif(not shutil.which("gdb"), reason="GDB is not installed")
def test_gdb_names_kernels(script):
    script.write_text(SCRIPT + "import signal; os.kill(os.getpid(), signal.SIGTRAP)\n")
    done = subprocess.run(["gdb", "-batch", "-ex", "set confirm off", "-ex", f"run {script} 0",
                           "-ex", "info functions jitcore:", "--args", sys.executable], capture_output=True, text=True,
                          timeout=300, env={**os.environ, "JITCORE_CODE_MAP": "gdb"})
    if "SIGTRAP" not in done.stdout:
        pytest.skip(f"GDB may not run a process here: {done.stderr[:200]}")
    assert {found[1] for found in KERNEL.finditer(done.stdout)} == {"10", "11"}


def test_without_the_flag_there_is_no_file(script):
    pid = run(script, "").stdout.strip()
    assert not os.path.exists(f"/tmp/perf-{pid}.map") and not list(script.parent.glob("*.dump"))
