"""Settings that have JAX's names: what each does to programs, jitted and not."""

import gc
import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, random

WIDE, ROW = np.ones((2, 3), np.float32), np.ones(3, np.float32)


def test_debug_infs():
    invert = jit(lambda x: 1 / x)
    assert np.isinf(invert(0.0))
    with jitcore.debug_infs():
        assert invert(2.0) == 0.5
        with pytest.raises(FloatingPointError, match="inf"):
            invert(0.0)
        with pytest.raises(FloatingPointError, match="inf"):
            jnp.log(0.0)
        assert np.isnan(invert(np.nan))  # is no infinity


def test_no_tracing():
    double = jit(lambda x: 2 * x)
    assert double(1.0) == 2.0
    with jitcore.no_tracing():
        assert double(3.0) == 6.0
        with pytest.raises(RuntimeError, match="no_tracing"):
            double(ROW)
    np.testing.assert_array_equal(double(ROW), 2 * ROW)


def list_records(caplog, word):
    return [r for r in caplog.records if r.levelno == logging.WARNING and r.getMessage().startswith(word)]


def test_log_compiles(caplog):
    def halve(x):
        return x / 2

    with jitcore.log_compiles():
        jit(halve)(1.0)
    assert any("halve" in record.getMessage() for record in list_records(caplog, "trace"))
    caplog.clear()
    jit(halve)(2.0)
    assert not list_records(caplog, "")


def test_explain_cache_misses(caplog):
    halve = jit(lambda x: x / 2)
    halve(1.0)
    with jitcore.explain_cache_misses():
        halve(ROW)
    (record,) = list_records(caplog, "miss")
    assert "shape was (), is (3,)" in record.getMessage()


def test_warnings_are_shown_by_python_once():
    code = ("import jitcore\nwith jitcore.explain_cache_misses():\n    jitcore.jit(lambda x: x + 1)(1.0)\n")
    for level in ("", "info"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={"JITCORE_LOG": level, "PYTHONPATH": ":".join(sys.path)})
        assert sum("miss" in line for line in done.stderr.splitlines()) == 1


@pytest.mark.parametrize("function", [lambda x, y: x + y, jnp.add, jnp.maximum, lambda x, y: x < y])
@pytest.mark.parametrize("wrap", [jit, lambda fun: fun], ids=["jit", "eager"])
def test_numpy_rank_promotion(function, wrap):
    function = wrap(function)
    wide, row = jnp.asarray(WIDE), jnp.asarray(ROW)
    expected = function(wide, row)
    with jitcore.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match=r"\(2, 3\).* \(3,\).*numpy_rank_promotion"):
            function(wide, row)
        function(wide, row[None]), function(wide, 2.0), jnp.where(wide > 0, wide, row)  # which broadcasts anything
    with jitcore.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion") as found:
        np.testing.assert_array_equal(function(wide, row), expected)
    assert found[0].filename == __file__
    with warnings.catch_warnings(), jitcore.numpy_rank_promotion("allow"):
        warnings.simplefilter("error")
        np.testing.assert_array_equal(function(wide, row), expected)


def test_default_matmul_precision_changes_nothing_on_processors():
    x = np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64)
    expected = np.asarray(jit(jnp.dot)(x, x))
    for precision in (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"):
        with jitcore.default_matmul_precision(precision):
            np.testing.assert_array_equal(jit(jnp.dot)(x, x), expected)
    with pytest.raises(ValueError, match="tensorfloat32"):
        jitcore.default_matmul_precision("half")


def test_default_prng_impl():
    with jitcore.default_prng_impl("threefry2x32"):
        assert random.key_impl(random.key(0)) == "threefry2x32"
    make = jit(lambda: random.bits(random.key(3)))
    before = make()
    with jitcore.default_prng_impl("rbg"):
        assert random.key_impl(random.key(0)) == "rbg" and random.PRNGKey(0).shape == (4,)
        assert make() != before and make() == random.bits(random.PRNGKey(3))
    assert make() == before
    with pytest.raises(ValueError, match=r"'other'.*threefry2x32"):
        jitcore.default_prng_impl("other")


def test_enable_custom_prng():
    with jitcore.enable_custom_prng():
        key = random.PRNGKey(3)
    assert key.dtype == random.key(3).dtype
    np.testing.assert_array_equal(random.key_data(key), random.PRNGKey(3))
    with jitcore.enable_custom_prng():
        assert jit(random.PRNGKey)(3).dtype == random.key(3).dtype
    assert jit(random.PRNGKey)(3).dtype == np.uint32


def test_live_arrays():
    def count():
        gc.collect()
        return sum(x is mine for x in jitcore.live_arrays())

    mine = jit(lambda x: x + 1)(ROW)
    assert count() == 1
    mine.delete()
    assert count() == 0
    with pytest.raises(jitcore.errors.BackendNotFoundError):
        jitcore.live_arrays("abacus")
