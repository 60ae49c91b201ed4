"""What a signal's handler raises reaches the caller, wherever jitcore is when it does, and nothing else changes."""

import signal
import sys

import numpy as np
import pytest

from jitcore import autojit
from jitcore.autojitted import function
from jitcore.autojitted.recording import recorder
from jitcore.core.source import raise_interruption
from jitcore.dispatch import program
from jitcore.dispatch.call_facts import MISS
from jitcore.dispatch.program import Program

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal")


class Late(Exception):
    """As TimeoutError: no BaseException like KeyboardInterrupt, which nobody catches by accident."""


class Handlers:
    def method(self, number, frame):
        raise Late

    def __call__(self, *details):
        raise Late


def handle(number, frame):
    raise Late


HANDLERS = {
    "function": handle,
    "method": Handlers().method,
    "object": Handlers(),
    "any arguments": lambda *_: handle(*_),
}


@pytest.fixture(params=HANDLERS)
def handler(request):
    before = signal.signal(signal.SIGUSR1, HANDLERS[request.param])
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupt(monkeypatch, owner, name):
    """The next call of a function of jitcore's begins with a signal."""
    original = getattr(owner, name)

    def call(*args, **kwargs):
        monkeypatch.setattr(owner, name, original)
        signal.raise_signal(signal.SIGUSR1)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def run_loop(x, n):
    for i in range(n):
        x = x + i
    return x


@pytest.mark.parametrize(
    "owner, name", [(program, "program_key"), (Program, "bind"), (recorder, "ResultWriter")]
)
def test_attempts_end(monkeypatch, handler, owner, name):
    """Tracing and compiling are given up, plain Python does not run the call in their place."""
    own = autojit(run_loop, strict=True)
    interrupt(monkeypatch, owner, name)
    with pytest.raises(Late):
        own(np.ones(3), 3)
    assert (own(np.ones(3), 3) == 4).all()
    assert own.report().regions[0].tiers[0].value == "traced"


def test_calls_of_programs_end(monkeypatch, handler):
    """However many calls end so, the program stays."""
    own = autojit(run_loop, strict=True)
    own(np.ones(3), 3)
    (maker,) = (one for one in function._all_functions if one.wrapper is own)
    entry = maker.last_entry
    for call in (lambda: entry.call(Interrupting(), 3), lambda: entry.call(np.ones(3), Interrupting())):
        with pytest.raises(Late):
            call()
    assert entry.failures == 0 and entry.call(np.ones(3), 3) is not MISS


class Interrupting:
    """An argument of another class, of which the checks of a program ask something."""

    @property
    def dtype(self):
        signal.raise_signal(signal.SIGUSR1)

    __class__ = dtype


def test_others_are_no_handlers():
    """Functions that know a frame, that are called by the code that they know nothing of, errors of theirs."""

    def fail(*frames):
        raise ZeroDivisionError

    for frames in ((), (sys._getframe(),), (sys._getframe().f_back, 1)):
        try:
            list(map(lambda _: fail(*frames), [1]))
        except ZeroDivisionError as error:
            raise_interruption(error)
