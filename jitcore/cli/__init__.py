"""Commands of `python -m jitcore`, one module each.

In: arguments of the command line. Out: text, and an exit status.

Modules:
    cache   Shows or empties the folder of compiled programs.
    demo    Shows one function on its way from Python to machine code, checks its values and times it.
    doctor  Describes this installation: versions, system, BLAS, backends, targets, machine, settings, caches.
    run     Runs a Python script as `python SCRIPT` would, sooner: its hot loops are compiled while it runs.
"""
