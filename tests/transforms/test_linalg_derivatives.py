"""Derivatives of linear algebra: those of JAX, and central differences, real and complex, batched, compiled."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import jitcore
from jitcore import lax, numpy as jnp
from jitcore.lax import linalg
from jitcore.scipy import linalg as sp_linalg
from tests.jax_answers import jax

jax_np = jax.numpy
jax_sp_linalg = jax.scipy.linalg
jax_lax = jax.lax

RNG = np.random.default_rng(30)
DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}


def draw(*shape, dtype="float64") -> np.ndarray:
    values = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(dtype)


def well_conditioned(*shape, dtype="float64") -> np.ndarray:
    n = shape[-1]
    return (draw(*shape, dtype=dtype) + 2 * n * np.diag(np.linspace(0.5, 1, n))).astype(dtype)


def positive(*shape, dtype="float64") -> np.ndarray:
    x = draw(*shape, dtype=dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def hermitian(*shape, dtype="float64") -> np.ndarray:
    x = draw(*shape, dtype=dtype)
    return (x + np.conj(np.swapaxes(x, -1, -2))).astype(dtype)


def weigh(package, outs) -> object:
    """A real number that depends on all parts of the inexact outputs, in a fixed irregular way."""
    total = 0.0
    for out in outs if isinstance(outs, (tuple, list)) else [outs]:
        if np.dtype(out.dtype).kind not in "fc":
            continue
        weights = np.cos(np.arange(np.prod(out.shape)) + 1).reshape(out.shape)
        for part in (package.real(out), package.imag(out)) if out.dtype.kind == "c" else (out,):
            total = total + package.sum(part * weights.astype(part.dtype))
            weights = weights[::-1] if weights.ndim else weights
    return total


def inexact(outs) -> list:
    return [out for out in leaves_only(outs) if out.dtype.kind in "fc"]


def pair_up(xs, ys) -> float:
    return sum(np.sum(np.asarray(x) * np.asarray(y)).real for x, y in zip(xs, ys))


def check(function, *operands, step=1e-6, tolerance=1e-6, second: bool = True) -> None:
    """A function of float64 or complex128 matrices: the jvp is that of central differences, the vjp its
    transpose, and the jvp of the vjp that of central differences again."""
    tangents = tuple(draw(*x.shape, dtype=x.dtype) for x in operands)
    run = lambda *x: inexact(function(*x))  # noqa: E731
    scale = lambda wanted: max(1.0, np.abs(wanted).max(initial=0))  # noqa: E731

    def check_tangents(derived, found):
        sides = [derived(*(x + sign * step * t for x, t in zip(operands, tangents))) for sign in (1, -1)]
        for actual, after, before in zip(found, *sides):
            wanted = (np.asarray(after) - np.asarray(before)) / (2 * step)
            np.testing.assert_allclose(np.asarray(actual) / scale(wanted), wanted / scale(wanted),
                                       atol=tolerance)

    outs, found = jitcore.jvp(run, operands, tangents)
    check_tangents(run, found)
    cotangents = [draw(*out.shape, dtype=out.dtype) for out in outs]
    pull_back = lambda *x: jitcore.vjp(run, *x)[1](cotangents)  # noqa: E731
    pulled = pull_back(*operands)
    assert [ct.dtype for ct in pulled] == [x.dtype for x in operands]
    np.testing.assert_allclose(pair_up(pulled, tangents), pair_up(cotangents, found), rtol=1e-7, atol=1e-8)
    if second:
        check_tangents(pull_back, jitcore.jvp(pull_back, operands, tangents)[1])


def check_against_jax(ours, theirs, *operands) -> None:
    """The compiled gradient is JAX's."""
    tolerance = {"float32": 5e-3, "complex64": 5e-3}.get(np.dtype(operands[0].dtype).name, 1e-8)
    numbers = tuple(range(len(operands)))
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(lambda *x: weigh(jax_np, inexact(theirs(*x))), numbers))
        wanted = gradient(*operands)
    found = jitcore.jit(jitcore.grad(lambda *x: weigh(jnp, inexact(ours(*x))), numbers))(*operands)
    for actual, value in zip(found, map(np.asarray, wanted)):
        assert actual.dtype == value.dtype
        np.testing.assert_allclose(np.asarray(actual), value, rtol=tolerance, atol=tolerance)


