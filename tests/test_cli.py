"""`python -m jitcore`: what each command prints, its exit code, and what it leaves behind."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jitcore import __version__
from jitcore.__main__ import main
from jitcore.backends.reference import ReferenceBackend
from jitcore.cli import demo, doctor
from jitcore.dispatch import backend as backends


def run_command(*arguments: str, folder: Path | None = None, **environment: str):
    """The finished process of `python -m jitcore ARGUMENTS`."""
    command = [sys.executable, "-m", "jitcore", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder,
                          env={**os.environ, **environment})


def list_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


# -- demo ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """(process, its working folder) of one small demonstration."""
    folder = tmp_path_factory.mktemp("demo")
    return run_command("demo", "--size", "20000", folder=folder), folder


def split_parts(text: str) -> dict[str, str]:
    """The parts of a demonstration by title."""
    parts = re.split(r"^== (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def test_demo_shows_every_stage(demonstration):
    done, _ = demonstration
    assert (done.returncode, done.stderr) == (0, "")
    parts = split_parts(done.stdout)
    assert "def selu(x, alpha=1.67, lambda_=1.05):" in parts["The function"]
    assert parts["Traced: the jaxpr"].startswith("{ lambda ; a:f32[20000]. let\n")
    assert "exp a" in parts["Optimized jaxpr"]
    kernel = parts["The kernel: all operations in one loop, as Numba would compile it"]
    assert kernel.count("for ") == 1 and "in range(20000):" in kernel and "np.exp(" in kernel


def test_demo_shows_vector_code(demonstration):
    parts = split_parts(demonstration[0].stdout)
    (llvm,) = [text for title, text in parts.items() if title.startswith("Generated kernel, llvm")]
    (assembly,) = [text for title, text in parts.items() if title.startswith("Generated kernel, assembly")]
    assert len(re.findall(r"<\d+ x float>", llvm)) >= 10
    assert sum(bool(demo._VECTOR_ARITHMETIC["assembly"].search(line)) for line in assembly.splitlines()) >= 8


def test_demo_checks_and_times(demonstration):
    parts = split_parts(demonstration[0].stdout)
    accuracy = parts["Largest difference from NumPy in float64"]
    assert float(re.search(r"float32: (\S+)", accuracy)[1]) < 2e-6
    assert float(re.search(r"float64: (\S+)", accuracy)[1]) < 2e-15
    times = parts["Time for 20000 float32 elements"].splitlines()
    names = [line.split()[0] for line in times[1:] if line]
    assert names == ["jitcore", "NumPy"] + ["JAX"] * bool(importlib.util.find_spec("jax"))


def test_demo_writes_no_file(demonstration):
    assert list_files(demonstration[1]) == []


def test_demo_compiles_where_settings_say_otherwise():
    done = run_command("demo", "--size", "100", JITCORE_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    assert "exp a" in split_parts(done.stdout)["Optimized jaxpr"]


def test_demo_fails_when_values_are_wrong(monkeypatch, capsys):
    monkeypatch.setattr(demo, "show_times", lambda *_: None)
    monkeypatch.setattr(
        demo, "selu", lambda x: demo.jnp.where(x > 0, 1.0501 * x, 1.05 * 1.67 * (demo.jnp.exp(x) - 1))
    )
    assert main(["demo", "--size", "100"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["0", "-3", "many", "1.5"])
def test_demo_refuses_sizes(size, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["demo", f"--size={size}"])
    assert raised.value.code == 2
    assert f"a number of elements is an integer of at least 1, not '{size}'" in capsys.readouterr().err


def test_find_dense_part():
    lines = ["mov a", "add a", "mov b", "add b", "add c", "mov d"]
    assert demo.find_dense_part(lines, re.compile("add"), 2) == ["add b", "add c"]
    assert demo.find_dense_part(lines[:1], re.compile("add"), 2) == ["mov a"]


@pytest.mark.parametrize("seconds, text", [(0.0285, "28.5 ms"), (1.34e-4, "134 us"), (2.0, "2e+03 ms")])
def test_format_seconds(seconds, text):
    assert demo.format_seconds(seconds) == text


# -- doctor --------------------------------------------------------------------------------------------------


def test_doctor_describes_this_installation(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("python", "jitcore", "numpy", "numba", "llvmlite", "scipy", "optree"):
        assert re.search(rf"^  {name} +\d+\.\d+", out, re.MULTILINE), name
    assert re.search(r"^  cpu +cpu:0: works, .* \(default\)$", out, re.MULTILINE)
    assert re.search(r"^  reference +.*: works", out, re.MULTILINE)
    assert re.search(r"^  threads +\d+ on \d+ cores, layer (tbb|pool|serial)", out, re.MULTILINE)
    assert re.search(r"^  processor +\w+", out, re.MULTILINE)
    assert out.endswith("No problem found.\n")
    assert max(map(len, out.splitlines())) <= 110


def test_doctor_writes_json(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["Versions", "System", "BLAS", "Backends", "Targets that need not be here", "Machine",
                           "Roofline", "Settings", "Environment", "Caches of compiled programs", "Problems"]
    assert found["Environment"]["OMP_NUM_THREADS"] == "3" and found["Versions"]["jitcore"] == __version__
    assert found["System"]["processors"] >= 1 and any(name.startswith("numpy blas") for name in found["BLAS"])
    assert found["Roofline"]["bandwidth"].endswith(" GB/s") and found["Problems"] == []


def test_doctor_reads_control_groups(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "memory.max").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert dict(doctor.read_cgroup(tmp_path, "here")) == {"cpu limit": "-1", "memory limit": "1000"}
    assert dict(doctor.read_cgroup(tmp_path, "gone"))["memory limit"] == "max"


def test_doctor_shows_changed_settings_and_absent_backends():
    done = run_command("doctor", JITCORE_DEFAULT_BACKEND="tpu", JITCORE_NUM_THREADS="1")
    assert done.returncode == 1
    assert re.search(r"^  num_threads +1 \(default 0, environment variable JITCORE_NUM_THREADS\)$",
                     done.stdout, re.MULTILINE)
    assert re.search(r"^  threads +1 on", done.stdout, re.MULTILINE)
    assert re.search(r"^Problem: .*tpu", done.stdout, re.MULTILINE)


class WrongBackend(ReferenceBackend):
    """Computes something else."""

    name = "wrong"

    def compile(self, closed_jaxpr, options):
        executable = super().compile(closed_jaxpr, options)
        bind = executable.bind
        executable.bind = lambda avals: lambda *inputs: [out + 1 for out in bind(avals)(*inputs)]
        return executable


def test_doctor_finds_backends_that_fail(monkeypatch, capsys):
    backends.list_backends()
    installed = backends._tried
    monkeypatch.setitem(installed.loaded, "wrong", WrongBackend())
    monkeypatch.setitem(installed.reasons, "broken", "ImportError: no driver")
    monkeypatch.setitem(installed.reasons, "cpu", "")  # taken back afterwards
    monkeypatch.delitem(installed.loaded, "cpu")
    monkeypatch.delitem(installed.made, "cpu")
    monkeypatch.setitem(backends.BACKENDS, "cpu", "jitcore.absent:Backend")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^  broken +does not load: ImportError: no driver$", out, re.MULTILINE)
    assert re.search(r"^Problem: backend cpu does not load: ModuleNotFoundError", out, re.MULTILINE)
    assert re.search(r"^Problem: backend wrong: a small program gives \[2. 4. 6.\]$", out, re.MULTILINE)


def test_doctor_tells_what_programs_can_be_compiled_for(capsys):
    pytest.importorskip("jax")
    main(["doctor"])
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(r'tpu:v5e +(works|ImportError: .*pip install "jitcore\[tpu\]")', out)
    assert re.search(r"tpu +(tpu:0|does not load: .*compile\(target=)", out)


def test_doctor_names_missing_packages(monkeypatch):
    monkeypatch.setattr(doctor, "REQUIRED", ("numpy", "no-such-package"))
    problems: list[str] = []
    assert dict(doctor.list_versions(problems))["no-such-package"] == "not installed"
    assert problems == ["no-such-package is not installed: pip install no-such-package"]


# -- run -----------------------------------------------------------------------------------------------------


@pytest.fixture
def script(tmp_path):
    """Writes a script and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text(text)
        return str(path)

    return write


