"""Programs from disk: a second process computes the same, compiles nothing, and loads no compiler.

Everything happens in processes of their own, which share a folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import objects
from jitcore.dispatch import disk_cache

ROOT = Path(__file__).parents[3]

if not objects.can_link():
    pytest.skip("programs are not kept on disk here", allow_module_level=True)

PRELUDE = """
import os, sys, threading
import numpy as np
import jitcore, jitcore.numpy as jnp
from jitcore import jit, lax

compiles = 0
x = np.linspace(-3, 3, 1001, dtype=np.float32)

def run(function, *arguments, **options):
    global compiles
    function = jit(function, **options)
    result = function(*arguments)
    compiles += function.cache_info().compiles
    return np.asarray(result)

def report(is_right):
    print(bool(is_right), compiles, bool({"numba", "llvmlite"} & set(sys.modules)))
"""

# What a program is made of -> how a process computes it and compares it with NumPy.
PROGRAMS = {
    "elementwise": "report(np.allclose(run(lambda x: jnp.sin(x) + jnp.exp(x), x), np.sin(x) + np.exp(x)))",
    "reduction": "report(np.allclose(run(lambda x: x.sum() + x.max(), x), x.sum() + x.max(), atol=1e-3))",
    "while loop": """
root = run(lambda a: lax.while_loop(lambda y: abs(y * y - a) > 1e-5, lambda y: 0.5 * (y + a / y), a), np.float32(2))
report(abs(root - 2 ** 0.5) < 1e-4)
""",
    "branches": """
branches = [lambda x: x, jnp.sin, jnp.cos, lambda x: 2 * x, lambda x: x * x, lambda x: x - 1, lambda x: x + 1]
results = [run(lambda k, x: lax.switch(k, branches, x), np.int32(k), x) for k in (1, 4)]
report(np.allclose(results[0], np.sin(x), atol=1e-6) and np.allclose(results[1], x * x))
""",
    "half floats": """
wide = np.linspace(-70000, 70000, 1001)
with np.errstate(over="ignore"):
    expected = wide.astype(np.float16) * np.float16(2)
report(np.array_equal(run(lambda x: x.astype(np.float16) * 2, wide), expected))
""",
    "linear algebra": """
a = np.arange(1600.0).reshape(40, 40) ** 0.5 + 9 * np.eye(40)
report(np.allclose(run(jnp.linalg.solve, a, x[:40]), np.linalg.solve(a, x[:40]))
       and np.allclose(run(jnp.linalg.eigvalsh, a @ a.T), np.linalg.eigvalsh(a @ a.T)))
""",
    "product with an epilogue": """
a = np.arange(3840.0).reshape(40, 96) / 3840
report(np.allclose(run(lambda x: jnp.tanh(x.T[:50] @ x + 1), a), np.tanh(a.T[:50] @ a + 1)))
""",
    "transforms": """
z = x[:960].reshape(8, 120) + 1j * x[20:980].reshape(8, 120)
report(np.allclose(run(jnp.fft.fftn, z), np.fft.fftn(z), atol=1e-3)
       and np.allclose(run(lambda y: jnp.fft.irfft(jnp.fft.rfft(y)), x[:1000]), x[:1000], atol=1e-5))
""",
    "product in parts": """
a, b = np.arange(5220.0).reshape(29, 180) / 9999, np.arange(7380.0).reshape(180, 41) / 999
for rows in (29, 20, 3):
    assert np.allclose(run(lambda x, y: x @ y, a[:rows], b), a[:rows] @ b)
report(np.allclose(run(lambda x, y: x @ y.T, a, b.T.copy()), a @ b))
""",
    "complex": "z = x + 1j * x[::-1]; report(np.allclose(run(lambda z: z * z + 1, z), z * z + 1, atol=1e-5))",
    "other sizes": """
report(all(np.allclose(run(lambda x: x * 3 - 1, x[:n]), x[:n] * 3 - 1) for n in (1000, 900, 17)))
""",
    "callback": """
shape = jitcore.ShapeDtypeStruct(x.shape, x.dtype)
twice = lambda x: 2 * jitcore.pure_callback(lambda y: np.asarray(y)[::-1] + 1, shape, x * 3)
report(np.allclose(run(twice, x), 2 * (x[::-1] * 3 + 1)))
""",
    "threads": """
