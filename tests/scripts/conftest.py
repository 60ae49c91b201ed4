"""Programs of scripts are compiled in the tests' own process, and loaded whatever that takes."""

import pytest

from jitcore.scripts import fates, loops, workshop


@pytest.fixture(autouse=True)
def affordable(monkeypatch):
    monkeypatch.setattr(workshop, "ALLOWANCE", 1e9)
    for room in (fates, loops):
        monkeypatch.setattr(room, "find_loading_time", lambda packed: 0.0)
