"""`autojit`: functions of plain Python and NumPy, compiled with the semantics that they have.

In: a function and calls of it. Out: what Python and NumPy would give, arrays changed in place included.
Data flows through the modules in this order:

    specs.py       what a call depends on: arguments and captured variables, as keys, code and stand-ins
    reading.py     from values to specs
    matching.py    what specs write and build: the checks of a call, and the stand-ins
    guards.py      code of functions and classes that has to be what it was
    captures.py    global, closure and module variables that traced code reads and sets
    purity.py      which functions of libraries traced code may call
    prospects.py   what bytecode and arguments say about whether compiling can pay
    budget.py      what compiling may cost, and when it is tried
    recording.py   specs -> jaxpr, and what is returned and written
    error_state.py what NumPy does about floating-point errors around a call
    results.py     what is returned and written -> code that does it
    printed.py     what a program has printed when it gives up
    entry.py       a program and the code around it: one signature, compiled
    policy.py      which Python numbers are constants and which are inputs
    copies.py      arguments copied for trials, results compared
    exporting.py   a program as a function that Numba's code may call
    native.py      the function compiled by Numba
    inline.py      a call with traced arguments
    tiers.py       traced, Numba, plain Python; the warning
    probing.py     whether a new program takes less time than plain Python
    wrapper.py     a function of the same parameters that hands its arguments on
    served.py      what is known of one signature
    function.py    the signatures of one function and the tier of each
    loops.py       the loops of a function that cannot be traced, each a function
    report.py      what was compiled and what was not, for people
    decorate.py    methods, partials and all else that is callable
"""

from jitcore.autojitted.decorate import adopt, decorate
from jitcore.autojitted.function import Options
from jitcore.autojitted.tiers import AutojitWarning

__all__ = ["AutojitWarning", "Options", "adopt", "decorate"]
