"""Every error class with cause, example and fix; the layout of messages; the errors about traced values.

In: facts as plain strings (an aval's text, the names of the arguments, source lines from
`core.source.format_snippet`). Out: an exception instance, which the caller raises. Nothing of jitcore is
imported here, so that every stage can use it. Names and hierarchy are those of `jax.errors`, and so is the
first line of a message where JAX has the same error. Errors about arguments, options, shapes and structures:
`arguments`.

The eight-line rule: a message has at most eight lines, in this order; each part but `where` is one line.

    headline    what happened
    detail      which operation or argument                                  (optional)
    origin      the traced function and the arguments the value depends on   (optional)
    where       file and line, source text, caret                            (optional, three lines)
    fix         "To fix: ..."                                                (optional)
    see         the class whose documentation explains cause and fix

Modules:
    arguments    The errors about what a function was given or gave back: arguments, options, shapes,
                 structures.
    derivatives  The errors of `grad` and its company: what they were given, what functions gave back, missing
                 rules.
    leaks        The errors about tracers that outlived their trace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_LINES = 8
Lines = Sequence[str]  # what core.source.format_snippet returns
_MAX_TEXT = 600  # a repr inside a message is data of the user's: it may be megabytes long


class JitcoreTypeError(TypeError):
    """Base of the errors about a value of the wrong kind, such as a tracer where Python needs a number."""


class JitcoreIndexError(IndexError):
    """Base of the errors about an index that cannot be used while tracing."""


class JitcoreRuntimeError(RuntimeError):
    """Base of the errors that appear when a program is compiled, loaded or run."""


class ConcretizationTypeError(JitcoreTypeError):
    """A traced value was used where Python needs its concrete value.

    Cause: under `jit` an argument has a shape and a dtype but no value yet, and `int(x)`, `x.item()`,
    `jnp.arange(x)` or `jnp.nonzero(x)` ask for the value.

    >>> jit(lambda n: jnp.zeros(n))(3)             # fails: the shape depends on a value

    Fix: mark the argument static, `jit(f, static_argnames='n')`; derive sizes from `x.shape`, which is known
    while tracing; give `size=` to functions whose result's shape depends on values; write `x.astype(int)` to
    convert a dtype."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a Python truth value: in `if`, `while`, `and`, `or`, `not`, `assert`.

    Cause: which branch to take is decided while tracing, when the value is unknown.

    >>> jit(lambda x: x if x > 0 else 2 * x)(10)   # fails

    Fix: `jit(f, rewrite=True)` compiles plain Python control flow; or write `jnp.where(x > 0, x, 2 * x)`,
    `lax.cond` or `lax.while_loop`; use `&`, `|`, `~` for `and`, `or`, `not`; or mark the argument static if
    it takes few values: `jit(f, static_argnames='x')`."""


class TracerIntegerConversionError(JitcoreTypeError):
    """A traced value was used as a Python integer: as index of a list, in `range`, as number of repetitions.

    >>> jit(lambda i: [10, 20, 30][i])(1)          # fails

    Fix: turn the list into an array, `jnp.array([10, 20, 30])[i]`; loop with `lax.fori_loop` instead of
    `range(n)` or use `jit(f, rewrite=True)`; or mark the argument static: `jit(f, static_argnames='i')`."""


class TracerArrayConversionError(JitcoreTypeError):
    """A traced value was handed to code that needs the numbers: `np.array(x)`, or a library outside NumPy.

    Cause: a traced value has no memory. NumPy functions called on it are traced if `jitcore.numpy` has them;
    a conversion to `ndarray` cannot be.

    >>> jit(lambda x: np.asarray(x) + 1)(y)        # fails; jnp.asarray(x) + 1 works

    Fix: use `jitcore.numpy`; index a NumPy table as `jnp.asarray(table)[i]`; call foreign code through
    `jitcore.pure_callback`; or mark the argument static."""


class NonConcreteBooleanIndexError(JitcoreIndexError):
    """An array was indexed by a traced boolean mask, so that the size of the result depends on values.

    >>> jit(lambda x: x[x > 0].sum())(y)           # fails

    Fix: keep the shape and select, `jnp.where(x > 0, x, 0).sum()`; to write, `x.at[mask].set(v)`; or bound
    the size: `x[jnp.nonzero(mask, size=n, fill_value=0)]`."""


class UnexpectedTracerError(JitcoreTypeError):
    """A tracer outlived the trace that made it (a leak).

    Cause: the traced function stored an intermediate value in a global, a list, an attribute or a generator,
    and it was used after tracing had ended.

    >>> seen = []
    >>> jit(lambda x: seen.append(x) or x)(1); seen[0] + 1      # fails

    Fix: return the value from the function; print it with `jitcore.debug.print`. `with
    jitcore.checking_leaks():` raises at the leak itself."""


class LeakedTracerError(UnexpectedTracerError):
    """A traced function ended while something outside still held one of its tracers.

    Cause: as for `UnexpectedTracerError`, found by `with jitcore.checking_leaks():` where it happens.

    >>> with jitcore.checking_leaks(): jit(lambda x: seen.append(x) or x)(1)      # fails

    Fix: return the value instead of storing it."""


class TracerMutationError(JitcoreTypeError):
    """An item of an array was assigned or deleted: arrays are immutable in the JAX style.

    >>> jit(lambda x: x.__setitem__(0, 1))(y)      # fails

    Fix: `x = x.at[0].set(1)`, which gives a new array, also in `jit(f, rewrite=True)`; or compile it
    with `@autojit`, which assigns items as NumPy does."""


class ControlFlowError(JitcoreTypeError):
    """Python control flow on traced values that cannot be compiled.

    Cause: both sides of a condition are one program, and so are all iterations of a loop. A variable has one
    shape in it; a Python object (a str, None, a list that grows) cannot be chosen when the program runs.

    >>> jit(lambda x: 'up' if x > 0 else 'down', rewrite=True)(1.0)     # fails: a str

    Fix: let both sides give arrays or numbers of one shape; append to lists a known number of times; or make
    the argument that decides static, `jit(f, rewrite=True, static_argnames='x')`."""


class NotTraceable(Exception):
    """A statement under `autojit` whose exact meaning in Python and NumPy cannot be a part of a program.

    Cause: it does more than give a value (it reads a clock, a file, draws random numbers), or the type of
    its result depends on values. `autojit` then warns and runs plain Python; `strict=True` raises it instead.

    >>> autojit(lambda x: x * time.time(), strict=True)(1.0)   # fails: a program reads no clock

    Fix: what the message proposes, or keep the statement in a function outside of the compiled one."""


class AutojitWarning(UserWarning):
    """A function, or its calls with some types, is not compiled by tracing. The text says where and why.

    Cause: as for `NotTraceable`. The results are those of Python all the same, without its speed-up.

    >>> autojit(lambda x: x * time.time())(1.0)            # warns, and gives what Python gives

    Fix: what the message proposes; `f.report()` lists what is in the way, `strict=True` raises at once, and
    `warnings.simplefilter('ignore', jitcore.AutojitWarning)` silences it."""


class TypePromotionError(ValueError):
    """Two dtypes met where `config.numpy_dtype_promotion` is 'strict'.

    Cause: with that setting an operation promotes Python scalars and nothing else.

    >>> with config.override(numpy_dtype_promotion='strict'): jnp.arange(3) + jnp.ones(3)    # fails

    Fix: convert one operand, `x.astype(y.dtype)`; or leave the flag at 'standard'."""


class StaticArgumentError(ValueError):
    """`static_argnums`, `static_argnames` or their donating twins do not fit the function or the values
    given.

    Cause: a static value is a key of the cache and must be hashable and comparable; the names and positions
    must be those of the function.

    >>> jit(lambda x, sizes: x, static_argnames='sizes')(1, [2, 3])    # fails: a list is not hashable

    Fix: pass a tuple instead of a list, a frozen dataclass instead of a dict; do not mark arrays as static.
    """


class DonatedArrayError(JitcoreRuntimeError):
    """An Array was used after its buffer had been given away or deleted.

    >>> step = jit(lambda x: x + 1, donate_argnums=0)
    >>> y = step(x); x + 1                         # fails: x's memory now holds y

    Fix: use the result instead of the argument (`x = step(x)`), pass a copy (`step(x.copy())`), or do not
    donate."""


class BackendNotFoundError(JitcoreRuntimeError):
    """The backend or device asked for is not installed, or found no hardware.

    >>> jit(f, backend='tpu')(1)                   # fails on a machine without one

    Fix: choose one of the backends that the message lists, or install the package it names;
    `python -m jitcore doctor` tells why a backend is absent."""


class UnknownCompilerOptionError(ValueError):
    """`compiler_options` has a key that no stage reads.

    >>> jit(f, compiler_options={'fast_math': True})    # fails: the key is 'fastmath'

    Fix: use one of the keys that the message lists."""


class KeyReuseError(JitcoreTypeError):
    """A random key was consumed twice, so that two draws are not independent.

    >>> a = random.normal(key, (3,)); b = random.uniform(key, (3,))

    Fix: `key, subkey = random.split(key)` and use each key once. Nothing checks for it yet: the class is
    there for code that names it."""


class JaxprTypeError(TypeError):
    """A jaxpr breaks the rules of the language: an undefined variable, a wrong aval, an effect not declared.

    Cause: a defect in a rule of a primitive, in a pass, or in a jaxpr built by hand. The message shows the
    equation.

    >>> check_jaxpr(Jaxpr(constvars=[], invars=[], eqns=[], outvars=[undefined]))    # fails

    Fix: correct that rule; `config.update('check_jaxprs', True)` checks after every pass and names the first
    bad one."""


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension has different answers for different sizes.

    >>> n = DimVar('n', lower=1); n > 3            # fails: true for 4, false for 2

    Fix: give the variable bounds that decide the question, or ask for it with concrete shapes."""


