"""The code that a rewritten function runs.

In: the graph and flow of a function. Out: a code object that can be entered and left at each decision, or has
hooks; loops as functions of their own.

Modules:
    outlined   The code of loops as functions, and of the function that calls them.
    outlining  Which loops of a function can be functions of their own, and what goes into and out of them.
    resumable  Code that can be entered and left at many points: the code object that a rewritten function
               runs.
"""
