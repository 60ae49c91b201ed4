"""Errors and source positions alone, before any tracing: layout, carets, frames removed from tracebacks."""

import contextlib
import functools
import inspect
import itertools
import linecache
import pickle
import subprocess
import sys
import textwrap
import traceback

import pytest

from jitcore import errors
from jitcore.config import config
from jitcore.core import source
from jitcore.errors import arguments as argument_errors, derivatives as derivative_errors, leaks

ORIGIN = errors.Origin("f", "/path/script.py:3", "jit", ("x",))
WHERE = ["  /path/script.py:4", "    if x > 0:", "       ^^^^^"]


def make_module(text, name, filename=None):
    """The namespace of `text` run as a module called `name`: frames of it belong to that package."""
    filename = filename or f"/nowhere/{name}.py"
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = {"__name__": name}
    exec(compile(text, filename, "exec"), namespace)
    return namespace


# --- classes ------------------------------------------------------------------------------------------------


def test_bases_match_jax():
    jax_errors = pytest.importorskip("jax.errors")
    for name in (name for name in dir(jax_errors) if not name.startswith("_")):
        theirs, ours = getattr(jax_errors, name), getattr(errors, name, None)
        if not isinstance(theirs, type):
            continue
        assert ours is not None, f"{name} is missing"
        for base in (TypeError, IndexError, RuntimeError, ValueError):
            assert issubclass(ours, base) == issubclass(theirs, base), (name, base)
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)
    assert issubclass(errors.TracerBoolConversionError, errors.JAXTypeError)


def test_every_class_documents_cause_example_and_fix():
    classes = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, Exception)]
    classes = [c for c in classes if not c.__doc__.startswith("Base of")]
    assert len(classes) >= 15
    for kind in classes:
        assert ">>> " in kind.__doc__ and "Fix:" in kind.__doc__, kind


# --- layout -------------------------------------------------------------------------------------------------


def test_bool_conversion_reads_as_designed():
    assert str(errors.bool_conversion_error("bool[]", ORIGIN, WHERE)).splitlines() == [
        "Attempted boolean conversion of traced array with shape bool[]..",
        "The error occurred while tracing the function f at /path/script.py:3 for jit. This concrete value "
        "was not available in Python because it depends on the value of the argument x.",
        "  /path/script.py:4",
        "    if x > 0:",
        "       ^^^^^",
        "To fix: jit(f, rewrite=True) compiles plain Python control flow; or use lax.cond / jnp.where; "
        "or make x static with static_argnames='x'.",
        "See help(jitcore.errors.TracerBoolConversionError)",
    ]


def test_fix_follows_the_situation():
    in_while = str(errors.bool_conversion_error("bool[]", ORIGIN, ["", "    while x > 0:", ""]))
    assert "lax.while_loop" in in_while and "lax.cond" not in in_while
    in_scan = str(errors.bool_conversion_error("bool[]", ORIGIN._replace(transform="scan")))
    assert "static" not in in_scan and "rewrite" not in in_scan
    of_lambda = str(errors.bool_conversion_error("bool[]", ORIGIN._replace(fun_name="<lambda>")))
    assert "jit(..., rewrite=True)" in of_lambda
    nested = ORIGIN._replace(arg_names=("d['a']", "d['b'][0]", "p.x"))
    assert nested.find_static_names() == ("d", "p")
    assert "static_argnames=('d', 'p')" in str(errors.bool_conversion_error("bool[]", nested))
    assert "static" not in str(errors.bool_conversion_error("bool[]", nested._replace(static_names=())))


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (("x",), "the value of the argument x."),
        (("x", "y"), "the values of the arguments x and y."),
        (("x", "y", "z"), "the values of the arguments x, y, and z."),
        (tuple("abcdefg"), "the values of the arguments a, b, c, d, and 3 others."),
    ],
)
def test_origin_names_arguments(names, ending):
    text = errors.describe_origin(ORIGIN._replace(arg_names=names))
    assert text.endswith(f"because it depends on {ending}")


def test_origin_without_arguments_or_place():
    text = errors.describe_origin(errors.Origin("f"))
    assert "the function f for jit" in text
    assert text.endswith("because it was computed inside f while that was being traced.")


