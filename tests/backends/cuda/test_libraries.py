"""NVIDIA's libraries on a driver without a GPU: faked ones compute what real ones would, the kernels around are run by
the device in software, and results are those of the host."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda import library_programs
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.fake_libraries import install

on_driver = pytest.importorskip("tests.backends.cuda.test_programs_on_driver")
gpu = on_driver.gpu
RANDOM = np.random.default_rng(0)
F32, F64, C64, C128 = np.float32, np.float64, np.complex64, np.complex128


def draw(*shape, dtype=F64):
    x = RANDOM.standard_normal(shape)
    return (x + 1j * RANDOM.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(*shape, dtype=F64):
    x = draw(*shape, dtype=dtype)
    return (x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def with_failure(x, value=-1.0):
    """The second matrix is not positive definite, or not finite."""
    x = x.copy()
    x[1, 1, 1] = value
    return x


def as_they_are(*outs):
    return outs


def of_qr(q, r):
    return q @ r, q.conj().swapaxes(-1, -2) @ q, np.triu(r) - r, abs(r)


def of_eigh(vectors, values):
    product = (vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2)
    return values, product if vectors.shape[-1] == vectors.shape[-2] else abs(vectors)


def of_svd(values, left=None, right=None):
    if left is None:
        return (values,)
    k = values.shape[-1]
    unit = [x @ x.conj().swapaxes(-1, -2) for x in (left.swapaxes(-1, -2), right)]
    return values, (left[..., :k] * values[..., None, :]) @ right[..., :k, :], *unit


def solves(**options):
    return lambda a, b: lax.linalg.triangular_solve(a, b, **options)


def contracts(numbers, **options):
    return lambda x, y: lax.dot_general(x, y, numbers, **options)


def transforms(kind, *lengths):
    return lambda x: lax.fft(x, kind, lengths)


PLAIN = (((1,), (0,)), ((), ()))
NAN_PLACES = with_failure(draw(3, 4, 4), np.nan)
#: function, arguments, what of the outputs is unique, functions of the libraries.
CASES = {
    **{f"cholesky {dtype.__name__}": (jnp.linalg.cholesky, (positive(5, 5, dtype=dtype),), as_they_are, f"{letter}potrf")
       for letter, dtype in (("s", F32), ("d", F64), ("c", C64), ("z", C128))},
    "cholesky of one triangle": (lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
                                 (np.tril(positive(4, 4, dtype=C128)) + np.triu(draw(4, 4), 1),), as_they_are, "zpotrf"),
    "cholesky of some that fail": (lax.linalg.cholesky, (with_failure(positive(2, 4, 4)),), as_they_are, "dpotrf"),
    "lu": (lax.linalg.lu, (draw(5, 5, dtype=F32),), as_they_are, "sgetrf"),
    "lu of tall ones": (lax.linalg.lu, (draw(2, 6, 4, dtype=C64),), as_they_are, "cgetrf"),
    "lu of wide ones": (lax.linalg.lu, (draw(2, 3, 4, 6),), as_they_are, "dgetrf"),
    "lu of a singular one": (lax.linalg.lu, (np.ones((3, 3)),), as_they_are, "dgetrf"),
    "solve": (jnp.linalg.solve, (draw(5, 5, dtype=C128), draw(5, 3, dtype=C128)), as_they_are, "zgetrf ztrsm"),
    **{f"qr of {m} x {n}, {full}": (lambda x, full=full: lax.linalg.qr(x, full_matrices=full), (draw(2, m, n, dtype=dtype),),
                                    of_qr, f"{letter}geqrf {letter}{'un' if letter in 'cz' else 'or'}gqr")
       for m, n, letter, dtype in ((4, 4, "s", F32), (6, 4, "z", C128), (4, 6, "d", F64), (5, 3, "c", C64))
       for full in (True, False)},
    **{f"eigh {dtype.__name__}, {lower}": (lambda x, lower=lower: lax.linalg.eigh(x, lower=lower, symmetrize_input=False),
                                           (draw(2, 5, 5, dtype=dtype),), of_eigh, name)
       for name, dtype in (("ssyevd", F32), ("dsyevd", F64), ("cheevd", C64), ("zheevd", C128)) for lower in (True, False)},
    "eigh of NaN": (lambda x: lax.linalg.eigh(x, symmetrize_input=False), (np.full((3, 3), np.nan),), as_they_are, "dsyevd"),
    "eigh in part": (lambda x: lax.linalg.eigh(x, subset_by_index=(1, 3)), (positive(5, 5),), of_eigh, "dsyevd"),
    **{f"svd of {m} x {n}, {full}": (lambda x, full=full: lax.linalg.svd(x, full_matrices=full)[1::-1] and (
        lambda u, s, v: (s, u, v))(*lax.linalg.svd(x, full_matrices=full)), (draw(2, m, n, dtype=dtype),), of_svd, f"{letter}gesvd")
       for m, n, letter, dtype in ((4, 4, "s", F32), (6, 3, "z", C128), (3, 6, "c", C64), (4, 7, "d", F64))
       for full in (True, False)},
    "singular values": (lambda x: lax.linalg.svd(x, compute_uv=False), (draw(2, 5, 3, dtype=C64),), of_svd, "cgesvd"),
    "svd of NaN": (lambda x: lax.linalg.svd(x), (np.full((3, 4), np.nan),), as_they_are, "dgesvd"),
    **{f"triangular {left} {lower} {trans} {conj} {unit}": (
        solves(left_side=left, lower=lower, transpose_a=trans, conjugate_a=conj, unit_diagonal=unit),
        (draw(2, 4, 4, dtype=C128) + 4 * np.eye(4), draw(2, *((4, 3) if left else (3, 4)), dtype=C128)), as_they_are, "ztrsm")
       for left in (True, False) for lower in (True, False) for trans, conj in ((0, 0), (1, 0), (1, 1), (0, 1)) for unit in (0, 1)},
    **{f"triangular {dtype.__name__}": (solves(lower=True), (positive(4, 4, dtype=dtype), draw(3, 4, dtype=dtype)), as_they_are,
                                        f"{letter}trsm") for letter, dtype in (("s", F32), ("d", F64), ("c", C64))},
    **{f"product {dtype.__name__ if hasattr(dtype, '__name__') else dtype}": (
        contracts(PLAIN), (draw(9, 10).astype(dtype), draw(10, 8).astype(dtype)), as_they_are, "gemm_strided_batched_ex")
       for dtype in (F32, F64, np.float16, jnp.bfloat16)},
    "product of halves in float32": (contracts(PLAIN, preferred_element_type=F32), (draw(9, 10).astype(np.float16), draw(10, 8).astype(np.float16)),
                                     as_they_are, "gemm_strided_batched_ex"),
    "products of complex numbers": (contracts((((2,), (1,)), ((0,), (0,)))), (draw(2, 20, 30, dtype=C64), draw(2, 30, 21, dtype=C64)),
                                    as_they_are, "gemm_strided_batched_ex"),
    **{f"product of {left}, {right}": (contracts((((left,), (right,)), ((), ()))), (draw(*((9, 10) if left else (10, 9))),
                                       draw(*((8, 10) if right else (10, 8)))), as_they_are, "gemm_strided_batched_ex")
       for left in (0, 1) for right in (0, 1)},
    "products of turned stacks": (contracts((((1,), (2,)), ((0,), (1,)))), (draw(3, 10, 9), draw(8, 3, 10)), as_they_are,
                                  "gemm_strided_batched_ex"),
    "product over two axes": (contracts((((1, 2), (0, 1)), ((), ()))), (draw(9, 4, 5), draw(4, 5, 8)), as_they_are,
                              "gemm_strided_batched_ex"),
    **{f"{kind} of {dtype.__name__}, {lengths}": (transforms(kind, *lengths), (draw(2, *lengths, dtype=dtype),), as_they_are, name)
       for kind in ("fft", "ifft") for dtype, name in ((C64, "exec_c2c"), (C128, "exec_z2z")) for lengths in ((7,), (4, 6), (3, 2, 5))},
    **{f"rfft of {dtype.__name__}, {lengths}": (transforms("rfft", *lengths), (draw(2, *lengths, dtype=dtype),), as_they_are, name)
       for dtype, name in ((F32, "exec_r2c"), (F64, "exec_d2z")) for lengths in ((7,), (8,), (4, 6), (3, 2, 5))},
    **{f"irfft of {dtype.__name__}, {lengths}": (transforms("irfft", *lengths), (draw(2, *lengths[:-1], lengths[-1] // 2 + 1, dtype=dtype),),
                                                 as_they_are, name)
       for dtype, name in ((C64, "exec_c2r"), (C128, "exec_z2d")) for lengths in ((7,), (8,), (4, 6), (3, 2, 5))},
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda i, a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), x), (draw(4, 4),), as_they_are,
                  "dpotrf"),
    "derivative": (jitcore.grad(lambda x: jnp.linalg.solve(x, jnp.ones(4)).sum()), (positive(4, 4),), as_they_are, "dgetrf dtrsm"),
}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(library_programs, "LEAST_IN_BATCH", 1)
    monkeypatch.setattr(library_programs, "LEAST_PRODUCT", 8)


def compare(function, args, unique):
    expected = tree_leaves(jit(function, backend="reference")(*args))
    compiled = jit(function, backend="cuda")
    for found in [tree_leaves(compiled(*args)) for _ in range(2)]:  # before any of them has to be done
        pairs = [list(map(np.asarray, outs)) for outs in (found, expected)]
        for one, other in zip(*pairs, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
        for one, other in zip(*(unique(*outs) for outs in pairs), strict=True):
            tolerance = {2: 1e-2}.get(one.dtype.itemsize, 2e-5 if one.dtype in (F32, C64) else 1e-11)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("package", ["nvmath", "cupy"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_host(gpu, small, monkeypatch, name, package):
    function, args, unique, wanted = CASES[name]
    libraries = install(monkeypatch, gpu, package)
    compare(function, args, unique)
    called = {call for library in libraries.values() for call, _ in library.calls}
    if package == "nvmath":
        assert set(wanted.split()) <= called
    elif "exec" in wanted:
        assert not called  # CuPy's bindings do not tell a transform where to work
    else:
        assert {name.replace("gemm_strided_batched_ex", "gemmStridedBatchedEx") for name in wanted.split()} <= called
