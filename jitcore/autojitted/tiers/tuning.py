"""Tuning: the thresholds of time and effort by which a function's tier is chosen.

In: what was measured, which explains each number. Out: a record, one of the `Options` of a function.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Tuning:
    """Seconds, shares of seconds, and counts of calls."""

    # -- what compiling may cost
    #: Seconds of work that are free for a function without arrays, which plain Python runs well as long as it
    #: is short; and for one with arrays.
    free: float = 0.25
    free_with_arrays: float = 4.0
    #: The share of the calls' seconds that attempts may cost beyond that; and when it is known that the
    #: function can be traced.
    share: float = 0.1
    share_when_traced: float = 0.25
    #: Seconds that have to be there for an attempt; by how much that is more behind one that came to nothing.
    least: float = 0.02
    rise: float = 4.0
    #: Seconds of plain Python below which a program is short, and beyond which it does not matter how long it
    #: is.
    short_program: float = 0.03
    long_program: float = 2.0
    #: Programs that are made of one loop.
    max_loop_programs: int = 32

    # -- what plain Python needs
    #: Seconds for a scalar operation, for a call of NumPy, and for an element of it; and iterations of a loop
    #: of which the number is not known.
    python_scalar: float = 4e-8
    python_call: float = 1e-6
    python_element: float = 1e-9
    python_iterations: int = 1_000_000
    #: Values in arguments, letters of texts: more say that it is they what the function works on.
    max_values: int = 128
    max_letters: int = 64

    # -- whether a program is faster
    #: Calls of a new program that are timed; one that takes longer than so many seconds is not compared: a
    #: fifth of them for loops, which may take Python hundreds of times as long.
    probed_calls: int = 4
    probed_seconds: float = 200e-6
    #: Calls of each that are compared at least, and at most where they take less than so many seconds
    #: together: Python runs code faster that it has run some times.
    comparisons: int = 4
    most_comparisons: int = 24
    comparing_seconds: float = 100e-6
    #: The same of programs that print, which may take longer than Python's loop if they hardly do anything
    #: else.
    probed_printing: float = 20e-3
    #: Seconds of a call in plain Python that are no accident of a short one.
    sure_seconds: float = 1e-3
    #: A call in plain Python is long when it takes so many times what a program that gave way to it takes.
    long_calls: int = 4

    # -- when a function or a loop is left alone
    #: Calls in plain Python, with nothing compiled, after which a function is left alone: one of which
    #: nothing could be traced, and any other.
    calls_before_leaving: int = 50
    calls_before_leaving_traced: int = 1000
    #: Seconds of calls after which it is asked again whether compiling can be afforded.
    between_questions: float = 2e-3
    #: Calls that a loop declines, with nothing compiled, before its gate is closed; for how many more counts
    #: one whose values cannot be read: they are read each time, which takes longer.
    calls_before_closing: int = 50
    reading_counts: int = 9

    # -- Numba
    #: Seconds that calls have taken in plain Python before Numba's compiler, which needs seconds itself, is
    #: asked; seconds of a call for which it is not, and between two declined calls of a loop.
    patience: float = 20.0
    short_call: float = 50e-6
    short_loop_call: float = 1e-3
