"""Programs on a mesh of eight devices give what JAX gives, and what one device gives."""

import re

import pytest

from tests.sharding.ahead import CHECKS as AHEAD
from tests.sharding.checks import CHECKS
from tests.sharding.on_devices import ROOT, run_table, start
from tests.sharding.shard_map_programs import PROGRAMS as SHARD_MAP
from tests.sharding.sharded_programs import PROGRAMS as SHARDED

pytest.importorskip("jax")

#: The others take half a minute.
SAMPLE = ("sums", "collectives", "derivatives_inside", "current_mesh", "monte_carlo")


def check(outcome):
    if "module 'jax' has no attribute" in outcome:  # an older one, which cannot say what is right
        pytest.skip(outcome)
    assert outcome == ""


@pytest.mark.parametrize("name", SAMPLE)
def test_shard_map(name):
    check(run_table("tests.sharding.shard_map_programs", *SAMPLE)[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARD_MAP)
def test_all_of_shard_map(name):
    check(run_table("tests.sharding.shard_map_programs")[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARDED)
def test_sharded(name):
    check(run_table("tests.sharding.sharded_programs")[name])


def test_example_of_the_page():
    text = (ROOT / "docs" / "sharding.md").read_text()
    ((program, printed),) = re.findall(
        r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    assert start(["-c", program]).communicate(timeout=120)[0] == printed


@pytest.mark.parametrize("name", CHECKS)
def test_check(name):
    assert run_table("tests.sharding.checks")[name] == ""


@pytest.mark.parametrize("name", AHEAD)
def test_compiled_for_tpus(name):
    pytest.importorskip("libtpu")
    assert run_table("tests.sharding.ahead")[name] == ""
