"""Rewritten functions are those that the user wrote: same library tests, lines, tracebacks, debugger, attributes."""

from __future__ import annotations

import dis
import functools
import gc
import inspect
import itertools
import json
import os
import pickle
import subprocess
import sys
import textwrap
import trace
import traceback
import weakref

import pytest

from jitcore import jit, make_jaxpr
from jitcore.rewriter.functions import rewrite_function
from tests.rewrite.control_flow_cases import CASES
from tests.rewrite.identity import look_out_always
from tests.rewrite.library import MODULES
from tests.rewrite.random_functions import write_program

CALLS = [pytest.param(function, inputs[-1], id=function.__name__) for function, inputs in CASES]

#: Methods of the library's tests that fail, by subject. Most see how deep the stack is: code that looks out for traced
#: values is called through two more frames, so that a warning, a pickle or a frame names another caller. (Most tests of
#: `typing` that make something do, which is why it is no subject.) In `functools`, one puts a function in place of
#: `len` in `builtins` that calls itself through what rewritten code calls for `len`.
EXCEPTIONS = {
    "dataclasses": {"test_module_attr", "test_pickle_support"},
    "functools": {"test_lru_reentrancy_with_len", "test_partial_as_method"},
    "gettext": {"test_plural_forms", "test_plural_context_forms", "test_plural_wrong_context_forms",
                "test_plural_forms_null_translations", "test_plural_context_forms_null_translations",
                "test_plural_forms_wrong_domain", "test_plural_context_forms_wrong_domain"},
    "inspect": {"test_frame", "test_previous_frame", "test_stack", "test_range_toplevel_frame",
                "test_getframeinfo_get_first_line"}}


