"""`%load_ext jitcore` in a real shell: `%jit_timeit` and `%jit_report`, and messages that name cells."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.notebooks.html_tree import Tree
from tests.scripts.test_runner import run

pytest.importorskip("IPython")

#: Runs cells, separated by lines of dashes; of each the text and the HTML of its value, what it printed, its error.
SHELL = r"""
import contextlib, io, json, sys, warnings
from IPython.core.interactiveshell import InteractiveShell
warnings.simplefilter("always")
shell, found = InteractiveShell.instance(), []
shell.run_line_magic("colors", "NoColor")
for cell in sys.argv[1].split("\n----\n"):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        done = shell.run_cell(cell, store_history=True)
    error, value = done.error_in_exec or done.error_before_exec, done.result
    html = value._repr_html_() if hasattr(type(value), "_repr_html_") else ""
    found.append({"text": repr(value), "html": html, "printed": printed.getvalue(),
                  "error": f"{type(error).__name__}: {error}" if error else ""})
print(json.dumps(found))
"""
#: The process that compiles has always answered before a cell goes on, however busy the machine is.
AT_ONCE = """import time
from jitcore.scripts.helper import Helper

def submit_and_wait(self, job, submit=Helper.submit):
    submit(self, job)
    while (answer := poll(self)) is None:
        time.sleep(0.005)
    self.answer = answer

def poll_answer(self):
    answer, self.answer = getattr(self, "answer", None), None
    return poll(self) if answer is None else answer

poll, Helper.submit, Helper.poll = Helper.poll, submit_and_wait, poll_answer
----
"""
BEGIN = """%load_ext jitcore
import numpy as np
import jitcore, jitcore.numpy as jnp
from jitcore import autojit, grad, jit, lax
x, u = np.linspace(-1, 1, 1000, dtype=np.float32), np.linspace(0, 1, 100) ** 2
two = jnp.float32(2)

def helper(x):
    return jnp.exp(x) * two

@jit
def f(x):
    return helper(x) + x.sum()

@autojit
def relax(u, n):
    for i in range(n):
        u[1:-1] = (u[:-2] + u[2:]) / 2
    return u

slope = jit(grad(lambda x: jnp.sin(x).sum()))
def double(x): return jnp.asarray(x) * 2
double = jit(lambda x, k=2: jnp.asarray(x) * k)

class Model:
    @jit
    def step(x):
        return x
"""


def run_cells(cells: str, folder) -> list[dict[str, str]]:
    """What each cell gave but for the first."""
    done = run("-c", SHELL, f"{BEGIN}\n----\n{cells.strip()}", folder=folder, PYTHONPATH=sys.path[0],
               IPYTHONDIR=str(folder), JITCORE_CACHE_DIR=str(folder / "cache"))
    first, *found = json.loads(done.stdout.splitlines()[-1])
    assert not first["error"], first
    return found


def read_rows(text: str) -> dict[str, str]:
    """The lines of a `Timing` by their labels."""
    return {line.split()[0]: line for line in text.splitlines()[2:]}


def test_timing(tmp_path):
    line, cell, loop, made, inside, untouched = run_cells("""
%jit_timeit f(x)
----
%%jit_timeit k = np.float32(3)
y = f(x)
y * k
----
%jit_timeit relax(u, 5)
----
%jit_timeit slope(x)
----
%jit_timeit jit(lambda x: grad(f)(x))(x), f(x)
----
f.cache_info(), relax.cache_info(), float(u[50])
""", tmp_path)
    for found, expression in ((line, "f(x)"), (cell, "y = f(x) y * k"), (loop, "relax(u, 5)")):
        assert not found["error"]
        assert found["text"].splitlines()[0] == expression
        rows = read_rows(found["text"])
        assert list(rows)[:2] == ["jitcore", "NumPy"]
        assert re.search(r" (equal|\d\.\de-0[6-9]|\d\.\de-1\d)$", rows["NumPy"]), rows
        assert rows["jitcore"].endswith(" equal")
        tree = Tree(found["html"])
        assert tree.tags["table"] == tree.tags["svg"] == 1 and tree.tags["tr"] == len(rows) + 1
        assert tree.tags["rect"] == sum(" to " in row for row in rows.values())
    assert "JAX" not in read_rows(loop["text"])
    assert "not for what a transformation gives" in read_rows(made["text"])["NumPy"]
    assert read_rows(inside["text"])["NumPy"].endswith("NumPy has nothing like jitcore.jit")
    # the session's own functions and arrays are what they were
    assert untouched["text"].count("hits=0, misses=0") == 2 and untouched["text"].endswith(f", {(50 / 99) ** 2!r})")


def test_other_libraries(tmp_path):
    found, = run_cells("%jit_timeit f(x)", tmp_path)
    rows = read_rows(found["text"])
    for library, label in (("jax", "JAX"), ("numba", "Numba")):
        try:
            __import__(library)
        except ImportError:
            assert label not in rows
        else:
            assert label in rows and not re.search("another|inf", rows[label])


@pytest.mark.parametrize("cell, message", [
    ("%jit_timeit np.sin(x)", "UsageError: the expression names no function that is decorated by jit or autojit"),
    ("%jit_timeit y = f(x)", "UsageError: what is timed ends with an expression, whose values are compared"),
    ("%jit_report helper", "UsageError: helper: not decorated by jit or autojit"),
])
def test_mistakes(cell, message, tmp_path):
    assert run_cells(cell, tmp_path)[0]["error"] == message


def test_the_report_of_a_session(tmp_path):
    before, after, one, empty = run_cells("""