from jitcore.backends.cpu.runtime import threads
large = np.ones(3_000_000, np.float32)
small = run(lambda x: jnp.exp(x) * x + 1, x)
before = threads._pool_cells.started[0]
threads.set_num_threads(4)
result = run(lambda x: jnp.exp(x) * x + 1, large)
report(np.allclose(result, np.e + 1) and before == 0
       and (threads.open_pool() != "pool" or threads._pool_cells.started[0] == 3))
""",
    "symbolic sizes": """
report(np.allclose(run(lambda x: x * 2, x, abstracted_axes=("n",)), x * 2))
""",
}


def run_process(body: str, folder: Path, prelude: str = PRELUDE, **environment: str) -> list[str]:
    """The words that Python code prints in a process of its own, whose programs are kept in `folder`."""
    env = {**os.environ, "JITCORE_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT),
           "JITCORE_ANNOUNCE_COMPILES": "0", **environment}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", prelude + body]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


# Some processors convert by instructions and need none of these functions.
CONVERSIONS = """
from jitcore.backends.cpu.native import images as symbols
symbols.address_of("__truncdfhf2")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder, after a process that ran all programs."""
    folder = tmp_path_factory.mktemp("programs", numbered=True)
    os.chmod(folder, 0o700)
    words = run_process("\n".join([*PROGRAMS.values(), CONVERSIONS]), folder)
    assert words[::3] == ["True"] * len(PROGRAMS) and words[2] == "True" and int(words[1]) > 0
    return folder


def test_fork_of_a_process_that_loaded_programs(folder):
    body = """
def check():
    return np.allclose(run(lambda x: jnp.sin(x) + jnp.exp(x), x), np.sin(x) + np.exp(x))
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if check() and np.allclose(run(lambda x: x * 3 - 1, x), x * 3 - 1) else 1)
    return os.waitpid(pid, 0)[1]
workers = [threading.Thread(target=check) for _ in range(4)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
report([fork() for _ in range(3)] == [0] * 3 and check())
"""
    assert run_process(body, folder) == ["True", "0", "False"]


def test_fork_while_other_threads_load(folder):
    body = """
from jitcore.backends.cpu.native import libraries as native, images as symbols
def load():
    symbols._addresses.clear()
    native._open_conversions.cache_clear()
    return symbols.address_of("__truncdfhf2")
def load_often():
    while not stop.is_set():
        load()
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if load() else 1)
    return os.waitpid(pid, 0)[1]
load()
stop = threading.Event()
workers = [threading.Thread(target=load_often) for _ in range(3)]
[worker.start() for worker in workers]
codes = {fork() for _ in range(20)}
stop.set()
[worker.join() for worker in workers]
report(codes == {0})
"""
    assert run_process(body, folder) == ["True", "0", "False"]


def test_inspection_of_a_program_from_disk(folder):
    body = """
f = jit(lambda x: jnp.sin(x) + jnp.exp(x))
f(x)
stages = f.inspect()
print(f.cache_info().compiles, "define" in stages["kernel"], "ret" in stages["assembly"])
"""
    assert run_process(body, folder) == ["0", "True", "True"]


ELEMENTWISE = PROGRAMS["elementwise"]

NO_SCHEDULE = """
from jitcore.backends.cpu import backend
def refuse(*_):
    raise AssertionError("a program was scheduled")
backend.lower_program = refuse
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_process_compiles_nothing(folder, name):
    """And schedules nothing, where a program calls no Python and its sizes are known."""
    is_scheduled = name in ("callback", "symbolic sizes")
    prelude = PRELUDE if is_scheduled else PRELUDE + NO_SCHEDULE
    assert run_process(PROGRAMS[name], folder, prelude) == ["True", "0", "False"]


def test_addresses_stay_in_their_process(tmp_path):
    """What a transform's code is told lies in memory: a second process finds the code, and plans again."""
    body = """
z = np.cos(np.arange(4928.0) ** 1.5)
report(np.allclose(run(jnp.fft.fft, z), np.fft.fft(z)))
"""
    assert run_process(body, tmp_path)[0] == "True"
    padded = PRELUDE + "\nkeep = [np.ones(n) for n in range(1, 5000)]\n"  # nothing lies where it did
    assert run_process(body, tmp_path, padded)[:2] == ["True", "0"]


