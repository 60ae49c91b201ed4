"""Real libraries are for real GPUs: on a driver without one they would work on addresses of the host."""

from __future__ import annotations

import pytest

from jitcore.backends.cuda import libraries


@pytest.fixture(autouse=True)
def without_libraries(request, monkeypatch):
    """For modules that do not say that they want them."""
    if not getattr(request.module, "WANTS_LIBRARIES", False):
        monkeypatch.setattr(libraries, "BINDINGS", dict.fromkeys(libraries.BINDINGS, ()))