def list_builders():
    """Every public builder with arguments by parameter name; the texts are absurdly long."""
    long = "a very\nlong text " * 400
    values = {
        "origin": errors.Origin("f", long, "jit", tuple("abcdefgh")),
        "where": WHERE * 4,
        "argnums": list(range(999)),
        "accepted": [long] * 3,
        "position": 3,
        "names": ("true_fun", "false_fun"),
        "locations": (long, long),
        "types": (long, long),
        "shapes": [(2, 3), (4,)],
        "axis": 2,
        "places": {2: [long], 3: [long, long], 4: [long], 5: [long]},
    }
    sequences = ("unknown", "parameters", "present", "known", "dtypes", "bounds")
    values.update({name: [long] * 9 for name in sequences})
    modules = (errors, argument_errors, derivative_errors, leaks)
    for name, builder in itertools.chain(*(vars(module).items() for module in modules)):
        if inspect.isfunction(builder) and name.endswith("_error") and name != "build_error":
            arguments = {key: values.get(key, long) for key in inspect.signature(builder).parameters}
            yield pytest.param(builder, arguments, id=name)
        elif isinstance(builder, errors.Template):
            yield pytest.param(functools.partial(builder, *[long] * 4), {"where": WHERE * 4}, id=name)


@pytest.mark.parametrize(("builder", "arguments"), list(list_builders()))
def test_no_message_exceeds_eight_lines(builder, arguments):
    exc = builder(**arguments)
    lines = str(exc).splitlines()
    assert isinstance(exc, Exception)
    assert 2 <= len(lines) <= errors.MAX_LINES
    assert all(len(line) <= 700 for line in lines)
    assert any(line.startswith("To fix: ") for line in lines)
    named = [line for line in lines if line.startswith("See help(")]
    assert named in ([], [f"See help(jitcore.errors.{type(exc).__name__})"])
    assert str(pickle.loads(pickle.dumps(exc))) == str(exc)


def test_leak_found_at_the_end_of_a_trace_has_its_own_class():
    used = leaks.leaked_tracer_error("int32[]", ORIGIN, WHERE)
    found = leaks.leaked_tracer_error("int32[]", ORIGIN, WHERE, while_tracing=True)
    assert type(used) is errors.UnexpectedTracerError and type(found) is errors.LeakedTracerError
    assert "checking_leaks" in str(used) and "checking_leaks" not in str(found)
    assert "was f at /path/script.py:3 traced for jit. The value was made here:\n  /path" in str(used)


JAX_FIRST_LINES = {
    "index": ("lambda x: [1, 2, 3][x]", errors.integer_conversion_error("int32[]")),
    "int": ("lambda x: int(x)", errors.number_conversion_error("int", "int32[]")),
    "array": ("lambda x: np.array(x)", errors.array_conversion_error("int32[]")),
    "arange": ("lambda x: jnp.arange(x)", argument_errors.argument_value_error("jnp.arange", "stop", "int32[]")),
    "mask": ("lambda x: jnp.ones(4)[jnp.ones(4) > x]", argument_errors.boolean_index_error("bool[4]")),
    "shapes": ("lambda x: jnp.ones([2, 3]) + jnp.ones(4)", argument_errors.broadcast_error([(2, 3), (4,)])),
}


@pytest.mark.parametrize("case", JAX_FIRST_LINES)
def test_first_line_is_that_of_jax(case):
    jax = pytest.importorskip("jax")
    text, ours = JAX_FIRST_LINES[case]
    import jax.numpy as jnp
    import numpy as np

    with pytest.raises(Exception) as caught:
        jax.jit(eval(text, {"jax": jax, "jnp": jnp, "np": np}))(1)
    assert str(caught.value).startswith(str(ours).splitlines()[0])
    base = next(b for b in type(caught.value).__mro__ if b.__module__ == "builtins")
    assert isinstance(ours, base)


# --- positions ----------------------------------------------------------------------------------------------

LIBRARY = """
    from jitcore.core.source import capture_source

    def record(*operands):
        return capture_source()

    def wrap(*operands):
        return record(*operands)
"""
wrap = make_module(LIBRARY, "jitcore.fake_numpy")["wrap"]


def run_user_code(text, filename="/nowhere/user.py"):
    return make_module(text, "user_script", filename)


def record_at(body):
    """The SourceInfo that `body` returns from one call of `wrap`. Body starts at line 2."""
    return run_user_code(f"def f(wrap):\n{textwrap.indent(body, '    ')}\n")["f"](wrap)


def read_marked(lines):
    """The text over the carets of a snippet."""
    place, text, carets = lines
    return "".join(char for char, mark in itertools.zip_longest(text, carets, fillvalue=" ") if mark == "^")


def test_capture_passes_over_internal_frames():
    info = wrap(1)
    position = info.resolve()
    assert position.file == __file__ and position.function == "test_capture_passes_over_internal_frames"
    assert position.line == inspect.currentframe().f_lineno - 3
    assert source.summarize_source(info) == f"test_errors_unit.py:{position.line} ({position.function})"
    assert read_marked(source.format_snippet(info)) == "wrap(1)"


