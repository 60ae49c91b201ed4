"""Runs programs with captured state, compiled and in plain Python, in several processes; makes failing ones small.

In: seeds. Out: differences, in words, with the smallest program that shows them.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import linecache
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import resource
import signal
import sys
import time
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from jitcore import autojit
from jitcore.autojitted import function as autojit_function
from tests.fuzz.state_observation import Observer, find_difference, mask_addresses
from tests.fuzz.state_programs import write_program
from tests.fuzz.state_shrinking import cut_calls, shrink
from tests.fuzz.state_vocabulary import PRELUDE

MODULE = "user_programs_state"
#: Seconds that a program may take.
PATIENCE = 20
#: Programs of one process, and the bytes of memory that it may ask for.
SHARE, MEMORY = 400, 16 << 30
_PRELUDE_CODE = compile(PRELUDE, f"<prelude of {MODULE}>", "exec")
_COUNTER = iter(range(10**9))


class Difference(NamedTuple):
    """kind: what differs; call: in which call; where: the way to it; expected, found: in plain Python, compiled;
    raises: whether plain Python raises."""

    kind: str
    call: int
    where: str = ""
    expected: str = ""
    found: str = ""
    raises: bool = False

    def __str__(self) -> str:
        return f"call {self.call}: {self.kind} {self.where}: {self.found[:200]}, expected {self.expected[:200]}"


def load(source: str, name: str, compiled) -> dict:
    """The variables of a new module with this program."""
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    space = module.__dict__
    space["__file__"] = name
    space["compiled"] = compiled
    exec(_PRELUDE_CODE, space)
    exec(compile(source, name, "exec"), space)
    return space


class Run:
    """One program with its state: call by call."""

    def __init__(self, source: str, name: str, compiled):
        self.space = load(source, name, compiled)
        self.results: list = []

    def call(self, change: str, arguments: str) -> tuple:
        """Parts of what is seen, by their names."""
        random.seed(1)
        np.random.seed(1)
        out, error, result = io.StringIO(), (), None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            try:
                exec(change, self.space)
                values = eval(f"({arguments},)", self.space)
            except Exception as raised:
                return (("change", type(raised).__name__, mask_addresses(str(raised))),)
            try:
                result = self.space["f"](*values)
            except Exception as raised:
                error = describe_error(raised)
        observer = Observer(MODULE)
        drawn = random.getstate()[1][-1], int(np.random.get_state()[2])
        state = observer.note_module(self.space)
        given, earlier = [observer.note(value) for value in values], [observer.note(one) for one in self.results]
        self.results.append(result)
        return (("error", error), ("printed", out.getvalue()), ("state", state), ("arguments", given), ("earlier results", earlier),
                ("result", observer.note(result)), ("shared memory", observer.list_shared()), ("drawn", drawn))


def describe_error(error: BaseException | None, depth: int = 0) -> tuple:
    """Type and text of an exception and of the ones behind it."""
    if error is None or depth > 3:
        return ()
    try:
        str(error)
    except Exception:  # a stand-in of tracing is in it
        return type(error).__name__, "STAND-IN"
    return (type(error).__name__, mask_addresses(str(error)), [mask_addresses(str(one)) for one in error.args if isinstance(one, (str, int, float))],
            [type(one).__name__ for one in error.args], describe_error(error.__cause__, depth + 1), describe_error(error.__context__, depth + 1))


class _Late(BaseException):
    """A program has taken too long."""


class NotJudged(Exception):
    """The program itself is at fault: it does not load, or plain Python takes long."""


@contextlib.contextmanager
def limit_seconds(seconds: float) -> Iterator[None]:
    """Raises: _Late, in Python code that runs longer."""

    def stop(signal_number, frame):
        raise _Late

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def compare(source: str, patience: float = PATIENCE - 2, decorate=autojit) -> Difference | None:
    """The first difference between the program with its functions decorated and in plain Python.

    Where a program repeats its calls, compiled code may give way to plain Python, as it does for users.

    Raises: NotJudged.
    """
    name = f"<state program {next(_COUNTER)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    try:
        with warnings.catch_warnings(), contextlib.nullcontext() if "\nREPEATS = " in source else keep_compiled():
            warnings.simplefilter("ignore")
            return _compare_calls(source, name, patience, decorate)
    finally:
        linecache.cache.pop(name, None)
        sys.modules.pop(MODULE, None)


def _compare_calls(source: str, name: str, patience: float, decorate) -> Difference | None:
    """Plain Python runs first: surroundings, such as os.environ, are set anew when a program is loaded."""
    try:
        with limit_seconds(10):
            plain = Run(source, name, lambda function: function)
            calls = plain.space["CALLS"] * plain.space.get("REPEATS", 1)
            all_expected = [plain.call(change, arguments) for change, arguments in calls]
    except (_Late, Exception) as error:
        raise NotJudged(repr(error)) from None
    number = -1
    try:
        with limit_seconds(patience):
            compiled = Run(source, name, decorate)
            for number, ((change, arguments), expected) in enumerate(zip(calls, all_expected)):
                if found := find_first_difference(number, expected, compiled.call(change, arguments)):
                    return found
    except _Late:
        return Difference("hang", number, found=f"more than {patience} s")
    return None


def find_first_difference(number: int, expected: tuple, found: tuple) -> Difference | None:
    """Of what is seen of a call with this number."""
    raises = expected[0] != ("error", ())
    for (kind, *one), (other_kind, *other) in zip(expected, found):
        if kind != other_kind:
            return Difference(kind, number, "", repr(one), repr(other), raises)
        if difference := find_difference(one, other):
            where, one, other = difference
            kind = "stand-in" if "STAND-IN" in repr(other) else kind
            return Difference(kind, number, ".".join(map(str, where[1:])), repr(one), repr(other), raises)
    return None


@contextlib.contextmanager
def keep_compiled() -> Iterator[None]:
    """Programs that take longer than plain Python are run all the same."""
    before = autojit_function.Probe._is_slower
    autojit_function.Probe._is_slower = lambda self, copies: False
    try:
        yield
    finally:
        autojit_function.Probe._is_slower = before


# -- processes ------------------------------------------------------------------------------------------------------
def _serve(connection, job) -> None:
    """A process that answers (key, argument) by (key, what job gives)."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    while (task := connection.recv()) is not None:
        key, argument = task
        try:
            answer = job(argument)
        except Exception as error:
            answer = Difference("internal error", -1, found=repr(error)[:300])
        is_sound = "kind='hang'" not in repr(answer)  # what was stopped may have left anything behind
        connection.send((key, answer, is_sound))
        if not is_sound:
            return


