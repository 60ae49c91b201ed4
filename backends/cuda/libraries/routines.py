"""Routines of NVIDIA's libraries: which functions are called for one operation on matrices or signals.

In: addresses of C-contiguous arrays on a GPU, batches of matrices one behind the other. Out: work on the
runtime's stream. Libraries lay matrices out by columns: what they see of a matrix is its transpose, so an
upper triangle of theirs is a lower one here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cuda.libraries.bindings import Libraries, Routine
from jitcore.backends.cuda.runtime.device import Memory

#: cublasOperation_t, cublasFillMode_t, cublasDiagType_t, cublasSideMode_t, cusolverEigMode_t, as C has them.
NO_TRANSPOSE, TRANSPOSE, CONJUGATE_TRANSPOSE = 0, 1, 2
LOWER, UPPER = 0, 1
_ANY, _UNIT = 0, 1
_LEFT, _RIGHT = 0, 1
_VECTORS = 1
_DEFAULT_ALGORITHM = -1
#: By dtype: the letter in names of functions, and cudaDataType_t.
TYPES = {"float32": ("s", 0), "float64": ("d", 1), "complex64": ("c", 4), "complex128": ("z", 5),
         "float16": ("", 2), "bfloat16": ("", 14)}
#: cublasComputeType_t: 32 bit, the same with factors rounded to TF32, and 64 bit.
_COMPUTE_32F, _COMPUTE_TF32, _COMPUTE_64F = 68, 77, 70
FORWARD, INVERSE = -1, 1


class Stack(NamedTuple):
    """Arrays one behind the other, so many bytes apart."""

    address: int
    nbytes: int


class Caller:
    """Calls a library for one matrix after the other."""

    def __init__(self, libraries: Libraries, library: str, dtype: np.dtype, count: int):
        self.libraries, self.library, self.count = libraries, library, count
        self.size, self.is_complex = dtype.itemsize, dtype.kind == "c"
        self.letter = TYPES[dtype.name][0]

    def stack(self, address: int, elements: int, is_real: bool = False) -> Stack:
        return Stack(address, elements * self.size // (2 if is_real and self.is_complex else 1))

    def fill(self, address: int, source: int, elements: int) -> Stack:
        """A copy: most functions write over what they are given."""
        self.libraries.runtime.copy(address, source, self.count * elements * self.size)
        return self.stack(address, elements)

    def allocate(self, elements: int) -> Memory:
        return Memory(self.libraries.runtime, elements * self.size)

    def call(self, name: str, *arguments: Any) -> Any:
        return self.libraries.call(self.library, self.letter + name, *arguments)

    def call_each(self, name: str, *arguments: Any) -> None:
        for i in range(self.count):
            self.call(name, *[one.address + i * one.nbytes if isinstance(one, Stack) else one
                              for one in arguments])

    def factor(self, name: str, info: int, *facts: Any, before: Sequence[Stack] = (),
               after: Sequence[Stack] | None = None) -> None:
        """A function of cuSOLVER that works in memory whose length another one tells of the same facts.
        before, after: what it takes beside that memory; after it the length itself, if nothing else."""
        told = [one.address if isinstance(one, Stack) else one for one in facts]
        length = self.call(f"{name}_bufferSize", *told)
        work = self.allocate(length)
        after = [length] if after is None else after
        self.call_each(name, *facts, *before, work.address, *after, Stack(info, 4))


def _potrf(libraries, x, factor, info, *, dtype, count: int, n: int) -> None:
    c = Caller(libraries, "cusolver", dtype, count)
    c.factor("potrf", info, UPPER, n, c.fill(factor, x, n * n), n)


def _getrf(libraries, x, factors, pivots, info, *, dtype, count: int, m: int, n: int) -> None:
    c = Caller(libraries, "cusolver", dtype, count)
    c.factor("getrf", info, m, n, c.fill(factors, x, m * n), m, after=[Stack(pivots, 4 * min(m, n))])


def _geqrf(libraries, x, factors, taus, info, *, dtype, count: int, m: int, n: int) -> None:
    c = Caller(libraries, "cusolver", dtype, count)
    c.factor("geqrf", info, m, n, c.fill(factors, x, m * n), m, before=[c.stack(taus, min(m, n))])


def _orgqr(libraries, reflectors, taus, q, info, *, dtype, count: int, m: int, n: int, k: int) -> None:
    c = Caller(libraries, "cusolver", dtype, count)
    a, t = c.fill(q, reflectors, m * n), c.stack(taus, k)
    c.factor("ungqr" if c.is_complex else "orgqr", info, m, n, k, a, m, t)


def _syevd(libraries, x, vectors, values, info, *, dtype, count: int, n: int, uplo: int) -> None:
    c = Caller(libraries, "cusolver", dtype, count)
    a, w = c.fill(vectors, x, n * n), c.stack(values, n, is_real=True)
    c.factor("heevd" if c.is_complex else "syevd", info, _VECTORS, uplo, n, a, n, w)


def _gesvd(libraries, x, values, *rest, dtype, count: int, m: int, n: int, columns: int) -> None:
    """Of matrices with m >= n. columns: of the left singular vectors, 0 for values alone."""
    c = Caller(libraries, "cusolver", dtype, count)
    left, right, info = rest if columns else (0, 0, *rest)
    job = ord("N" if not columns else "S" if columns == n else "A")
    taken = c.allocate(count * m * n)
    a, s = c.fill(taken.address, x, m * n), c.stack(values, n, is_real=True)
    u, v = c.stack(left, m * columns), c.stack(right, n * n if columns else 0)
    length = c.call("gesvd_bufferSize", m, n)
    work = c.allocate(length)
    c.call_each("gesvd", job, job, m, n, a, m, s, u, m, v, n, work.address, length, 0, Stack(info, 4))


def _trsm(libraries, a, b, x, *, dtype, count: int, rows: int, columns: int, is_left: bool, uplo: int,
          operation: int, is_unit: bool) -> None:
    """rows, columns: of b, in the host's order."""
    c = Caller(libraries, "cublas", dtype, count)
    n, one = rows if is_left else columns, np.ones(1, dtype)
    matrix, right = c.stack(a, n * n), c.fill(x, b, rows * columns)
    side, diagonal = _RIGHT if is_left else _LEFT, _UNIT if is_unit else _ANY
    c.call_each("trsm", side, uplo, operation, diagonal, columns, rows, one.ctypes.data, matrix, n,
                right, columns)


