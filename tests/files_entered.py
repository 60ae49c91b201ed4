"""Files of jitcore that a first call enters: `python -m tests.files_entered selu|loop [--list]`, with nothing on disk.

A call enters a file if a function of it starts; what importing a module runs is not counted. Functions that are written
while running count for nothing: they belong to no file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = {
    "selu": """
import numpy as np
import jitcore.numpy as jnp
from jitcore import jit

@jit
def program(x, alpha=1.67, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

arguments = (np.linspace(-2, 2, 1000, dtype=np.float32),)
""",
    "loop": """
import numpy as np
from jitcore import autojit

@autojit
def program(u, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u

arguments = (np.linspace(0, 1, 1000), 100)
""",
}


def is_run_by_import(frame) -> bool:
    """Whether a module runs a frame, or is it, while it is loaded: classes, decorators and tables."""
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_code.co_name == "<module>" and file.startswith(str(ROOT)) and file != __file__:
            return True
        frame = frame.f_back
    return False


def count_calls(name: str) -> Counter:
    """Calls of functions in each file of `jitcore` and `backends` during the first call of a program, in this process."""
    path = Path(tempfile.mkdtemp()) / "program.py"
    path.write_text(PROGRAMS[name], encoding="utf-8")
    names: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    calls: Counter = Counter()

    def see(frame, event, argument):
        if event == "call" and not is_run_by_import(frame):
            calls[frame.f_code.co_filename] += 1

    threading.setprofile(see)
    sys.setprofile(see)
    names["program"](*names["arguments"])
    sys.setprofile(None)
    threading.setprofile(None)
    rooms = tuple(f"{ROOT / room}{os.sep}" for room in ("jitcore", "backends"))
    return Counter({str(Path(file).relative_to(ROOT)): count for file, count in calls.items() if file.startswith(rooms)})


def list_files(name: str) -> list[str]:
    """The same in a process of its own with an empty cache, most calls first."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-m", "tests.files_entered", name, "--list"], cwd=ROOT, check=True,
                              capture_output=True, text=True, env={**os.environ, "JITCORE_CACHE_DIR": folder})
    return done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--list", action="store_true", help="name the files, in this process")
    arguments = parser.parse_args()
    if arguments.list:
        for file, _ in count_calls(arguments.program).most_common():
            print(file)
    else:
        print(len(list_files(arguments.program)))


if __name__ == "__main__":
    main()
