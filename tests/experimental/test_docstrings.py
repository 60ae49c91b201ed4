"""The examples in docstrings do what they show, and every public function has one."""

import doctest
import importlib
import inspect

import pytest

MODULES = ("jitcore.custom_batching", "jitcore.experimental.checkify", "jitcore.experimental.jet",
           "jitcore.experimental.ode", "jitcore.experimental.sparse")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isfunction(value) or inspect.isclass(value):
            for test in doctest.DocTestFinder().find(value, public, globs={}):
                runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


@pytest.mark.parametrize("name", MODULES)
def test_sources(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isfunction(value) and value.__module__.startswith(name):
            assert "Source" in (value.__doc__ or ""), public
