"""cuBLAS, cuSOLVER and cuFFT without a GPU: the functions of two bindings that the backend calls, by LAPACK and NumPy.

Arguments are those of the real functions, in their order. What is given to a library happens on the faked driver's
stream, when somebody waits for it; memory to work in has to be as large as was asked for, and is spoilt. Matrices
lie in columns.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

LETTERS = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
TYPES = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128, 2: np.float16, 14: ml_dtypes.bfloat16}
#: Functions that have a letter for the dtype in front, as C writes them.
TYPED = {"cusolver": ("potrf", "getrf", "geqrf", "orgqr", "ungqr", "syevd", "heevd", "gesvd"), "cublas": ("trsm",)}
PLAIN = {"cusolver": ("create", "setStream"), "cublas": ("create", "setStream", "setMathMode", "gemmStridedBatchedEx"),
         "cufft": ("get_version", "create", "destroy", "set_auto_allocation", "make_plan_many64", "set_stream",
                   "set_work_area", *[f"exec_{name}" for name in ("c2c", "z2z", "r2c", "d2z", "c2r", "z2d")])}
MODULES = {
    "nvmath": {"cublas": "nvmath.bindings.cublas", "cusolver": "nvmath.bindings.cusolverDn",
               "cufft": "nvmath.bindings.cufft"},
    "cupy": {"cublas": "cupy_backends.cuda.libs.cublas", "cusolver": "cupy_backends.cuda.libs.cusolver"},
}
KINDS = {41: "c2c", 42: "r2c", 44: "c2r", 105: "z2z", 106: "d2z", 108: "z2d"}


class LibraryError(Exception):
    """What bindings raise for a status."""


class FakeLibrary(ModuleType):
    """calls: (name, arguments) of each. broken: functions that fail."""

    def __init__(self, library: str, package: str, driver: Any):
        super().__init__(MODULES[package][library])
        self.library, self.package, self.driver = library, package, driver
        self.calls: list[tuple[str, tuple]] = []
        self.broken: set[str] = set()
        self.streams: dict[int, int] = {}
        self.sizes: dict[tuple, int] = {}
        self.plans: dict[int, dict] = {}
        self.numbers = itertools.count(1)
        self.math_mode = 0

    def __getattr__(self, name: str) -> Any:
        found = {self.spell(one): one for one in PLAIN[self.library]}
        run = None
        if name in found:
            run = getattr(self, f"_{found[name]}")
        for one in TYPED.get(self.library, ()):
            for letter in "sdcz":
                exists = (letter in "cz") == (one[:2] in ("un", "he")) or one[:2] not in ("un", "he", "or", "sy")
                if exists and name == self.spell(letter + one):
                    run = self.with_size(one, LETTERS[letter])
                elif exists and one != "trsm" and name == self.spell(f"{letter}{one}_bufferSize"):
                    run = self.find_size(one, LETTERS[letter])
        if run is None:
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, arguments))
            if name in self.broken:
                raise LibraryError(f"{name}: STATUS")
            assert self.driver.get_current(), "no context"
            if self.package == "cupy" and arguments:  # whatever a handle has been told before
                self.streams[arguments[0]] = FakeStream.current
            return run(*arguments)

        return call

    def spell(self, name: str) -> str:
        if self.package == "cupy" or self.library == "cufft":
            return name
        return re.sub("([A-Z])", lambda found: f"_{found[0].lower()}", name)

    # -- what functions share -------------------------------------------------------------------------------
    def find_size(self, name: str, dtype: type):
        def run(handle, *sizes):
            assert handle in self.streams
            extents = tuple(size for size in sizes if size < 1 << 20)  # without addresses
            return self.sizes.setdefault((name, dtype, extents), 64 + sum(extents))

        return run

    def with_size(self, name: str, dtype: type):
        return lambda handle, *arguments: getattr(self, f"_{name}")(dtype, self.streams[handle], *arguments)

    def check_work(self, name: str, dtype: type, sizes: tuple, address: int, length: int | None) -> None:
        wanted = self.sizes[name, dtype, sizes]
        assert length in (None, wanted)
        self.check_memory(address, wanted * np.dtype(dtype).itemsize)

    def check_memory(self, address: int, nbytes: int) -> None:
        assert self.driver.sizes[address] >= nbytes
        stream = next(iter(self.streams.values()))
        self.driver._queue(stream, lambda: self.view(address, np.uint8, nbytes).fill(0xA5))

    def view(self, address: int, dtype: Any, count: int) -> np.ndarray:
        nbytes = np.dtype(dtype).itemsize * count
        assert address % np.dtype(dtype).itemsize == 0 and address
        return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype)

    def matrix(self, address: int, dtype: Any, rows: int, columns: int, leading: int) -> np.ndarray:
        assert leading >= max(rows, 1)
        return self.view(address, dtype, leading * columns).reshape(columns, leading).T[:rows]

    def lapack(self, name: str, dtype: type):
        return getattr(scipy.linalg.lapack, next(k for k, v in LETTERS.items() if v is dtype) + name)

    def _create(self):
        if self.library == "cufft":
            plan = next(self.numbers)
            self.plans[plan] = {}
            return plan
        handle = 1000 + len(self.streams)
        self.streams[handle] = 0
        return handle

    def _setStream(self, handle, stream):
        assert handle in self.streams
        self.streams[handle] = stream

    # -- cuSOLVER -------------------------------------------------------------------------------------------
    def _potrf(self, dtype, stream, uplo, n, a, lda, work, length, info):
        self.check_work("potrf", dtype, (uplo, n, lda), work, length)

        def run():
            x = self.matrix(a, dtype, n, n, lda)
            assert not x.diagonal().imag.any()
            x[:], self.view(info, np.int32, 1)[:] = self.lapack("potrf", dtype)(x, lower=uplo == 0, clean=0)

        self.driver._queue(stream, run)

    def _getrf(self, dtype, stream, m, n, a, lda, work, pivots, info):
        self.check_work("getrf", dtype, (m, n, lda), work, None)

        def run():
            x = self.matrix(a, dtype, m, n, lda)
            x[:], found, self.view(info, np.int32, 1)[:] = self.lapack("getrf", dtype)(x)
            self.view(pivots, np.int32, min(m, n))[:] = found + 1

        self.driver._queue(stream, run)

    def _geqrf(self, dtype, stream, m, n, a, lda, tau, work, length, info):
        self.check_work("geqrf", dtype, (m, n, lda), work, length)

        def run():
            x = self.matrix(a, dtype, m, n, lda)
            x[:], self.view(tau, dtype, min(m, n))[:], _, self.view(info, np.int32, 1)[:] = self.lapack("geqrf", dtype)(x)

        self.driver._queue(stream, run)

    def _orgqr(self, dtype, stream, m, n, k, a, lda, tau, work, length, info, name="orgqr"):
        assert m >= n >= k
        self.check_work(name, dtype, (m, n, k, lda), work, length)

        def run():
            x = self.matrix(a, dtype, m, n, lda)
            x[:], _, self.view(info, np.int32, 1)[:] = self.lapack(name, dtype)(x, self.view(tau, dtype, k))

        self.driver._queue(stream, run)

    def _ungqr(self, *arguments):
        self._orgqr(*arguments, name="ungqr")

    def _syevd(self, dtype, stream, job, uplo, n, a, lda, w, work, length, info, name="syevd"):
        assert job == 1
        self.check_work(name, dtype, (job, uplo, n, lda), work, length)

        def run():
            x = self.matrix(a, dtype, n, n, lda)
            assert np.isfinite(x).all() and not x.diagonal().imag.any()
            values, vectors, status = self.lapack(name, dtype)(x, lower=uplo == 0)
            x[:], self.view(w, x.real.dtype, n)[:], self.view(info, np.int32, 1)[:] = vectors, values, status

        self.driver._queue(stream, run)

    def _heevd(self, *arguments):
        self._syevd(*arguments, name="heevd")

    def _gesvd(self, dtype, stream, job_u, job_v, m, n, a, lda, s, u, ldu, v, ldv, work, length, rwork, info):
        assert job_u == job_v and chr(job_u) in "ASN" and m >= n and rwork == 0
        self.check_work("gesvd", dtype, (m, n), work, length)

        def run():
            x, job = self.matrix(a, dtype, m, n, lda), chr(job_u)
            assert np.isfinite(x).all()
            left, values, right, status = self.lapack("gesvd", dtype)(x, compute_uv=job != "N", full_matrices=job == "A")
            self.view(s, x.real.dtype, n)[:], self.view(info, np.int32, 1)[:] = values, status
            if job != "N":
                self.matrix(u, dtype, m, left.shape[1], ldu)[:] = left
                self.matrix(v, dtype, n, n, ldv)[:] = right
            x[:] = np.nan

        self.driver._queue(stream, run)

    # -- cuBLAS ---------------------------------------------------------------------------------------------
    def _setMathMode(self, handle, mode):
        assert handle in self.streams and mode == 16
        self.math_mode = mode

    def _trsm(self, dtype, stream, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
        assert self.view(alpha, dtype, 1)[0] == 1 and {side, uplo, diag} <= {0, 1} and trans in (0, 1, 2)
        letter = next(k for k, v in LETTERS.items() if v is dtype)

        def run():
            order = n if side else m
            x, right = self.matrix(a, dtype, order, order, lda), self.matrix(b, dtype, m, n, ldb)
            right[:] = getattr(scipy.linalg.blas, f"{letter}trsm")(
                1, x, right, side=side, lower=uplo == 0, trans_a=trans, diag=diag)

        self.driver._queue(stream, run)

    def _gemmStridedBatchedEx(self, handle, trans_a, trans_b, m, n, k, alpha, a, a_type, lda, a_stride, b, b_type, ldb,
                              b_stride, beta, c, c_type, ldc, c_stride, count, compute, algorithm):
        assert algorithm == -1 and self.math_mode == 16 and a_type == b_type
        dtype, out = np.dtype(TYPES[a_type]), np.dtype(TYPES[c_type])
        assert compute in ((70,) if dtype in (np.float64, np.complex128) else (68, 77))
        scale = dtype if dtype.itemsize > 2 else np.float32
        assert self.view(alpha, scale, 1)[0] == 1 and self.view(beta, scale, 1)[0] == 0

        def run():
            for i in range(count):
                left, right = (
                    self.matrix(address + i * stride * dtype.itemsize, dtype, *(shape[::-1] if trans else shape), ld)
                    for address, stride, ld, trans, shape in ((a, a_stride, lda, trans_a, (m, k)), (b, b_stride, ldb, trans_b, (k, n))))
                left, right = (x.astype(scale).T if trans else x.astype(scale) for x, trans in ((left, trans_a), (right, trans_b)))
                self.matrix(c + i * c_stride * out.itemsize, out, m, n, ldc)[:] = (left @ right).astype(out)

        self.driver._queue(self.streams[handle], run)

    # -- cuFFT ----------------------------------------------------------------------------------------------
    def _get_version(self):
        return 12000

    def _destroy(self, plan):
        del self.plans[plan]

    def _set_auto_allocation(self, plan, value):
        assert value == 0 and not self.plans[plan]
        self.plans[plan]["auto"] = value

    def _make_plan_many64(self, plan, rank, n, inembed, istride, idist, onembed, ostride, odist, kind, batch):
        assert self.plans[plan] and (inembed, istride, onembed, ostride) == (0, 1, 0, 1) and rank == len(n) <= 3
        half, whole = int(np.prod([*n[:-1], n[-1] // 2 + 1])), int(np.prod(n))
        name = KINDS[kind]
        assert (idist, odist) == {"r": (whole, half), "d": (whole, half), "c": (whole, whole) if name == "c2c" else (half, whole),
                                  "z": (whole, whole) if name == "z2z" else (half, whole)}[name[0]]
        self.plans[plan] |= {"n": n, "name": name, "batch": batch, "work": 8 * whole}
        return 8 * whole

    def _set_stream(self, plan, stream):
        self.plans[plan]["stream"] = self.streams[plan] = stream

    def _set_work_area(self, plan, address):
        self.check_memory(address, self.plans[plan]["work"])
        self.plans[plan]["area"] = address

    def _exec(self, name, plan, source, target, direction=None):
        facts = self.plans[plan]
        n, batch, double = facts["n"], facts["batch"], name[0] in "zd"
        assert facts["name"] == name and facts.pop("area")
        real, whole = (np.float64, np.complex128) if double else (np.float32, np.complex64)
        before, after = (real if kind in "rd" else whole for kind in (name[0], name[-1]))
        half, axes = (*n[:-1], n[-1] // 2 + 1), tuple(range(1, len(n) + 1))
        shapes = [(batch, *(half if kind is whole and before is not after else n)) for kind in (before, after)]

        def run():
            x = self.view(source, before, int(np.prod(shapes[0]))).reshape(shapes[0])
            if name in ("c2c", "z2z"):
                assert direction in (-1, 1)
                found = np.fft.fftn(x, axes=axes) if direction == -1 else np.fft.ifftn(x, axes=axes, norm="forward")
            elif after is whole:
                found = np.fft.rfftn(x, axes=axes)
            else:
                assert not x[..., 0].imag.any() and (n[-1] % 2 or not x[..., -1].imag.any())
                found = np.fft.irfftn(x, n, axes=axes, norm="forward")
                x[:] = np.nan
            self.view(target, after, int(np.prod(shapes[1]))).reshape(shapes[1])[:] = found

        self.driver._queue(facts["stream"], run)

    def _exec_c2c(self, plan, source, target, direction):
        self._exec("c2c", plan, source, target, direction)

    def _exec_z2z(self, plan, source, target, direction):
        self._exec("z2z", plan, source, target, direction)

    def _exec_r2c(self, *arguments):
        self._exec("r2c", *arguments)

    def _exec_d2z(self, *arguments):
        self._exec("d2z", *arguments)

    def _exec_c2r(self, *arguments):
        self._exec("c2r", *arguments)

    def _exec_z2d(self, *arguments):
        self._exec("z2d", *arguments)


class FakeStream:
    """CuPy's, of which the one that is entered is the current one."""

    current = 0

    def __init__(self, handle: int):
        self.handle, self.before = handle, []

    @classmethod
    def from_external(cls, stream: Any) -> FakeStream:
        return cls(stream.__cuda_stream__()[1])

    def __enter__(self):
        self.before.append(FakeStream.current)
        FakeStream.current = self.handle

    def __exit__(self, *error):
        FakeStream.current = self.before.pop()


#: Of CuPy 14, and of those before.
STREAMS = SimpleNamespace(Stream=FakeStream), SimpleNamespace(Stream=object, ExternalStream=FakeStream)


def install(monkeypatch, driver: Any, *packages: str) -> dict[str, FakeLibrary]:
    """Puts faked bindings where they would be imported from; the others are absent. By "package library"."""
    found = {}
    for package, modules in MODULES.items():
        module = ModuleType(package)
        module.cuda = STREAMS[len(packages) > 1]
        monkeypatch.setitem(sys.modules, package, module if package in packages else None)
        for library, name in modules.items():
            if package in packages:
                found[f"{package} {library}"] = FakeLibrary(library, package, driver)
            monkeypatch.setitem(sys.modules, name, found.get(f"{package} {library}"))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    return found