class Pool:
    """Processes that do jobs one by one. One that dies or takes too long is replaced, and its job has an answer of
    its own: `hang` or `crash`."""

    def __init__(self, job, jobs: int, patience: float = PATIENCE):
        self.job, self.jobs, self.patience = job, jobs, patience
        self.context = multiprocessing.get_context("fork")

    def run(self, tasks: Iterable[tuple]) -> Iterator[tuple]:
        """tasks: (key, argument). Yields: (key, answer) as they come."""
        tasks, workers = iter(tasks), {}  # connection: [process, key, began, done]
        while True:
            while len(workers) < self.jobs and (task := next(tasks, None)) is not None:
                self._start(workers, task)
            if not workers:
                return
            ready = multiprocessing.connection.wait(list(workers), timeout=1.0)
            for connection in list(workers):
                process, key, began, done = workers[connection]
                if connection in ready:
                    try:
                        key, answer, is_sound = connection.recv()
                    except (EOFError, ConnectionResetError):
                        process.join()
                        yield key, Difference("crash", -1, found=f"exit code {process.exitcode}")
                        del workers[connection]
                        continue
                    yield key, answer
                    if is_sound and done + 1 < SHARE and (task := next(tasks, None)) is not None:
                        connection.send(task)
                        workers[connection] = [process, task[0], time.monotonic(), done + 1]
                        continue
                    if is_sound:
                        connection.send(None)
                    process.join()
                    del workers[connection]
                elif time.monotonic() - began > self.patience:
                    process.kill()
                    process.join()
                    del workers[connection]
                    yield key, Difference("hang", -1, found=f"more than {self.patience} s")

    def _start(self, workers: dict, task: tuple) -> None:
        here, there = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(there, self.job), daemon=True)
        process.start()
        there.close()
        here.send(task)
        workers[here] = [process, task[0], time.monotonic(), 0]


def check_seed(seed: int) -> tuple:
    """(Difference or None, seconds)"""
    began = time.perf_counter()
    try:
        found = compare(write_program(seed))
    except NotJudged as error:
        found = Difference("not judged", -1, found=str(error)[:300])
    return found, time.perf_counter() - began


def find_differences(seeds: Iterable[int], jobs: int = 2) -> Iterator[tuple[int, Difference | None, float]]:
    for seed, answer in Pool(check_seed, jobs).run((seed, seed) for seed in seeds):
        found, seconds = (answer, PATIENCE) if isinstance(answer, Difference) else answer
        yield seed, found, seconds


