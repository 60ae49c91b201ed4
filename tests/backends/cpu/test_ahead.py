"""Modules that are compiled ahead by a second thread, and the lanes in which two are translated at once."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from jitcore.backends.cpu.native import images as symbols, libraries, objects, translate
from jitcore.config import config

TEXT = "define double @f{0}(double %x) {{\n  %y = fadd double %x, {0}.0\n  ret double %y\n}}\n"

needs_images = pytest.mark.skipif(not objects.can_link(), reason="object code is linked by LLVM")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """Runners may have one."""
    monkeypatch.setattr(libraries, "available_cores", lambda: 2)
    wait_for_worker()
    libraries._jobs.clear()


def wait_for_worker():
    worker = libraries._worker
    if worker is not None:
        worker.join(60)


def test_what_was_begun_is_made_once_by_another_thread():
    makers = []

    def make():
        makers.append(threading.current_thread())
        return "made"

    libraries.begin("key", make)
    libraries.begin("key", make)
    wait_for_worker()
    assert libraries.finish("key") == "made" and libraries.finish("key") is None
    assert len(makers) == 1 and makers[0] is not threading.current_thread()


def test_who_asks_first_makes_it_and_who_waits_makes_something_else():
    began, may_end, makers = threading.Event(), threading.Event(), {}

    def make_slowly():
        began.set()
        assert may_end.wait(60)
        return "slow"

    def make(key):
        makers[key] = threading.current_thread()
        if key == "last":
            may_end.set()
        return key

    libraries.begin("slow", make_slowly)
    assert began.wait(60)
    libraries.begin("asked", lambda: make("asked"))
    libraries.begin("last", lambda: make("last"))
    assert libraries.finish("asked") == "asked"
    assert libraries.finish("slow") == "slow"  # it would wait for ever
    assert libraries.finish("last") == "last"
    assert set(makers.values()) == {threading.current_thread()}


@pytest.mark.parametrize("is_asked_at_once", [True, False])
def test_what_fails_is_tried_again_by_who_needs_it(is_asked_at_once):
    def fail():
        raise ZeroDivisionError

    libraries.begin("failing", fail)
    if not is_asked_at_once:
        wait_for_worker()
    assert libraries.finish("failing") is None


def test_without_another_thread_it_is_made_when_asked_for(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    libraries.begin("key", lambda: threading.current_thread())
    assert libraries.finish("key") is threading.current_thread()


@needs_images
def test_a_module_is_compiled_ahead_once(monkeypatch):
    translated = []
    translate_now = libraries._translate
    monkeypatch.setattr(libraries, "_translate",
                        lambda *given: translated.append(given[-1]) or translate_now(*given))
    with config.override(cache_dir=""):
        libraries.compile_ahead("f3", "", lambda: TEXT.format(3), opt_level=0)
        wait_for_worker()
        assert translated == [0]
        library, is_new = libraries.find_or_compile("f3", "", lambda: TEXT.format(3), opt_level=0)
        assert is_new and library.symbols == ("f3",) and translated == [0]
        libraries.find_or_compile("f3", "", lambda: TEXT.format(3), opt_level=0)
        assert translated == [0, 0]


@needs_images
def test_what_is_on_disk_is_not_compiled_ahead(tmp_path, monkeypatch):
    with config.override(cache_dir=str(tmp_path)):
        assert libraries.find_or_compile("f4", "", lambda: TEXT.format(4))[1]
        translated = []
        monkeypatch.setattr(libraries, "_translate", lambda *args: translated.append(args))
        libraries.compile_ahead("f4", "", lambda: TEXT.format(4))
        wait_for_worker()
        assert not libraries.find_or_compile("f4", "", lambda: TEXT.format(4))[1]
        assert not translated


@needs_images
def test_errors_of_modules_compiled_ahead_reach_who_needs_them():
    with config.override(cache_dir=""):
        libraries.compile_ahead("bad", "", lambda: "define nonsense")
        wait_for_worker()
        with pytest.raises(libraries.NativeCodeError, match="LLVM refuses the IR"):
            libraries.find_or_compile("bad", "", lambda: "define nonsense")


@pytest.mark.parametrize("setting", ["one core", "one thread"])
def test_one_core_is_left_alone(monkeypatch, setting):
    begun = []
    monkeypatch.setattr(libraries, "begin", lambda *args: begun.append(args))
    monkeypatch.setattr(libraries, "available_cores", lambda: 1 if setting == "one core" else 8)
    before = config.num_threads
    config.update("num_threads", 1 if setting == "one thread" else 0)
    try:
        libraries.compile_ahead("f5", "", lambda: TEXT.format(5))
    finally:
        config.update("num_threads", before)
    assert not begun


def test_only_symbols_that_are_not_there_are_foreseen(monkeypatch):
    foreseen = []
    monkeypatch.setattr(symbols, "_providers", {})
    symbols.provide("test_ahead_", lambda symbol: 12345, foreseen.append)
    symbols.foresee("test_ahead_a")
    assert symbols.address_of("test_ahead_a") == 12345
    symbols.foresee("test_ahead_a")
    symbols.foresee("nobody's")
    assert foreseen == ["test_ahead_a"]


def test_both_lanes_translate_at_once():
    """Each lane many modules, while other threads compile too; equal text gives equal code."""
    texts = [TEXT.format(number) for number in range(60)]
    expected = [translate.translate(text, number % 4).image for number, text in enumerate(texts)]
    found: dict[str, list] = {"first": [], "second": [], "other": []}

    def work(name):
        for number, text in enumerate(texts):
            found[name].append(translate.translate(text, number % 4).image)

    def work_in_second_lane():
        with translate.in_second_lane():
            assert translate.compiler_lock() is translate._second_lock
            work("second")
        assert translate.compiler_lock() is not translate._second_lock

    threads = [threading.Thread(target=work_in_second_lane), threading.Thread(target=work, args=("other",))]
    for thread in threads:
        thread.start()
    work("first")
    for thread in threads:
        thread.join(120)
    assert all(images == expected for images in found.values())


PRODUCTS = """
import os, signal, sys, threading, time
import numpy as np
import jitcore, jitcore.numpy as jnp
from jitcore.backends.cpu.native import libraries as ahead, libraries as native
native.available_cores = lambda: 2
f = jitcore.jit(lambda a, b: jnp.tanh(a @ b[:, :77]) @ b[:77] + jnp.sort(a, axis=1)[:, :1])
rng = np.random.default_rng(0)
a, b = rng.standard_normal((83, 90)), rng.standard_normal((90, 101))
expected = np.tanh(a @ b[:, :77]) @ b[:77] + np.sort(a, axis=1)[:, :1]  # NumPy's BLAS may hang in a child

