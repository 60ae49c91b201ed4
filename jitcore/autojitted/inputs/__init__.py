"""What a call depends on: arguments, captured variables, attributes, and code that has to stay what it was.

In: the values of a call. Out: specs, which are its key, the code that checks later calls, and stand-ins for
tracing.

Modules:
    attributes    Attributes as traced code sees them: what an object finds in its class is captured, what
                  runs code of the user's is entered.
    builder       From specs to what is traced in the place of values.
    captures      Captures: global, closure and module variables, read as further arguments and set as further
                  results.
    columns       From lists of objects of one class to specs, attribute by attribute.
    guards        What classes and functions were when a program was made: it serves only while they are that.
    matching      The part of a call that checks values, as code.
    object_specs  Specs of lists of objects of one class: a spec for each attribute, of what all of the
                  objects hold there.
    reading       From values to specs.
    specs         Specs: what the program of a call depends on, value by value.
"""
