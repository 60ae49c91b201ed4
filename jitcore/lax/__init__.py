"""The primitives, one block each, and their public functions (`jitcore.lax`).

In: operands of equal dtypes and compatible shapes. Out: arrays or tracers. NumPy-style promotion and broadcasting
live one layer up, in `jitcore.numpy`.
"""

from jitcore.lax.cond import (
    switch as switch,
)
from jitcore.lax.conv import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_with_general_padding as conv_with_general_padding,
    conv_transpose as conv_transpose,
)
from jitcore.lax.cumulative import (
    cumsum as cumsum,
    cumprod as cumprod,
    cummax as cummax,
    cummin as cummin,
    cumlogsumexp as cumlogsumexp,
)
from jitcore.lax.dot import (
    dot_general as dot_general,
    dot as dot,
    batch_matmul as batch_matmul,
)
from jitcore.lax.elementwise import (
    neg as neg,
    sign as sign,
    abs_ as abs,
    add as add,
    sub as sub,
    mul as mul,
    div as div,
    rem as rem,
    max_ as max,
    min_ as min,
    square as square,
    nextafter as nextafter,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    log as log,
    log2 as log2,
    log10 as log10,
    log1p as log1p,
    sin as sin,
    cos as cos,
    tan as tan,
    asin as asin,
    acos as acos,
    atan as atan,
    atan2 as atan2,
    sinh as sinh,
    cosh as cosh,
    tanh as tanh,
    asinh as asinh,
    acosh as acosh,
    atanh as atanh,
    sqrt as sqrt,
    rsqrt as rsqrt,
    cbrt as cbrt,
    logistic as logistic,
    erf as erf,
    erfc as erfc,
    erf_inv as erf_inv,
    lgamma as lgamma,
    digamma as digamma,
    pow_ as pow,
    floor as floor,
    ceil as ceil,
    trunc as trunc,
    round_half_even as round_half_even,
    round_half_away as round_half_away,
    is_finite as is_finite,
    signbit as signbit,
    copysign as copysign,
    eq as eq,
    ne as ne,
    lt as lt,
    le as le,
    gt as gt,
    ge as ge,
    not_ as bitwise_not,
    and_ as bitwise_and,
    or_ as bitwise_or,
    xor as bitwise_xor,
    shift_left as shift_left,
    shift_right_logical as shift_right_logical,
    shift_right_arithmetic as shift_right_arithmetic,
    population_count as population_count,
    clz as clz,
    real as real,
    imag as imag,
    conj as conj,
    complex_ as complex,
    integer_pow as integer_pow,
    convert_element_type as convert_element_type,
    bitcast_convert_type as bitcast_convert_type,
    select_n as select_n,
    select as select,
    clamp as clamp,
)
from jitcore.lax.fft import (
    FftType as FftType,
)
from jitcore.lax.gather_scatter import (
    GatherScatterMode as GatherScatterMode,
    GatherDimensionNumbers as GatherDimensionNumbers,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_sub as scatter_sub,
    scatter_mul as scatter_mul,
    scatter_min as scatter_min,
    scatter_max as scatter_max,
)
from jitcore.lax.index import (
    slice as slice,
    slice_in_dim as slice_in_dim,
    index_in_dim as index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
)
from jitcore.lax.linalg import (
    cholesky as cholesky,
    lu as lu,
    lu_pivots_to_permutation as lu_pivots_to_permutation,
    qr as qr,
    eigh as eigh,
    eig as eig,
    schur as schur,
    svd as svd,
    triangular_solve as triangular_solve,
)
from jitcore.lax.random import (
    threefry2x32 as threefry2x32,
)
from jitcore.lax.reduce import (
    reduce_sum as reduce_sum,
    reduce_prod as reduce_prod,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_and as reduce_and,
    reduce_or as reduce_or,
    reduce_xor as reduce_xor,
    argmax as argmax,
    argmin as argmin,
    reduce_precision as reduce_precision,
)
from jitcore.lax.scan import (
    map as map,
)
from jitcore.lax.shape import (
    broadcast_in_dim as broadcast_in_dim,
    broadcast as broadcast,
    expand_dims as expand_dims,
    broadcast_shapes as broadcast_shapes,
    reshape as reshape,
    transpose as transpose,
    squeeze as squeeze,
    rev as rev,
    copy as copy,
    stop_gradient as stop_gradient,
    concatenate as concatenate,
    split as split,
    tile as tile,
    pad as pad,
    broadcasted_iota as broadcasted_iota,
    iota as iota,
    full as full,
    full_like as full_like,
)
from jitcore.lax.sort import (
    sort_key_val as sort_key_val,
    top_k as top_k,
)
from jitcore.lax.special import (
    igamma as igamma,
    igammac as igammac,
    betainc as betainc,
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    zeta as zeta,
    polygamma as polygamma,
)
from jitcore.lax.while_loop import (
    fori_loop as fori_loop,
)
from jitcore.lax.window import (
    padtype_to_pads as padtype_to_pads,
    reduce_window_sum as reduce_window_sum,
    reduce_window_max as reduce_window_max,
    reduce_window_min as reduce_window_min,
    reduce_window as reduce_window,
)
