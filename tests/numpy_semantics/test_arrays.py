"""Arrays and scalars as objects: attributes, methods, operands of other types, mutation, aliases."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from jitcore.numpy_semantics.errors import NeedsValue, NotTraceable
from tests.numpy_semantics.tracing import Static, check, check_error, run_traced

A = np.arange(24.0).reshape(4, 6)
V = np.array([1.5, -2.0, 0.5])
TABLE = np.array([10.0, 20.0, 30.0])


def test_attributes():
    check(lambda a: (a.shape, a.ndim, a.size, a.itemsize, a.nbytes, len(a), a.strides, a.T.strides), A)
    check(lambda a: (a[1:, ::2].strides, a[::-1].strides, a[:, None].shape, a.dtype == np.float64), A)
    check(
        lambda x: (x.shape, x.ndim, x.size, x.itemsize, x.real, x.imag, x.T, x.dtype == np.float32),
        np.float32(2),
    )
    check(lambda z: (z.real, z.imag, z.conjugate(), abs(z), z.dtype.kind), np.complex64(1 + 2j))


def test_methods_of_arrays_and_scalars():
    check(
        lambda a: (a.sum(), a.mean(axis=0), a.max(), a.argmin(), a.reshape(2, -1), a.ravel(), a.flatten()), A
    )
    check(
        lambda a: (a.astype(np.int32), a.astype(int), a.copy(), a.transpose(1, 0), a.T.reshape(-1), a.mT), A
    )
    check(
        lambda a: (
            a[0, 1].astype(int),
            a[0, 1].sum(),
            a[0].sum().astype("f4"),
            a[1, 1].item(),
            a[0].tolist(),
        ),
        A,
    )
    check(lambda a: (a.reshape(6, 4, order="F"), a.ravel("F"), a.flatten("F")), A)
    check(lambda z: (z.astype(bool), z.conj(), (z * 1j).real), np.array([0, 1 + 1j, 2j]))
    check(lambda a: (copy.copy(a), copy.deepcopy(a), a.item(3), a.item(1, 2)), A)


def test_arrays_without_axes():
    def change(x):
        y = np.zeros(())
        y += x
        z = y[()]
        y[...] = 7
        return y, z, y + 1, y[...], float(y), x[...]

    check(change, np.float64(2.5))
    check(lambda x: (x + 1, x[()], x.item(), x * np.ones(2)), np.array(2.5))


def test_other_operands():
    check(lambda v: (v + [1, 2, 3], [1, 2, 3] * v, (1, 2, 3) - v, v < [0, 0, 0]), V)
    check(lambda v: (TABLE * v, v / TABLE, np.float64(2) * v, np.float32(2) - v, v ** np.int64(2)), V)
    check(lambda x: (TABLE * x, x - TABLE, np.float32(2) * x, TABLE.dtype.type(x)), 2.5)
    check(lambda x: (TABLE * x, np.float32(2) * x, x + np.int8(3)), np.float32(2.5))
    check(lambda v, x: (v + [x, 2, x], np.maximum(v, [[x], [1.0]])), V, 2.0)
    check(lambda v: (v is v, v is None, None is not v, v.T is v), V)


def test_unpacking_and_iteration():
    def unpack(v, a):
        x, y, z = v
        (first, *rest) = v
        rows = [row.sum() for row in a]
        return x + y * z, first, len(rest), rows, [p * q for p, q in zip(v, v[::-1])]

    check(unpack, V, A)


def test_chained_and_augmented_assignment():
    def change(a, v):
        a[0, 0] = v[1] = 5
        b = c = a[1:]
        b += 1
        c *= 2
        a[2] @= np.eye(6) if False else a[2:, :4].T @ np.zeros((2, 6)) if False else np.eye(6)
        v **= 2
        v //= 2
        v %= 3
        return b is c, b

    check(change, A, V)


def test_what_numpy_refuses():
    check_error(lambda a: len(a.sum()), A)
    check_error(lambda a: iter(a.sum()), A)
    check_error(lambda a: a.transpose(0, 0), A)
    check_error(lambda a: a.transpose(0, 5), A)
    check_error(lambda a: a.no_such_name, A)
    check_error(lambda x: x.no_such_name, 1.5)
    check_error(lambda a: bool(a > 1), A)
    check_error(lambda a: 1 if a > 1 else 2, A)
    check_error(lambda a: float(a), A)
    check_error(lambda a: hash(a), A)
    check_error(lambda a: a @ a, A)


def test_what_needs_values_or_is_not_traced_says_so():
    for function in (lambda a: str(a), lambda a: f"{a[0]}", lambda a: {a[0]: 1}, lambda a: bytes(a[0])):
        with pytest.raises((NeedsValue, NotTraceable, TypeError)):
            run_traced(function, [V])
    with pytest.raises(NotTraceable, match="byteswap"):
        run_traced(lambda a: a.byteswap(), [V])


def test_floating_point_errors_may_be_silenced_and_not_raised():
    def divide(v, state):
        with np.errstate(divide=state):
            return v / 0.0

    check(divide, V, Static("ignore"))
    with pytest.raises(NotTraceable, match="errstate"):
        run_traced(divide, [V, Static("raise")])


def test_memory_of_results():
    def make(a):
        b = a.astype(a.dtype)
        c = a.copy()
        d = +a
        b[0] = c[0] = d[0] = 99
        e = a.T
        e[0, 0] = -1
        f = a.reshape(2, 12)
        f[1] = 0
        return a, b, c, d

    check(make, A)


def test_arguments_in_another_layout():
    def change(a):
        a[0] = 1
        a.T[1] += 5
        return a.sum(axis=0), a.reshape(-1) * 2

    check(change, np.asfortranarray(A))

    def write(a):
        b = a.reshape(-1)
        b[0] = 5

    with pytest.raises(NotTraceable, match="share memory"):
        run_traced(write, [np.asfortranarray(A)])


def test_results_lie_in_memory_as_their_operands_do():
    def change(a):
        b = a[:, 1:] - a[:, :-1]
        c = b.reshape(-1)
        c[0] = 100
        d = (a[::-1] * 2).ravel()
        d[1] = 7
        return b, c, d

    check(change, A)

    def change_turned(a):
        b = a.T + 1
        c = b.reshape(-1)
        c[0] = 100
        d = np.where(b > 3, b, 0)
        d.reshape(-1)[1] = 7
        e = b.copy("K").T.reshape(-1)
        e[2] = 8
        f = a[:, [2, 0]]
        f.ravel()[0] = 9
        return b, c, d, e, f, b.flags.f_contiguous, f.strides

    check(change_turned, A)

    def write(a):
        b = np.cumsum(a.T, 0)
        b.reshape(-1)[0] = 5
        b.T.reshape(-1)[1] = 6
        return b

    check(write, A)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_layouts_in_loops(count):
    def change(a):
        b = a.T + 1
        c = a
        for _ in range(count):
            b = b * 2
            c = c.T + 1
        b.reshape(-1)[0] = 100
        return b, c.sum()

    check(change, A)


def test_broadcast_results_are_read_only():
    def store(a):
        np.broadcast_to(a, (2, 3))[0] = 1

    check_error(store, V)
    check_error(lambda a: a.imag.fill(3), V)


def test_static_arguments_stay_what_they_are():
    check(lambda n, a: (n + 1, a[:n], a * n, [n] * 2), Static(2), V)
