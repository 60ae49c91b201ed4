"""Real libraries are for real GPUs: on a driver without one they would work on addresses of the host. And
kernels that are mapped by other numbers."""

from __future__ import annotations

import pytest

import jitcore
from jitcore.backends.cuda.architectures import ARCHITECTURES
from jitcore.backends.cuda.libraries import bindings


@pytest.fixture(autouse=True)
def libraries_as_wanted(request, monkeypatch):
    """Off for modules that do not say that they want them."""
    if not getattr(request.module, "WANTS_LIBRARIES", False):
        monkeypatch.setattr(bindings, "BINDINGS", dict.fromkeys(bindings.BINDINGS, ()))


@pytest.fixture
def use_tuning(monkeypatch):
    """Gives a function: from its call on programs are compiled by other numbers."""

    def use(tuning):
        for arch, facts in ARCHITECTURES.items():
            monkeypatch.setitem(ARCHITECTURES, arch, facts._replace(tuning=tuning))
        jitcore.clear_caches()

    yield use
    jitcore.clear_caches()