def leaves_only(out) -> list:
    return list(out) if isinstance(out, (tuple, list)) else [out]


# -- decompositions -----------------------------------------------------------------------------------------
jax_linalg = jax_lax.linalg
WIDE = ["float64", "complex128"]


def projectors(package, vectors) -> list:
    """What eigenvectors span: without their factors, which LAPACK chooses."""
    first, last = vectors[..., :, 0], vectors[..., :, -1]
    return [x[..., :, None] * package.conj(x[..., None, :]) for x in (first, last)]


def eigh_parts(package, eigh):
    def run(a):
        vectors, values = eigh(a)
        return [values, *projectors(package, vectors)]

    return run


def svd_parts(package, svd):
    def run(a):
        u, s, vh = svd(a, full_matrices=False)
        return [s, *projectors(package, u), *projectors(package, package.swapaxes(vh, -1, -2))]

    return run


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (1, 1)])
def test_cholesky(shape, dtype):
    check(linalg.cholesky, positive(*shape, dtype=dtype))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 3)])
def test_lu(shape, dtype):
    check(linalg.lu, draw(*shape, dtype=dtype), second=shape == (4, 4))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_qr(shape, full, pivoting, dtype):
    x = draw(*shape, dtype=dtype)
    check(
        functools.partial(linalg.qr, full_matrices=full, pivoting=pivoting), x, second=False, tolerance=1e-5
    )


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_eigh(shape, dtype):
    check(eigh_parts(jnp, linalg.eigh), hermitian(*shape, dtype=dtype), tolerance=1e-5)


def test_eigh_vectors():
    check(linalg.eigh, hermitian(4, 4), tolerance=1e-5)


def test_equal_eigenvalues_behave_as_in_jax():
    x = np.diag([1.0, 1.0, 2.0])
    with jax.enable_x64(True):
        wanted = jax.grad(lambda a: jax_np.linalg.eigvalsh(a).sum())(x)
        vectors = jax.grad(lambda a: jax_np.linalg.eigh(a)[1][0, 0])(x)
    np.testing.assert_array_equal(jitcore.grad(lambda a: jnp.linalg.eigvalsh(a).sum())(x), wanted)
    found = jitcore.grad(lambda a: jnp.linalg.eigh(a)[1][0, 0])(x)
    np.testing.assert_array_equal(np.isfinite(np.asarray(found)), np.isfinite(np.asarray(vectors)))


def test_partial_eigh_has_no_derivative():
    with pytest.raises(NotImplementedError, match="Derivatives not defined for partial eigen decomposition."):
        jitcore.grad(lambda a: linalg.eigh(a, subset_by_index=(0, 1))[1].sum())(hermitian(3, 3))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_eigenvalues_and_eigenvectors(shape, dtype):
    x = draw(*shape, dtype=dtype)
    check(functools.partial(linalg.eig, enable_eigvec_derivs=True), x, second=False, tolerance=1e-4)
    check(jnp.linalg.eigvals, x, second=False, tolerance=1e-5)


def test_eigenvectors_have_to_be_asked_for():
    with pytest.raises(NotImplementedError, match="Derivatives of non-symmetric eigenvectors are only valid"):
        jitcore.grad(lambda a: jnp.linalg.eig(a)[1].real.sum())(draw(3, 3))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_svd(shape, dtype):
    x = draw(*shape, dtype=dtype)
    check(svd_parts(jnp, linalg.svd), x, second=shape == (4, 4), tolerance=1e-5)
    check(functools.partial(linalg.svd, compute_uv=False), x, tolerance=1e-5)


def test_svd_vectors():
    check(functools.partial(linalg.svd, full_matrices=False), draw(5, 3), tolerance=1e-5)


def test_svd_of_full_matrices_has_no_derivative():
    message = "Singular value decomposition JVP not implemented for full matrices"
    with pytest.raises(NotImplementedError, match=message):
        jitcore.grad(lambda a: linalg.svd(a)[0].sum())(draw(3, 2))


