"""From a function and stand-ins for its arguments to a jaxpr: one run of the rewritten function, watched.

In: a function, `inputs.specs`. Out: a `Recording`: a jaxpr, and what the call returns, writes and prints, as
code.

Modules:
    error_state  NumPy's floating-point error state: whether a call may be silent about what it divides by
                 zero.
    inline       A call with traced arguments: the function becomes a part of what is being traced.
    printed      What a program has printed when it gives up: plain Python, which runs the call then, leaves
                 it out.
    purity       Which functions of Python and of libraries traced code may call, and what it calls instead of
                 others.
    recorder     Recording: one run of the user's function on stand-ins, as a jaxpr with its results and its
                 writes.
    results      What a call returns and writes, as code.
    sentry       The sentry: notices code of the user that runs while tracing although it was not entered.
"""