def test_capture_without_any_user_is_none():
    # Renaming the main module leaves no frame on this stack that is not jitcore's.
    program = "__name__ = 'jitcore.main'; from jitcore.core.source import *; info = capture_source()\n"
    program += "assert info is None and format_snippet(info) == [] and summarize_source(info) == ''"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_positions_compare_by_place():
    first, second = [wrap(i) for i in range(2)]
    assert first == second and hash(first) == hash(second)
    assert first != wrap(0)


def test_snippet_of_one_line_marks_the_expression():
    info = record_at("return [0, wrap(2, 3), 1][1]")
    assert source.format_snippet(info) == [
        "  /nowhere/user.py:2",
        "    return [0, wrap(2, 3), 1][1]",
        "               ^^^^^^^^^^",
    ]


def test_snippet_of_several_lines_shows_the_first():
    info = record_at("return wrap(1,   \n    2,\n    3)")
    assert source.format_snippet(info)[1:] == ["    return wrap(1,", "           ^^^^^^^"]


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("if x > 0:\n    pass", "x > 0"),
        ("while x > 0: pass", "x > 0"),
        ("if (1 and\n        x > 2):\n    pass", "x > 2"),
        ("y = x or 1", "x"),
        ("y = not x", "not x"),
        ("assert x, 'text'", "x"),
        (f"if x > 0: print({'1, ' * 300})", "x > 0"),
    ],
)
def test_snippet_of_a_condition_marks_the_condition(body, marked):
    class Traced:
        info = None

        def __gt__(self, other):
            return self

    Traced.__bool__ = make_module(
        """
        from jitcore.core.source import capture_source

        def __bool__(self):
            type(self).info = capture_source()
            return False
        """,
        "jitcore.fake_tracer",
    )["__bool__"]
    text = f"def f(x):\n{textwrap.indent(body, '    ')}\n"
    with contextlib.suppress(AssertionError):
        run_user_code(text)["f"](Traced())
    assert read_marked(source.format_snippet(Traced.info)) == marked


def test_snippet_cuts_long_lines_around_the_caret():
    info = record_at(f"return [{'10, ' * 100}wrap(7), {'20, ' * 100}][100]")
    lines = source.format_snippet(info, width=80)
    assert read_marked(lines) == "wrap(7)"
    assert all(len(line) <= 84 for line in lines[1:])
    assert lines[1].startswith("    ...") and lines[1].endswith("...")
    at_end = source.format_snippet(record_at(f"return [{'10, ' * 100}wrap(7)][100]"), width=80)
    assert read_marked(at_end) == "wrap(7)" and at_end[1].endswith("wrap(7)][100]")


def test_snippet_with_tabs_and_wide_characters():
    info = record_at("é = '数据' * 0\nreturn\t['é', wrap(é)][1]")
    assert read_marked(source.format_snippet(info)) == "wrap(é)"
    place, text, carets = source.format_snippet(record_at("return ['数据', wrap(1)][1]"))
    # Two characters of two columns each stand before the call.
    assert carets.index("^") == text.index("wrap") + 2


def test_snippet_without_source():
    namespace = {"__name__": "user_script", "wrap": wrap}
    exec(compile("\n\ninfo = wrap(1)", "<generated>", "exec"), namespace)
    assert source.format_snippet(namespace["info"]) == ["  <generated>:3"]
    assert source.summarize_source(namespace["info"]) == "<generated>:3 (<module>)"


def test_snippet_when_the_file_changed():
    info = record_at("return [0, wrap(2, 3), 1][1]")
    linecache.cache["/nowhere/user.py"] = (4, None, ["a\n", "b\n"], "/nowhere/user.py")
    assert source.format_snippet(info) == ["  /nowhere/user.py:2", "    b"]


