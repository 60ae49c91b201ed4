"""Each public function gives what JAX gave: dtype, weak type, shape, value, or the class of the error.

A test is a function, and tells all of its calls that differ. Wide dtypes are on, as JAX cuts 64-bit arrays to 32 bits
without them; every tenth call without 64 bits is made without them too. `-m slow` compares compiled programs too.
"""

import zlib

import pytest

from jitcore import tree
from jitcore.config import config
from jitcore.core.trace import Tracer
from tests.differential import tables  # noqa: F401  fills TABLES
from tests.differential.compare import compare
from tests.differential.differences import REASONS, find_reason, list_reasons
from tests.differential.draw import is_wide
from tests.differential.run import evaluate, evaluate_under_jit
from tests.differential.table import TABLES
from tests.jax_answers import asked, encode_result, jax

FUNCTIONS = [pytest.param(table, name, id=f"{table.namespace}.{name}")
             for table in TABLES.values() for name in table.rows]


def list_calls(table, name):
    """(key of the answer, text, whether wide dtypes are on)."""
    for text in table.rows[name].calls:
        yield text, text, True
    for text in table.rows[name].calls:
        if zlib.crc32(text.encode()) % 10 == 0 and not is_wide(text):
            yield f"narrow: {text}", text, False


def ask_jax(table, name):
    """JAX's answers to all calls of a function, from one program of those that can be traced."""
    found = {}
    jax._real  # says which platform, before anything runs
    for is_wide_on in (True, False):
        calls = [(key, text) for key, text, is_wide in list_calls(table, name) if is_wide == is_wide_on]
        with jax._real.enable_x64(is_wide_on):
            try:
                results = evaluate_under_jit("jax", table, [text for _, text in calls])
            except Exception as error:
                results = [error] * len(calls)
            for (key, text), result in zip(calls, results):
                needs_values = has_tracer(result) or isinstance(result, Exception)
                found[key] = encode_result(evaluate("jax", table, text) if needs_values else result)
    return {key: found[key] for key, _, _ in list_calls(table, name)}


def has_tracer(result):
    return any(isinstance(leaf, jax._real.core.Tracer) for leaf in jax._real.tree.leaves(result))


def find_answers(table, name, asks_jax):
    file = asked.open(f"differential.{table.namespace}")
    if asks_jax:
        for gone in set(file.answers) - set(table.rows):
            del file.answers[gone]
        file.add(name, [ask_jax(table, name)])
    if name not in file.answers:
        pytest.fail("JAX was not asked: run pytest -m jax -p no:xdist tests/differential")
    return file.answers[name][0], file.read


def find_differences(table, name, answers, read, run):
    """Lines for a report, and the reasons that were needed."""
    lines, used = [], set()
    function = f"{table.namespace}.{name}"
    for key, text, is_wide_on in list_calls(table, name):
        if key not in answers:
            lines.append(f"{key}: JAX was not asked: run pytest -m jax -p no:xdist tests/differential")
            continue
        with config.override(enable_x64=is_wide_on):
            result = run(table, text)
        if result is SKIPPED:
            continue
        for kind, told in compare(result, answers[key], table.rows[name].loosen(text), read):
            reason = find_reason(function, kind, f"{key}: {told}", run is run_under_jit)
            used.add(reason)
            if reason is None:
                lines.append(f"{key}: {kind}: {told}")
    return lines, used


def evaluate_here(table, text):
    return evaluate("jitcore", table, text)


SKIPPED = object()


def run_under_jit(table, text):
    """A compiled result; none where tracing refuses the call, as one that needs values, or gives no arrays alone."""
    try:
        (result,) = evaluate_under_jit("jitcore", table, [text])
    except Exception as error:
        result = error
    is_refused = isinstance(result, (TypeError, ValueError, IndexError, NotImplementedError))
    has_tracer = any(isinstance(leaf, Tracer) for leaf in tree.leaves(result))
    return SKIPPED if is_refused or has_tracer else result


@pytest.mark.parametrize("table, name", FUNCTIONS)
def test_as_jax(table, name, pytestconfig):
    asks_jax = "jax" in pytestconfig.option.markexpr.split()
    answers, read = find_answers(table, name, asks_jax)
    lines, used = find_differences(table, name, answers, read, evaluate_here)
    lines += [f"no call needs this reason: {reason}" for reason in list_reasons(f"{table.namespace}.{name}")
              if reason not in used]
    if lines:
        pytest.fail(f"{len(lines)} differ\n" + "\n".join(lines), pytrace=False)


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason.functions == ("*",)])
def test_rows_of_all_functions_are_needed(reason):
    for table in TABLES.values():
        for name in table.rows:
            answers, read = find_answers(table, name, False)
            if reason in find_differences(table, name, answers, read, evaluate_here)[1]:
                return
    pytest.fail(f"no call needs this reason: {reason}")


@pytest.mark.slow
@pytest.mark.parametrize("table, name", FUNCTIONS)
def test_compiled_as_jax(table, name):
    answers, read = find_answers(table, name, False)
    lines, _ = find_differences(table, name, answers, read, run_under_jit)
    if lines:
        pytest.fail(f"{len(lines)} differ\n" + "\n".join(lines), pytrace=False)