def minimize(source: str, limit: float = 60.0) -> tuple[str, Difference]:
    """The smallest program found with a difference of the same kind, and the difference."""
    wanted = compare(source)
    assert wanted is not None, "there is no difference"

    def judge(text: str) -> Difference | None:
        try:
            found = compare(text, 3)
        except (NotJudged, SyntaxError):
            return None
        return found if found and found.kind == wanted.kind and found.raises <= wanted.raises else None

    return shrink(cut_calls(source, wanted.call + 1), judge, limit)


def _minimize_quietly(argument: tuple) -> tuple[str, Difference] | None:
    seed, limit = argument
    try:
        return minimize(write_program(seed), limit)
    except (AssertionError, NotJudged):
        return None


# -- the command ------------------------------------------------------------------------------------------------------
#: What the statements of a program are about, for the summary.
FEATURES = {
    name: re.compile(pattern, re.MULTILINE)
    for name, pattern in {
        "first in a loop": r"^ +(for|while) ", "first in a branch": r"^ +if ", "callback": r"key=|map\(|filter\(|reduce\(|accumulate\(|sub\('a'| for \w+ in .*\)|partial|dispatch|lru_cache|vectorize|quad",
        "generator": r"yield", "context manager": r"contextmanager|__enter__|ExitStack", "special method": r"def __(?!init__|enter__|exit__)\w+__|@property|descriptor|cached_property",
        "attribute of a function or class": r"\w+\.state\w* ?=|^    state = |\.count|\.seen|\.left", "changed code": r"__code__|= lambda|property\(lambda", "rebound in a loop": r"^    g = ",
        "surroundings": r"environ|printoptions|getcontext|ambient", "raises": r"raise |assert |// n|\[n\]|2 \*\* 62|undefined", "closure": r"^def make",
    }.items()
}


def classify(source: str) -> str:
    return ", ".join(name for name, pattern in FEATURES.items() if pattern.search(source)) or "direct"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.state_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--show", type=int, metavar="SEED", help="print a program and its difference")
    parser.add_argument("--minimize", type=int, metavar="SEED", help="print the smallest program with the difference of this one")
    parser.add_argument("--minimize-all", type=int, metavar="N", default=0, help="make the first N failing programs small")
    parser.add_argument("--file", help="compare the program in this file")
    options = parser.parse_args(arguments)
    if options.file:
        with open(options.file) as file:
            print(compare(file.read()))
        return 0
    if options.show is not None:
        print(source := write_program(options.show), compare(source), sep="\n")
        return 0
    if options.minimize is not None:
        if compare(source := write_program(options.minimize)) is None:
            print("no difference")
            return 0
        source, found = minimize(source)
        print(source, found, classify(source), sep="\n")
        return 1
    return _run_many(options)


def _run_many(options) -> int:
    began, failed, kinds, slow = time.monotonic(), [], collections.Counter(), []
    for done, (seed, found, seconds) in enumerate(find_differences(range(options.seed, options.seed + options.count), options.jobs), 1):
        if found:
            kinds[found.kind] += 1
            failed += [seed] if found.kind != "not judged" else []
            print(f"seed {seed}: {found}  [{classify(write_program(seed))}]", flush=True)
        if seconds > 5:
            slow.append((seed, round(seconds, 1)))
        if done % 1000 == 0:
            print(f"-- {done} programs, {len(failed)} differ, {time.monotonic() - began:.0f} s", flush=True)
    seconds = time.monotonic() - began
    print(f"{options.count} programs, {len(failed)} differ ({100 * len(failed) / options.count:.2f} %), {seconds:.0f} s, {seconds * options.jobs / options.count:.3f} s of a processor each")
    print("by kind:", dict(kinds.most_common()))
    if slow:
        print("more than 5 s:", slow[:20])
    seen = set()
    for seed, answer in Pool(_minimize_quietly, options.jobs, 90).run((seed, (seed, 30.0)) for seed in failed[: options.minimize_all]):
        if not isinstance(answer, tuple) or isinstance(answer, Difference):
            print(f"\n#### seed {seed}: {answer}")
            continue
        source, found = answer
        if (key := re.sub(r"\d+|array\([^)]*\)", "0", source)) not in seen:
            seen.add(key)
            print(f"\n#### seed {seed}: {found}  [{classify(source)}]\n{source}", flush=True)
    return 1 if failed else 0
