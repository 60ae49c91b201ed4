"""One or more applications of every primitive that has a derivative, at points where it has one.

`CASES` maps the name of a primitive to a list of `Case`s whose operands are float64 or complex128. Those of
`batching_cases` serve, widened, unless a primitive has its own here. A primitive is in `CASES` or in
`NOT_DIFFERENTIABLE`.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, lax, numpy as jnp
from jitcore.lax import integrals, linalg, special
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from tests.transforms.batching_cases import (CASES as BATCHING_CASES, COLLECTIVES, ON_MESHES, WITHIN_RULES,
                                             Case, Operand, boolean, case, i32)

#: Primitives without a derivative, and why.
NOT_DIFFERENTIABLE: dict[str, str] = {
    "draw": "a derivative would draw again",
    **dict.fromkeys(
        ("not", "and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic",
         "population_count", "clz", "reduce_and", "reduce_or", "reduce_xor", "threefry2x32",
         "lu_pivots_to_permutation", "rng_bit_generator"), "integers only"),
    **dict.fromkeys(("random_seed", "random_split", "random_fold_in", "random_bits", "random_clone", "random_wrap",
                     "random_unwrap"), "keys and integers only"),
    **dict.fromkeys(("iota", "dimension_size", "axis_index"), "no operand that varies"),
    **dict.fromkeys(("pure_callback", "io_callback"), "the derivative of a Python function is not known"),
    "call_exported": "a program that was loaded has no derivative",
    "nextafter": "it steps through the representable numbers",
    "schur": "no rule",
    "stop_gradient": "it is there to have none",
}

#: Tested elsewhere: under `vmap` in test_collectives.py, of reverse mode alone in test_custom_derivatives.py, as
#: parts of other rules in the tests of these.
ELSEWHERE: set[str] = (COLLECTIVES | ON_MESHES | WITHIN_RULES | {"custom_vjp_call"}) - set(NOT_DIFFERENTIABLE)


def f64(*shape, low=-2, high=2) -> Operand:
    return Operand(shape, np.dtype(np.float64), low, high)


def c128(*shape, low=-2, high=2) -> Operand:
    return Operand(shape, np.dtype(np.complex128), low, high)


def widen(operand: Operand) -> Operand:
    wide = {dtypes.float32: np.float64, dtypes.complex64: np.complex128}.get(operand.dtype)
    return operand if wide is None else operand._replace(dtype=np.dtype(wide))


def _bind(name: str, **params):
    return lambda *operands: getattr(lax, name).primitive.bind(*operands, **params)


# -- elementwise ----------------------------------------------------------------------------------------------
# Complex operands: (interval, of which parts are drawn).
_COMPLEX_DOMAINS = {
    **dict.fromkeys(("neg", "abs", "add", "sub", "mul", "square", "real", "imag", "conj"), (-3, 3)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "logistic"), (-1.2, 1.2)),
    **dict.fromkeys(("div", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow"), (0.3, 2)),
    **dict.fromkeys(("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh"), (0.1, 0.9)),
}


def _complex_cases() -> dict[str, list[Case]]:
    cases = {}
    for name, (low, high) in _COMPLEX_DOMAINS.items():
        function = getattr(lax, name)
        arity = function.primitive.traits["arity"]
        shapes = [[(4,)] * arity, *([[(), (4,)], [(4,), ()]] if arity == 2 else [])]
        cases[name] = [case(function, *[c128(*shape, low=low, high=high) for shape in group])
                       for group in shapes]
    cases["integer_pow"] = [
        case(lambda x, y=y: lax.integer_pow(x, y), operand(4, low=0.3, high=2))
        for y in (0, 1, 2, 5, -1, -2) for operand in (f64, c128)
    ]
    return cases


_REAL_AND_COMPLEX = {
    "complex": [case(lax.complex, f64(3), f64(3)), case(lax.complex, f64(), f64(3)),
                case(lambda y: lax.complex(np.float64(2), y), f64(3))],
    "convert_element_type": [
        case(lambda x: lax.convert_element_type(x, np.complex128), f64(3)),
        case(lambda x: lax.convert_element_type(x, np.float64), c128(3)),
        case(lambda x: lax.convert_element_type(x, np.int32), f64(3)),
        case(lambda x, n: x * lax.convert_element_type(n, np.float64), f64(3), i32(3)),
    ],
    "select_n": [
        case(lax.select_n, boolean(2, 3), f64(2, 3), f64(2, 3)),
        case(lax.select_n, boolean(), f64(2, 3), f64(2, 3)),
        case(lax.select_n, boolean(4), c128(4), c128(4)),
        case(lax.select_n, i32(4, low=0, high=2), f64(4), f64(4), f64(4)),
        case(lambda p, x: lax.select_n(p, x, np.ones(3)), boolean(3), f64()),
        case(lambda p, x: lax.select_n(p, x, np.ones(3)), boolean(), f64()),
        case(lambda p, x: lax.select_n(p, np.ones(3), x), boolean(3), f64(3)),
    ],
}

# Derivatives by some operands only.
_SPECIAL = {
    "igamma_grad_a": [
        case(lambda x: special.igamma_grad_a(np.array([0.3, 2, 7.5]), x), f64(3, low=0.2, high=9)),
    ],
    "polygamma": [case(lambda x, m=m: lax.polygamma(np.float64(m), x), f64(4, low=0.5, high=6))
                  for m in (0, 1, 4)],
    "regularized_incomplete_beta": [
        case(lambda x: lax.betainc(np.float64(2.5), np.array([0.7, 1.5, 4]), x), f64(3, low=0.1, high=0.9)),
    ],
    "expn": [case(lambda x: integrals.expn(np.array([0.0, 1, 4]), x), f64(3, low=0.5, high=3))],
    "jv": [case(lambda x: integrals.jv(np.array([0.0, 1, 4]), x), f64(3, low=0.5, high=6))],
    "zeta": [case(lambda q: lax.zeta(np.float64(2.5), q), f64(4, low=0.5, high=4))],
    "igamma": [case(lax.igamma, f64(6, low=0.2, high=8), f64(6, low=0.2, high=8)),
               case(lax.igamma, f64(low=0.2, high=8), f64(6, low=0.2, high=8))],
    "igammac": [case(lax.igammac, f64(6, low=0.2, high=8), f64(6, low=0.2, high=8)),
                case(lax.igammac, f64(6, low=0.2, high=8), f64(low=0.2, high=8))],
}


# -- folds ----------------------------------------------------------------------------------------------------
def _window_case(name: str, shape, window, strides, padding, base=None, dilation=None) -> Case:
    return case(lambda x: getattr(lax, name)(x, window, strides, padding, base, dilation), f64(*shape))


def _fold_cases() -> dict[str, list[Case]]:
    cases = {
        name: [
            _window_case(name, (4, 5), (2, 2), (1, 2), ((1, 0), (0, 1)), (1, 2), (2, 1)),
            _window_case(name, (7,), (3,), (2,), "SAME"),
            _window_case(name, (2, 6, 6), (1, 2, 2), (1, 2, 2), "VALID"),
            _window_case(name, (7,), (2,), (3,), ((-1, 1),)),
        ]
        for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
    }
    cases["reduce_window_places"] = cases["reduce_window_max"]
    for name in ("reduce_sum", "reduce_prod"):
        cases[name] = [case(_bind(name, axes=axes), operand(2, 3, 4))
                       for axes in ((0,), (2,), (0, 2), (0, 1, 2), ()) for operand in (f64, c128)]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        kinds = (f64, c128) if name in ("cumsum", "cumprod") else (f64,)
        cases[name] = [case(_bind(name, axis=axis, reverse=reverse), operand(2, 5, 3))
                       for axis, reverse in ((0, False), (1, True), (1, False)) for operand in kinds]
    return cases


# -- structured -----------------------------------------------------------------------------------------------
def _repeat(x):
    return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x + 1), (0, jnp.ones_like(x)))


_STRUCTURED = {
    "reduce_precision": [],  # rounded in steps, no central differences
    "bitcast_convert_type": [case(lambda x: lax.bitcast_convert_type(x, np.int64), f64(2, 3))],
    "gather": [
        case(lambda x, i: lax.gather(x, i, GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode="fill",
                                     fill_value=0), f64(5, 4), i32(3, 1)),
        *BATCHING_CASES["gather"][1:],
    ],
    # each element once, as JAX asks for
    "scatter-mul": [
        case(lambda x, u, mode=mode: lax.scatter_mul(
            x, np.array([[3], [-1], [1]]), u, ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True,
            mode=mode), f64(5, 4), f64(3, 4))
        for mode in ("drop", "fill")
    ],
    "while": [case(_repeat, f64(2)), *BATCHING_CASES["while"][1:]],
    "sort": [
        case(lambda x: lax.sort(x, 0), f64(5, 2)),
        case(lambda *xs: lax.sort(xs, 0, num_keys=1), f64(6), f64(6), i32(6)),
    ],
    "eigh": [case(lambda x: linalg.eigh(x + x.T), f64(3, 3))],
    "eig": [case(lambda x: linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)[0], f64(3, 3))],
    "svd": [case(lambda x: linalg.svd(x, full_matrices=False), f64(4, 3))],
    "qr": [case(lambda x: linalg.qr(x, full_matrices=False), f64(4, 3))],
}


def _merge() -> dict[str, list[Case]]:
    own = _REAL_AND_COMPLEX | _SPECIAL | _fold_cases() | _STRUCTURED
    cases = {name: list(found) for name, found in BATCHING_CASES.items()
             if name not in NOT_DIFFERENTIABLE and name not in ELSEWHERE}
    for name, found in _complex_cases().items():
        cases[name] = cases.get(name, []) + found
    cases |= own
    return {name: [c._replace(operands=tuple(map(widen, c.operands))) for c in found]
            for name, found in cases.items()}


CASES: dict[str, list[Case]] = _merge()
