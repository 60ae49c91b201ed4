"""On-stack replacement: a loop that is left at its head and gone on with elsewhere does each iteration once."""

import sys
import traceback
from types import FunctionType

import pytest

from jitcore.rewriter.bytecode.instructions import name_list
from jitcore.rewriter.bytecode.versions import VERSION
from jitcore.rewriter.writing.entered import EnteredOutline
from jitcore.rewriter.writing.outlined import list_parameters, write_loop
from jitcore.scripts.entries import add_entries
from jitcore.scripts.frames import write_variables
from jitcore.scripts.gates import HEAD, WATCH, Leave

UNBOUND = object()
done: list = []


def note(*what):
    done.append(what)
    return len(done)


def over_range(n):
    s = 0
    for i in range(n):
        s += note("range", i)
    return s, i


def over_list(n):
    s = []
    for x in [3, 1, 4, 1, 5][:n]:
        note(x)
        s.append(x)
    return s


def over_enumerate(n):
    s = 0
    for k, (x, y) in enumerate(zip(range(n), "abcdefg"), 5):
        s += k * x
        note(k, x, y)
    return s


def over_generator(n):
    s = 0
    for x in (note("made", k) for k in range(n)):
        s += x
    return s


def by_while(n):
    s, x = 0, n
    while x > 0 and s < 100:
        x -= 1
        s += note("while", x)
    return s, x


def forever(n):
    x = 0
    while True:
        x += 1
        note(x)
        if x > n:
            break
    return x


def nested(n):
    s = 0
    for i in range(n):
        for j in range(i):
            s += note(i, j)
            if s > 40:
                return s, i, j
        s += 1
    return s


def with_else(n):
    for i in range(n):
        if note("else", i) > 4:
            found = "broken"
            break
        if i % 2:
            continue
        note("even", i)
    else:
        found = "whole"
    return found


def in_try(n):
    s = 0
    try:
        for i in range(n):
            s += note("try", i)
            if i == 4:
                raise ValueError(s)
    except ValueError as error:
        return "caught", str(error)
    finally:
        note("finally")
    return s


def try_inside(n):
    s = 0
    for i in range(n):
        try:
            s += 1 // (i % 3)
        except ZeroDivisionError:
            note("zero", i)
            continue
        finally:
            note("end", i)
    return s


def in_with(n):
    class Context:
        def __enter__(self):
            return note("enter")

        def __exit__(self, *error):
            note("exit", *error)

    with Context():
        for i in range(n):
            note("with", i)
            if i == 5:
                return i
    return -1


def deleted(n):
    for i in range(n):
        x = note(i)
        if i == 2:
            del x
    return n


def raises(n):
    for i in range(n):
        note("raise", i)
        1 / (3 - i)


def comprehension(n):
    return n, [note("made", i, k) for i in range(n) for k in range(i) if (i + k) % 3], [i for i in range(n)]


def make_closure():
    start = 5

    def closure(n):
        s = start
        for i in range(n):
            s += note("closure", i) * start
        return s, [start + i for i in range(n)]

    return closure


closure = make_closure()
FUNCTIONS = [over_range, over_list, over_enumerate, over_generator, by_while, forever, nested, with_else, in_try,
             try_inside, in_with, deleted, raises, comprehension, closure]


def run(function, *arguments):
    """(outcome, what was noted, lines of the traceback)."""
    done.clear()
    try:
        return function(*arguments), list(done), []
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.name == function.__name__]
        return repr(error), list(done), lines


def leave_at(code, offset: int, arrival: int, call):
    """Runs `call`, raising Leave in frames of `code` when they stand at an offset for the so manyth time."""
    left = [arrival]

    def stands_there(at):
        left[0] -= at == offset
        return at == offset and left[0] == 0

    if VERSION >= (3, 12):
        monitoring, tool = sys.monitoring, 4
        monitoring.use_tool_id(tool, "test")

        def see(seen, at):
            if stands_there(at):
                monitoring.set_local_events(tool, code, 0)
                raise Leave

        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, see)
        monitoring.set_local_events(tool, code, monitoring.events.INSTRUCTION)
        try:
            return call()
        finally:
            monitoring.set_local_events(tool, code, 0)
            monitoring.free_tool_id(tool)

    def trace(frame, event, argument):
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and stands_there(frame.f_lasti):
            sys.settrace(None)
            raise Leave
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(before)


