"""Patience: the functions of a script under `run --all`, which run as they are until compiling them can pay.

In: functions as the script defines them. Out: the same functions, which are timed; one whose calls have taken
long is compiled from then on, if all of them together have not cost more than a share of the process' time.
Nothing of the compiler is loaded before that.
"""

from __future__ import annotations

import functools
import sys
import types
from time import process_time
from typing import NamedTuple

from jitcore.process.generated import Parameters, Pool, make_watching_code


class Patience(NamedTuple):
    """Seconds, and a share of seconds, as they were measured.

    free, share: what compiling may cost a process: seconds that are free, and a share of its time.
    shortest: calls that take less are not noted: handing arguments to a program takes microseconds too.
    due: what a function's calls have taken before it is compiled.
    loading: what has to be there for loading the compiler and a first program."""

    free: float = 0.15
    share: float = 0.2
    shortest: float = 20e-6
    due: float = 0.3
    loading: float = 0.45


class PatientFunction:
    """Args: a function of the script; what all of them may cost; how long it runs as it is.

    Attributes:
        wrapper: what the script gets.
    """

    def __init__(self, function: types.FunctionType, pool: Pool, patience: Patience = Patience()):
        self.function, self.pool, self.patience = function, pool, patience
        self.seconds = 0.0
        self.is_compiled = False
        code = make_watching_code(function, Parameters(function.__code__), function, patience.shortest,
                                  self.note)
        self.wrapper = types.FunctionType(code, function.__globals__, function.__name__,
                                          function.__defaults__, function.__closure__)
        self.wrapper.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(self.wrapper, function)
        # as `autojitted.decorate` marks it: functions that are compiled meet the function itself
        self.wrapper.__dict__.update(__jitcore_autojit__=function, __jitcore_original__=function)

    def note(self, seconds: float) -> None:
        """Told of each call."""
        self.seconds += seconds
        if self.seconds < self.patience.due or self.is_compiled:
            return
        if "jitcore.autojitted" in sys.modules or self.pool.funds >= self.patience.loading:
            self.compile()

    def compile(self) -> None:
        """Hands the function over to `autojit`."""
        self.is_compiled, start = True, process_time()
        # Loading the compiler is paid for, as compiling is.
        from jitcore.autojitted import adopt

        self.pool.spent += process_time() - start
        adopt(self.function, self.wrapper, self.pool, self.seconds)

    def report(self) -> str:
        """What became of it."""
        if self.is_compiled:
            return str(self.wrapper.report())
        return f"{self.function.__qualname__}: runs in plain Python, as its calls have not taken long"