# -- the standard library -----------------------------------------------------------------------------------
def run_library_tests(subject: str, *options: str) -> dict:
    done = subprocess.run([sys.executable, "-m", "tests.rewrite.library", *options, subject], capture_output=True,
                          text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def check_library(subject: str) -> None:
    found = run_library_tests(subject)
    assert found["rewritten"] and found["run"]
    known = EXCEPTIONS.get(subject, set())
    if failed := {name for name in found["failed"] if name.split(" ")[0].split(".")[-1] not in known}:
        assert failed <= set(run_library_tests(subject, "--plain")["failed"])


@pytest.mark.parametrize("subject", ["fractions", "heapq"])
def test_library(subject):
    check_library(subject)


@pytest.mark.slow
@pytest.mark.parametrize("subject", sorted(MODULES.keys() - {"fractions", "heapq"}))
def test_more_of_the_library(subject):
    check_library(subject)


# -- lines --------------------------------------------------------------------------------------------------
def list_events(call, path: str) -> list:
    """(event, line) of what happens in code of a file while a call runs."""
    events = []

    def note(frame, event, arg):
        if frame.f_code.co_filename != path:
            return None
        events.append((event, frame.f_lineno))
        return note

    previous = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(previous)
    return events


@pytest.mark.parametrize(("function", "arguments"), CALLS)
def test_line_events(function, arguments):
    path, rewritten = function.__code__.co_filename, rewrite_function(function)
    expected = list_events(lambda: function(*arguments), path)
    assert list_events(lambda: rewritten(*arguments), path) == expected
    with look_out_always():
        guarded = list_events(lambda: rewritten(*arguments), path)
    assert list_lines(guarded, function) == list_lines(expected, function)


_IDLE = ("NOP", "JUMP_FORWARD", "JUMP_BACKWARD")


def list_lines(events: list, function) -> list[int]:
    """The lines that are run, without first lines of functions, from where calls are made, without repeats, and
    without lines that only go elsewhere, such as `while True:` and `break`."""
    skipped = {line for event, line in events if event == "call"}
    own = list(dis.get_instructions(function))
    skipped |= {item.positions.lineno for item in own} - {item.positions.lineno for item in own if item.opname not in _IDLE}
    lines = [line for event, line in events if event == "line" and line not in skipped]
    return [line for line, _ in itertools.groupby(lines)]


def test_random_programs_run_the_same_lines():
    for seed in range(40):
        space: dict = {}
        name = f"<lines {seed}>"
        exec(compile(write_program(seed), name, "exec"), space)
        function, rewritten = space["f"], rewrite_function(space["f"])
        expected = list_events(lambda: function(3, -2), name)
        assert list_events(lambda: rewritten(3, -2), name) == expected, seed


def test_coverage_counts():
    def visit(n):
        total = 0
        for i in range(n):
            if i % 2:
                total += i
            else:
                continue
        while total > 3:
            total -= 1
        return total

    def count(function):
        tracer = trace.Trace(count=1, trace=0)
        tracer.runfunc(function, 7)
        return {place: hits for place, hits in tracer.results().counts.items() if place[0] == __file__}

    assert count(rewrite_function(visit)) == count(visit) != {}


class Failing:
    @property
    def value(self):
        raise ValueError("no value")

    def __getitem__(self, index):
        raise ValueError("no item")


def fail_later(n):
    yield from range(n)
    raise ValueError("no more")


def catch_in_loop(n):
    total = 0
    try:
        items = fail_later(n)
        for item in items:
            total += item
    except ValueError:
        total = -total
    return total


def catch_property(n):
    one, other = Failing(), 3
    try:
        return (one if n else other).value
    except (ValueError, AttributeError) as error:
        return str(error)


def catch_item(n):
    one, other, found = Failing(), [3], 0
    for k in range(n):
        try:
            found = (other if k % 2 else one)[0 if n else 1]
        except ValueError:
            found = -1
        try:
            found += (one if k % 2 else other)[0]
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("function", [catch_in_loop, catch_property, catch_item])
def test_errors_of_what_python_calls_itself_are_caught(function):
    """Often enough that Python calls generators, properties and items without a call of its own."""
    expected, rewritten = [function(n) for n in (0, 1, 5, 50)], rewrite_function(function)
    with look_out_always():
        for _ in range(20):
            assert [rewritten(n) for n in (0, 1, 5, 50)] == expected


# -- errors -------------------------------------------------------------------------------------------------
def fail_in_branch(x):
    values = [x]
    for value in values:
        if value:
            return (value +
                    undefined_name)  # noqa: F821
    return 0


def list_places(call) -> list:
    """(function, line, columns) of the traceback's entries in this file."""
    with pytest.raises(NameError) as caught:
        call()
    return [(frame.name, frame.lineno, frame.end_lineno, frame.colno, frame.end_colno)
            for frame in traceback.extract_tb(caught.tb) if frame.name == "fail_in_branch"]


def test_tracebacks():
    rewritten = rewrite_function(fail_in_branch)
    expected = list_places(lambda: fail_in_branch(1))
    assert list_places(lambda: rewritten(1)) == expected
    with look_out_always():
        assert list_places(lambda: rewritten(1))[-1] == expected[-1]
    assert list_places(lambda: jit(fail_in_branch, rewrite=True)(1))[-1] == expected[-1]


def test_frames_of_callers():
    def who():
        return [frame.function for frame in inspect.stack()[1:3]]

    def ask(x):
        if x:
            return who()

    rewritten = rewrite_function(ask)
    assert rewritten(1) == ask(1) == ["ask", "test_frames_of_callers"]


# -- the debugger -------------------------------------------------------------------------------------------
SESSION = textwrap.dedent("""
    from jitcore import jit
    from jitcore.rewriter.functions import rewrite_function

    def walk(x, n):
        total = x
        while n > 0:
            if total > 2:
                total = total - n
            else:
                total = total + n
            n -= 1
        return total

    print("plain", rewrite_function(walk)(1, 2))
    print("traced", jit(walk, rewrite=True)(1, 2))
""")


def debug(tmp_path, *commands: str) -> str:
    path = tmp_path / "session.py"
    path.write_text(SESSION)
    done = subprocess.run([sys.executable, "-m", "pdb", str(path)], input="\n".join([*commands, "q", ""]), text=True,
                          capture_output=True, timeout=120, cwd=os.getcwd())
    return done.stdout


def test_debugger_in_a_function_that_runs(tmp_path):
    output = debug(tmp_path, "b 9", "c", "p 'at', x, n, total", "n", "p 'at', n, total", "s", "s", "u", "l 9,9")
    assert "-> total = total - n" in output
    assert "('at', 1, 1, 3)" in output and "('at', 1, 2)" in output
    assert "session.py(15)<module>()" in output


def test_debugger_in_a_branch_that_is_traced(tmp_path):
    output = debug(tmp_path, "b 11", "tbreak 16", "c", "c", "c", "p 'at', type(total).__name__", "n", "n", "w")
    assert "-> total = total + n" in output and "('at', 'Tracer')" in output
    assert "-> n -= 1" in output and "walk()" in output


# -- attributes ---------------------------------------------------------------------------------------------
def documented(x: int, /, y=2, *rest, scale: float = 3.0, **others) -> float:
    """What it does."""
    if x:
        return x * y * scale
    return 0.0


documented.note = "kept"


def test_attributes():
    rewritten = rewrite_function(documented)
    for name in (*functools.WRAPPER_ASSIGNMENTS, "__defaults__", "__kwdefaults__", "note"):
        assert getattr(rewritten, name) == getattr(documented, name)
    assert rewritten.__wrapped__ is documented and rewritten.__globals__ is documented.__globals__
    assert inspect.getsource(rewritten) == inspect.getsource(documented)
    assert inspect.signature(rewritten) == inspect.signature(documented)
    assert inspect.getfile(rewritten) == __file__
    assert rewritten.__code__.co_firstlineno == documented.__code__.co_firstlineno
    assert rewrite_function(documented) is rewritten is rewrite_function(rewritten)
    with pytest.raises(TypeError, match=r"documented\(\) missing 1 required positional argument: 'x'"):
        rewritten()


def test_wrappers_of_rewritten_functions_are_rewritten():
    inner = rewrite_function(documented)

    @functools.wraps(inner)
    def outer(x):
        return inner(x) if x > 1 else -1

    assert float(jit(outer, rewrite=True)(2)) == documented(2) and float(jit(outer, rewrite=True)(0)) == -1


def test_functions_die_with_their_rewritten_forms():
    def make(k):
        return lambda x: k if x else -k

    function = make(3)
    rewritten = rewrite_function(function)
    assert rewritten(1) == 3 and pickle.loads(pickle.dumps(vars(function)))
    watched = weakref.ref(function), weakref.ref(rewritten)
    del function, rewritten
    gc.collect()
    assert [reference() for reference in watched] == [None, None]


def test_what_nothing_is_traced_for_runs_the_function_s_own_code():
    """Traced or not is asked at each call."""
    frames = []

    def look(x):
        frames.append(sys._getframe().f_code.co_varnames)
        return x

    rewritten = rewrite_function(look)
    rewritten(1)
    make_jaxpr(lambda x: rewritten(x))(1)
    rewritten(1)
    assert frames[0] == frames[2] == ("x",) and frames[1][0] == "$self"


def test_values_are_not_asked_for_their_class():
    """`is`, `not` and `in` of plain Python do not look at `__class__`, which may be the user's code."""

    class Watched:
        asked = []

        def __getattribute__(self, name):
            Watched.asked.append(name)
            return object.__getattribute__(self, name)

    def compare(value, other):
        return value is other, value is not other, not value, [other] if value is None else (value,)

    value = Watched()
    with look_out_always():
        assert rewrite_function(compare)(value, 1) == compare(value, 1)
    assert Watched.asked == []
