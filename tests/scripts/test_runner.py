"""`python -m jitcore run` and `jitcore.run_path`: programs do what they do under `python`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import jitcore
from jitcore.config import config
from jitcore.scripts import sampling, texts
from jitcore.scripts.sessions.runner import Session, open_session
from jitcore.scripts.texts import write_record

SCRIPT = '''
"""A script."""
from __future__ import annotations
import sys
import numpy as np

SCALE = 2.0

def smooth(x, steps):
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[2:]) / SCALE
    return x.sum()

def describe(name):
    return f"result of {name}"

class Grid:
    def __init__(self, n):
        self.values = np.linspace(0, 1, n)

    def relax(self):
        self.values[1:-1] += 0.5 * np.diff(self.values, 2)
        return self.values.max()

def read(path):
    for line in open(path):
        return line

if __name__ == "__main__":
    x = np.arange(10.0) ** 2
    print(describe(sys.argv[1]), round(float(smooth(x, 20)), 10), x.round(6).tolist())
    grid = Grid(8)
    print(round(float(grid.relax() + grid.relax()), 10))
    print(read(__file__).strip(), smooth.__name__, sorted(globals()), __spec__, type(__loader__), __package__)
    raise SystemExit(3)
'''
TOTAL = """
def total(n):
    s = 0
    for i in range(n):
        s += i % 7
    return s
