"""The code that a rewritten function runs.

In: the graph and flow of a function. Out: a code object that can be entered and left at each decision, or has
hooks; loops as functions of their own.

Modules:
    entered    What is left of a loop, as a function, where a frame that runs stands at the loop's head.
    folded     Generators as functions that fold what they yield: `sum(v * v for v in x)` as a loop of its
               own.
    outlined   The code of loops as functions, and of the function that calls them.
    outlining  Which loops of a function can be functions of their own, and what goes into and out of them.
    resumable  Code that can be entered and left at many points: the code object that a rewritten function
               runs.
"""