def test_plans_of_few_shapes_are_kept(tmp_path):
    """A program of many shapes has one code and a limited number of plans."""
    body = """
f = jit(lambda x: x * 5 - 2)
report(all(np.allclose(f(x[:n]), x[:n] * 5 - 2) for n in range(20, 60)))
"""
    folder = tmp_path / "few"
    assert run_process(body, folder)[0] == "True"
    plans = [path for path in folder.iterdir() if path.stat().st_size < 400]
    assert 8 <= len(plans) <= 16
    assert run_process(body, folder)[:2] == ["True", "0"]


def test_plans_of_usual_dtypes_load_no_others():
    """Which are another package's, and take as long as a fifth of NumPy."""
    code = """if True:
        import sys
        import numpy as np
        from jitcore.backends.cpu.runtime.launch import CallPlan, Output, decode_plan, encode_plan
        outputs = [Output(-1, (3,), np.dtype(name)) for name in ("float32", "bool", "complex128")]
        plan = CallPlan(2, tuple(outputs), (), 0, False, (), ())
        print(decode_plan(encode_plan(plan, None))[0] == plan, "jitcore.dtypes" in sys.modules)
        from jitcore import dtypes
        outputs = [Output(-1, (3,), dtype) for dtype in (dtypes.bfloat16, *dtypes.NARROW)]
        plan = plan._replace(outputs=tuple(outputs))
        print(decode_plan(encode_plan(plan, None))[0] == plan)
    """
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == [
        "True", "False", "True"]


def test_plans_of_other_content_are_written_anew(tmp_path):
    spoil = """
from pathlib import Path
from jitcore.backends.cpu.runtime.launch import find_plan
from jitcore.dispatch.disk_cache import open_cache
for path in Path(open_cache().folder).iterdir():
    key = bytes.fromhex(path.stem)
    if path.stat().st_size < 400 and find_plan(key):
        open_cache().add(key, open_cache().find(key)[:CUT])
"""
    folder = tmp_path / "spoilt"
    assert run_process(ELEMENTWISE, folder)[:2] == ["True", "1"]
    for cut in ("0", "30", "40", "-8", "-3"):
        assert run_process(spoil.replace("CUT", cut), folder, prelude="") == []
        assert run_process(ELEMENTWISE, folder)[:2] == ["True", "0"]
        assert run_process(ELEMENTWISE, folder, PRELUDE + NO_SCHEDULE) == ["True", "0", "False"]


@pytest.mark.parametrize(("prelude", "environment"), [
    (PRELUDE, {"NUMBA_ENABLE_AVX": "0"}),
    (PRELUDE, {"NUMBA_CPU_NAME": "nehalem" if host.cpu_name() == "generic" else "generic"}),
    ("import jitcore; jitcore.__version__ = '0.0.1'" + PRELUDE, {}),
    ("import llvmlite, os; from jitcore.backends.cpu.machine import host; host._INSTALLED += b'edited'" + PRELUDE, {}),
], ids=["no AVX", "generic", "version", "sources"])
def test_what_was_compiled_for_something_else_is_not_found(folder, prelude, environment):
    assert run_process(ELEMENTWISE, folder, prelude, **environment) == ["True", "1", "True"]
    assert run_process(ELEMENTWISE, folder)[:2] == ["True", "0"]


@pytest.mark.skipif(host.cpu_name() == "generic", reason="there is no AVX to do without")
def test_settings_made_in_python_count(folder):
    """Without AVX by the settings of Numba's module: nothing on disk fits, and nothing is learnt from it."""
    prelude = "import numba; numba.config.ENABLE_AVX = 0" + PRELUDE
    assert run_process(ELEMENTWISE, folder, prelude) == ["True", "1", "True"]
    assert run_process(ELEMENTWISE, folder) == ["True", "0", "False"]


