"""From a call to a compiled program: signatures, caches, backends.

In: a Python function and the arguments of one call. Out: an executable for these types, run on the arrays.
Stage: the last but one; `api` puts the public names on top. Data flows through the modules in this order:

    options.py     what was given to `jit`
    parameters.py  which parameters are static or donated
    signature.py   one call -> leaves, structure and avals
    tracing.py     signature -> jaxpr
    abstracted.py  axes whose extent stays open
    program.py     jaxpr -> passes -> executable, kept in executables.py, compiled by a backend of backend.py
    disk_cache.py  what backends compiled, for other processes
    progress.py    a line for people when that takes long
    donation.py    which memory a call may overwrite
    tree_code.py   source that takes pytrees apart and puts them together
    function.py    the caches of one function; what a call does when it meets a new signature
    fast_call.py   what a call does when its signature is known
    eager.py       an operation on arrays of a device, outside of every program
    inner.py       a jitted function called while another is traced
    misses.py      why a call was not served from the cache
    counters.py    how often all this traced and compiled
"""

from jitcore.dispatch.counters import counters

__all__ = ["counters"]
