"""Programs on meshes of eight devices, compiled for TPUs that are not there. See `on_devices`."""

import numpy as np

import jitcore
from jitcore import ShapeDtypeStruct, jit, lax, numpy as jnp, shard_map
from jitcore.sharding import NamedSharding, P
from tests.sharding.checks import X, assert_close, expect, make_meshes

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def on(*entries):
    return NamedSharding(make_meshes()[1], P(*entries))


def compile_for(target, function, *arguments):
    """The compiled program, which eight chips run."""
    compiled = function.lower(*arguments).compile(target=target)
    assert "num_partitions=8" in compiled.as_text()
    return compiled


@check
def products_of_cut_matrices():
    rows, columns = (
        ShapeDtypeStruct((64, 64), np.float32, sharding=on(*entries)) for entries in (("x",), (None, "y"))
    )
    for target in ("tpu:v5e", "tpu:v6e:2x4"):
        compiled = compile_for(target, jit(jnp.matmul), rows, columns)
        assert compiled.cost_analysis()["flops"] == 2 * 64**3 / 8
        assert not any(name in compiled.as_text() for name in ("all-gather", "all-reduce"))


@check
def collectives():
    def shift(part):
        count = lax.axis_size("x")
        step = [(k, (k + 1) % count) for k in range(count)]
        return lax.ppermute(part, "x", step) - lax.psum(part, "y")

    mesh = make_meshes()[1]
    shifted = jit(shard_map(shift, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")))
    text = compile_for("tpu:v5e", shifted, X).as_text()
    assert "collective-permute" in text and "all-reduce" in text and "all-gather" not in text


@check
def shardings_of_arguments_results_and_values():
    sines = jit(lambda x: jnp.sin(x).sum(1), in_shardings=on("x", "y"), out_shardings=on("x"))
    assert "all-reduce" in compile_for("tpu:v5e", sines, X).as_text()
    squares = jit(lambda x: lax.with_sharding_constraint(x @ x.T, on("x", "y")).sum())
    compile_for("tpu:v5p", squares, X)
    gradient = jit(jitcore.grad(lambda x: squares(x) * 2.0))
    compile_for("tpu:v5e", gradient, jitcore.device_put(X, on("x")))


@check
def too_few_chips():
    expect(
        ValueError, "tpu:v5e:2x2 has 4 chips, and the program runs on 8 devices",
        lambda: jit(jnp.sin).lower(jitcore.device_put(X, on("x"))).compile(target="tpu:v5e:2x2"))


@check
def the_same_program_runs_on_the_devices_that_are_here():
    function, x = jit(lambda x: x @ x.T), jitcore.device_put(X, on("x", "y"))
    compile_for("tpu:v5e", function, x)
    assert_close(function(x), X @ X.T)
    compiled = function.lower(x).compile(target="xla")
    assert "num_partitions=8" in compiled.as_text()
    assert compiled(x).sharding.device_set == x.sharding.device_set
