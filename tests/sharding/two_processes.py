"""One of two processes of four devices each: a stencil over all eight, of which each process feeds its half.

Arguments: the number of the process, the port of the first.
"""

import sys

import numpy as np

import jitcore
from jitcore import distributed, jit, lax, numpy as jnp, shard_map
from jitcore.sharding import Mesh, NamedSharding, P
from tests.sharding.checks import smooth

if __name__ == "__main__":
    number, port = map(int, sys.argv[1:])
    distributed.initialize(f"localhost:{port}", 2, number)
    assert (jitcore.process_index(), jitcore.process_count(), distributed.is_initialized()) == (
        number,
        2,
        True,
    )
    assert (jitcore.device_count(), jitcore.local_device_count()) == (8, 4)
    sharding = NamedSharding(Mesh(np.array(jitcore.devices()), ("x",)), P("x"))
    assert sharding.mesh.is_multi_process and not sharding.is_fully_addressable

    whole = np.arange(32, dtype=np.float32) ** 2
    x = jitcore.make_array_from_process_local_data(sharding, whole[16 * number : 16 * number + 16])
    assert x.shape == (32,) and len(x.addressable_shards) == 4 and len(x.global_shards) == 8
    assert repr(x) == str(x) == "Array(shape=(32,), dtype=float32)"

    step = shard_map(smooth, mesh=sharding.mesh, in_specs=P("x"), out_specs=P("x"))
    y = jit(lambda x: lax.fori_loop(0, 3, lambda i, x: step(x), x))(x)
    expected = whole
    for _ in range(3):
        expected = 0.5 * expected + 0.25 * (np.roll(expected, 1) + np.roll(expected, -1))
    for shard in y.addressable_shards:
        np.testing.assert_allclose(shard.data, expected[shard.index], rtol=1e-6)
    np.testing.assert_allclose(float(jit(jnp.sum)(y)), expected.sum(), rtol=1e-6)
    try:
        np.asarray(y)
    except RuntimeError as error:
        assert "other processes have parts" in str(error)
    else:
        raise AssertionError("an array came to the host that this process does not have")
    distributed.shutdown()
    print("done")