def list_heads(function):
    made = add_entries(function.__code__, lambda loop: ([], None), most_levels=9)
    return () if made is None else made.loops


CASES = [(function, place) for function in FUNCTIONS for place in range(len(list_heads(function)))]


@pytest.mark.parametrize("function, place", CASES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("n", [0, 3, 7])
def test_a_loop_that_is_left_goes_on_where_it_stood(function, place, n):
    """The handler goes back to the head with the same iterator."""
    expected = run(function, n)
    for arrival in range(1, 9):
        left = []

        def make(loop):
            return [], lambda iterator, *lists: (left.append(loop.head), (HEAD, iterator))[1]

        made = add_entries(function.__code__, make, most_levels=9)
        copy = FunctionType(made.code, globals(), function.__name__, None, function.__closure__)
        head = made.loops[place].head
        assert run(copy, n) == expected
        assert leave_at(made.code, made.heads[head], arrival, lambda: run(copy, n)) == expected
        assert left in ([], [head])
        if not left:
            break
    else:
        assert n > 5


@pytest.mark.parametrize("function, place", CASES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("n, most", [(0, 9), (3, 9), (7, 9), (7, 2)])
def test_a_loop_that_is_watched_asks_at_each_head(function, place, n, most):
    """Iterations that are watched do what others do, and the handler is asked behind each."""
    expected, arrived = run(function, n), []

    def make(loop):
        def resume(iterator, *lists):
            arrived.append(sys._getframe(1).f_lineno)
            return WATCH if len(arrived) < most else HEAD, iterator

        return gates.setdefault(loop.head, []), resume

    gates: dict[int, list] = {}
    made = add_entries(function.__code__, make, most_levels=9)
    head = made.loops[place].head
    gates[head].append(True)
    copy = FunctionType(made.code, globals(), function.__name__, None, function.__closure__)
    assert run(copy, n) == expected
    watched = len(arrived)
    arrived.clear()
    gates[head].clear()
    leave_at(made.code, made.heads[head], 1, lambda: run(copy, n))
    assert len(arrived) in (watched, min(watched + 1, most)) or made.loops[place].level
    assert watched == min(n + 1, most) or function is not over_range


@pytest.mark.parametrize("function, place", CASES, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("n, limit", [(3, 99), (7, 99), (7, 2)])
def test_what_is_left_of_a_loop_runs_elsewhere(function, place, n, limit):
    """The handler runs the rest of the loop as a function, or some iterations of a `while`, and goes where
    that ended."""
    expected, count = run(function, n), 0
    for arrival in range(1, 9):
        left, outlined = [], set()

        def make(loop):
            outline = EnteredOutline(function.__code__)
            one = outline.find_loop(loop.body)
            if one is None or one.free:
                return [], None
            outlined.add(loop.head)
            rest = outline.find_rest(one, lists=outline.name_lists(one), head=loop.head)
            body = FunctionType(write_loop(outline, rest, UNBOUND), globals(), function.__name__)

            def resume(iterator, *lists):
                left.append(loop.head)
                frame = sys._getframe(1)
                made = dict(zip(map(name_list, loop.lists), lists))
                assert made.keys() == {*rest.grown}
                given = frame.f_locals
                own = {"iterable_of_loop": iterator, "iterations_of_loop": limit}
                found = body(*[own[name] if name in own else given.get(name, UNBOUND) for name in list_parameters(rest)])
                number = found[len(rest.results)] if len(rest.exits) + rest.is_limited > 1 else 0
                results = dict(zip(rest.results, found))
                for name, items in made.items():
                    items.extend(results.pop(name))
                write_variables(frame, {name: value for name, value in results.items() if value is not UNBOUND})
                if number == len(rest.exits):
                    return HEAD, iterator
                return loop.exits.index(rest.exits[number].offset), iterator

            return gates.setdefault(loop.head, []), resume

        gates = {}
        made = add_entries(function.__code__, make, most_levels=9)
        loop = made.loops[place]
        if loop.head not in outlined:
            pytest.skip("a loop that cannot be a function")
        copy = FunctionType(made.code, globals(), function.__name__, None, function.__closure__)
        outcome, noted, _ = leave_at(made.code, made.heads[loop.head], arrival, lambda: run(copy, n))
        assert (outcome, noted) == expected[:2]
        gates[loop.head].append(True)
        assert run(copy, n)[:2] == expected[:2]
        count += len(left)
        if not left:
            break
    assert count or n < 5 or function is over_generator


# -- runs of statements between opaque ones -------------------------------------------------------------------------
def info(*what):
    """Of a name by which scripts call what has effects outside of them."""
    return note("info", *what)


def told_first(n):
    s = 0
    for i in range(n):
        info(i)
        s += 2 * note("body", i)
        if s > 60:
            break
        s -= 1
    return s, i


def told_twice(n):
    s, i = 0, 0
    while i < n:
        info("begin", i)
        for j in range(3):
            s += note(i, j)
        if i == 5:
            return s
        i += 1
        info("end", i)
        s -= note("last", i) % 3
    return s, i


def told_and_caught(n):
    s = 0
    for i in range(n):
        info(i)
        try:
            s += 1 // (i % 3)
        except ZeroDivisionError:
            note("zero", i)
        s += note("behind", i)
    return s


def told_inside(n):
    s = 0
    for i in range(n):
        for j in range(2):
            info(i, j)
            s += note("inner", j)
        s -= note("outer", i) % 2
        if s % 5 == 3:
            info("side", s)
            s += 1
    return s


TELLING = [told_first, told_twice, told_and_caught, told_inside]


def list_runs(function):
    return [loop for loop in list_heads(function) if loop.is_run]


def run_with_gates(function, n, resume_of):
    """What it does where each run of statements asks."""
    def make(loop):
        return [True] if loop.is_run else [], resume_of(loop)

    made = add_entries(function.__code__, make, most_levels=9)
    return run(FunctionType(made.code, globals(), function.__name__), n)


def test_runs_of_statements_are_what_stands_between_opaque_ones():
    assert [len(list_runs(function)) for function in TELLING] == [1, 2, 1, 2]


@pytest.mark.parametrize("n", [0, 3, 9])
@pytest.mark.parametrize("function", TELLING)
def test_a_run_of_statements_that_is_watched_tells_its_end(function, n):
    asked = []

    def watch(loop):
        def resume(iterator, *lists):
            asked.append((loop.head, iterator))
            return WATCH, None
        return resume

    assert run_with_gates(function, n, watch) == run(function, n)
    assert all(asked.count((head, True)) in (count, count - 1) for head in {head for head, _ in asked}
               for count in [asked.count((head, None))]) or function is told_and_caught
    assert asked or not n


@pytest.mark.parametrize("n", [0, 3, 9])
@pytest.mark.parametrize("function", TELLING)
def test_a_run_of_statements_runs_elsewhere(function, n):
    called = []

    def make(loop):
        if not loop.is_run:
            return None
        outline = EnteredOutline(function.__code__, leaders=(loop.head, *loop.exits))
        one = outline.find_loop(loop.body)
        if one is None:
            return lambda iterator, *lists: (HEAD, iterator)
        rest = outline.find_rest(one, loop.exits, head=loop.head, is_run=True)
        if not outline.is_caught_alike(rest):
            return lambda iterator, *lists: (HEAD, iterator)
        body = FunctionType(write_loop(outline, rest, UNBOUND), globals(), function.__name__)

        def resume(iterator, *lists):
            called.append(loop.head)
            frame = sys._getframe(1)
            given = frame.f_locals
            found = body(*[given.get(name, UNBOUND) for name in list_parameters(rest)])
            write_variables(frame, {name: value for name, value in zip(rest.results, found) if value is not UNBOUND})
            number = found[len(rest.results)] if len(rest.exits) > 1 else 0
            return next(loop.exits.index(at) for at in rest.exits[number].offsets if at in loop.exits), iterator

        return resume

    expected = run(function, n)
    assert run_with_gates(function, n, make) == expected
    assert called or not n or function is told_and_caught