DECOMPOSITIONS = {
    "cholesky": (linalg.cholesky, jax_linalg.cholesky, lambda d: positive(2, 3, 3, dtype=d)),
    "cholesky_of_one_triangle": (functools.partial(linalg.cholesky, symmetrize_input=False),
                                 functools.partial(jax_linalg.cholesky, symmetrize_input=False),
                                 lambda d: positive(3, 3, dtype=d)),
    "lu": (linalg.lu, jax_linalg.lu, lambda d: draw(2, 4, 3, dtype=d)),
    "qr": (linalg.qr, jax_linalg.qr, lambda d: draw(4, 3, dtype=d)),
    "eigh": (eigh_parts(jnp, linalg.eigh), eigh_parts(jax_np, jax_linalg.eigh),
             lambda d: hermitian(3, 3, dtype=d)),
    "eig": (functools.partial(linalg.eig, enable_eigvec_derivs=True),
            functools.partial(jax_linalg.eig, enable_eigvec_derivs=True), lambda d: draw(3, 3, dtype=d)),
    "svd": (svd_parts(jnp, linalg.svd), svd_parts(jax_np, jax_linalg.svd), lambda d: draw(4, 3, dtype=d)),
}


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_gradients_of_decompositions_are_those_of_jax(name, dtype):
    ours, theirs, make = DECOMPOSITIONS[name]
    check_against_jax(ours, theirs, make(dtype))


# -- solvers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_solve(dtype, left_side, lower, transposed, unit_diagonal):
    a = well_conditioned(3, 3, dtype=dtype)
    params = dict(left_side=left_side, lower=lower, transpose_a=transposed[0], conjugate_a=transposed[1],
                  unit_diagonal=unit_diagonal)
    solve = functools.partial(linalg.triangular_solve, **params)
    for columns in (2, 5):
        b = draw(*((3, columns) if left_side else (columns, 3)), dtype=dtype)
        check(solve, a, b, second=not unit_diagonal)
        check(lambda a, b=b: solve(a, b), a, second=False)
        check(lambda b: solve(a, b), b, second=False)
    if transposed != (True, False):
        check_against_jax(solve, functools.partial(jax_linalg.triangular_solve, **params), a, b)


def test_vmap_of_triangular_solve_of_one_matrix():
    def run(a, b):
        return jitcore.vmap(lambda x: lax.linalg.triangular_solve(a, x, left_side=True, lower=True))(b)

    check(run, well_conditioned(3, 3), draw(4, 3, 2))