def test_run_is_like_python(script, tmp_path):
    """Name, file, arguments and search path are those that Python gives a script."""
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    path = script("""
import pickle, sys
import beside
class Point: pass
print(__name__, __file__, sys.argv, sys.path[0], beside.VALUE, sys.modules["__main__"].Point is Point)
print(type(pickle.loads(pickle.dumps(Point()))) is Point)
""")
    arguments = [path, "--flag", "-x", "value"]
    ours = run_command("run", *arguments)
    theirs = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)
    assert theirs.returncode == 0, theirs.stderr
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, theirs.stdout, theirs.stderr)


def test_run_compiles(script):
    path = script("import jitcore\nprint(jitcore.jit(lambda x: x + 1)(2))\n")
    assert run_command("run", path).stdout == "3\n"


@pytest.mark.parametrize("text, code", [
    ("import sys; sys.exit(5)", 5), ("raise SystemExit", 0), ("raise ValueError('no')", 1), ("1 +", 1),
    ("def f():\n    return 1 / 0\nf()", 1),
])
def test_run_ends_like_python(script, text, code):
    """Exit code and traceback are the same: no frame of jitcore shows."""
    path = script(text)
    ours = run_command("run", path)
    theirs = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    assert theirs.returncode == code
    assert (ours.returncode, ours.stderr) == (code, theirs.stderr)


