"""What people do in notebooks: interrupt a loop, send a cell's function away."""

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def run_cells(folder, *cells):
    """Runs cells in a kernel of their own. Returns: what the last one printed."""
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(
        page, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return "".join(output.text for output in page.cells[-1].outputs if output.output_type == "stream").split()


def test_an_interrupted_cell(tmp_path):
    """The kernel gets SIGINT as its front ends send it, and goes on with what it knew."""
    printed = run_cells(
        tmp_path,
        "import os, signal, threading\nimport numpy as np\nfrom jitcore import autojit, jit, lax",
        "f = jit(lambda n: lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, np.float64(0)))\n"
        "@autojit\ndef g(n):\n    s = 0.0\n    for i in range(n):\n        s = s * 0.5 + 1\n    return s\n"
        "f(np.int64(3)), g(3), g(4), g(5)",
        "for call in (lambda: f(np.int64(1 << 60)), lambda: g(1 << 50)):\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try:\n        call()\n    except KeyboardInterrupt:\n        print('interrupted')\n"
        "print(f(np.int64(3)), g(3))",
    )
    assert printed == ["interrupted", "interrupted", "1.75", "1.75"]


def test_a_cells_function_travels(tmp_path):
    pytest.importorskip("joblib")
    printed = run_cells(
        tmp_path,
        "import joblib, numpy as np\nfrom jitcore import autojit, grad, jit\n"
        "@jit\ndef f(x):\n    return (x * x).sum()\n"
        "@autojit\ndef g(x):\n    t = 0.0\n    for v in x:\n        t += v\n    return t\n"
        "x = np.arange(3.0)",
        "results = joblib.Parallel(n_jobs=2)(joblib.delayed(call)(x) for call in (f, g, jit(grad(f))))\n"
        "print(float(results[0]), results[1], *map(float, results[2]))",
    )
    assert printed == ["5.0", "3.0", "0.0", "2.0", "4.0"]


def test_an_edited_helper(tmp_path):
    """Under `%autoreload 2` the next cell has the helper as it is in its file now, in a loop and in another helper."""
    (tmp_path / "inner.py").write_text("def step(x, k):\n    return x + k\n")
    (tmp_path / "outer.py").write_text(
        "import inner\ndef twice(x, k):\n    return inner.step(inner.step(x, k), k)\n"
    )
    edit = "import os, time\nwith open({name!r}, 'w') as file:\n    file.write({text!r})\nos.utime({name!r}, (time.time() + {later},) * 2)\n"
    printed = run_cells(
        tmp_path,
        "%load_ext autoreload\n%autoreload 2\nimport sys\nsys.path.insert(0, '')\nimport numpy as np, inner, outer\nfrom jitcore import autojit, jit",
        "@autojit\ndef f(x, n):\n    for i in range(n):\n        x = outer.twice(x, i)\n    return x\n"
        "@autojit\ndef g(n):\n    s = 0\n    for i in range(n):\n        s = inner.step(s, i)\n    return s\n"
        "seen = []\ndef show():\n    seen.append((f(np.ones(2), 3).sum(), g(5)))",
        "show(); show(); show()",
        edit.format(name="inner.py", text="def step(x, k):\n    return x - k\n", later=10),
        "show(); show(); show()",
        edit.format(
            name="outer.py", text="import inner\ndef twice(x, k):\n    return inner.step(x, 3)\n", later=20
        ),
        "show()\nprint(*[float(number) for pair in seen for number in pair])",
    )
    assert printed == ["14.0", "10.0"] * 3 + ["-10.0", "-10.0"] * 3 + ["-16.0", "-10.0"]
