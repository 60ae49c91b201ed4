"""Ahead-of-time stages: trace, lower, compile, and looking into them."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import lax, stages

ONES = np.ones(3, np.float32)


@jitcore.jit
def double(x):
    return lax.mul(x, 2.0)


def test_the_stages_one_by_one():
    traced = double.trace(ONES)
    assert str(traced.jaxpr) == "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0 in (b,) }"
    assert traced.fun_name == "double"
    lowered = traced.lower()
    assert "mul a 2.0" in lowered.as_text() and lowered.as_text() == lowered.as_text("jaxpr")
    compiled = lowered.compile()
    assert np.asarray(compiled(ONES)).tolist() == [2, 2, 2]
    assert isinstance(compiled.as_text(), str) and compiled.as_text()
    for stage in (traced, lowered, compiled):
        assert stage.out_info == jitcore.ShapeDtypeStruct((3,), np.float32)
        assert str(stage.in_tree) == "PyTreeDef(((*,), {}))" and str(stage.out_tree) == "PyTreeDef(*)"
        assert stage.donate_argnums == ()
    with pytest.raises(ValueError, match="dialect"):
        lowered.as_text("nonsense")


def test_shapes_may_stand_for_arrays_ahead_of_time_only():
    struct = jitcore.ShapeDtypeStruct((3,), np.float32)
    assert np.asarray(double.lower(struct).compile()(ONES)).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        double(struct)


def test_compiled_programs_check_their_arguments():
    compiled = jitcore.jit(lambda x, y: lax.add(x, y)).lower(1.0, 2.0).compile()
    assert float(compiled(3.0, 4.0)) == float(compiled(np.float32(3.0), 4.0)) == 7.0
    with pytest.raises(
        TypeError,
        match=r"(?s)Argument types differ.*Argument 'y' compiled with float32\[\] and "
        r"called with int32\[\]",
    ):
        compiled(1.0, 2)
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled(1.0)


def test_compiled_programs_are_called_by_dispatchers(monkeypatch):
    fun = jitcore.jit(lambda tree, scale: lax.mul(tree["x"][0], scale))
    compiled = fun.lower({"x": [ONES]}, scale=np.float32(2)).compile()
    assert np.asarray(compiled({"x": [ONES]}, scale=np.float32(2))).tolist() == [2, 2, 2]
    with monkeypatch.context() as patch:
        patch.setattr(stages, "read_call", lambda *args: pytest.fail("the dispatcher does not know it"))
        for count in range(3):
            result = compiled({"x": [ONES * count]}, scale=np.float32(2))
            assert np.asarray(result).tolist() == [2 * count] * 3
    with pytest.raises(TypeError, match="Argument types differ"):
        compiled({"x": [np.ones(4, np.float32)]}, scale=np.float32(2))
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled({"y": [ONES]}, scale=np.float32(2))
    assert np.asarray(compiled({"x": [jitcore.device_put(ONES)]}, scale=np.float32(3))).tolist() == [3, 3, 3]


def test_static_and_donated_arguments_ahead_of_time():
    fun = jitcore.jit(lambda n, x: lax.mul(x, float(n)), static_argnums=0, donate_argnums=1)
    compiled = fun.lower(3, ONES).compile()
    for _ in range(3):
        x = jitcore.device_put(ONES)
        assert np.asarray(compiled(x)).tolist() == [3, 3, 3]
        assert x.is_deleted() and compiled.donate_argnums == (0,)
    assert compiled.memory_analysis().alias_size_in_bytes == 12


def test_stages_share_the_cache_with_calls():
    fun = jitcore.jit(lambda x: lax.exp(lax.mul(x, 1.625)))
    fun.trace(ONES), fun.lower(ONES), fun.eval_shape(ONES)
    assert fun.cache_info().traces == 1
    fun(ONES)
    assert fun.cache_info().traces == 1


def test_analyses():
    compiled = double.lower(ONES).compile({"fastmath": True})
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes) == (
        12,
        12,
        0,
    )
    assert "argument_size_in_bytes=12" in repr(memory)
    assert isinstance(compiled.cost_analysis(), dict)
    with pytest.raises(ValueError, match="No such compile option"):
        double.lower(ONES).compile({"fast": 1})


def test_inspect():
    fun = jitcore.jit(lambda x: (lambda unused: lax.neg(x))(lax.sin(x)))
    with pytest.raises(ValueError, match="has not been compiled yet"):
        fun.inspect()
    fun(ONES)
    stages = list(fun.inspect())
    assert stages[:2] == ["jaxpr", "optimized jaxpr"]
    assert "sin" in fun.inspect("jaxpr") and "sin" not in fun.inspect("optimized jaxpr")
    with pytest.raises(ValueError, match="unknown stage 'nonsense': the stages are jaxpr, optimized jaxpr"):
        fun.inspect("nonsense")


def test_eval_shape_computes_nothing():
    def fun(tree):
        return {"a": lax.add(tree["x"], 1.0), "b": (tree["x"],)}

    struct = jitcore.ShapeDtypeStruct((2, 3), np.float64)
    expected = {"a": struct, "b": (struct,)}
    assert jitcore.eval_shape(fun, {"x": struct}) == expected
    assert jitcore.jit(fun).eval_shape({"x": np.ones((2, 3))}) == expected
    assert jitcore.eval_shape(jitcore.jit(fun), {"x": struct}) == expected
    assert repr(jitcore.eval_shape(lambda x: lax.neg(x), 1.0)) == (
        "ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)"
    )


@pytest.mark.cpu
def test_transfers():
    out = jitcore.device_put({"a": 1.0, "b": [2, ONES]})
    assert repr(out["a"]) == "Array(1., dtype=float32, weak_type=True)"
    assert repr(out["b"][0]) == "Array(2, dtype=int32, weak_type=True)"
    assert not np.shares_memory(np.asarray(out["b"][1]), ONES)
    assert jitcore.device_put(out["a"], jitcore.devices()[0]) is out["a"]
    back = jitcore.device_get({"a": out["b"][1], "b": "text"})
    assert type(back["a"]) is np.ndarray and back["b"] == "text"
    assert jitcore.block_until_ready([out, 1, None]) == [out, 1, None]
    with pytest.raises(TypeError, match="not a valid jitcore type"):
        jitcore.device_put("text")


def test_typeof_and_names():
    assert repr(jitcore.typeof(1.0)) == "ShapedArray(float32[], weak_type=True)"
    assert float(jitcore.named_call(lambda x: lax.neg(x), name="n")(1.0)) == -1.0
    with jitcore.named_scope("part"):
        pass
    with pytest.raises(TypeError, match="must be a string"), jitcore.named_scope(3):
        pass


def test_a_compiled_function_takes_no_tracers():
    compiled = double.lower(ONES).compile()
    with pytest.raises(TypeError, match="lowered and compiled for a particular signature"):
        jitcore.jit(lambda x: compiled(x))(ONES)
