"""Jitted functions in forked and spawned processes, in pools, and at the end of the interpreter."""

import os
import subprocess
import sys
import textwrap

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import jitcore, jitcore.numpy as jnp

def end_child(is_right):
    signal.alarm(60)  # ends a child that waits for ever
    os._exit(0 if is_right() else 1)

def wait_for(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run_script(text, tmp_path):
    """Runs a program of its own, which a spawned process can import. Returns: what it wrote on stderr."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + textwrap.dedent(text))
    result = subprocess.run([sys.executable, path], timeout=300, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr


@needs_fork
def test_forks_while_a_thread_compiles(tmp_path):
    # The other thread is inside the compiler for as long as the child lives.
    run_script(
        """
        from jitcore.backends.cpu.backend import CpuBackend
        compile, parent = CpuBackend.compile, os.getpid()
        began, may_go_on = threading.Event(), threading.Event()

        def compile_slowly(self, *args):
            if os.getpid() == parent:
                began.set()
                may_go_on.wait()
            return compile(self, *args)

        CpuBackend.compile = compile_slowly
        f, x = jitcore.jit(lambda x: jnp.sin(x).sum()), np.zeros(100, np.float32)
        thread = threading.Thread(target=f, args=(x,))
        thread.start()
        began.wait()
        child = os.fork()
        if child == 0:
            end_child(lambda: float(f(x)) == 0 and float(jitcore.jit(lambda x: x.max() + 1)(x)) == 1)
        status = wait_for(child)
        may_go_on.set()
        thread.join()
        assert float(f(x)) == 0 and f.cache_info().compiles == 1
        sys.exit(status)
        """,
        tmp_path,
    )


@needs_fork
def test_forks_while_a_thread_holds_each_lock(tmp_path):
    run_script(
        """
        from jitcore.process import concurrency
        f, x = jitcore.jit(lambda x: x.sum()), np.ones(100, np.float32)
        f(x)
        locks, held, is_done = list(concurrency._locks), threading.Event(), threading.Event()
        assert len(locks) > 5

        def hold():
            for lock in locks:
                lock.__enter__()
            held.set()
            is_done.wait()
            for lock in locks:
                lock.__exit__()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            end_child(lambda: float(f(np.ones(7))) == 7 and float(jitcore.jit(lambda x: x.max())(x)) == 1)
        status = wait_for(child)
        is_done.set()
        thread.join()
        assert float(f(np.ones(9))) == 9
        sys.exit(status)
        """,
        tmp_path,
    )


@needs_fork
def test_forks_while_threads_compute(tmp_path):
    run_script(
        """
        f, x = jitcore.jit(lambda x: (jnp.cos(x), x.sum())), np.ones(300_000, np.float32)
        f(x)
        wrong, is_done = [], threading.Event()

        def compute():
            while not is_done.is_set():
                if float(f(x)[1]) != 300_000:
                    wrong.append(1)

        def check():
            results = []
            thread = threading.Thread(target=lambda: results.append(float(f(x)[1])))
            thread.start()
            thread.join()
            return results == [300_000] and float(f(x)[1]) == 300_000

        def fork_often():
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    end_child(check)
                wrong.extend([status] if (status := wait_for(child)) else [])

        threads = [threading.Thread(target=compute) for _ in range(2)]
        for thread in threads:
            thread.start()
        fork_often()
        other = threading.Thread(target=fork_often)
        other.start()
        other.join()
        is_done.set()
        for thread in threads:
            thread.join()
        sys.exit(bool(wrong))
        """,
        tmp_path,
    )


@needs_fork
def test_grandchild(tmp_path):
    run_script(
        """
        f, x = jitcore.jit(lambda x: (jnp.cos(x), x.sum())), np.ones(300_000, np.float32)
        f(x)
        child = os.fork()
        if child == 0:
            f(x)
            grandchild = os.fork()
            if grandchild == 0:
                end_child(lambda: float(f(x)[1]) == 300_000)
            end_child(lambda: wait_for(grandchild) == 0)
        sys.exit(wait_for(child))
        """,
        tmp_path,
    )


POOLS = """
import concurrent.futures, multiprocessing

@jitcore.jit
def add_squares(x):
    return (x * x).sum()

def keep(function):
    global kept
    kept = function

def call_kept(size):
    return float(kept(np.full(size, 2, np.float32)))

if __name__ == "__main__":
    x = np.ones(300_000, np.float32)
    add_squares(x)
    context = multiprocessing.get_context("$METHOD")
    with concurrent.futures.ProcessPoolExecutor(2, context, keep, (add_squares,)) as pool:
        assert list(pool.map(call_kept, [3, 4, 200_000], timeout=100)) == [12, 16, 800_000]
        assert [float(y) for y in pool.map(add_squares, [x[:5], x], timeout=100)] == [5, 300_000]
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(method, tmp_path):
    """Functions travel by name, in arguments of initialisers and as tasks; results as arrays."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    run_script(POOLS.replace("$METHOD", method), tmp_path)


def test_the_interpreter_ends_while_threads_compile_and_compute(tmp_path):
    message = run_script(
        """
        import atexit
        f, x = jitcore.jit(lambda x: jnp.sin(x) + 1), np.ones(300_000, np.float32)
        f(x)

        calls = threading.Semaphore(0)

        def work(number):
            for k in range(10**9):
                f(x)
                if number % 2:
                    jitcore.jit(lambda y: jnp.cos(y) + k)(x[:10])
                calls.release()

        class CallsAtItsEnd:
            def __del__(self):
                f(x)

        last = CallsAtItsEnd()
        atexit.register(f, x)
        for number in range(4):
            threading.Thread(target=work, args=(number,), daemon=True).start()
        for _ in range(100):
            calls.acquire()
        """,
        tmp_path,
    )
    assert "Fatal" not in message and "Traceback" not in message


def test_the_interpreter_ends_while_threads_flatten_pytrees(tmp_path):
    # The library that flattens gives up the GIL at each leaf. CPython before 3.14 ends a thread that waits for
    # it by unwinding its stack, and where C++ does not allow that, the process ends with "terminate called".
    message = run_script(
        """
        from jitcore import tree_util
        leaves, began = [object() for _ in range(1000)], threading.Semaphore(0)

        def work():
            while True:
                assert tree_util.tree_flatten(leaves)[0] == leaves
                began.release()

        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(3):
            began.acquire()
        """,
        tmp_path,
    )
    assert message == ""