PUBLIC = {
    "solve": (lambda np_, sp: np_.linalg.solve, lambda d: (well_conditioned(3, 3, dtype=d), draw(3, 2, dtype=d))),
    "solve_vector": (lambda np_, sp: np_.linalg.solve,
                     lambda d: (well_conditioned(3, 3, dtype=d), draw(3, dtype=d))),
    "solve_batch": (lambda np_, sp: np_.linalg.solve,
                    lambda d: (well_conditioned(2, 3, 3, dtype=d), draw(2, 3, 2, dtype=d))),
    "inv": (lambda np_, sp: np_.linalg.inv, lambda d: (well_conditioned(2, 3, 3, dtype=d),)),
    "det": (lambda np_, sp: np_.linalg.det, lambda d: (draw(2, 4, 4, dtype=d),)),
    "det_1": (lambda np_, sp: np_.linalg.det, lambda d: (draw(1, 1, dtype=d),)),
    "det_2": (lambda np_, sp: np_.linalg.det, lambda d: (draw(2, 2, dtype=d),)),
    "det_3": (lambda np_, sp: np_.linalg.det, lambda d: (draw(3, 3, dtype=d),)),
    "slogdet": (lambda np_, sp: np_.linalg.slogdet, lambda d: (draw(2, 4, 4, dtype=d),)),
    "slogdet_2": (lambda np_, sp: np_.linalg.slogdet, lambda d: (draw(2, 2, dtype=d),)),
    "pinv": (lambda np_, sp: np_.linalg.pinv, lambda d: (draw(4, 3, dtype=d),)),
    "pinv_wide": (lambda np_, sp: np_.linalg.pinv, lambda d: (draw(2, 3, 4, dtype=d),)),
    "matrix_power": (lambda np_, sp: lambda a: np_.linalg.matrix_power(a, 5), lambda d: (draw(3, 3, dtype=d),)),
    "matrix_power_inverse": (lambda np_, sp: lambda a: np_.linalg.matrix_power(a, -2),
                             lambda d: (well_conditioned(3, 3, dtype=d),)),
    "multi_dot": (lambda np_, sp: lambda a, b, c: np_.linalg.multi_dot([a, b, c]),
                  lambda d: (draw(2, 3, dtype=d), draw(3, 4, dtype=d), draw(4, 2, dtype=d))),
    "lstsq": (lambda np_, sp: lambda a, b: np_.linalg.lstsq(a, b)[0],
              lambda d: (draw(5, 3, dtype=d), draw(5, 2, dtype=d))),
    "cond": (lambda np_, sp: np_.linalg.cond, lambda d: (well_conditioned(3, 3, dtype=d),)),
    "cond_fro": (lambda np_, sp: lambda a: np_.linalg.cond(a, "fro"),
                 lambda d: (well_conditioned(3, 3, dtype=d),)),
    "tensorsolve": (lambda np_, sp: np_.linalg.tensorsolve,
                    lambda d: (draw(2, 3, 6, dtype=d), draw(2, 3, dtype=d))),
    "tensorinv": (lambda np_, sp: np_.linalg.tensorinv, lambda d: (draw(4, 6, 8, 3, dtype=d),)),
    "expm": (lambda np_, sp: sp.expm, lambda d: (draw(3, 3, dtype=d),)),
    "cho_solve": (lambda np_, sp: lambda a, b: sp.cho_solve(sp.cho_factor(a), b),
                  lambda d: (positive(3, 3, dtype=d), draw(3, 2, dtype=d))),
    "cho_solve_lower": (lambda np_, sp: lambda a, b: sp.cho_solve(sp.cho_factor(a, lower=True), b),
                        lambda d: (positive(3, 3, dtype=d), draw(3, dtype=d))),
    "solve_pos": (lambda np_, sp: lambda a, b: sp.solve(a, b, assume_a="pos"),
                  lambda d: (positive(3, 3, dtype=d), draw(3, 2, dtype=d))),
    "lu_solve": (lambda np_, sp: lambda a, b: sp.lu_solve(sp.lu_factor(a), b),
                 lambda d: (draw(3, 3, dtype=d), draw(3, 2, dtype=d))),
    "lu_solve_transposed": (lambda np_, sp: lambda a, b: sp.lu_solve(sp.lu_factor(a), b, 1),
                            lambda d: (draw(3, 3, dtype=d), draw(3, 2, dtype=d))),
    "lu": (lambda np_, sp: sp.lu, lambda d: (draw(3, 3, dtype=d),)),
    "qr_economic": (lambda np_, sp: lambda a: sp.qr(a, mode="economic"), lambda d: (draw(4, 3, dtype=d),)),
    "solve_triangular": (lambda np_, sp: lambda a, b: sp.solve_triangular(a, b, trans="C", lower=True),
                         lambda d: (well_conditioned(3, 3, dtype=d), draw(3, dtype=d))),
    "scipy_cholesky": (lambda np_, sp: sp.cholesky, lambda d: (positive(3, 3, dtype=d),)),
    "block_diag": (lambda np_, sp: sp.block_diag, lambda d: (draw(2, 2, dtype=d), draw(1, 3, dtype=d))),
}


