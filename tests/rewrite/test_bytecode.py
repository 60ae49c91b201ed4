"""Bytecode taken apart and put together again: same values, same errors, same lines, on every Python."""

from __future__ import annotations

import dis
import os
import traceback
import types
from pathlib import Path

import pytest

from jitcore.rewriter.bytecode.flow import Flow, merge_tails, normalize_graph, split_sites
from jitcore.rewriter.bytecode.graph import Graph
from jitcore.rewriter.bytecode.instructions import Branch, ForIter, Unsupported, decode
from tests.rewrite.identity import arguments_of, rebuild, rebuild_code


def loops(n):
    total = 0
    for i in range(n):
        if i % 2:
            continue
        total += i
        if total > 50:
            break
    else:
        total = -total
    while total > 3:
        total -= 2
    return total, [x * x for x in range(n) if x > 1], (lambda z: z + total)(3) if n else None


def errors(x, *rest, k=2, **others):
    try:
        if x < 0:
            raise ValueError("negative")
        with open(os.devnull) as file:
            file.read()
        return x / k, rest, others
    except ValueError as error:
        return str(error)
    finally:
        x = None


def short_circuits(d):
    out = []
    for a, (b, c) in d.items():
        out.append((a and b) or c)
        assert out
    found = {key: value for key, value in enumerate(out)}
    return found, 1 < len(out) <= 5, None if out is None else 3, not out


def closures(n):
    count = 0

    def step():
        nonlocal count
        count += n_local
        return count

    n_local = n + 1
    return [step() for _ in range(3)], count


def nested_comprehensions(n):
    return [[(i, j, k) for k in range(j)] for i in range(n) for j in [i, i + 1] if j], {i for i in range(n)}


def unpacking(*values):
    first, *middle, last = values
    (a, b), c = (first, last), middle
    del first
    return a, b, c, f"{a!r:>5}{b}", [*middle, *values], {**{"a": a}}, values[1:2], values[::-1]


CASES = [
    (loops, [(0,), (1,), (5,), (20,)]),
    (errors, [(-1,), (2, 3, 4), (0,)]),
    (short_circuits, [({1: (2, 3), 0: (0, 5)},), ({1: (0, 1)},)]),
    (nested_comprehensions, [(0,), (4,)]),
    (unpacking, [(1, 2), (1, 2, 3, 4)]),
]


def normalize(graph: Graph) -> None:
    merge_tails(graph)
    split_sites(graph)


