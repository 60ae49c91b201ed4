"""Primitives that hold programs: conditions, loops, checks, and calls of Python.

In: functions of pytrees and their operands. Out: what the functions give, traced once each; their
derivatives.

Modules:
    associative_scan   `associative_scan`: all prefixes of an associative operation, in a number of steps that
                       is logarithmic.
    callback           Python functions called from a program: `pure_callback`, `io_callback`, and what
                       `jitcore.debug` binds.
    cond               `cond` and `switch`: one of several functions, chosen at run time.
    cond_derivatives   Derivatives of `cond`: rules of jvp, of partial evaluation and of transposition.
    control            What `cond`, `while_loop` and `scan` share: tracing functions of pytrees and comparing
                       what they return.
    implicit           Implicit differentiation: roots and linear solutions, whatever computes them.
    loops              `while` as a value, and loops and choices written inside rules.
    raise_if           `raise_if`: an exception of Python's, raised when a program runs.
    reverse_loop       The reverse pass of a `while` loop: its carry in every iteration, last one first, from
                       checkpoints.
    scan               `scan`, `map` and `associative_scan`: loops over the leading axis of arrays.
    scan_derivatives   Derivatives of `scan`: rules of jvp, of partial evaluation and of transposition.
    while_derivatives  Derivatives of `while`: rules of jvp, of partial evaluation and of transposition, and
                       the primitive `while_vjp`.
    while_loop         `while_loop` and `fori_loop`: loops whose trip count is known at run time.
"""