JAXTypeError = JitcoreTypeError
JAXIndexError = JitcoreIndexError
JaxRuntimeError = JitcoreRuntimeError

_BASES = (JitcoreTypeError, JitcoreIndexError, JitcoreRuntimeError)


class Origin(NamedTuple):
    """Where a traced value comes from: the function being traced and the arguments that the value depends on.

    fun_name: name of the function. fun_location: "file:line", or "" when unknown. transform: what traces it
    ("jit", "scan", ...). arg_names: arguments as the user would write them ("x", "d['a']", "a[0]").
    static_names: parameters that could be made static; None means the roots of `arg_names` under jit."""

    fun_name: str
    fun_location: str = ""
    transform: str = "jit"
    arg_names: tuple[str, ...] = ()
    static_names: tuple[str, ...] | None = None

    @property
    def function(self) -> str:
        """Name and place: "f at file:line"."""
        return f"{self.fun_name} at {self.fun_location}" if self.fun_location else self.fun_name

    def find_static_names(self) -> tuple[str, ...]:
        """Parameters to suggest for `static_argnames`, in order, each once."""
        if self.static_names is not None:
            return self.static_names
        if self.transform != "jit":
            return ()
        return tuple(dict.fromkeys(re.split(r"[\[.]", name, maxsplit=1)[0] for name in self.arg_names))


