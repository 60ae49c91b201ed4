"""What a call depends on: arguments, captured variables, attributes, and code that has to stay what it was.

In: the values of a call. Out: specs, which are its key, the code that checks later calls, and stand-ins for
tracing.

Modules:
    attributes  Attributes as traced code sees them: what an object finds in its class is captured, what runs
                code of the user's is entered.
    captures    Captures: global, closure and module variables, read as further arguments and set as further
                results.
    copies      Copies of arguments, for trials whose writes nobody may see, and comparison of what trials
                gave.
    guards      What the code of a program was: methods, operators and properties of classes, code of
                functions.
    reading     From values to specs, and from specs to checks and stand-ins.
    specs       Specs: what the program of a call depends on, value by value.
    watching    Attributes of classes and functions that traced code reaches by their names.
"""
