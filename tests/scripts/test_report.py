"""`--report` and `--check`: what became of loops and functions, and whether programs do what Python does."""

from __future__ import annotations

import re
import sys
import textwrap

import pytest

from jitcore.scripts import functions
from jitcore.scripts.regions import Region
from jitcore.scripts.sampling import Sampler
from jitcore.scripts.sessions.page import format_page
from jitcore.scripts.sessions.report import format_check, format_report, list_regions
from tests.scripts.test_runner import TOTAL, run as run_process, write
from tests.scripts.test_scripts import Inline, quick, run, run_sampled

__all__ = ["quick"]

SCRIPT = textwrap.dedent("""
    import numpy as np
    def work(x, k):
        s = 0.0
        for one in (x, x, x):
            s += (one * k).sum()
        return s
    x = np.arange(50.0)
    total = 0.0
    for k in [0] * 200 + [1.0] * 200 + [None]:
        if k is not None:
            total += work(x, k)
    u = np.zeros(500)
    for i in range(6000):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = 1
    names = []
    for i in range(400_000):
        names = [str(i)]
    result = total, u.sum(), i, names[0]
""")


def check(source: str) -> tuple[dict, Sampler]:
    sampler = Sampler(sys.path[:], checks=True)
    sampler.workshop.helper = Inline()
    names, _ = run(source, sampler)
    return names, sampler


# -- reports -------------------------------------------------------------------------------------------------
def test_the_table_tells_what_became_of_loops():
    _, _, sampler = run_sampled(SCRIPT)
    lines = format_report(sampler).split("\n")
    assert re.split("  +", lines[0]) == ["lines", "tier", "calls", "s in Python", "s compiled", "instead of",
                                         "s compiling", "why not"]
    assert any(re.match(r"14-16 +compiled +1 +[\d.]+ +0\.\d+ ", line) for line in lines)
    (region,) = [one for one in list_regions(sampler) if one.first == 14]
    assert (region.last, region.kind, region.path) == (16, "loop", "script.py")
    assert region.calls == 1 and region.compiled > 0 and region.python > 0
    assert any(one.tier == "python" and one.reason for one in list_regions(sampler) if one.first == 18)


def test_nothing_hot():
    assert format_report(None) == "jitcore run: nothing was hot" and "Nothing was hot" in format_page([])


def test_the_page_has_the_source(tmp_path):
    write(tmp_path, script=TOTAL + "print(total(5_000_000), '<b>')", own="x = 1\n" + TOTAL + "total(5_000_000)")
    path = sys.path[0]
    done = run_process("-m", "jitcore", "run", "--report", "page.html", "script.py", folder=tmp_path, PYTHONPATH=path)
    page = (tmp_path / "page.html").read_text()
    assert done.stdout == "14999995 <b>\n" and not done.stderr
    assert "    for i in range(n):" in page and "&lt;b&gt;" in page and "<h2>script.py</h2>" in page
    assert "<b>loop, " in page and ("rgb(230 60 40" in page or 'class="compiled"' in page)
    write(tmp_path, script="import own\n")
    done = run_process("-m", "jitcore", "run", "--report", "script.py", folder=tmp_path, PYTHONPATH=path)
    assert re.search(r"^lines .*\n5-6 ", done.stderr)


# -- checks --------------------------------------------------------------------------------------------------
def test_all_iterations_are_checked_and_python_keeps_its_results(monkeypatch):
    calls = []
    right = Region.run
    monkeypatch.setattr(Region, "run", lambda self, values, call=None: calls.append(call) or right(self, values, call))
    names, sampler = check(SCRIPT)
    assert names["result"] == run(SCRIPT)[0]["result"] and not sampler.differs
    assert None not in calls  # all on copies
    (unit,) = [unit for unit in sampler.units if unit.line == 14]
    assert unit.fate.compared > 6 and not unit.fate.entries
    found = re.match(r"jitcore run --check: (\d) of \1 programs did what Python does, in (\d+) comparisons$",
                     format_check(sampler))
    assert found and int(found[2]) >= unit.fate.compared


@pytest.mark.parametrize("late", [1, 380_000])
def test_a_program_that_is_wrong_late_is_found(monkeypatch, late):
    """In its iteration of this number, long after its first use."""
    source = "s = 0\nfor i in range(400_000):\n    s += i % 7\n"

    def run_wrong(self, values, call=None):
        found = right(self, values, call)
        return found and (found[0], {**found[1], "s": found[1]["s"] + (values[-1] > late)})

    right = Region.run
    monkeypatch.setattr(Region, "run", run_wrong)
    names, sampler = check(source)
    assert names["s"] == run(source)[0]["s"] and sampler.differs
    lines = format_check(sampler).split("\n")
    assert lines[0].startswith("jitcore run --check: 0 of 1 programs") and lines[1].startswith("  script.py:2: ")
    assert re.match(r"    s is \d+, and \d+ compiled$", lines[2])


def test_calls_of_functions_are_checked(monkeypatch):
    source = textwrap.dedent("""
        import numpy as np
        def work(x, k):
            y = x * k
            return (y + 1).sum() + (y * y).sum()
        x = np.arange(5000.0)
        results = list(map(work, [x] * 8000, map(float, range(8000))))
    """)
    monkeypatch.setattr(functions, "SHORT", 0.0)
    names, sampler = check(source)
    (unit,) = [unit for unit in sampler.units if unit.is_function and unit.fate is not None]
    assert names["results"] == run(source)[0]["results"] and not sampler.differs
    assert unit.fate.compared > 100, unit.fate.reason
    assert "programs did what Python does" in format_check(sampler)


def test_the_exit_code_tells_of_differences(tmp_path):
    write(tmp_path, script=TOTAL + "print(total(10))")
    done = run_process("-m", "jitcore", "run", "--check", "script.py", folder=tmp_path, PYTHONPATH=sys.path[0])
    assert (done.returncode, done.stdout) == (0, "24\n")
    assert done.stderr == "jitcore run --check: 0 of 0 programs did what Python does, in 0 comparisons\n"
