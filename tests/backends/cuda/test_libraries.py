"""NVIDIA's libraries on a driver without a GPU: faked ones compute what real ones would, the kernels around are run by
the device in software, and results are those of the host."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
import threading

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda.libraries import bindings as libraries_module
from jitcore.backends.cuda.runtime.driver import CudaError
from jitcore.backends.gpu.tuning import Tuning
from jitcore.dispatch.backend import find_backend
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.fake_libraries import MODULES, install

on_driver = pytest.importorskip("tests.backends.cuda.test_programs_on_driver")
gpu = on_driver.gpu
WANTS_LIBRARIES = True
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


def of_lu(factors, pivots, permutation):
    """The matrix. Where elements are equally large, each is as good a pivot."""
    k = pivots.shape[-1]
    product = (np.tril(factors, -1) + np.eye(len(factors)))[:, :k] @ np.triu(factors)[:k]
    return product[np.argsort(permutation)], np.sort(permutation), abs(np.diag(factors))


def of_eigh(vectors, values):
    product = (vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2)
    return values, product if vectors.shape[-1] == vectors.shape[-2] else abs(vectors)


def of_svd(left, values, right):
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
    "cholesky with imaginary parts": (lambda x: lax.linalg.cholesky(x, symmetrize_input=False), (positive(4, 4, dtype=C64) + 1j * np.eye(4, dtype=C64),),
                                      as_they_are, "cpotrf"),
    "cholesky of some that fail": (lax.linalg.cholesky, (with_failure(positive(2, 4, 4)),), as_they_are, "dpotrf"),
    "lu": (lax.linalg.lu, (draw(5, 5, dtype=F32),), as_they_are, "sgetrf"),
    "lu of tall ones": (lax.linalg.lu, (draw(2, 6, 4, dtype=C64),), as_they_are, "cgetrf"),
    "lu of wide ones": (lax.linalg.lu, (draw(2, 3, 4, 6),), as_they_are, "dgetrf"),
    "lu of a singular one": (lax.linalg.lu, (np.ones((3, 3)),), of_lu, "dgetrf"),
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
    **{f"svd of {m} x {n}, {full}": (lambda x, full=full: lax.linalg.svd(x, full_matrices=full), (draw(2, m, n, dtype=dtype),), of_svd, f"{letter}gesvd")
       for m, n, letter, dtype in ((4, 4, "s", F32), (6, 3, "z", C128), (3, 6, "c", C64), (4, 7, "d", F64))
       for full in (True, False)},
    "singular values": (lambda x: lax.linalg.svd(x, compute_uv=False), (draw(2, 5, 3, dtype=C64),), as_they_are, "cgesvd"),
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
}


#: Libraries pay from few elements on.
SMALL = Tuning(least_in_batch=1, least_library_product=8)


@pytest.fixture
def small(use_tuning):
    use_tuning(SMALL)


def compare(function, args, unique, slack=1):
    expected = tree_leaves(jit(function, backend="reference")(*args))
    compiled = jit(function, backend="cuda")
    for found in [tree_leaves(compiled(*args)) for _ in range(2)]:  # before any of them has to be done
        pairs = [list(map(np.asarray, outs)) for outs in (found, expected)]
        for one, other in zip(*pairs, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
        for one, other in zip(*(unique(*outs) for outs in pairs), strict=True):
            tolerance = slack * {2: 1e-2}.get(one.dtype.itemsize, 2e-5 if one.dtype in (F32, C64) else 1e-11)
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


# -- what is a library's, and what is not -------------------------------------------------------------------
def relu_of_product(x, y):
    return jnp.maximum(x @ y, 0)


BIG = np.ones((512, 512), F32)
#: What stays on the host, or in loops, and how many functions of libraries are called for the rest.
KEPT = {
    "a batch of small matrices": (jnp.linalg.cholesky, (positive(3, 8, 8),), 0),
    "one small matrix": (jnp.linalg.cholesky, (positive(8, 8),), 1),
    "a batch": (jnp.linalg.cholesky, (positive(2, 128, 128),), 2),
    "an empty matrix": (jnp.linalg.cholesky, (np.zeros((0, 0)),), 0),
    "an empty batch": (lambda x: lax.linalg.svd(x)[1], (np.zeros((0, 3, 3)),), 0),
    "qr with pivoting": (lambda x: lax.linalg.qr(x, pivoting=True)[1], (draw(4, 3),), 0),
    "a small product": (contracts(PLAIN), (draw(20, 20), draw(20, 20)), 0),
    "a large product": (contracts(PLAIN), (BIG, BIG), 1),
    "a product with something to do": (relu_of_product, (BIG, BIG), 0),
    "a product for a loop": (lambda x, y: lax.fori_loop(0, 2, lambda i, a: a + i, x @ y), (BIG, BIG), 1),
    "a chain of products": (lambda x, y: (x @ y) @ y, (BIG, BIG), 2),
    "a thin product": (contracts(PLAIN), (BIG, BIG[:, :300]), 0),
    "whole numbers": (contracts(PLAIN), (BIG.astype(np.int32), BIG.astype(np.int32)), 0),
    "four axes": (transforms("fft", 2, 2, 2, 2), (draw(2, 2, 2, 2, dtype=C64),), 0),
    "an axis of one element": (transforms("irfft", 1), (draw(3, 1, dtype=C64),), 0),
}


@pytest.mark.parametrize("name", KEPT)
def test_where_things_are_computed(gpu, monkeypatch, name):
    function, args, count = KEPT[name]
    gpu.device.launch = lambda *arguments: None  # only calls are looked at
    libraries = install(monkeypatch, gpu, "nvmath")
    np.asarray(jit(function, backend="cuda")(*args)) if count else jit(function, backend="cuda").lower(*args).compile()
    work = [name for library in libraries.values() for name, _ in library.calls
            if name.removeprefix("d") in ("potrf", "gemm_strided_batched_ex") or name.startswith("exec")]
    assert len(work) == count


def test_halves_are_multiplied_as_they_are(gpu, small, monkeypatch):
    (library, *_) = install(monkeypatch, gpu, "nvmath").values()
    x, y = draw(9, 10).astype(np.float16), draw(10, 9).astype(np.float16)
    compare(lambda x, y: (x @ y) @ x, (x, y), as_they_are)
    kinds = [(a[8], a[17]) for name, a in library.calls if name.startswith("gemm")]
    assert kinds == [(2, 2)] * 4  # two products in each of two calls


@pytest.mark.parametrize("precision, compute", [(None, 68), ("highest", 68), ("float32", 68), ("high", 77), ("tensorfloat32", 77),
                                                ("default", 77), (lax.Precision.HIGH, 77), (("default", "highest"), 68)])
def test_products_are_rounded_if_asked_for(gpu, small, monkeypatch, precision, compute):
    (library, *_) = install(monkeypatch, gpu, "nvmath").values()
    x, y = draw(9, 10).astype(F32), draw(10, 9).astype(F32)
    for multiply in (jnp.matmul, jnp.dot, functools.partial(jnp.einsum, "ij,jk"), functools.partial(jnp.tensordot, axes=1)):
        jit(functools.partial(multiply, precision=precision), backend="cuda")(x, y)
    with jitcore.default_matmul_precision("tensorfloat32"):
        jit(lambda x, y: jnp.inner(x, y.T, precision=precision), backend="cuda")(x, y)
    kinds = [a[-2] for name, a in library.calls if name.startswith("gemm")]
    assert kinds == [compute] * 4 + [77 if precision is None else compute]


@pytest.mark.parametrize("packages, broken, used", [
    ((), (), {}), (("cupy",), (), {"cublas": "cupy", "cusolver": "cupy"}),
    (("nvmath", "cupy"), (), {"cublas": "nvmath", "cusolver": "nvmath", "cufft": "nvmath"}),
    (("nvmath", "cupy"), ("nvmath cusolver", "nvmath cufft"), {"cublas": "nvmath", "cusolver": "cupy"}),
    (("nvmath",), ("nvmath cusolver",), {"cublas": "nvmath", "cufft": "nvmath"}),
])
def test_bindings_are_asked_for_in_order(gpu, monkeypatch, packages, broken, used):
    libraries = install(monkeypatch, gpu, *packages)
    for name in broken:
        libraries[name].broken |= {"create", "get_version"}
    device = jitcore.devices("cuda")[0]
    text = find_backend("cuda").describe()[f"libraries of gpu {device.id}"]
    for library in ("cublas", "cusolver", "cufft"):
        assert (f"{library}: by {used[library]}" if library in used else f"{library}: not used (") in text
    compare(jnp.linalg.cholesky, (positive(4, 4),), as_they_are)
    compare(transforms("fft", 6), (draw(6, dtype=C64),), as_they_are)


def test_texts(gpu, monkeypatch):
    install(monkeypatch, gpu, "nvmath")
    compiled = jit(jnp.linalg.cholesky, backend="cuda").lower(positive(4, 4)).compile()
    assert "= potrf(" in compiled.as_text("loop program")
    assert "# cholesky(inputs...): computed by NumPy" in compiled.as_text("numba.cuda")


def test_what_a_library_says_is_an_error_of_cuda(gpu, monkeypatch):
    install(monkeypatch, gpu, "nvmath")["nvmath cusolver"].broken.add("dpotrf")
    with pytest.raises(CudaError, match=r"dpotrf of cusolver failed: dpotrf: STATUS"):
        jit(jnp.linalg.cholesky, backend="cuda")(positive(4, 4))
    compare(jnp.linalg.cholesky, (positive(4, 4, dtype=F32),), as_they_are)


def test_threads_and_plans(gpu, monkeypatch):
    monkeypatch.setattr(libraries_module, "MAX_PLANS", 2)
    library = install(monkeypatch, gpu, "nvmath")["nvmath cufft"]
    lock, run, right = threading.RLock(), gpu._run, []

    def run_alone(*arguments):  # as a GPU: who waits does so until all is done
        with lock:
            run(*arguments)

    gpu._run = run_alone
    programs = {n: jit(transforms("fft", n), backend="cuda") for n in (4, 5, 6)}
    signals = {n: draw(3, n, dtype=C64) for n in programs}
    for n, program in programs.items():
        program(signals[n])

    def work():
        for n in (4, 5, 6, 4, 5) * 4:
            right.append(np.allclose(np.asarray(programs[n](signals[n])), np.fft.fft(signals[n]), atol=1e-5))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 60 and all(right) and len(library.plans) == 2


# -- the real bindings --------------------------------------------------------------------------------------
@pytest.mark.parametrize("package", ["nvmath", "cupy"])
def test_the_real_functions_take_the_same_arguments(gpu, small, monkeypatch, package):
    """nvmath-python's are called: without a driver they convert what they are given, and find no library."""
    real = {}
    for library, name in MODULES[package].items():
        pytest.importorskip(package)
        with contextlib.suppress(ImportError, RuntimeError):
            importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib(library)
        real[library] = pytest.importorskip(name, exc_type=ImportError)  # the library itself may be missing
    with contextlib.suppress(Exception):
        real["cublas"].create()
        pytest.skip("with a driver, they would be called with addresses of the host")
    libraries = install(monkeypatch, gpu, package)
    for function, args, _, _ in CASES.values():
        jitcore.block_until_ready(jit(function, backend="cuda")(*args))
    checked = set()
    for library, module in real.items():
        for name, arguments in libraries[f"{package} {library}"].calls:
            function = getattr(module, name)
            if package == "cupy":
                text = re.search(r"\((.*?)\)", function.__doc__)[1]
                assert len(arguments) == len(text.split(",") if text else ()), name
            elif library == "cufft" or name != "create":
                with contextlib.suppress(RuntimeError):
                    function(*arguments)
            checked.add(name)
    assert len(checked) > 30
