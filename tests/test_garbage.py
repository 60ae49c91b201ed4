"""Python's garbage collector looks rarely while programs are made, and as before at all other times."""

import gc

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore.events.publishing import collect_rarely


@pytest.fixture(autouse=True)
def _put_back():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("decorate", [jitcore.jit, jitcore.autojit])
def test_first_calls_collect_rarely(decorate):
    library = jnp if decorate is jitcore.jit else np
    decorate(lambda x: library.cos(x))(np.ones(3))  # loads modules
    gc.set_threshold(50, 10, 10)
    before = [generation["collections"] for generation in gc.get_stats()]
    decorate(lambda x: library.sin(x) * 2)(np.ones(3))
    after = [generation["collections"] for generation in gc.get_stats()]
    # Thousands of objects are made: with this threshold about a hundred collections.
    assert sum(after) - sum(before) < 30
    assert gc.get_threshold() == (50, 10, 10)


@pytest.mark.parametrize("threshold", [(0, 10, 10), (10_000_000, 5, 5)])
def test_what_is_set_stays(threshold):
    gc.set_threshold(*threshold)
    with collect_rarely():
        assert gc.get_threshold() == threshold
    with pytest.raises(ZeroDivisionError), collect_rarely():
        gc.set_threshold(77)
        raise ZeroDivisionError
    assert gc.get_threshold()[0] == 77


def test_blocks_may_nest():
    gc.set_threshold(50, 10, 10)
    with collect_rarely():
        with collect_rarely():
            raised = gc.get_threshold()
        assert gc.get_threshold() == raised
    assert gc.get_threshold() == (50, 10, 10)
