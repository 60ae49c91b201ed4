"""Numba's cache on disk, which may have no folder."""

import pytest

from jitcore.backends.cuda.emulated.context import compile_cached


def test_without_a_folder_for_the_cache():
    calls = []

    def compiler(signature, cache=False, **options):
        calls.append((signature, cache, options))
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return lambda function: function

    assert compile_cached(compiler, "void()", nogil=True)(len) is len
    assert calls == [("void()", True, {"nogil": True}), ("void()", False, {"nogil": True})]


def test_other_errors_are_raised():
    def compiler(signature, **options):
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        compile_cached(compiler, "void()")(len)
