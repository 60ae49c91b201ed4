"""Ways to run scripts whose hot loops are compiled: programs, modules, files inside of a process, cells.

In: paths, names, cells. Out: what they do; and a report of what was compiled.

Modules:
    imports  The script's own modules: those below its folder, the working folder, or one that it adds to
             `sys.path`, installed ones excepted.
    page     The report of a run as a page of HTML: what was compiled, beside the source.
    report   What became of the hot loops and functions of a script.
    runner   Runs programs as `python SCRIPT` and `python -m MODULE` would, and scripts as `runpy.run_path`
             does.
"""
