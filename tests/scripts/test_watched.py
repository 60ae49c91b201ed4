"""Who watches a script, or interrupts it, finds Python: debuggers, profilers, coverage, Ctrl-C, tracebacks."""

from __future__ import annotations

import signal
import sys
import types

import pytest

import jitcore
from jitcore.scripts import sampling, tracers
from jitcore.scripts.interrupts import Waiting
from jitcore.scripts.regions import Region
from jitcore.scripts.sampling import Sampler
from jitcore.scripts.texts import write_record
from jitcore.scripts.units import State
from tests.scripts.test_runner import TOTAL, compare, quick, run, write
from tests.scripts.test_scripts import run_sampled

__all__ = ["quick"]

LINES = """
x = 0
for i in range(3):
    x += i
    for j in [1, 2]:
        if j == 2:
            continue
        x += j
while x < 20:
    x += 5
else:
    x = -1
def f(a, b=2, *, c=3):
    for k in range(a):
        try:
            if k == 1: raise ValueError
            b += k
        except ValueError:
            c += 1
    return b + c
def g(n):
    while True:
        n -= 1
        if n < 0:
            break
    return [q for q in range(3)]
def h(n): return n + 1
class A:
    def m(self, n):
        "Text."
        for i in range(n):
            with open('/dev/null') as file:
                yield i
f(3); g(2); h(1); list(A().m(2))
for i in range(4):
    if i == 2: break
else:
    x = 3
"""


def list_events(code: types.CodeType) -> list:
    """What debuggers and profilers see of code."""
    found = []

    def note(frame, event, argument):
        if frame.f_code.co_filename == "script.py":
            found.append((event, frame.f_code.co_name, frame.f_lineno))
            return note

    for register in (sys.settrace, sys.setprofile):
        register(note)
        try:
            exec(code, {"__name__": "script"})
        finally:
            register(None)
    return found


def list_monitored(code: types.CodeType) -> list:
    monitoring, found, tool = sys.monitoring, [], sys.monitoring.COVERAGE_ID
    monitoring.use_tool_id(tool, "test")
    events = monitoring.events.LINE, monitoring.events.PY_START, monitoring.events.PY_RETURN
    for event in events:
        monitoring.register_callback(tool, event, lambda code, place, *rest, event=event: found.append(
            (event, code.co_name, place if event == monitoring.events.LINE else 0)) if code.co_filename == "script.py" else None)
    monitoring.set_events(tool, sum(events))
    try:
        exec(code, {"__name__": "script"})
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    return found


@pytest.mark.parametrize("list_all", [list_events, list_monitored][:1 + hasattr(sys, "monitoring")])
def test_entries_are_not_seen(list_all):
    code = compile(LINES, "script.py", "exec")
    prepared = Sampler([]).add(write_record(code, b""))
    assert prepared.co_code != code.co_code and list_all(prepared) == list_all(code) != []


# -- scripts that watch themselves ---------------------------------------------------------------------------
WATCHED = {
    "trace": """
        import sys
        events = []
        def trace(frame, event, argument):
            events.append((event, frame.f_code.co_name, frame.f_lineno))
            return trace
        sys.settrace(trace)
        total(30_000)
        sys.settrace(None)
        print(sys.gettrace(), len(events), hash(tuple(sorted(set(map(str, events))))) and sorted(set(events)))
    """,
    "profile": """
        import sys
        events = []
        def note(frame, event, argument):
            events.append((event, frame.f_code.co_name, frame.f_lineno))
        sys.setprofile(note)
        for k in range(100):
            total(2000)
        sys.setprofile(None)
        print(len(events), sorted(set(events)))
    """,
    "cProfile": """
        import cProfile, pstats
        profile = cProfile.Profile()
        profile.enable()
        for k in range(100):
            total(3000)
        profile.disable()
        stats = pstats.Stats(profile).stats
        print(sorted((one, stats[one][:2]) for one in stats))
    """,
    "breakpoint": """
        import io, pdb
        written = io.StringIO()
        debugger = pdb.Pdb(stdin=io.StringIO("next\\nnext\\nstep\\nstep\\np n, s\\ncontinue\\n"), stdout=written)
        def look(n):
            debugger.set_trace()
            s = 0
            s += total(3)
            for i in range(n):
                s += i % 3
            return s
        print(look(300_000))
        print(written.getvalue())
    """,
    "monitoring": """
        import sys
        lines = []
        if hasattr(sys, "monitoring"):
            sys.monitoring.use_tool_id(1, "mine")
            sys.monitoring.register_callback(1, sys.monitoring.events.LINE, lambda code, line: lines.append(line))
            sys.monitoring.set_local_events(1, total.__code__, sys.monitoring.events.LINE)
        total(300_000)
        print(len(lines), sorted(set(lines)))
    """,
}


@pytest.mark.parametrize("name", WATCHED)
@pytest.mark.parametrize("is_named", [True, False])
def test_what_the_script_watches_with_sees_python(name, is_named, tmp_path, monkeypatch):
    """The script is hot before it begins to watch itself, and its loop is compiled the second time."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    text = "\n".join(line.removeprefix("        ") for line in WATCHED[name].split("\n"))
    write(tmp_path, script=TOTAL + "print(total(3_000_000))\n" + text)
    compare("script.py", folder=tmp_path)


@pytest.mark.parametrize("options", [["-m", "cProfile", "-m"], ["-m", "trace", "--count", "-C", "counts", "--module"]])
def test_nothing_is_sampled_under_a_profiler(options, tmp_path):
    write(tmp_path, script=TOTAL + """
