"""Running machine code: calls from Python, memory, threads, signals.

In: loaded code and ndarrays. Out: ndarrays.

Modules:
    checks        The native function that checks calls: whether arrays, codes and the error state are those a
                  program was made for.
    host_calls    Programs that call Python: library calls between native steps, and from within native loops
                  and branches.
    interrupts    How native loops that run for long hear of signals: Ctrl-C ends them as it ends Python's.
    launch        Calls of compiled programs from Python: plans, functions that carry them out, and one
                  trampoline for all.
    list_numbers  Lists of Python's numbers into memory and back by native code: as `process.lists` does it,
                  20 times as fast.
    memory        Memory of large arrays: where it begins, and what becomes of it when an array is gone.
    pool          The pool of POSIX threads that a process keeps for the loops of its kernels.
    threads       Threads of compiled kernels: the native function `jitcore_parallel_for`.
    trampolines   The functions of native code that Python calls: launchers of programs, and what makes arrays
                  and numbers. It is loaded where they are not on disk.
"""
