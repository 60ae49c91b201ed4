"""The process around jitcore: locks and forks, processors, the cost of compiling, pickles.

In: nothing but what Python and the operating system say. Out: what all other rooms use of them.

Modules:
    concurrency  Threads, forks and processors: what the caches need, and Python's own locks and cached
                 properties lack.
    effort       Effort: what an attempt to compile costs, counted where the work is done, and its end when it
                 is too much.
    generated    Functions that are made of source text; and wrappers: functions with the parameters of
                 another one.
    lazy         Modules that are imported when something of them is asked for: optional ones, and those that
                 take long.
    lists        Lists of numbers, and lists of such lists, as arrays and back.
    objects      Lists of objects of one class, taken apart by attribute and put together again.
    pickling     How what decorators return is pickled: by name where it is a global, as plain functions are.
    streams      Generators of random numbers as arrays of words, which compiled code draws from.
    versions     CPython's versions of classes: numbers that change as soon as a class or one of its bases
                 does.
"""
