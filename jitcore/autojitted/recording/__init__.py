"""From a function and stand-ins for its arguments to a jaxpr: one run of the rewritten function, watched.

In: a function, `inputs.specs`. Out: a `Recording`: a jaxpr, and what the call returns, writes and prints, as
code.

Modules:
    purity     Which functions of Python and of libraries traced code may call, and what it calls instead of
               others.
    recorder   Recording: one run of the user's function on stand-ins, as a jaxpr with its results and its
               writes.
    replaying  Views of the caller's arrays, made anew in each call.
    results    What a call returns and writes, as code.
"""