def test_run_refuses_what_it_cannot_read(tmp_path, capsys):
    for path, text in ((tmp_path / "absent.py", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(SystemExit) as raised:
            main(["run", str(path)])
        assert raised.value.code == 2
        assert capsys.readouterr().err == f"jitcore run: cannot read {path}: {text}\n"


# -- the command itself --------------------------------------------------------------------------------------


def test_version(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out == f"jitcore {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["run"], ["demo", "--unknown"]])
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err.startswith("usage: jitcore")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(re.search(rf"^ +{name} +\w", out, re.MULTILINE) for name in ("demo", "doctor", "run"))


# -- cache ---------------------------------------------------------------------------------------------------


def fill_cache(folder: Path) -> None:
    """Lets a process keep programs in a folder."""
    code = "import jitcore, numpy as np; jitcore.jit(lambda x: x + 1)(np.ones(3, np.float32))"
    env = {**os.environ, "JITCORE_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=120)


def test_cache_stats_and_clear(tmp_path):
    folder = tmp_path / "programs"
    empty = run_command("cache", "stats", JITCORE_CACHE_DIR=str(folder), JITCORE_CACHE_DISK_BYTES="9000000")
    assert (empty.returncode, empty.stderr) == (0, "")
    assert empty.stdout.splitlines() == [f"folder  {folder}", "files   0", "bytes   0 of at most 9000000"]
    fill_cache(folder)
    files = list_files(folder)
    if not files:
        pytest.skip("programs are not kept on disk here")
    full = run_command("cache", "stats", JITCORE_CACHE_DIR=str(folder)).stdout
    size = sum(path.stat().st_size for path in files)
    assert f"files   {len(files)}\nbytes   {size} of at most {256 << 20}\n" in full
    assert re.search(r"^oldest  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nnewest  \d{4}-", full, re.MULTILINE)
    cleared = run_command("cache", "clear", JITCORE_CACHE_DIR=str(folder))
    assert cleared.returncode == 0
    assert cleared.stdout == f"removed {len(files)} files with {size} bytes from {folder}\n"
    assert list_files(folder) == []


def test_cache_that_is_off():
    for action in ("stats", "clear"):
        done = run_command("cache", action, JITCORE_CACHE_DIR="")
        assert done.returncode == 0
        assert done.stdout.startswith("off (config.cache_dir is empty)")


def test_cache_that_cannot_be_emptied(tmp_path, monkeypatch, capsys):
    from jitcore.config import config
    from jitcore.dispatch import disk_cache

    with config.override(cache_dir=tmp_path / "programs"):
        disk_cache.open_cache().add(bytes(32), b"code")
        monkeypatch.setattr(disk_cache, "_remove", lambda path: None)
        assert main(["cache", "clear"]) == 1
    assert "1 files cannot be removed" in capsys.readouterr().out


def test_doctor_names_the_folder(tmp_path):
    report = run_command("doctor", JITCORE_CACHE_DIR=str(tmp_path / "programs")).stdout
    assert re.search(r"on disk +\d+ files with \d+ bytes in", report)
    assert str(tmp_path / "programs") in re.sub(r"\s", "", report)  # lines break at hyphens
    assert re.search(r"on disk +none: config.cache_dir is empty", run_command("doctor").stdout)
