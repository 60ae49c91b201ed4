"""Flags: reading, setting globally and per thread, the environment, and the key of traced programs."""

import importlib
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from jitcore.config import FLAGS, config

# `jitcore.config` is the Config object for users, so the module is reached by name.
config_module = importlib.import_module("jitcore.config")
OTHER_VALUE = {bool: lambda flag: not flag.default, int: lambda flag: flag.default + 3,
               str: lambda flag: flag.choices[-1] if flag.choices else "somewhere"}
every_flag = pytest.mark.parametrize("flag", FLAGS.values(), ids=FLAGS)
thread_flags = [flag for flag in FLAGS.values() if not flag.process_wide]
every_thread_flag = pytest.mark.parametrize("flag", thread_flags, ids=lambda flag: flag.name)


def pick_other_value(flag):
    return OTHER_VALUE[flag.type](flag)


@pytest.fixture(autouse=True)
def restore_globals():
    """Set every flag back to the value that it had before the test."""
    before = config.values()
    yield
    for name, value in before.items():
        config.update(name, value)


def run_in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@every_flag
def test_default_has_the_declared_type(flag):
    assert type(flag.default) is flag.type
    assert config_module.check_value(flag, flag.default, "table") == flag.default
    assert flag.doc.endswith(".")


@every_flag
@pytest.mark.parametrize("prefix", ["", "jax_", "jitcore_"])
def test_update_is_seen_by_every_thread(flag, prefix):
    value = pick_other_value(flag)
    config.update(prefix + flag.name, value)
    assert getattr(config, flag.name) == value
    assert getattr(config, prefix + flag.name) == value
    assert run_in_thread(lambda: getattr(config, flag.name)) == value


@every_thread_flag
def test_override_is_seen_by_its_thread_only(flag):
    before = config.values()
    with config.override(**{flag.name: pick_other_value(flag)}):
        assert getattr(config, flag.name) == pick_other_value(flag)
        assert run_in_thread(config.values) == before
    assert config.values() == before


@every_thread_flag
def test_trace_key_follows_the_flags_that_affect_a_trace(flag):
    before = config.trace_key
    with config.override(**{flag.name: pick_other_value(flag)}):
        assert (config.trace_key != before) == flag.affects_trace
        inside = config.trace_key
    assert config.trace_key == before
    config.update(flag.name, pick_other_value(flag))
    assert config.trace_key == inside


def test_trace_key_of_an_overriding_thread_follows_a_global_update():
    with config.override(enable_x64=True):
        before = config.trace_key
        run_in_thread(lambda: config.update("check_bounds", True))
        assert config.check_bounds and config.enable_x64
        assert config.trace_key != before
        both = config.trace_key
    with config.override(enable_x64=True, check_bounds=True):
        assert config.trace_key == both


def test_global_update_inside_an_override_of_the_same_flag_waits_until_its_end():
    with config.override(cache_size=3):
        config.update("cache_size", 5)
        assert config.cache_size == 3
    assert config.cache_size == 5


def test_overrides_nest_and_survive_an_exception():
    with pytest.raises(KeyError), config.override(cache_size=2):
        with config.override(cache_size=4, enable_x64=True):
            assert (config.cache_size, config.enable_x64) == (4, True)
            raise KeyError
    assert (config.cache_size, config.enable_x64) == (4096, False)


def test_one_override_object_can_be_entered_twice_and_used_as_a_decorator():
    block = config.override(enable_x64=True)
    with block, block:
        assert config.enable_x64
    assert not config.enable_x64

    @config.override(enable_x64=True)
    def read():
        return config.enable_x64

    assert read() and not config.enable_x64


def test_many_threads_override_at_once():
    wrong = []

    def work(number):
        for _ in range(200):
            with config.override(cache_size=number, enable_x64=bool(number % 2)):
                if (config.cache_size, config.enable_x64) != (number, bool(number % 2)):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not config_module._overriding


@pytest.mark.parametrize("name, flag, value", [
    ("jax_enable_checks", "check_jaxprs", True),
    ("jax_platform_name", "default_backend", "cpu"),
])
def test_aliases_of_jax(name, flag, value):
    config.update(name, value)
    assert getattr(config, flag) == getattr(config, name) == value


@pytest.mark.parametrize("name, value, flag, kept", [
    ("jax_platforms", "cuda,cpu", "default_backend", "cuda,cpu"),
    ("jax_platforms", None, "default_backend", ""),
    ("jax_default_device", SimpleNamespace(backend="cpu"), "default_backend", "cpu"),
    ("jax_default_matmul_precision", None, "default_matmul_precision", ""),
    ("jax_traceback_filtering", "off", "traceback_filtering", False),
    ("jax_traceback_filtering", "auto", "traceback_filtering", True),
    ("jax_num_cpu_devices", 8, "num_cpu_devices", 8),
])
def test_values_of_jax(name, value, flag, kept):
    config.update(name, value)
    assert getattr(config, flag) == kept