def test_snippet_of_code_without_columns(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from jitcore.core.source import *\nprint(format_snippet(capture_source())[1:])\n")
    command = [sys.executable, "-X", "no_debug_ranges", str(script)]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.strip() == "['    print(format_snippet(capture_source())[1:])']"


def test_capture_reads_no_file(monkeypatch):
    def fail(*args):
        raise AssertionError("capturing a position must not look at files")

    monkeypatch.setattr(linecache, "getline", fail)
    monkeypatch.setattr(linecache, "checkcache", fail)
    infos = [wrap(i) for i in range(1000)]
    assert len(set(infos)) == 1
    assert infos[0].resolve().file == __file__


def test_locate_function():
    from functools import partial, wraps

    def plain():
        pass

    @wraps(plain)
    def decorated():
        pass

    class Callable:
        def __call__(self):
            pass

        def method(self):
            pass

    place = f"{__file__}:{plain.__code__.co_firstlineno}"
    for fun in (plain, decorated, partial(partial(plain))):
        assert source.locate_function(fun) == ("plain", place)
    assert source.locate_function(Callable())[0] == "Callable"
    assert source.locate_function(Callable())[1].startswith(f"{__file__}:")
    assert source.locate_function(Callable().method)[0] == "method"
    assert source.locate_function(len) == ("len", "")


# --- tracebacks ---------------------------------------------------------------------------------------------

ENGINE = """
    from jitcore.core.source import api_boundary

    def trace(fun, *args):
        return fun(*args)

    @api_boundary
    def jit_call(fun, *args):
        "Calls."
        return trace(fun, *args)

    @api_boundary
    def look_up(key):
        try:
            return {}[key]
        except KeyError:
            raise TypeError("no such thing")

    @api_boundary
    def look_up_explained(key):
        try:
            return {}[key]
        except KeyError as exc:
            raise TypeError("no such thing") from exc

    @api_boundary
    def break_down(fun=None):
        return fun() if fun else {}["missing"]
"""
engine = make_module(ENGINE, "jitcore.fake_engine")


def list_frames(exc):
    return [entry.name for entry in traceback.extract_tb(exc.__traceback__)]


def catch(fun, *args):
    try:
        fun(*args)
    except Exception as exc:
        return exc
    raise AssertionError("nothing was raised")


def fail_in_user_code(x):
    return 1 / x


def test_boundary_keeps_value_and_metadata():
    assert engine["jit_call"](lambda x: x + 1, 2) == 3
    assert engine["jit_call"].__name__ == "jit_call" and engine["jit_call"].__doc__ == "Calls."


def test_only_user_frames_remain():
    exc = catch(engine["jit_call"], fail_in_user_code, 0)
    assert list_frames(exc) == ["catch", "fail_in_user_code"]


def test_nested_boundaries():
    def outer(x):
        return engine["jit_call"](fail_in_user_code, x)

    assert list_frames(catch(engine["jit_call"], outer, 0)) == ["catch", "outer", "fail_in_user_code"]


def test_error_raised_inside_leaves_the_call_of_the_user():
    exc = catch(engine["look_up"], 1)
    assert list_frames(exc) == ["catch"]
    assert "KeyError" not in "".join(traceback.format_exception(exc))


def test_explicit_cause_is_kept_without_internal_frames():
    exc = catch(engine["look_up_explained"], 1)
    assert isinstance(exc.__cause__, KeyError) and exc.__cause__.__traceback__ is None
    assert "fake_engine" not in "".join(traceback.format_exception(exc))


def test_context_of_the_user_is_kept():
    def handle(x):
        try:
            return 1 / x
        except ZeroDivisionError:
            return engine["jit_call"](lambda: [][1])

    exc = catch(handle, 0)
    assert isinstance(exc, IndexError) and isinstance(exc.__context__, ZeroDivisionError)
    assert "ZeroDivisionError" in "".join(traceback.format_exception(exc))
    assert list_frames(exc.__context__) == ["handle"]


def test_cyclic_chain_ends():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    source.filter_traceback(first)
    assert first.__cause__ is second


def test_generator_frames_of_code_generators_go_and_numpy_stays():
    compile_it = make_module("def compile_it(fun): return fun()", "numba.core.fake")["compile_it"]
    ask_numpy = make_module("def ask_numpy(fun): return fun()", "numpy.fake")["ask_numpy"]
    exc = catch(engine["jit_call"], lambda: compile_it(lambda: ask_numpy(lambda: fail_in_user_code(0))))
    assert "compile_it" not in list_frames(exc) and "ask_numpy" in list_frames(exc)


def test_filtering_can_be_switched_off():
    with config.override(traceback_filtering=False):
        frames = list_frames(catch(engine["jit_call"], fail_in_user_code, 0))
    assert frames == ["catch", "call_filtered", "jit_call", "trace", "fail_in_user_code"]


def test_defect_inside_names_its_place_once():
    exc = catch(engine["break_down"], lambda: engine["break_down"]())
    (note,) = exc.__notes__
    assert "fake_engine.py:" in note and "traceback_filtering" in note
    assert not hasattr(catch(engine["break_down"], lambda: {}["user"]), "__notes__")