#: They read one triangle of a Hermitian matrix, and their derivatives take tangents that are Hermitian too.
READ_A_TRIANGLE = {"cho_solve", "cho_solve_lower", "solve_pos", "scipy_cholesky"}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", PUBLIC)
def test_public_functions(name, dtype):
    make, operands = PUBLIC[name]
    function = make(jnp, sp_linalg)

    def symmetrized(a, *rest):
        return function((a + jnp.conj(jnp.swapaxes(a, -1, -2))) / 2, *rest)

    second = dtype == "float64" and name not in ("expm", "tensorinv")
    check(
        symmetrized if name in READ_A_TRIANGLE else function, *operands(dtype), second=second, tolerance=1e-5
    )


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", PUBLIC)
def test_gradients_of_public_functions_are_those_of_jax(name, dtype):
    if dtype == "float32" and name not in ("solve", "inv", "det", "slogdet", "cho_solve", "solve_pos"):
        return
    if name == "solve_pos" and dtype == "complex128":  # JAX takes a Hermitian matrix for a symmetric one
        return
    make, operands = PUBLIC[name]
    check_against_jax(make(jnp, sp_linalg), make(jax_np, jax_sp_linalg), *operands(dtype))


ORDERS = [(None, None), (2, None), (1, 0), (np.inf, 0), (-np.inf, 0), (3, 1), (0.5, 1), (0, 1), ("fro", None),
          ("nuc", None), (1, None), (-1, None), (np.inf, None), (-np.inf, None), (-2, None)]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("order", "axis"), ORDERS)
def test_norms(order, axis, dtype):
    check_against_jax(lambda x: jnp.linalg.norm(x, order, axis), lambda x: jax_np.linalg.norm(x, order, axis),
                      draw(3, 4, dtype=dtype))


@pytest.mark.parametrize("order", [None, 1, 2, 3, np.inf])
def test_norms_at_zero(order):
    x = np.zeros(3)
    with jax.enable_x64(True):
        wanted = jax.grad(lambda x: jax_np.linalg.norm(x, order))(x)
    np.testing.assert_allclose(jitcore.grad(lambda x: jnp.linalg.norm(x, order))(x), wanted)


def test_determinants_of_singular_matrices():
    """The gradient of det is the cofactor matrix, also where there is no inverse."""
    a = np.array([[1.0, 2.0, 3.0, 1.0], [4.0, 5.0, 6.0, 0.0], [5.0, 7.0, 9.0, 1.0], [1.0, 0.0, 2.0, 2.0]])
    found = jitcore.grad(jnp.linalg.det)(a)
    cofactors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(4)]
                 for i in range(4)]
    np.testing.assert_allclose(found, cofactors, atol=1e-10)
    rank_one = np.outer(np.arange(1.0, 5.0), np.ones(4))
    np.testing.assert_allclose(jitcore.grad(jnp.linalg.det)(rank_one), np.zeros((4, 4)), atol=1e-10)


# -- applications -------------------------------------------------------------------------------------------
def negative_log_likelihood(package, sp, parameters, x, y):
    """Of a Gaussian process with a squared exponential kernel, through Cholesky."""
    length, scale, noise = package.exp(parameters)
    distances = (x[:, None] - x[None, :]) / length
    covariance = scale * package.exp(-0.5 * distances**2) + noise * package.eye(len(x))
    factor = package.linalg.cholesky(covariance)
    weights = sp.cho_solve((factor, True), y)
    return 0.5 * y @ weights + package.sum(package.log(package.diag(factor)))


@pytest.mark.cpu
def test_gradient_of_a_gaussian_process():
    x = np.linspace(0, 3, 40)
    y = np.sin(2 * x) + 0.1 * RNG.standard_normal(40)
    parameters = np.array([-0.5, 0.2, -2.0])
    ours = functools.partial(negative_log_likelihood, jnp, sp_linalg)
    theirs = functools.partial(negative_log_likelihood, jax_np, jax_sp_linalg)
    with jax.enable_x64(True):
        wanted = jax.grad(theirs)(parameters, x, y)
        curvature = jax.hessian(theirs)(parameters, x, y)
    compiled = jitcore.jit(jitcore.grad(ours))
    np.testing.assert_allclose(compiled(parameters, x, y), wanted, rtol=1e-8)
    assert "call" not in str(compiled.inspect("loop program"))
    np.testing.assert_allclose(jitcore.hessian(ours)(parameters, x, y), curvature, rtol=1e-6, atol=1e-8)