def test_damaged_files_are_compiled_anew(folder, tmp_path):
    body = ELEMENTWISE + "\nreport(True)"
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for number, path in enumerate(sorted(folder.iterdir())):
        data = bytearray(path.read_bytes())
        if number % 2:
            data = data[: len(data) // 2]
        else:
            data[len(data) // 2] ^= 4
        (copy / path.name).write_bytes(data)
    assert run_process(body, copy)[:2] == ["True", "1"]
    assert run_process(ELEMENTWISE, copy) == ["True", "0", "False"]


def test_intact_files_of_other_content_are_compiled_anew(folder, tmp_path):
    """What the folder keeps faithfully need not be a program: it is replaced."""
    code = """
from pathlib import Path
from jitcore.dispatch.disk_cache import open_cache
for path in Path(open_cache().folder).iterdir():
    key = bytes.fromhex(path.stem)
    content = open_cache().find(key)
    if len(content) > 1000 and b"\\0" in content:  # machine code, no description of the processor
        open_cache().add(key, content[:300])
"""
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert run_process(code, copy, prelude="") == []
    assert run_process(ELEMENTWISE, copy)[:2] == ["True", "1"]
    assert run_process(ELEMENTWISE, copy) == ["True", "0", "False"]


def test_processes_that_begin_at_once_share(tmp_path):
    folder = tmp_path / "new"
    env = {**os.environ, "JITCORE_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRELUDE + ELEMENTWISE]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) for _ in range(3)]
    assert [process.communicate(timeout=100)[0].split()[0] for process in started] == ["True"] * 3
    assert run_process(ELEMENTWISE, folder) == ["True", "0", "False"]


def test_without_a_folder_nothing_is_written(tmp_path):
    env = {"JITCORE_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    assert run_process(ELEMENTWISE, tmp_path, **env)[:2] == ["True", "1"]
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_the_user_s_cache(tmp_path):
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    prelude = "import os; del os.environ['JITCORE_CACHE_DIR']" + PRELUDE
    assert run_process(ELEMENTWISE, tmp_path, prelude, **env)[:2] == ["True", "1"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["jitcore"]


# -- what keys are made of ----------------------------------------------------------------------------------
def test_sources_are_stamped(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py", "notes.txt"):
        (tmp_path / name).write_text("x = 1\n")
    before = disk_cache.stamp_sources(str(tmp_path))
    assert [row[0] for row in before] == ["a.py", "b.py"]
    (tmp_path / "inner" / "b.py").write_text("x = 12\n")
    assert disk_cache.stamp_sources(str(tmp_path)) != before


def test_keys_differ_when_a_part_does():
    keys = {host.make_key(*parts) for parts in (("a", "b"), ("a", "c"), ("ab",), ("a", "b", ""))}
    assert len(keys) == 4 and all(len(key) == 32 for key in keys)
    assert host.make_key("a", "b") == host.make_key("a", "b")


def test_processor_is_named_from_cpuinfo_too(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "_PROCESSOR_FILE", tmp_path / "absent")
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(host, "_CPUINFO_FILE", cpuinfo)
    assert host._read_processor() is None
    texts = [f"processor\t: {n}\nmodel name\t: Fast {model}\ncpu MHz\t\t: {mhz}\nflags\t: avx\n\nprocessor\t: 1\n"
             for n, model, mhz in ((0, 1, 1000), (1, 1, 2000), (0, 2, 1000))]
    found = []
    for text in texts:
        cpuinfo.write_text(text)
        found.append(host._read_processor())
    assert found[0] == found[1] != found[2] and b"avx" in found[0]


NUMBAS_TARGET = """
import sys
from jitcore.backends.cpu.native import translate
target, layout = translate.describe_target(), translate.open_target().data_layout
assert "numba" not in sys.modules
from numba.core.registry import cpu_target
codegen = cpu_target.target_context.codegen()
assert target == codegen.magic_tuple() == translate.describe_target()
assert layout == str(codegen.target_data)
"""


@pytest.mark.skipif(host.cpu_name() == "generic", reason="Numba reads its settings")
def test_target_is_numba_s_but_numba_is_not_loaded(tmp_path):
    run_process(NUMBAS_TARGET, tmp_path)


def test_target_is_what_the_compiler_says():
    from jitcore.backends.cpu.native import translate

    assert host.find_target() == translate.describe_target()
    assert np.dtype(np.intp).itemsize == 8 and host.find_target().triple.startswith("x86_64")
