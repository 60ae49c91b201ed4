"""Real libraries are for real GPUs: on a driver without one they would work on addresses of the host."""

from __future__ import annotations

import pytest

from jitcore.backends.cuda.libraries import bindings


@pytest.fixture(autouse=True)
def libraries_as_wanted(request, monkeypatch):
    """Off for modules that do not say that they want them."""
    if not getattr(request.module, "WANTS_LIBRARIES", False):
        monkeypatch.setattr(bindings, "BINDINGS", dict.fromkeys(bindings.BINDINGS, ()))
