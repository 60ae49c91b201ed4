"""Whole scripts: `python -m jitcore run`.

In: the text of a script. Out: what it does in plain Python, sooner: its hot loops and functions are compiled
by another process while it runs, entered where they stand, and checked at their first use. What is loaded
before something is hot (`runner`, `sampling`, `units`, `entries`, `learned`) needs neither NumPy nor the
compiler.

Modules:
    arming       Stopping a running frame at the head of a loop, exactly.
    compiling    Loops of a script compiled in another process than the script's.
    entries      On-stack replacement: places at the head of each loop where a frame that runs can be entered
                 from outside.
    environment  What a piece of a script works on, told to another process: types and sizes, not contents.
    fates        What becomes of a unit that is hot, and what later runs are told of it.
    frames       Variables of frames that run, written from outside, and who else has their values.
    functions    What becomes of a function of the script that is called often, by plain Python or by a
                 library.
    gates        What stands at the head of loops and the beginning of functions: gates, and what is known of
                 their code.
    helper       The process that compiles beside the script, as the script's process sees it.
    interrupts   Handlers of signals wait while a program runs in the place of a loop: they run between two
                 iterations.
    iterators    What a loop of a script has before it: a number of iterations, and their elements as arrays.
    learned      What earlier runs of a script learned about its loops, on disk.
    loops        What becomes of a loop of the script: plain Python, a program that is checked, and then that
                 program.
    regions      Compiled loops of a script, as the process that runs it sees them: without a compiler.
    running      The run time of compiled loops: what the code of a call names, and machine code from disk.
    runs         What becomes of a run of statements that stands in a loop between two that are opaque.
    sampling     Which loops and functions of a running script cost time.
    sessions/    Ways to run scripts whose hot loops are compiled: programs, modules, files inside of a
                 process, cells.
    texts        Texts of the script: its file, its own modules, cells of a notebook, with entries in their
                 code.
    tracers      Debuggers, profilers and what measures coverage: where one of them watches, the script runs
                 in Python.
    trial        The first use of a compiled loop is checked: on copies of what it works on it does some
                 iterations, Python does the same ones, and both must agree.
    units        Parts of a script that may be compiled: its loops and functions, while nothing is known of
                 them but their ticks.
    watching     Loops of a code object once more, each with a back edge that asks: a frame is watched where
                 it runs there.
    worker       The process that compiles for one that runs a script: jobs come in, programs go out.
    workshop     What is done about hot units: they are compiled by another process, and frames that run are
                 entered.
"""
