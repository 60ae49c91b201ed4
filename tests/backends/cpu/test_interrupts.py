"""Ctrl-C and other signals in native loops: handlers run, what they raise leaves the loop, and nothing else does."""

import os
import subprocess
import sys
import textwrap

import pytest

needs_signals = pytest.mark.skipif(not hasattr(os, "fork"), reason="no ticker")

HEAD = """
import os, signal, threading
import numpy as np
import jitcore.numpy as jnp
from jitcore import autojit, jit, lax, vmap
from jitcore.backends.cpu.runtime.interrupts import cells

signal.signal(signal.SIGINT, signal.default_int_handler)  # of processes in the background it is ignored

def after(seconds, number=signal.SIGINT):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    return timer

def interrupt(function, *args, error=KeyboardInterrupt):
    timer = after(0.06)
    try:
        function(*args)
    except error as caught:
        timer.join()
        return caught
    raise AssertionError("it was not interrupted")

def show(name):
    ticks = []

    def note(*_):
        ticks.append(cells.tick)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    assert check(), name
    for _ in range(2):
        assert type(interrupt(run)) is KeyboardInterrupt and check(), name
        assert cells.tick - ticks[-1] <= 3, (name, "goes on behind its handler")

BIG = np.int64(1 << 60)
"""

#: A call that never ends, in `run`, and one that does, in `check`. The first call compiles.
LOOPS = {
    "while of scalars": """
        count = lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (np.int64(0), 0.0))
        f = jit(lambda n: count(n)[0] + (count(n)[1] > 3))  # without the comparison LLVM needs no loop
        check, run = lambda: int(f(np.int64(9))) == 9, lambda: f(BIG)
    """,
    "while without limit": """
        f = jit(lambda x: lax.while_loop(lambda x: x != 1, lambda x: jnp.where(x % 2 == 0, x // 2, 3 * x + 1), x))
        check, run = lambda: int(f(np.int64(27))) == 1, lambda: f(np.int64(-1))
    """,
    "fori of arrays": """
        x = np.ones(100)
        f = jit(lambda n: lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, x))
        check, run = lambda: f(np.int64(1))[0] == 1.5, lambda: f(BIG)
    """,
    "fori of arrays by threads": """
        x = np.ones(1_000_000)
        f = jit(lambda n: lax.fori_loop(0, n, lambda i, x: jnp.sin(x) + 1, x))
        check, run = lambda: f(np.int64(0))[0] == 1, lambda: f(BIG)
    """,
    "scan": """
        f = jit(lambda x, n: lax.scan(lambda c, _: (lax.while_loop(lambda s: s < n, lambda s: s + 1.0, c), c), x, None, length=3)[0])
        check, run = lambda: f(0.0, 5.0) == 5, lambda: f(1e30, 2e30)
    """,
    "lanes in threads": """
        f = jit(vmap(lambda x, y: lax.while_loop(lambda s: s < y, lambda s: s * 0.5 + x, x)))
        x = np.linspace(0.5, 1, 200_000)
        check, run = lambda: (np.asarray(f(x, x)) == x).all(), lambda: f(x, x + 1e300)
    """,
    "routines": """
        a = np.eye(200)
        f = jit(lambda n: lax.fori_loop(0, n, lambda i, a: jnp.sort(a @ a, axis=0)[::-1], a))
        check, run = lambda: f(np.int64(0))[0, 0] == 1, lambda: f(BIG)
    """,
    "callbacks": """
        from jitcore import pure_callback, ShapeDtypeStruct
        f = jit(lambda n: lax.fori_loop(0, n, lambda i, x: pure_callback(lambda x: x + 1, ShapeDtypeStruct((), np.float64), x), np.float64(0)))
        check, run = lambda: f(np.int64(3)) == 3, lambda: f(BIG)
    """,
    "autojit of scalars": """
        @autojit(strict=True)
        def f(n):
            best = 0
            for i in range(1, n):
                x, steps = i, 0
                while x != 1:
                    x = x // 2 if x % 2 == 0 else 3 * x + 1
                    steps += 1
                if steps > best:
                    best = steps
            return best
        check, run = lambda: [f(n) for n in (10, 20, 30)] == [19, 20, 111], lambda: f(1 << 50)
    """,
    "autojit of arrays": """
        @autojit(strict=True)
        def f(u, n):
            for i in range(n):
                u[1:-1] = (u[:-2] + u[2:]) / 2
            return u.sum()
        u = np.ones(100)
        check, run = lambda: [f(u, n) for n in (1, 2, 3)] == [100.0] * 3, lambda: f(u, 1 << 50)
    """,
    "autojit that goes on for ever": """
        @autojit(strict=True)
        def f(x, y):
            while x < y:
                x = x * 0.5
            return x
        check, run = lambda: f(2.0, 1.0) == 2, lambda: f(1.0, 2.0)
    """,
}


def run_script(*bodies):
    code = HEAD + "\n".join(map(textwrap.dedent, bodies))
    result = subprocess.run([sys.executable, "-c", code], timeout=120, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]


@needs_signals
@pytest.mark.parametrize("threads, names", [(1, ["while of scalars", "fori of arrays by threads", "lanes in threads"]), (2, LOOPS)])
def test_every_kind_of_loop_ends(threads, names):
    """In one process, one after the other: each is interrupted, is right again, and is interrupted again."""
    calls = "".join(f"{textwrap.dedent(LOOPS[name])}\nshow({name!r})" for name in names)
    run_script(f"import jitcore\njitcore.config.update('num_threads', {threads})\n{calls}")


@needs_signals
def test_handlers_decide():
    run_script(LOOPS["while of scalars"], """
        check()
        def raise_error(*_):
            raise TimeoutError

        # One that does not raise: the loop goes on, and gives what it gives. Native loops in it may be
        # interrupted in their turn.
        heard, n = [], np.int64(300_000_000)
        def handle(*_):
            signal.signal(signal.SIGINT, raise_error)
            heard.append(int(f(np.int64(70_000))))
            heard.append(type(interrupt(run, error=TimeoutError)))
        signal.signal(signal.SIGINT, handle)
        after(0.05)
        while len(heard) < 2:
            assert int(f(n)) == n
        assert heard == [70_000, TimeoutError] and check()

        # Any signal.
        signal.signal(signal.SIGALRM, raise_error)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            run()
        except TimeoutError:
            heard.append("alarm")
        assert heard.pop() == "alarm" and check()
        """)


@needs_signals
def test_what_handlers_raise_is_no_error_of_the_program():
    run_script(LOOPS["autojit of scalars"], """
        class Late(Exception):
            pass
        def raise_late(*_):
            raise Late
        check()
        signal.signal(signal.SIGALRM, raise_late)
        for _ in range(4):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                run()
                raise AssertionError
            except Late:
                pass
        assert f.report().regions[0].tiers[0].value == "traced" and check()
        """)


@needs_signals
def test_other_threads_and_children_go_on():
    run_script(LOOPS["while of scalars"], """
        check()
        results, n = [], np.int64(1_000_000_000)
        thread = threading.Thread(target=lambda: results.append(int(f(n))))
        thread.start()
        assert type(interrupt(run)) is KeyboardInterrupt
        thread.join()
        assert results == [n]

        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if type(interrupt(run)) is KeyboardInterrupt and check() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and check()
        """)