%jit_report
----
f(x); relax(u, 5); slope(x)
%jit_report
----
%jit_report relax
----
%unload_ext jitcore
%jit_report
""", tmp_path)
    heads = before["text"].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in heads] == ["function", "f", "relax", "slope", "double", "Model.step"]
    assert "Cell In[1], line 11" in heads[1] and before["text"].count("not called yet") >= 5
    rows = {line.split()[0]: line for line in after["text"].split("\n\n")[0].splitlines()}
    assert re.search(r"jit +Cell In\[1\], line 11 +traced +0 +1 +[01] +\d$", rows["f"]), rows["f"]
    assert "traced, 100 % compiled" in rows["relax"]
    tree = Tree(after["html"])
    assert tree.tags["tr"] >= 6 + 3 and tree.tags["svg"] == 3
    assert "Cell In[1], line 17" in after["text"] and "slope" not in one["text"]
    assert "not found" in empty["printed"]


def test_cells_are_in_the_report(tmp_path):
    *_, found, printed = run_cells(AT_ONCE + """
%%autojit
s = 0
for i in range(20_000_000):
    s += i % 7
----
import logging
def work(i):
    logging.debug("%s", i)
    return i % 7
----
%%autojit
for i in range(2_000_000):
    s += work(i)
----
%jit_report
----
%autojit report
""", tmp_path)
    assert re.search(r"^Cell In\[3\], line 3-4 +(compiled|python)", found["text"], re.MULTILINE)
    assert re.search(r"^Cell In\[5\], line 2-3 +python .* Cell In\[4\], line 3: logging", found["text"], re.MULTILINE)
    assert "Autojitted cells" in Tree(found["html"]).text and "ipython-input" not in found["html"]
    assert "  Cell In[4], line 3: logging" in printed["printed"]


def test_messages_name_cells(tmp_path):
    defined, wrong, warned, report, jaxpr, raised = run_cells("""
@jit
def g(x):
    y = x + 1
    if y.sum() > 0:
        return y
    return x
----
g(x)
----
import logging
@autojit
def h(x):
    logging.debug("%s", x.sum())
    return x
_ = h(u)
----
print(h.report())
----
jitcore.make_jaxpr(f)(x)
----
@autojit
def k(x, i):
    return x[i]
k(u, 3); k(u, 3); k(u, 1000)
""", tmp_path)
    assert wrong["error"].startswith("TracerBoolConversionError") and "\n  Cell In[2], line 4\n" in wrong["error"]
    assert "the function g at Cell In[2], line 1 " in wrong["error"]
    assert "Cell In[4], line 4: logging.debug() is called" in warned["printed"]
    assert "function Cell In[4], line 2 h: python" in report["printed"]
    assert any(hint.startswith("Cell In[1], line 13 (f)\n") for hint in Tree(jaxpr["html"]).hints)
    assert raised["error"].startswith("IndexError") and "ipython-input" not in raised["error"]
    assert "<ipython-input" not in wrong["error"] + warned["printed"] + report["printed"]


def test_a_kernel_names_cells(tmp_path):
    """Whose cells are files in a temporary folder."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = ["from jitcore import jit\nimport numpy as np",
             "@jit\ndef f(x):\n    return x if x.sum() else -x\ntry:\n    f(np.ones(3))\nexcept Exception as error:\n"
             "    print(error)", "f2 = jit(lambda x: x * 2)\nf2(np.ones(3, np.float32))"]
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(page, timeout=100, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    text = page.cells[1].outputs[0].text
    assert "  Cell In[2], line 3\n" in text and "ipykernel" not in text
    data = page.cells[2].outputs[0].data
    assert "float32 [3] on cpu:0, 12 bytes" in Tree(data["text/html"]).text and data["text/plain"].startswith("Array(")