def is_right():
    return np.allclose(np.asarray(f(a, b)), expected)

def import_all():
    # Python itself cannot import in a child what another thread was importing.
    f(a.astype(np.float32), b.astype(np.float32))
"""


def run_script(text, **environment):
    command = [sys.executable, "-c", PRODUCTS + textwrap.dedent(text)]
    return subprocess.run(command, env=os.environ | {"JITCORE_CACHE_DIR": ""} | environment, timeout=300,
                          capture_output=True, text=True)


@needs_images
def test_a_program_and_what_it_calls_are_translated_by_two_threads():
    result = run_script("""
        makers, translate = set(), native._translate
        def note(*given):
            makers.add(threading.current_thread() is threading.main_thread())
            return translate(*given)
        native._translate = note
        print(is_right(), makers)
    """)
    assert result.stdout.split() == ["True", "{False,", "True}"], result.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_children_forked_while_modules_are_compiled_ahead():
    result = run_script("""
        import_all()
        thread = threading.Thread(target=is_right)
        thread.start()
        statuses = []
        for k in range(20):
            sum(range(100_000))  # each at another time
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if is_right() else 1)
            statuses.append(child)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in statuses]
        thread.join()
        print(is_right(), set(statuses))
    """)
    assert result.stdout.split() == ["True", "{0}"], result.stderr


@pytest.mark.parametrize("ends", ["", "sys.exit(3)", "raise KeyError"])
def test_the_interpreter_ends_while_modules_are_compiled_ahead(ends):
    result = run_script(f"""
        from jitcore.backends.cpu.native import images as symbols
        jitcore.jit(lambda x: x + 1)(np.ones(3))
        for kind in ("product_matrices", "product_multiply", "part_tile14full", "part_tile4edge"):
            symbols.foresee(f"jitcore_{{kind}}_f64")
        {ends}
    """)
    assert result.returncode == {"": 0, "sys.exit(3)": 3, "raise KeyError": 1}[ends], result.stderr
    assert "terminate" not in result.stderr and ("KeyError" in result.stderr) == (ends == "raise KeyError")
