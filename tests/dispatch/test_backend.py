"""How backends are found: entry points, names of platforms, those that fail to load."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from jitcore import errors
from jitcore.device import Device
from jitcore.dispatch import backend


class GoodBackend:
    name, platform = "good", "gpu"

    def devices(self):
        return [Device("gpu", backend="good")]


class EmptyBackend(GoodBackend):
    def devices(self):
        return []


class BrokenBackend:
    def __init__(self):
        raise ImportError("no driver")


@pytest.fixture
def install(monkeypatch):
    """Replaces the installed entry points by (name, class) pairs."""

    def replace(**classes):
        points = [
            EntryPoint(name, f"{__name__}:{kind}", backend.ENTRY_POINT_GROUP)
            for name, kind in classes.items()
        ]
        monkeypatch.setattr(backend, "_tried", backend._Tried())
        monkeypatch.setattr(backend, "BACKENDS", {})
        backend._read_entry_points.cache_clear()
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
        monkeypatch.setattr(EntryPoint, "load", lambda point: globals()[point.attr])

    yield replace
    backend._read_entry_points.cache_clear()


def test_platform_names_lead_to_entry_points(install):
    install(cuda="GoodBackend")
    assert isinstance(backend.find_backend("gpu"), GoodBackend)
    assert backend.find_backend("gpu") is backend.find_backend("cuda")


def test_a_third_party_backend_is_found_by_its_name(install):
    install(mine="GoodBackend")
    assert isinstance(backend.find_backend("mine"), GoodBackend)


@pytest.mark.cpu
def test_the_first_of_the_preferred_that_works_is_the_default(install):
    install(cpu="BrokenBackend", reference="GoodBackend", other="GoodBackend")
    assert backend.find_backend() is backend.find_backend("reference")


def test_backends_that_fail_say_why(install):
    install(cuda="BrokenBackend", rocm="EmptyBackend", reference="GoodBackend")
    loaded, reasons = backend.list_backends()
    assert list(loaded) == ["reference"]
    assert reasons == {"cuda": "ImportError: no driver", "rocm": "RuntimeError: it found no device"}
    with pytest.raises(errors.BackendNotFoundError) as caught:
        backend.find_backend("gpu")
    lines = str(caught.value).splitlines()
    assert lines[0] == "Unknown backend gpu. Available backends are ['reference']"
    assert "cuda failed to load: ImportError: no driver" in lines[1]
    assert 'pip install "jitcore[cuda]"' in lines[2]
    assert len(lines) <= errors.MAX_LINES
