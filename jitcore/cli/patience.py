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

from jitcore.process.generated import Parameters, Pool, make_watching_code

#: What compiling may cost a process: seconds that are free, and a share of its time.
FREE, SHARE = 0.15, 0.2
#: Calls that take less are not noted: handing arguments to a program takes microseconds too.
SHORTEST = 20e-6
#: Seconds that a function's calls have taken before it is compiled; seconds that have to be there for loading
#: the compiler and a first program.
PATIENCE, LOADING = 0.3, 0.45


class PatientFunction:
    """Args: a function of the script; what all of them may cost.

    Attributes:
        wrapper: what the script gets.
    """

    def __init__(self, function: types.FunctionType, pool: Pool):
        self.function, self.pool = function, pool
        self.seconds = 0.0
        self.is_compiled = False
        code = make_watching_code(function, Parameters(function.__code__), function, SHORTEST, self.note)
        self.wrapper = types.FunctionType(code, function.__globals__, function.__name__,
                                          function.__defaults__, function.__closure__)
        self.wrapper.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(self.wrapper, function)
        # as `autojitted.decorate` marks it: functions that are compiled meet the function itself
        self.wrapper.__dict__.update(__jitcore_autojit__=function, __jitcore_original__=function)

    def note(self, seconds: float) -> None:
        """Told of each call."""
        self.seconds += seconds
        if self.seconds < PATIENCE or self.is_compiled:
            return
        if "jitcore.autojitted" in sys.modules or self.pool.funds >= LOADING:
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