"""


def write(folder, **texts: str) -> None:
    """Writes modules; part_in_package is package/part.py."""
    for name, text in texts.items():
        path = folder.joinpath(*name.replace("main__", "__main__").split("_in_")[::-1]).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))


def run(*arguments: str, folder=None, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, cwd=folder,
                          env={**os.environ, **environment})


def compare(*arguments: str, folder) -> subprocess.CompletedProcess:
    """What a program does under `run`, which is what it does under Python."""
    path = os.pathsep.join(filter(None, [os.path.dirname(os.path.dirname(jitcore.__file__)),
                                         os.environ.get("PYTHONPATH")]))
    theirs = run(*arguments, folder=folder, PYTHONPATH=path)
    for _ in range(2):  # the second time by what the first has left on disk
        ours = run("-m", "jitcore", "run", *arguments, folder=folder, PYTHONPATH=path)
        assert (ours.stdout, ours.stderr, ours.returncode) == (theirs.stdout, theirs.stderr, theirs.returncode)
    return theirs


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(sampling, "HOT", 2)
    folder = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("JITCORE_CACHE_DIR", folder)
    with config.override(cache_dir=folder):
        yield


# -- scripts and modules -------------------------------------------------------------------------------------
def test_scripts_are_those_of_python(tmp_path):
    write(tmp_path, script=SCRIPT)
    assert compare("script.py", "argument", folder=tmp_path).returncode == 3


def test_the_compiler_is_loaded_when_something_is_compiled(tmp_path):
    code = "import sys; from jitcore.__main__ import main; main(sys.argv[1:])"
    names = ("numpy", "pickle", "typing", "jitcore.config", "jitcore.scripts.sampling", "jitcore.core")
    tail = f"; print([name for name in {names} if name in sys.modules])"
    write(tmp_path, empty="")
    assert run("-c", code + tail, "run", str(tmp_path / "empty.py")).stdout == "[]\n"


def test_a_script_with_loops_loads_no_slow_module(tmp_path):
    """What each script costs that is over before something is hot: these take milliseconds each."""
    names = ("numpy", "pickle", "typing", "inspect", "dis", "ast", "enum", "re", "hashlib",
             "jitcore.core", "jitcore.scripts.workshop")
    script = f"import sys\nfor i in range(3): pass\nprint([name for name in {names} if name in sys.modules])\n"
    write(tmp_path, script=script)
    for _ in range(2):  # the first one writes the record that the second one reads
        found = run("-m", "jitcore", "run", str(tmp_path / "script.py"))
    assert found.stdout == run(str(tmp_path / "script.py")).stdout, found.stderr  # what `site` loads is Python's affair


@pytest.mark.parametrize("text", [
    "import numpy as np\ndef f(x):\n    return np.zeros(3)[x]\nf(7)\n", "def f(:\n", "raise SystemExit('text')",
    "import sys\nfor i in range(3): pass\nsys.exit([1])", "import nowhere", "raise KeyboardInterrupt",
    "import sys\nsys.excepthook = lambda *error: print(error[:2])\nfor i in range(3): 1 / 0",
    "import atexit, sys\natexit.register(lambda: print(sys.modules['__main__'].x))\nx = 1",
])
def test_errors_and_ends_are_those_of_python(text, tmp_path):
    write(tmp_path, script=text)
    compare("script.py", folder=tmp_path)


def test_modules_are_those_of_python(tmp_path):
    write(tmp_path, __init___in_package="", main___in_package="""
        import sys
        from . import part
        from .part import total
        print(__name__, __package__, __spec__.name, __file__, sys.argv, sys.path[0], total(1000))
        print(sys.modules["__main__"].__dict__ is globals(), sorted(globals()))
        assert part.__name__ == "package.part"
    """, part_in_package=TOTAL, wrong_in_package=TOTAL + "total('a')")
    for arguments in (["package", "a", "-m"], ["package.__main__"], ["package.part"], ["package.wrong"], ["absent"],
                      ["package.absent"], ["package.part.absent"], ["os"], ["json"]):
        compare("-m", *arguments, folder=tmp_path)


@pytest.mark.parametrize("arguments", [["--unknown", "script.py"], ["-m"], [], ["--report"], ["--report", "a.html"]])
def test_what_makes_no_sense_is_refused(arguments, tmp_path):
    done = run("-m", "jitcore", "run", *arguments)
    assert done.returncode == 2 and done.stderr.startswith("usage: jitcore run [--report")


# -- the script's own modules --------------------------------------------------------------------------------
def test_own_modules_are_those_of_python(tmp_path):
    write(tmp_path, own=TOTAL + "class Point:\n    def __init__(self, x):\n        self.x = x\n", script="""
        import importlib, inspect, multiprocessing, pickle, sys, traceback
        import own

        def work(n):
            return own.total(n), type(own.__loader__).__module__

        if __name__ == "__main__":
            print(inspect.getsource(own.total), inspect.getsourcefile(own), own.__file__, own.__cached__)
            print(pickle.loads(pickle.dumps(own.Point(3))).x, own.total.__code__.co_firstlineno)
            print(importlib.reload(own) is own, own.total(2_000_000))
            try:
                own.total("a")
            except TypeError:
                traceback.print_exc()
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(work, [10, 100_000])[1][0])
    """)
    compare("script.py", folder=tmp_path)


def test_own_modules_get_entries_and_installed_ones_do_not(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    write(tmp_path, own_a=TOTAL, script="import own_a, installed_a\nown_a.total(10)")
    write(folder, installed_a=TOTAL)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(tmp_path))
    session = open_session(str(tmp_path / "script.py"))
    with session:
        names = jitcore.run_path(str(tmp_path / "script.py"))
        ours, theirs = names["own_a"].total, names["installed_a"].total
        assert session.sampler.find(ours.__code__) and not session.sampler.find(theirs.__code__)
        assert len(session.sampler.units) == 1 and ours(10) == theirs(10)
        assert names["own_a"].__spec__.origin == str(tmp_path / "own_a.py") and names["own_a"].__cached__


def test_own_modules_are_prepared_once(tmp_path, monkeypatch):
    write(tmp_path, script=TOTAL + "import own_b", own_b=TOTAL)
    monkeypatch.syspath_prepend(str(tmp_path))
    written = []
    monkeypatch.setattr(texts, "write_record", lambda *given: written.append(given) or write_record(*given))
    for _ in range(2):
        jitcore.run_path(tmp_path / "script.py")
        del sys.modules["own_b"]
    assert len(written) == 2
    write(tmp_path, own_b=TOTAL + "x = 1")
    assert jitcore.run_path(tmp_path / "script.py")["own_b"].x == 1 and len(written) == 3


# -- inside of a process -------------------------------------------------------------------------------------
def list_state() -> tuple:
    return (signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF)[1], sys.argv[:], sys.path[:],
            sys.path_hooks[:], sys.modules["__main__"], sys.gettrace())


def test_run_path_gives_the_globals_and_everything_back(tmp_path):
    write(tmp_path, script=TOTAL + "import sys\nx = total(3_000_000) + y\narguments = sys.argv")
    before = list_state()
    for _ in range(2):
        names = jitcore.run_path(tmp_path / "script.py", {"y": 1}, argv=["a"])
        assert names["x"] == sum(i % 7 for i in range(3_000_000)) + 1 and names["__name__"] == "__main__"
        assert names["arguments"] == [str(tmp_path / "script.py"), "a"] and names["total"](10) == 24
    assert list_state() == before
    assert jitcore.run_path(tmp_path / "script.py", {"y": 1}, "other")["total"].__module__ == "other"


@pytest.mark.parametrize("text, error", [("raise SystemExit(2)", SystemExit), ("1 / 0", ZeroDivisionError),
                                         ("def f(:", SyntaxError)])
def test_run_path_raises_what_the_script_raises(text, error, tmp_path):
    write(tmp_path, script=TOTAL + text)
    before = list_state()
    with pytest.raises(error):
        jitcore.run_path(tmp_path / "script.py")
    with pytest.raises(FileNotFoundError):
        jitcore.run_path(tmp_path / "absent.py")
    assert list_state() == before and Session.current is None


def test_run_path_runs_folders(tmp_path):
    write(tmp_path, main__="from own import total\nx = total(10)", own=TOTAL)
    assert jitcore.run_path(tmp_path)["x"] == 24


def test_run_path_inside_of_another_one_and_of_threads(tmp_path):
    write(tmp_path, inner=TOTAL + "x = total(1_000_000)", outer=TOTAL + """
import jitcore, os, threading
x = total(1_000_000) - jitcore.run_path(os.path.join(os.path.dirname(__file__), "inner.py"))["x"]
found = []
thread = threading.Thread(target=lambda: found.append(jitcore.run_path(__file__.replace("outer", "inner"))["x"]))
thread.start()
thread.join()
x += found[0] - total(1_000_000)
""")
    before = list_state()
    assert jitcore.run_path(tmp_path / "outer.py")["x"] == 0
    assert list_state() == before


def test_threads_run_scripts_as_they_are(tmp_path, monkeypatch):
    write(tmp_path, script=TOTAL + "x = total(10)")
    monkeypatch.setattr(Session, "__enter__", None)
    found = []
    thread = threading.Thread(target=lambda: found.append(jitcore.run_path(tmp_path / "script.py")["x"]))
    thread.start()
    thread.join()
    assert found == [24]