def _gemm(libraries, left, right, product, *, dtype, out_dtype, count: int, m: int, n: int, k: int,
          turned: tuple[bool, bool], is_rounded: bool) -> None:
    """turned: whether a factor lies there as its transpose. is_rounded: whether factors may be rounded to
    TF32. The library's left factor is our right one."""
    kind, out_kind = TYPES[dtype.name][1], TYPES[out_dtype.name][1]
    single = _COMPUTE_TF32 if is_rounded and not dtypes.is_half(dtype) else _COMPUTE_32F
    compute = _COMPUTE_64F if dtype.name in ("float64", "complex128") else single
    scale = np.array([1, 0], np.float32 if dtypes.is_half(dtype) else dtype)
    one, zero = scale.ctypes.data, scale.ctypes.data + scale.itemsize
    first, second = (TRANSPOSE if is_turned else NO_TRANSPOSE for is_turned in turned[::-1])
    libraries.call("cublas", "gemmStridedBatchedEx", first, second, n, m, k, one,
                   right, kind, k if turned[1] else n, k * n,
                   left, kind, m if turned[0] else k, m * k,
                   zero, product, out_kind, n, m * n, count, compute, _DEFAULT_ALGORITHM)


def _fft(libraries, x, found, *, dtype, function: str, lengths: tuple, count: int, direction: int) -> None:
    plan = libraries.find_plan(function, lengths, count)
    if function in ("c2r", "z2d"):  # they write over what they read
        nbytes = dtype.itemsize * count * math.prod(lengths[:-1]) * (lengths[-1] // 2 + 1)
        taken = Memory(libraries.runtime, nbytes)
        libraries.runtime.copy(taken.address, x, nbytes)
        x = taken.address
    way = (direction,) if function in ("c2c", "z2z") else ()
    work = Memory(libraries.runtime, plan.nbytes)
    libraries.call("cufft", "set_work_area", plan.handle, work.address)
    libraries.call("cufft", f"exec_{function}", plan.handle, x, found, *way)


POTRF, GETRF, GEQRF, ORGQR = (Routine(name, run) for name, run in (
    ("potrf", _potrf), ("getrf", _getrf), ("geqrf", _geqrf), ("orgqr", _orgqr)))
SYEVD, GESVD, TRSM, GEMM, FFT = (Routine(name, run) for name, run in (
    ("syevd", _syevd), ("gesvd", _gesvd), ("trsm", _trsm), ("gemm", _gemm), ("cufft", _fft)))
