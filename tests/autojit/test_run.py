"""`python -m jitcore run SCRIPT`: a script whose functions are compiled does what it does without."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SCRIPT = textwrap.dedent(
    '''
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
        print(read(__file__).strip(), smooth.__name__)
        raise SystemExit(3)
    '''
)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("options", [["--all"], ["--functions", "smooth,relax"]])
def test_output_is_that_of_python(script, options):
    theirs = run(script, "argument")
    ours = run("-m", "jitcore", "run", *options, "--report", script, "argument")
    assert theirs.returncode == ours.returncode == 3
    assert theirs.stdout == ours.stdout
    assert "describe" not in ours.stderr
    if options == ["--all"]:  # compiling waits until calls have taken long
        for name in ("smooth", "Grid.relax", "read"):
            assert f"{name}: runs in plain Python, as its calls have not taken long" in ours.stderr
    else:
        assert "smooth: 100 % of its operations are compiled" in ours.stderr
        assert "Grid.relax: 100 %" in ours.stderr and "read" not in ours.stderr


def test_the_compiler_is_loaded_when_something_is_compiled(script):
    code = "import sys; from jitcore.__main__ import main; main(sys.argv[1:])"
    tail = "; print([name for name in ('llvmlite', 'jitcore.autojitted', 'jitcore.core') if name in sys.modules])"
    path = script.replace("script.py", "empty.py")
    open(path, "w").close()
    assert run("-c", code + tail, "run", "--all", path).stdout == "[]\n"


def test_unknown_function(script):
    done = run("-m", "jitcore", "run", "--functions", "absent", script, "argument")
    assert "defines no function absent" in done.stderr and done.returncode == 2 and not done.stdout


def test_errors_are_those_of_the_script(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import numpy as np\ndef f(x):\n    return np.zeros(3)[x]\nf(7)\n")
    done = run("-m", "jitcore", "run", "--all", str(path))
    assert done.returncode == 1
    assert "IndexError: index 7 is out of bounds" in done.stderr and 'wrong.py", line 3, in f' in done.stderr
    path.write_text("def f(:\n")
    done = run("-m", "jitcore", "run", "--all", str(path))
    assert done.returncode == 1 and "SyntaxError" in done.stderr