def describe_origin(origin: Origin) -> str:
    """The sentence that says which function was traced and why the value is unknown: one line, no newline."""
    names = origin.arg_names
    if not names:
        reason = f"it was computed inside {origin.fun_name} while that was being traced"
    elif len(names) == 1:
        reason = f"it depends on the value of the argument {names[0]}"
    else:
        shown = list(names) if len(names) <= 5 else [*names[:4], f"{len(names) - 4} others"]
        comma = "," if len(shown) > 2 else ""
        reason = f"it depends on the values of the arguments {', '.join(shown[:-1])}{comma} and {shown[-1]}"
    return (
        f"The error occurred while tracing the function {origin.function} for {origin.transform}. "
        f"This concrete value was not available in Python because {reason}.")


def build_error(kind: type[Exception], headline: str, *, detail: str = "", origin: Origin | None = None,
                where: Lines = (), fix: str = "") -> Exception:
    """An exception of class `kind` whose message is laid out by the eight-line rule of this module.

    where: up to three lines, the rest is dropped; every other part is folded into one line."""
    own = kind.__module__ == __name__ and kind not in _BASES
    parts = [headline, detail, describe_origin(origin) if origin else ""]
    lines = [fold_line(part) for part in parts if part]
    lines += where[:3]
    if fix:
        lines.append(fold_line(f"To fix: {fix}"))
    if own:
        lines.append(f"See help(jitcore.errors.{kind.__name__})")
    return kind("\n".join(lines))


class Template(NamedTuple):
    """What is said in one case: a function of what the texts show, `{0}` first, and of `where`."""

    kind: type[Exception]
    headline: str
    fix: str
    detail: str = ""

    def __call__(self, *values: object, where: Lines = ()) -> Exception:
        headline, fix, detail = (text.format(*values) for text in self[1:])
        return build_error(self.kind, headline, detail=detail, where=where, fix=fix)


def fold_line(text: str) -> str:
    """The text as one line of bounded length."""
    folded = " ".join(text.split())
    return folded if len(folded) <= _MAX_TEXT else f"{folded[: _MAX_TEXT - 3]}..."


def suggest_static(origin: Origin | None) -> str:
    """'; or make x static with ...' when an argument could be static, else ''."""
    names = origin.find_static_names() if origin else ()
    if not names:
        return ""
    value = repr(names[0]) if len(names) == 1 else repr(tuple(names))
    return f"; or make {' and '.join(names)} static with static_argnames={value}"


