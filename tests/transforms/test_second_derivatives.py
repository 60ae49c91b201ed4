"""First and second derivatives of elementwise functions at special points, against JAX: forwards, backwards,
forwards over backwards and backwards over forwards, by each operand and each two, eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import jit, jvp, lax, nn, numpy as jnp, vjp
from jitcore.scipy import special
from tests.jax_answers import ask

POINTS = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 3, -3, 6, np.inf, -np.inf, np.nan], np.float32)
GRID = np.array([0, -0.0, 1, -1, 0.5, 2, -2, -3, 3], np.float32)

OURS = {"lax": lax, "jnp": jnp, "nn": nn, "special": special}
UNARY = {
    "lax": """neg sign abs square exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
              atanh sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma digamma floor ceil round bessel_i0e bessel_i1e
              reciprocal""",
    "jnp": "sinc i0 log2 log10 deg2rad rad2deg nan_to_num trunc fabs positive rint",
    "nn": """relu relu6 softplus sparse_plus sparse_sigmoid silu soft_sign log_sigmoid leaky_relu hard_sigmoid
             hard_silu hard_tanh elu celu selu gelu squareplus mish""",
    "special": "entr exp1 expi gamma i0 i1 log_ndtr logit ndtr ndtri spence factorial",
}
BINARY = {
    "lax": "pow atan2 rem max min",
    "jnp": """power float_power logaddexp logaddexp2 hypot maximum minimum fmax fmin mod divide floor_divide
              copysign heaviside multiply""",
    "special": "xlogy xlog1py rel_entr kl_div betaln beta poch",
}
FORMULAS = {
    **{f"x ** {n}": (lambda jax, x, n=n: x**n) for n in (0, 1, 2, 3, -1, -2, 0.5, 2.0, -1.0, 3.0)},
    **{f"{n} ** x": (lambda jax, x, n=n: n**x) for n in (0, 1, 2, 0.5)},
    "clip, lower": lambda jax, x, y: jax.numpy.clip(x, y, 1.0),
    "clip, upper": lambda jax, x, y: jax.numpy.clip(x, -1.0, y),
    "where": lambda jax, x, y: jax.numpy.where(x > y, x * x, y * x),
    "sqrt of squares": lambda jax, x, y: jax.numpy.sqrt(x * x + y * y),
    "norm": lambda jax, x, y: jax.numpy.linalg.norm(jax.numpy.stack([x, y]), axis=0),
    "softmax": lambda jax, x, y: jax.nn.softmax(jax.numpy.stack([x, y]), 0)[0],
    "logsumexp": lambda jax, x, y: jax.nn.logsumexp(jax.numpy.stack([x, y]), 0),
    "largest": lambda jax, x, y: jax.numpy.max(jax.numpy.stack([x, y, x]), 0) ** 2,
    "product": lambda jax, x, y: jax.numpy.prod(jax.numpy.stack([x, y, x]), 0),
    "running product": lambda jax, x, y: jax.numpy.cumprod(jax.numpy.stack([x, y, x]), 0)[2],
    "sorted": lambda jax, x, y: jax.numpy.sort(jax.numpy.stack([x, y, x]), 0)[1] ** 2,
    "median": lambda jax, x, y: jax.numpy.median(jax.numpy.stack([x, y, x * y]), 0),
    "deviation": lambda jax, x, y: jax.numpy.std(jax.numpy.stack([x, y, x * y]), 0),
}
ONE_OPERAND = {name for name in FORMULAS if "**" in name}


def at(*points):
    return lambda x: np.any([(x == p) | (np.isnan(x) & np.isnan(p)) for p in points], 0)


def poles(x):
    return (x <= 0) & (x == np.floor(x)) | np.isinf(x)


# Where jitcore's derivatives are others than JAX's, and why.
INFINITE = "infinite slopes at the end of the domain, and slopes outside of it"
DIFFERENCES = {
    "asin": (INFINITE, at(1, -1)), "acos": (INFINITE, at(1, -1)), "acosh": (INFINITE, at(1, -1)),
    "atanh": (INFINITE, at(1, -1, np.inf, -np.inf)),
    "lgamma": ("poles have SciPy's values, JAX has NaN", poles),
    "digamma": ("poles have SciPy's values, JAX has NaN", poles),
    "gamma": ("poles have SciPy's values, JAX has NaN", poles),
    "factorial": ("the constant 0 below 0; JAX has NaN where that is a pole", lambda x: x < 0),
    "bessel_i1e": ("NaN stays NaN", at(np.nan)),
    "i0": ("JAX does not differentiate exp(|x|) at 0", at(0)),
    "i1": ("JAX does not differentiate exp(|x|) at 0", at(0)),
    "celu": ("minimum(x, 0) has no slope at NaN; the product with NaN is JAX's", at(np.nan)),
    "sparse_plus": ("the branch that is not chosen has an infinite slope", at(np.inf, -np.inf)),
    "entr": ("the constant -inf below 0; the branch that is not chosen is NaN", lambda x: x < 0),
    "exp1": ("JAX raises TypeError", None),
    "ndtri": ("infinite slopes at 0 and 1; JAX has 0", at(0, 1)),
    "spence": ("JAX's derivative is 0 at 1 and outside of the domain", lambda x: (x <= 0) | (x == 1)),
    "pow": ("x ** 0 is constant, at x = 0 too", lambda x, y: (x == 0) & ((y == 0) | (y == 1))),
    "power": ("x ** 0 is constant, at x = 0 too", lambda x, y: (x == 0) & ((y == 0) | (y == 1))),
    "float_power": ("x ** 0 is constant, at x = 0 too", lambda x, y: (x == 0) & ((y == 0) | (y == 1))),
    "betaln": ("poles have SciPy's values, JAX has NaN", lambda x, y: poles(x) | poles(y)),
    "beta": ("poles have SciPy's values, JAX has NaN", lambda x, y: poles(x) | poles(y)),
    "poch": ("poles: JAX has NaN", lambda x, y: poles(x) | poles(x + y)),
}


def list_cases():
    for table, count in ((UNARY, 1), (BINARY, 2)):
        for module, names in table.items():
            path = {"jnp": "numpy", "special": "scipy.special"}.get(module, module)
            yield from ((name, OURS[module], path, count) for name in names.split())
    yield from ((name, None, "", 1 if name in ONE_OPERAND else 2) for name in FORMULAS)


def derive(jvp, vjp, function, operands) -> list[np.ndarray]:
    """All first and second derivatives of an elementwise function."""
    def towards(place):
        return tuple(np.full_like(x, place == i) for i, x in enumerate(operands))

    def forwards(place):
        return lambda *xs: jvp(function, xs, towards(place))[1]

    def backwards(place):
        def run(*xs):
            out, pull_back = vjp(function, *xs)
            return pull_back(np.ones(out.shape, out.dtype))[place]
        return run

    found = []
    for place in range(len(operands)):
        forward, backward = forwards(place), backwards(place)
        out, pull_back = vjp(forward, *operands)
        found += [out, backward(*operands), *pull_back(np.ones(out.shape, out.dtype))]
        found += [jvp(backward, tuple(operands), towards(other))[1] for other in range(len(operands))]
    return list(map(np.asarray, found))


@pytest.mark.parametrize("name, module, path, count", [pytest.param(*case, id=f"{case[2]}-{case[0]}")
                                                       for case in list_cases()])
def test_like_jax(name, module, path, count):
    operands = [POINTS] if count == 1 else [v.ravel() for v in np.meshgrid(GRID, GRID)]
    _, differs = DIFFERENCES.get(name, ("", lambda *xs: np.zeros_like(xs[0], bool)))
    if differs is None:
        return

    def find(jax):
        if name in FORMULAS:
            return lambda *xs: FORMULAS[name](jax, *xs)
        for part in path.split("."):
            jax = getattr(jax, part)
        return getattr(jax, name)

    ours = getattr(module, name) if module else find(jitcore)
    wanted = ask(lambda jax: derive(jax.jvp, jax.vjp, find(jax), operands))
    keep = ~differs(*operands)
    with np.errstate(all="ignore"):
        for function in (ours, jit(ours)):
            for got, want in zip(derive(jvp, vjp, function, operands), wanted, strict=True):
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got[keep], want[keep], rtol=2e-3, atol=1e-4)


# Derivatives at points where JAX has others: by x, twice by x; with two operands by x, by y, xx, xy, yy.
VALUES = [
    (special.i0, (0.0,), [0, 0.5]), (special.i1, (0.0,), [0.5, 0]), (special.spence, (1.0,), [-1, 0.5]),
    (lambda x: x**0.0, (0.0,), [0, 0]), (jnp.power, (2.0, 0.0), [0, np.log(2), 0, 0.5, np.log(2) ** 2]),
    (jnp.power, (0.0, 2.0), [0, 0, 2, 0, 0]), (jnp.power, (0.0, 0.0), [0, 0, 0, 1, 0]),
    (jnp.logaddexp, (0.0, np.inf), [0, 1, 0, 0, 0]),
    (special.poch, (1.0, 0.0), [0, -np.euler_gamma, 0, np.pi**2 / 6, np.euler_gamma**2 + np.pi**2 / 6]),
    (jnp.floor_divide, (1.0, 0.0), [0, 0, 0, 0, 0]), (nn.softplus, (np.nan,), [np.nan, np.nan]),
]


@pytest.mark.parametrize("function, point, wanted", VALUES)
def test_values(function, point, wanted):
    found = derive(jvp, vjp, function, [np.float64(x) for x in point])
    if len(point) == 2:
        found = [found[0], found[6], found[2], found[3], found[9]]
    else:
        found = [found[0], found[2]]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
