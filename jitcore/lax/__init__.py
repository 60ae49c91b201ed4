"""The primitives, one block each, and their public functions (`jitcore.lax`).

In: operands of equal dtypes and compatible shapes. Out: arrays or tracers. NumPy-style promotion and
broadcasting live one layer up, in `jitcore.numpy`. A name such as `lax.scan` or `lax.sort` is the
function, not the module of that name: import from the module by its path.

Modules:
    accuracy       How exact a function is asked to be: `AccuracyMode`, `Tolerance`.
    barrier        Order, asked for: `optimization_barrier` and `stage`, whose results no pass takes for what
                   they were made of, and tokens.
    bitcast        Bits read as another dtype: `bitcast_convert_type`.
    bits           Bitwise primitives: logic, shifts and counts on the bits of integers and bools.
    compress       `compress`: the elements where a mask holds, side by side.
    control_flow/  Primitives that hold programs: conditions, loops, checks, and calls of Python.
    convolution/   Convolutions: the general one and its special cases, and what is made of patches.
    cumulative     Cumulative reductions along one axis: sum, product, extrema, logsumexp.
    define         What functions of lax are made of: constructors of primitives, and static arguments in
                   canonical form.
    derived        Functions that are made of other functions of lax: arithmetic of wide integers, shapes as
                   values, choices by platform, products of groups of rows, and names of ways to multiply
                   matrices.
    dot            Contraction: `dot_general` and its special cases.
    draw           `draw`: random numbers from a generator of NumPy or of Python, as it would draw them.
    elementary     Elementary functions: exponentials, logarithms, circular and hyperbolic functions, roots,
                   powers.
    elementwise    Elementwise primitives: arithmetic, comparison, complex parts, conversion, selection.
    exported       Programs that were exported, called from a program.
    fft            Discrete Fourier transforms over the last axes.
    indexing/      Primitives that read and write parts of arrays: slices, windows at computed positions,
                   gather and scatter.
    integrals      Functions that are integrals or hypergeometric series, as SciPy computes them: exponential
                   integrals, Dawson's, Faddeeva's, Fresnel's, sine and cosine integrals, Bessel's, Owen's,
                   Spence's, 1F1 and 2F1.
    joining        Joining and splitting along an axis: `concatenate`, `split` and `tile`.
    linalg/        Matrix decompositions and solvers over the last two axes; leading axes are a batch.
    pad            Padding: `pad`, with space before, after and between the elements of each axis.
    parallel/      Primitives over named axes: collectives, `shard_map`, and how values lie on meshes.
    random/        Random bits as primitives: what `jitcore.random` is made of.
    reduce         Reductions over axes: sums, products, extrema, logical operations, argmax and argmin, and
                   generic `reduce`.
    rounding       Rounding primitives: to integers below, above, towards zero, and to the nearest ones.
    shape          Shape primitives: broadcasting, reshaping, permuting, and arrays made from nothing.
    sort           Sorting: `sort` of one or several operands by keys, and the largest elements, `top_k`.
    special        Special functions: error function, gamma function, Bessel, incomplete gamma and beta, zeta,
                   polygamma.
    window         Windows that slide over an array: their padding, their strided views, and `reduce_window`.
"""

# ruff: noqa: F401, F403
from sys import modules as _modules
from types import FunctionType as _FunctionType
from typing import Any as _Any

from jitcore.core.primitive import registry as _registry
from jitcore.core.source import api_boundary as _api_boundary
from jitcore.docstrings import document as _document
from jitcore.lax import integrals as _integrals  # noqa: F401  has primitives
from jitcore.lax.accuracy import AccuracyMode, Tolerance
from jitcore.lax.barrier import after_all, create_token, optimization_barrier, stage
from jitcore.lax.bitcast import bitcast_convert_type
from jitcore.lax.bits import (and_ as bitwise_and, clz, not_ as bitwise_not, or_ as bitwise_or,
                              population_count, shift_left, shift_right_arithmetic, shift_right_logical,
                              xor as bitwise_xor)
from jitcore.lax.control_flow.associative_scan import associative_scan
from jitcore.lax.control_flow.cond import cond, switch
from jitcore.lax.control_flow.implicit import custom_linear_solve, custom_root
from jitcore.lax.control_flow.raise_if import raise_if
from jitcore.lax.control_flow.scan import map, scan
from jitcore.lax.control_flow.while_loop import fori_loop, while_loop
from jitcore.lax.convolution.general import *
from jitcore.lax.convolution.patches import *
from jitcore.lax.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from jitcore.lax.derived import *
from jitcore.lax.dot import Precision, batch_matmul, dot, dot_general
from jitcore.lax.draw import draw
from jitcore.lax.elementary import *
from jitcore.lax.elementary import pow_ as pow
from jitcore.lax.elementwise import *
from jitcore.lax.elementwise import abs_ as abs, complex_ as complex, max_ as max, min_ as min
from jitcore.lax.fft import FftType, fft
from jitcore.lax.indexing.dimension_numbers import *
from jitcore.lax.indexing.gather_scatter import *
from jitcore.lax.indexing.slices import *
from jitcore.lax.joining import concatenate, split, stack, tile, unstack
from jitcore.lax.linalg import *
from jitcore.lax.pad import pad
from jitcore.lax.parallel import sharded as _sharded  # noqa: F401  has a primitive
from jitcore.lax.parallel.collectives import *
from jitcore.lax.parallel.exchanges import all_to_all, pbroadcast, ppermute, pshuffle, psum_scatter, pswapaxes
from jitcore.lax.parallel.partitioning import with_sharding_constraint
from jitcore.lax.random import RandomAlgorithm, keys as _keys, rng_bit_generator, threefry2x32  # noqa: F401
from jitcore.lax.reduce import *
from jitcore.lax.rounding import *
from jitcore.lax.shape import *
from jitcore.lax.shape import empty
from jitcore.lax.sort import argsort, sort, sort_key_val, top_k
from jitcore.lax.special import *
from jitcore.lax.window import *

# An exception leaves a public function without frames of the inside, and `help` shows complete docstrings.
for _name, _value in list(globals().items()):
    if isinstance(_value, _FunctionType) and not _name.startswith("_"):
        globals()[_name] = _public = _api_boundary(_value)
        _public.__module__, _public.__qualname__ = __name__, _name  # by which it is pickled
        _document(_modules[__name__], [_name])
_linalg = _modules[f"{__name__}.linalg"]
_document(_linalg, _linalg.__all__)


def __getattr__(name: str) -> _Any:
    """The primitives by JAX's names: `lax.exp_p`."""
    found = _registry.get(name.removesuffix("_p")) if name.endswith("_p") else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