@pytest.mark.parametrize("name", ["jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
                                  "jax_cpu_enable_async_dispatch", "jax_transfer_guard"])
def test_options_on_which_no_value_depends_are_accepted(name):
    before = config.values()
    config.update(name, "anything")
    assert config.values() == before


@pytest.mark.parametrize("change", [config.update, lambda name, value: config.override(**{name: value})])
def test_unknown_flag_names_close_matches(change):
    with pytest.raises(AttributeError, match="option: jax_enable_x46; did you mean enable_x64"):
        change("jax_enable_x46", True)


def test_reading_an_unknown_flag_and_assigning_are_errors():
    with pytest.raises(AttributeError, match="enable_x46"):
        config.enable_x46
    with pytest.raises(AttributeError, match=r"config.update\('enable_x64', True\)"):
        config.enable_x64 = True
    assert not config.enable_x64


@pytest.mark.cpu
@pytest.mark.parametrize("name, value", [
    ("enable_x64", "yes"), ("enable_x64", 2), ("enable_x64", None), ("num_threads", -1),
    ("num_threads", True), ("num_threads", "2"), ("default_backend", 3), ("numpy_dtype_promotion", "loose"),
])
def test_wrong_value_names_flag_value_and_what_is_accepted(name, value):
    with pytest.raises(ValueError) as caught:
        config.update(name, value)
    text = str(caught.value)
    assert name in text and repr(value) in text and FLAGS[name].describe_accepted() in text
    assert getattr(config, name) == FLAGS[name].default


def test_environment_is_parsed():
    parsed = config_module.parse_environment({
        "JITCORE_ENABLE_X64": "1", "JITCORE_REWRITE": "On", "JITCORE_TRACEBACK_FILTERING": "false",
        "JITCORE_NUM_THREADS": " 2 ", "JITCORE_DEFAULT_BACKEND": "cpu", "JITCORE_CHECK_BOUNDS": "",
        "JITCORE_NOT_A_FLAG": "1", "ENABLE_X64": "0",
    })
    assert parsed == {"enable_x64": True, "rewrite": True, "traceback_filtering": False,
                      "num_threads": 2, "default_backend": "cpu"}


def test_empty_variables_count_where_any_text_does():
    empty = {"JITCORE_CACHE_DIR": " ", "JITCORE_NUMPY_DTYPE_PROMOTION": "", "JITCORE_CACHE_SIZE": ""}
    assert config_module.parse_environment(empty) == {"cache_dir": ""}


@pytest.mark.parametrize("variable, text", [
    ("JITCORE_ENABLE_X64", "maybe"), ("JITCORE_NUM_THREADS", "two"), ("JITCORE_NUM_THREADS", "-1"),
    ("JITCORE_NUMPY_DTYPE_PROMOTION", "loose"),
])
def test_wrong_environment_is_a_clear_error(variable, text):
    with pytest.raises(ValueError, match=f"{variable}={text}.*{variable[8:].lower()}.*it takes"):
        config_module.parse_environment({variable: text})


def test_environment_is_read_at_import():
    code = "from jitcore.config import config; print(config.enable_x64, config.num_threads)"
    environment = {"JITCORE_ENABLE_X64": "1", "JITCORE_NUM_THREADS": "7"}
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert output.split() == ["True", "7"]


@pytest.mark.parametrize("block, flag", [
    (config_module.enable_x64, "enable_x64"), (config_module.disable_jit, "disable_jit"),
    (config_module.check_tracer_leaks, "check_tracer_leaks"),
    (config_module.checking_leaks, "check_tracer_leaks"),
    (config_module.enable_checks, "check_jaxprs"), (config_module.debug_nans, "debug_nans"),
])
def test_named_context_managers(block, flag):
    with block():
        assert getattr(config, flag) is True
    assert getattr(config, flag) is False


def test_a_process_wide_flag_is_not_overridden_in_one_thread():
    with pytest.raises(ValueError, match="whole process"):
        config.override(num_threads=2)


def test_subscribers_hear_of_updates():
    heard = []
    config.subscribe("num_threads", heard.append)
    config.update("num_threads", 3)
    config.update("enable_x64", True)
    assert heard == [0, 3]


def test_reads_as_jax_has_them():
    assert config.read("jax_enable_x64") is config.x64_enabled is config.jax_enable_x64 is False
    with config.override(enable_x64=True):
        assert config.read("enable_x64") and config.x64_enabled
    with pytest.raises(AttributeError, match="did you mean enable_x64"):
        config.read("jax_enable_x46")
    assert config.config_with_absl() is config.parse_flags_with_absl() is None
