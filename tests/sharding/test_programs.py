"""Programs on a mesh of eight devices give what JAX gives."""

import pytest

from tests.sharding.on_devices import run_programs
from tests.sharding.shard_map_programs import PROGRAMS as SHARD_MAP
from tests.sharding.sharded_programs import PROGRAMS as SHARDED

pytest.importorskip("jax")


@pytest.mark.parametrize("name", SHARDED)
def test_sharded(name):
    assert run_programs("tests.sharding.sharded_programs")[name] == ""


@pytest.mark.parametrize("name", SHARD_MAP)
def test_shard_map(name):
    assert run_programs("tests.sharding.shard_map_programs")[name] == ""