from jitcore.scripts.sessions.runner import Session
print(total(10), Session.current)
""")
    assert "24 None" in run(*options, "jitcore", "run", "script.py", folder=tmp_path, PYTHONPATH=sys.path[0]).stdout


def test_a_tracer_that_nothing_tells_of_is_found(tmp_path):
    """By the next entry of a loop that is compiled."""
    sampler = run_sampled("""
def f(n):
    s = 0
    for i in range(n):
        s += i % 5
    return s
f(1_000_000)
""", opens=True)[2]
    unit = next(unit for unit in sampler.units if not unit.is_function)
    assert unit.state == State.READY
    sampler.is_over = False
    unit.gate.open()
    sys.setprofile(lambda *_: None)
    try:
        assert not sampler.may_enter() and sampler.is_over and not unit.gate
    finally:
        sys.setprofile(None)


def test_scripts_that_name_no_tracer_are_not_audited(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr(sampling, "watch", heard.append)
    write(tmp_path, script=TOTAL, other=TOTAL + "def f():\n    breakpoint()")
    jitcore.run_path(tmp_path / "script.py")
    assert heard == [None]
    jitcore.run_path(tmp_path / "other.py")
    assert len(heard) == 3 and heard[1] is not None
    assert tracers._stop is None


# -- Ctrl-C --------------------------------------------------------------------------------------------------
INTERRUPTED = """
import signal
import numpy as np

def f(u):
    s = n = 0
    try:
        for i in range(10**10):
            u += 1
            n += 1
            s += i % 3
    except KeyboardInterrupt:
        assert (u == n).all() and n == i + 1 and s == n // 3 * 3 + [0, 0, 1][n % 3], (u, n, i, s)
    return n
"""


@pytest.fixture
def run_interrupted(monkeypatch):
    """Runs a script whose loops are compiled when they are first entered; a signal comes when each has run for a
    while."""
    def run_region(self, values, call=None):
        known.append(self)
        if known.count(self) == 6:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.3)
        return right(self, values, call)

    def run_it(text: str) -> tuple[dict, str]:
        before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_VIRTUAL, 10)
        try:
            names, written, sampler = run_sampled(INTERRUPTED + text)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        assert len(known) > 6, [unit.fate and unit.fate.reason for unit in sampler.units]
        return names, written

    known, right = [], Region.run
    monkeypatch.setattr(Region, "run", run_region)
    return run_it


def test_interrupts_find_a_whole_iteration(run_interrupted):
    names, _ = run_interrupted("""
n = f(np.zeros(5))
assert n > 2e6, n
u, n = np.zeros(5), 0
try:
    for i in range(10**10):
        u += 1
        n += 1
except KeyboardInterrupt:
    assert (u == n).all() and n == i + 1, (u, n, i)
    i = "interrupted"
""")
    assert names["i"] == "interrupted" and names["n"] > 2e6


@pytest.mark.parametrize("text", ["for i in range(10**10):\n    u += i", "while i < 10**10:\n    u += i\n    i += 1"])
def test_an_interrupt_has_python_s_traceback(run_interrupted, text):
    with pytest.raises(KeyboardInterrupt) as raised:
        run_interrupted(f"u, i = np.zeros(5), 0\n{text}\n")
    assert [(str(one.path), one.lineno + 1) for one in raised.traceback][-1] == ("script.py", 16)


def test_handlers_of_the_script_run_between_iterations(run_interrupted):
    names, written = run_interrupted("""
def handle(number, frame):
    print(frame.f_code.co_name, (frame.f_locals["u"] == frame.f_locals["n"]).all())
    raise TimeoutError
def g(u):
    n = 0
    for i in range(10**10):
        u += 1
        n += 1
    return n
signal.signal(signal.SIGVTALRM, handle)
try:
    g(np.zeros(5))
except TimeoutError as error:
    names, trace = [], error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
is_there = signal.getsignal(signal.SIGVTALRM) is handle
""")
    assert written == "g True\n" and names["names"] == ["<module>", "g", "handle"] and names["is_there"]


def test_handlers_that_return_go_on(run_interrupted):
    names, _ = run_interrupted("""
stops = 0
def handle(number, frame):
    global stops
    stops = n
signal.signal(signal.SIGVTALRM, handle)
n = 0
while not stops:
    n += 1
""")
    assert names["n"] - names["stops"] in (0, 1) and names["stops"] > 2e6


def test_a_second_signal_does_not_wait():
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        waiting = Waiting()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert waiting.end(sys._getframe()) is None
        waiting = Waiting()
        signal.raise_signal(signal.SIGINT)
        error = waiting.end(sys._getframe())
        assert type(error) is KeyboardInterrupt and error.__traceback__ is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


# -- errors --------------------------------------------------------------------------------------------------
def test_errors_of_functions_that_are_tried_out_have_python_s_traceback(tmp_path):
    write(tmp_path, script="""
        import numpy as np

        def work(x, k):
            s = 0.0
            for one in [x, x, x] * 40:
                s += (one * k).sum()
            if k == 400:
                raise ValueError(s)
            return s

        x = np.arange(50.0)
        total = 0.0
        for k in [*range(1000)]:
            total += work(x, k)
    """)
    compare("script.py", folder=tmp_path)


def test_threads_go_their_own_way(tmp_path):
    write(tmp_path, script=TOTAL + """
import threading
print(total(3_000_000))
found = []
threads = [threading.Thread(target=lambda: found.append(total(300_000))) for _ in range(4)]
for thread in threads: thread.start()
print(total(3_000_000))
for thread in threads: thread.join()
print(found)
""")
    compare("script.py", folder=tmp_path)
