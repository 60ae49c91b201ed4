"""Events: what jitcore does, published at the few places where it happens.

In: events. Out: lines of a logger, and of progress; timelines and names of code are made by
`jitcore.profiler`.

Modules:
    logbook     Lines about what jitcore does, by the logger `jitcore` of Python's `logging`.
    progress    Progress of slow compiles: one line for who waits, in a terminal or in a notebook, gone when
                it is done.
    publishing  Events: what jitcore does, told to whoever reads along.
"""