def _suggest_rewrite(origin: Origin | None, purpose: str) -> str:
    if origin is None or origin.transform != "jit":
        return ""
    name = origin.fun_name if origin.fun_name.isidentifier() else "..."
    return f"jit({name}, rewrite=True) compiles {purpose}; or "


def _show_source(where: Lines) -> str:
    """The source text among the lines of a position; "" when it is unknown."""
    return where[1].lstrip() if len(where) > 1 else ""


# --- a traced value used as a Python value ------------------------------------------------------------------


def bool_conversion_error(aval_text: str, origin: Origin | None = None, where: Lines = ()) -> Exception:
    """`if tracer:`, `while tracer:`, `tracer and ...`. aval_text: "bool[]", "float32[3]".

    A ValueError for several elements, as in NumPy: no branch could be right."""
    if not re.search(r"\[[1,]*\]$", aval_text):
        return build_error(
            ValueError,
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
            detail=f"It is a traced array with shape {aval_text}.",
            where=where,
            fix="write jnp.where(condition, x, y) to choose for each element; & and | for `and` and `or`; "
            "lax.cond(x.any(), ...) to choose once.")
    in_while = _show_source(where).startswith("while ")
    rest = "use lax.while_loop" if in_while else "use lax.cond / jnp.where"
    fix = f"{_suggest_rewrite(origin, 'plain Python control flow')}{rest}{suggest_static(origin)}."
    # The second full stop is what JAX's documentation prints, and what scripts compare against.
    headline = f"Attempted boolean conversion of traced array with shape {aval_text}.."
    return build_error(TracerBoolConversionError, headline, origin=origin, where=where, fix=fix)


def integer_conversion_error(aval_text: str, origin: Origin | None = None, where: Lines = ()) -> Exception:
    """`values[tracer]` of a list, `range(tracer)`, a repetition count."""
    headline = f"The __index__() method was called on traced array with shape {aval_text}"
    if "range(" in _show_source(where):
        remedy = f"{_suggest_rewrite(origin, 'loops over range(n)')}loop with lax.fori_loop"
    else:
        remedy = "index an array, jnp.array(values)[i], and loop with lax.fori_loop"
    fix = f"{remedy}{suggest_static(origin)}."
    return build_error(TracerIntegerConversionError, headline, origin=origin, where=where, fix=fix)


def array_conversion_error(aval_text: str, origin: Origin | None = None, where: Lines = (), *,
                           function: str = "") -> Exception:
    """`np.array(tracer)`, or a NumPy function that has no traced form (function: "numpy.frompyfunc")."""
    headline = (
        f"The numpy.ndarray conversion method __array__() was called on traced array with shape {aval_text}")
    detail = f"{function} has no traced form." if function else ""
    fix = f"use jnp.asarray / jitcore.numpy, or pure_callback for foreign code{suggest_static(origin)}."
    return build_error(TracerArrayConversionError, headline, detail=detail, origin=origin, where=where,
                       fix=fix)


def concretization_error(aval_text: str, detail: str, origin: Origin | None = None, where: Lines = (), *,
                         fix: str = "compute the value outside the traced function") -> Exception:
    """A concrete value was needed. detail: a sentence naming the operation; fix: no full stop."""
    headline = (
        "Abstract tracer value encountered where concrete value is expected: "
        f"traced array with shape {aval_text}")
    fix = f"{fix}{suggest_static(origin)}."
    return build_error(ConcretizationTypeError, headline, detail=detail, origin=origin, where=where, fix=fix)


def number_conversion_error(function: str, aval_text: str, origin: Origin | None = None,
                            where: Lines = ()) -> Exception:
    """`int(tracer)`: function is "int", "float" or "complex"."""
    detail = f"The problem arose with the `{function}` function."
    if "math." in _show_source(where):
        fix = "the module math computes with Python numbers: use the function of jitcore.numpy"
    else:
        fix = f"to convert the data type write x.astype({function}) or jnp.array(x, {function})"
    return concretization_error(aval_text, detail, origin, where, fix=fix)


def method_conversion_error(method: str, aval_text: str, origin: Origin | None = None,
                            where: Lines = ()) -> Exception:
    """`tracer.item()`, `tracer.tolist()`, ...: a method whose result is a Python object."""
    detail = f"This occurred in the {method}() method of jitcore.Array."
    return concretization_error(aval_text, detail, origin, where, fix="keep the value as an array")
