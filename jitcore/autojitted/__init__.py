"""`autojit`: functions of plain Python and NumPy, compiled with the semantics that they have.

In: a function and calls of it. Out: what Python and NumPy would give, arrays changed in place included.

Modules:
    decorate    From a callable to its autojitted form: functions, methods, partials, and what cannot be
                compiled.
    entry       Entries: one signature of a function, compiled: a program and the code of the calls that it
                serves.
    exporting   A traced function as a function that Numba's nopython code may call.
    following   Defaults and parameters of a function that change after it was decorated: its wrapper gets
                them too.
    function    The signatures of one function, and the tier that serves each.
    inputs/     What a call depends on: arguments, captured variables, attributes, and code that has to stay
                what it was.
    loops       The loops of a function that cannot be traced as a whole, each compiled for itself.
    options     What `autojit` is asked for.
    recording/  From a function and stand-ins for its arguments to a jaxpr: one run of the rewritten function,
                watched.
    tiers/      Which way a call is served: compiled by tracing, by Numba, or by plain Python; and what that
                may cost.
"""

from jitcore.autojitted.decorate import decorate
from jitcore.autojitted.options import Options
from jitcore.autojitted.tiers.report import AutojitWarning

__all__ = ["AutojitWarning", "Options", "decorate"]
