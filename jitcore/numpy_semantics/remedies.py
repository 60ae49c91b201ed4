"""What to write instead of a statement that cannot be traced.

In: the reason, as `not_traceable` is given it. Out: why that is so, and what helps. One row serves every
reason of one cause; the first row that fits is taken.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Remedy(NamedTuple):
    """pattern: of reasons; why: a sentence; fix: what to write, without a full stop."""

    pattern: str
    why: str
    fix: str


_EFFECT = "A program is compiled once and only computes: it would do this once, and never again."
_SHAPE = "A program has one shape for each array; this one is known when it runs."
_MEMORY = "A program keeps arrays apart; whether a store into one changes another has to be known."
_NOT_THERE = "It has no traced form."
_PASSED = "call it before or behind the compiled function, and pass its result as an argument"

_ROWS = (
    # -- effort ----------------------------------------------------------------------------------------------
    Remedy(r"takes more work than|waits until its calls|calls itself|is a generator$|works on|which works on",
           "It runs well as it is, and compiling it would take longer than its calls.",
           "nothing, or use arrays and loops over numbers where it should be faster"),
    Remedy(r"that is no loop's$", "What it holds is known when the program runs.",
           "let a `for` loop or a comprehension go through it, or compute from its bounds"),
    Remedy(r"list of objects|objects? of a list|object in a list",
           "Attributes of listed objects are arrays of a program, one for each attribute.",
           "set attributes to numbers, or elements of their arrays: body.position[:] = x"),
    # -- effects ---------------------------------------------------------------------------------------------
    Remedy(r"^print\(\)", _EFFECT,
           "print to sys.stdout or sys.stderr, or behind the call what the function returns"),
    Remedy(r"^(input|breakpoint|help)\(\)", _EFFECT,
           "ask before the call, and pass the answer as an argument"),
    Remedy(r"^open\(\)|^_?io\.|numpy\.(load|save|from|gen|mem)", _EFFECT,
           "read before the call and pass the array; write what the function returns behind it"),
    Remedy(r"^a (draw|choice|shuffle|permutation) |a generator of an unknown kind",
           "Programs draw by most methods of NumPy's generators and of `random`, not by all.",
           "draw before the call, noise = rng.random(n), and pass the numbers as an argument"),
    Remedy(r"random", _EFFECT,
           "seed and make generators before the call, and pass the generator as an argument"),
    Remedy(r"^(time|datetime)\.", _EFFECT,
           "measure around the call: start = perf_counter(); f(x); t = perf_counter() - start"),
    Remedy(r"^(eval|exec|compile|globals|locals|__import__|memoryview|id|exit|quit)\(\)",
           "What it does depends on the state of Python.", "write the expression itself, or pass its value"),
    Remedy(r"is called by code that is not traced",
           "What it changes and reads would be changed and read while tracing only.",
           "call it in the function itself, or behind the compiled function"),
    Remedy(r"a profiler is active", "Profiling tells jitcore of such calls.", "run it without the profiler"),
    Remedy(r"__del__\(\), is made", "It would be deleted while tracing.", "make the object before the call"),
    Remedy(r"is read(, which may change)?$", "Later calls may find another value.", "pass it as an argument"),
    Remedy(r"descriptor of type", "It may do more than give a value.", "write a property instead"),
    Remedy(r"\(\) gives a value of type", "Python raises then.", "return what it has to give"),
    Remedy(r"is an operand of NumPy's", "NumPy makes an array of it.", "put your object on the left"),
    Remedy(r"has the same __dict__ as|is a slice of objects|depends on its place in memory",
           "Each call would have to compare which object it is.",
           "use the object's attributes, numbers or texts in its place"),
    Remedy(r"of a class .* holds more", "Each call would compare them.", "pass it as an argument"),
    Remedy(r"^module .* is loaded$", "Loading runs its code, once.", "import it before the call"),
    Remedy(r"is called, which keeps", "It may return what it made before.", _PASSED),
    Remedy(r"called with a traced Python number", "Functions of jitcore take arrays.", "pass np.asarray(x)"),
    Remedy(r"is called", "What it does besides giving a result is not known.", _PASSED),
    Remedy(r"a variable of module .* is set", _EFFECT,
           "return the value, and set the variable behind the call"),
    Remedy(r"^the attribute .* is changed|of an object of type .* is changed|changes something", _EFFECT,
           "return the value, and set the attribute behind the call; attributes of objects may be set"),
    # -- arguments and results -------------------------------------------------------------------------------
    Remedy(
        r"is returned",
        "Results are made anew in each call, from arrays and numbers.",
        "return arrays, numbers, and tuples, lists, dicts or objects of them; build the rest behind the call",
    ),
    Remedy(r"has to be known and had more than", "Each of its values needs a program of its own.",
           "pass an array of that size instead, or what follows from the number"),
    Remedy(r"values are passed", "A call would spend its time reading them.",
           "pass an array for a long list"),
    Remedy(r"(is|operand|element) of type|is a dict with keys|^out= of type",
           "Programs take arrays and numbers, and lists, dicts with string keys and objects that hold them.",
           "pass such a value: np.asarray(x), list(x) for a set or an iterator"),
    Remedy(r"of dtype \w+ are not traced|is an array of dtype|computes in",
           "Programs compute with bool, ints, floats and complex numbers whose parts have at most 64 bits.",
           "convert before the call: x.astype(np.float64)"),
    Remedy(r"does not fit 64 bits", "An int of a program has 64 bits, Python's has as many as it needs.",
           "compute with floats, or with this number outside of the compiled function"),
    Remedy(r"writes to an array that is traced", "Transformations pass values that cannot be changed.",
           "work on a copy, x = x.copy(), and return it"),
    Remedy(r"three calls met", "Such a call runs twice: as a program, and in Python, which raises.",
           "check arguments before the call"),
    Remedy(r"is a generator or coroutine", "It runs piece by piece, and anything may happen in between.",
           "return a list or an array instead, or compile the functions that it calls"),
    Remedy(r"has no Python code", "There is nothing to compile.", "call it in a compiled function of yours"),
    # -- loops and choices -----------------------------------------------------------------------------------
    Remedy(r"more than \w+ operations",
           "A loop that cannot be compiled as a loop is written out, iteration by iteration.",
           "use the counter as index or number only, and keep the type of each variable in all iterations"),
    Remedy(r"whose type depends|type that a number may have|an int on one way only",
           "Which type the number has depends on the way that was taken.",
           "give it one type from the beginning: 0.0 for 0, np.float64(0) where x[i] may take its place"),
    Remedy(r"a choice between|a comparison of a traced array with", "A variable has one type in a program.",
           "give both the same type and shape: 0.0 for 0, x.astype(float), np.nan for None"),
    Remedy(r"of a text needs|^the text|^a number made of a text|^str\(\) of",
           "A program makes texts of traced values when it runs, and can print and return them.",
           "decide by the numbers, or do it behind the call, with a text that the function returns"),
    Remedy(r"^hash\(x?\) needs the value",
           "Sets and dicts are Python's, and have to find their keys before these have values.",
           "use np.unique(x) for a set, and an array with the key as index for a dict"),
    Remedy(r"needs the value",
           "Python decides something by it while the program is made, before it has a value.",
           "leave it an array or a number (x[0] for float(x[0])), or compute it before the call and pass it"),
    Remedy(r"complex numbers lose", "NumPy warns of that in each call.", "take z.real"),
    # -- lists -----------------------------------------------------------------------------------------------
    Remedy(r"list of numbers|list of lists|a row of a list|a row that is met",
           "A long list of numbers is an array for a program, of one length.",
           "change its elements by their index; numpy.array of it where more is needed"),
    # -- arrays ----------------------------------------------------------------------------------------------
    Remedy(r"may share memory|share memory|strides of an array|layout is not known|sliding windows that",
           _MEMORY, "work on a copy, x = x.copy(), and do not write through the other name"),
    Remedy(r"two arrays are one object",
           "Which of two names of one memory a variable is depends on a traced value.",
           "compare what the arrays hold, or a flag that is set where the variable is"),
    Remedy(r"an index|a store|picks", "An index of this form has no traced form.",
           "use one mask, or ints and slices, or a loop over the elements"),
    Remedy(
        r"an array is made|number of elements|length is traced|number of bins",
        _SHAPE,
        "make an array of the largest size that is needed, and fill a part: y = np.zeros(m); y[:n] = x[:n]"),
    Remedy(r"^np\.\w+\(\).*depends on values", _SHAPE,
           "call it outside and pass its result, or keep the shape with np.where(mask, x, 0)"),
    Remedy(
        r"extents?\b.*\b(traced|known)|traced extent|has an extent|depends on values|"
        r"no bound that is known|with where=|with out=|an axis$",
        _SHAPE,
        "reduce it at once (x[mask].sum()), store it into an array of known shape (y[:n] = x[:n]), or keep "
        "the shape with np.where(mask, x, 0)"),
    Remedy(r"^view\(\)|bytes as bools|bytes into an array of bools",
           "Bools of a program are 0 or 1, and its arrays are plain ones.",
           "write x != 0 for bytes, and np.asarray(x) for an array of another class"),
    Remedy(r"reshape|ravel|a new shape", _MEMORY,
           "write np.ascontiguousarray(x).reshape(shape), or x.T.reshape for order='F'"),
    Remedy(r"floating-point errors", "Programs compute inf and nan without a word.",
           "ask for it: if (x == 0).any(): raise ZeroDivisionError"),
    Remedy(r"depends on rounding", "LAPACK finds many eigenvalues in an order that is no part of them.",
           "use np.linalg.eigh for a symmetric matrix, or call it outside and pass its result"),
    Remedy(r"list of traced length", "How many elements it has is known when the program runs.",
           "append numbers of one type, read elements by index, and make an array of it: np.array(values)"),
    Remedy(
        r"^(round|pow)\(\)|\(\) of traced (values|numbers|bounds)|tolerance|several positions|over a buffer",
        _NOT_THERE,
        "pass these arguments as plain Python values, or write it with + - * / and np.where"),
    Remedy(r"np\.|numpy|ndarray|ufunc|scipy|of a traced number|\.\w+ of a traced array|with \w+=", _NOT_THERE,
           "write it with other functions of NumPy or as a loop, or call it outside and pass its result"))

#: For a reason without a row.
GENERAL = Remedy("", "It cannot be a part of a program.", _PASSED)


def find_remedy(reason: str) -> Remedy:
    """The first row that fits, else `GENERAL`."""
    return next((row for row in _ROWS if re.search(row.pattern, reason)), GENERAL)