@pytest.mark.parametrize("change", [lambda graph: None, normalize], ids=["as compiled", "normalized"])
@pytest.mark.parametrize(("function", "calls"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_rebuilt_functions_compute_the_same(function, calls, change):
    rebuilt = rebuild(function, change)
    for arguments in calls:
        assert rebuilt(*arguments) == function(*arguments)


def test_cells_become_free_variables():
    rebuilt = rebuild(closures)
    assert rebuilt.__code__.co_cellvars == () and {"count", "n_local"} <= set(rebuilt.__code__.co_freevars)
    assert rebuilt(3) == closures(3)


def test_errors_name_the_same_lines():
    def fail(x):
        y = [x]
        for item in y:
            if item:
                return (item +
                        undefined_name)  # noqa: F821

    def place(function):
        with pytest.raises(NameError) as caught:
            function(1)
        frame = traceback.extract_tb(caught.tb)[-1]
        return frame.lineno, frame.end_lineno, frame.colno, frame.end_colno

    assert place(rebuild(fail, normalize)) == place(fail)


def test_unbound_variables_raise():
    def read(flag):
        if flag:
            value = 1
        return value

    rebuilt = rebuild(read, normalize)
    assert rebuilt(True) == 1
    with pytest.raises(UnboundLocalError, match="value"):
        rebuilt(False)


def test_coroutines_are_refused():
    async def wait():
        return 1

    def delegate():
        yield from [1]

    for function in (wait, delegate):
        with pytest.raises(Unsupported):
            decode(function.__code__)


def test_long_jumps():
    """Distances above 255 and 65535 units take EXTENDED_ARGs, which lengthen other jumps."""
    lines = "\n".join(f"        x = x + {i}" for i in range(12000))
    source = f"def f(x, n):\n    while n:\n        n -= 1\n        if x > 1e12:\n            break\n{lines}\n    return x"
    space: dict = {}
    exec(source, space)
    assert rebuild(space["f"], normalize)(1, 3) == space["f"](1, 3)


def list_code(code: types.CodeType):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from list_code(const)


LIBRARY = Path(dis.__file__).parent
MODULES = ["argparse", "ast", "bisect", "calendar", "configparser", "contextlib", "copy", "csv", "dataclasses",
           "difflib", "dis", "enum", "fractions", "functools", "heapq", "inspect", "ipaddress",
           "random", "shutil", "statistics", "string", "subprocess", "tarfile", "textwrap", "threading", "typing",
           "uuid", "zipfile"]


@pytest.mark.parametrize("name", MODULES)
def test_library_functions_can_be_rebuilt(name):
    path = LIBRARY / f"{name}.py"
    if not path.exists():
        pytest.skip("not a single file in this version")
    done = 0
    for code in list_code(compile(path.read_text(encoding="utf-8"), str(path), "exec")):
        if not code.co_flags & 1:  # a module or class body
            continue
        try:
            rebuilt = rebuild_code(code, normalize)
        except Unsupported:
            continue
        assert {item[2] for item in rebuilt.co_lines()} - {None} <= {item[2] for item in code.co_lines()} | {
            code.co_firstlineno}
        check_flow(Flow(normalize_graph(code), arguments_of(code)))
        done += 1
    assert done


def check_flow(flow: Flow) -> None:
    """What must hold of every function."""
    blocks = flow.graph.blocks
    for loop in flow.loops.values():
        assert loop.latches and loop.header in loop.body
        assert all(flow.dominates(loop.header, number) for number in loop.body)
        assert loop.parent is None or loop.body < loop.parent.body
    for number, join in flow.join.items():
        assert isinstance(blocks[number].terminator, (Branch, ForIter)) and not blocks[number].instructions
        assert join is None or join in blocks
    assert flow.live[flow.graph.entry] <= set(flow.graph.code.co_varnames)


def find_site(flow: Flow, line: int) -> int:
    first = flow.graph.code.co_firstlineno
    (site,) = [n for n in flow.join if flow.graph.blocks[n].position[0] == first + line]
    return site


def test_joins_and_loops():
    def walk(x, n):
        if x:
            y = 1
        else:
            y = 2
        while n:
            if x:
                break
            if y:
                n -= 1
            n -= 1
        if n:
            return 0
        return y

    flow = Flow(normalize_graph(walk.__code__), ("x", "n"))
    (loop,) = flow.loops.values()
    assert loop.stored == {"n"}
    first, test, leave, inner, last = (find_site(flow, line) for line in (1, 5, 6, 8, 11))
    assert flow.join[first] is not None and first not in loop.body
    assert {test, leave, inner} <= loop.body and len(loop.outs) <= 2
    assert flow.leaves[leave] and not flow.leaves[inner] and flow.leaves[test]
    assert flow.join[last] is None
    assert "y" in flow.assigned[test] and "y" not in flow.assigned[first]
    assert "y" in flow.live[test] and "y" not in flow.live[first]


def test_loops_whose_bodies_handle_exceptions():
    """A handler is reached from the code that it protects, so that the header still dominates what is behind."""

    def walk(n, x):
        for i in range(n):
            try:
                x = x / i
            except ZeroDivisionError:
                x = 1
            if x:
                continue
            x = 2
        return x

    flow = Flow(normalize_graph(walk.__code__), ("n", "x"))
    (loop,) = flow.loops.values()
    site = find_site(flow, 6)
    assert loop.iterates and site in loop.body and flow.join[site] == loop.header
    assert all(flow.dominates(site, latch) for latch in loop.latches)


def test_while_tests_are_merged():
    def nested(n):
        while n > 0:
            m = n
            while m > 0:
                m -= 1
            n -= 1
        return n

    flow = Flow(normalize_graph(nested.__code__), ("n",))
    assert len(flow.join) == 2 and len(flow.loops) == 2
    assert rebuild(nested, normalize)(5) == 0
