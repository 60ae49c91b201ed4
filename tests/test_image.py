"""`jitcore.image` and `nn.dot_product_attention` against JAX's answers, compiled and batched, and their derivatives."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import image, jit, nn, vmap
from jitcore.test_util import check_grads
from tests.jax_answers import jax

rng = np.random.default_rng(0)
IMAGE = (9 * rng.normal(size=(5, 8, 3))).astype(np.float32)
METHODS = ["nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(10, 8, 3), (3, 4, 3), (7, 5, 3), (5, 8, 3), (0, 8, 3)])
@pytest.mark.parametrize("antialias", [True, False])
def test_resize(method, shape, antialias):
    for x in (IMAGE, IMAGE.astype(np.int32)):
        expected = jax.image.resize(x, shape, method, antialias)
        out = image.resize(x, shape, method, antialias)
        assert out.dtype == expected.dtype
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(jit(lambda x: image.resize(x, shape, method, antialias))(IMAGE), image.resize(IMAGE, shape, method, antialias),
                               rtol=1e-4, atol=1e-4)
    both = vmap(lambda x: image.resize(x, shape, method, antialias))(np.stack([IMAGE, 2 * IMAGE]))
    np.testing.assert_allclose(both[1], image.resize(2 * IMAGE, shape, method, antialias), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS[1:])
def test_scale_and_translate(method):
    args = (7, 9, 3), (0, 1), np.array([1.3, 0.7], np.float32), np.array([0.5, -0.4], np.float32), method
    np.testing.assert_allclose(image.scale_and_translate(IMAGE, *args), jax.image.scale_and_translate(IMAGE, *args),
                               rtol=1e-4, atol=1e-4)
    check_grads(lambda x, scale, move: image.scale_and_translate(x, (4, 3), (0, 1), scale, move, method),
                (rng.normal(size=(3, 5)), np.array([1.3, 0.71]), np.array([0.43, -0.4])), order=1, modes=["fwd", "rev"], rtol=1e-3)


def test_wrong_arguments_of_images():
    for shape, method in (((3, 3), "linear"), ((5, 8, 3), "best")):
        with pytest.raises(ValueError):
            image.resize(IMAGE, shape, method)
    for shape, axes, method in (((5, 8, 3), (0,), "nearest"), ((5, 9, 3), (0,), "linear"), ((5, 8), (0,), "linear")):
        with pytest.raises(ValueError):
            image.scale_and_translate(IMAGE, shape, axes, [1.0], [0.0], method)
    assert image.ResizeMethod.from_string("bilinear") is image.ResizeMethod.LINEAR


def attend(dtype=np.float32):
    return [rng.normal(size=shape).astype(dtype) for shape in ((2, 5, 4, 6), (2, 7, 2, 6), (2, 7, 2, 6))]


LENGTHS = np.array([3, 5], np.int32), np.array([7, 2], np.int32)


@pytest.mark.parametrize("options", [
    {}, {"bias": rng.normal(size=(1, 4, 5, 7)).astype(np.float32)}, {"mask": rng.random((2, 1, 5, 7)) > 0.3}, {"is_causal": True},
    {"scale": 0.3}, {"query_seq_lengths": LENGTHS[0], "key_value_seq_lengths": LENGTHS[1]}, {"local_window_size": 2},
    {"local_window_size": (1, 3), "is_causal": True}], ids=lambda options: "-".join(options) or "plain")
def test_attention(options):
    args = attend()
    expected = jax.nn.dot_product_attention(*args, **options)
    for function in (nn.dot_product_attention, jit(lambda *args: nn.dot_product_attention(*args, **options))):
        out = function(*args, **(options if function is nn.dot_product_attention else {}))
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    half = nn.dot_product_attention(*[x.astype(jnp.bfloat16) for x in args], **options)
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(np.float32), expected, atol=0.05)
    wide = [x.astype(np.float64) for x in args]
    check_grads(lambda *args: nn.dot_product_attention(*args, **options), wide, order=1, rtol=1e-3)


def test_attention_without_a_batch_and_with_wrong_shapes():
    query, key, value = attend(np.float64)
    whole = nn.dot_product_attention(query, key, value)
    np.testing.assert_allclose(nn.dot_product_attention(query[1], key[1], value[1]), whole[1], atol=1e-12)
    np.testing.assert_allclose(vmap(nn.dot_product_attention)(query, key, value), whole, atol=1e-12)
    for wrong in ((query, key[0], value), (query, key[:, :3], value), (query[:, :, :3], key, value)):
        with pytest.raises(ValueError):
            nn.dot_product_attention(*wrong)
