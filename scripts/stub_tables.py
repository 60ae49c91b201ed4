"""What stubs say that signatures do not; `write_stubs.py` reads it.

In: nothing. Out: types of parameters by their names, types of results, signatures whose parts depend on each
other, what `Array` has.
"""

from __future__ import annotations

#: Type -> the names of parameters that have it. A default of None adds `| None`.
_NAMES_OF_TYPE = {
    "ArrayLike": """a a1 a2 a_max a_min alpha append arr array ary atol aweights b base bias concentration
        correction d data ddof default df dfden dfnum discont dx epsilon f fill_value fp fweights high
        index init_value initial k1 k2 key_bits_array key_value_seq_lengths lam left lhs lmbda loc low
        lower m mask max maxval mean min minval nan negative_slope neginf on_false on_true operand p
        padding_value period pivots posinf pred prepend prototype query query_seq_lengths rcond rhs right
        rtol scale scatter_indices seed seq_of_zeros sigma sorter start start_index stddev step stop
        to_begin to_end tol u update updates upper v val value values variance weights where which x x0 x1
        x2 xp y z""",
    "NestedArrayLike": "test_elements indices vals ind obj repeats bins choices q ar1 ar2",
    "AxisLike": "axis out_axis in_axis batch_axis",
    "DTypeLike": "dtype new_dtype out_dtype index_dtype int_type preferred_element_type to",
    "ShapeLike": "shape new_shape reps dims kth shift source destination new_sizes sizes",
    "_Arrays": "arrays tup keys condlist choicelist multi_index",
    "bool": "keepdims promote_integers density",
    "int": "N M n",
    "str": "norm mode kind",
    "None": "out order",
    "_KeyLike": "key",
    "int | Sequence[int]": "axes window_shape window_strides",
    "Sequence[int]": "s lhs_shape rhs_shape in_shape dimensions subset_by_index",
    "int | Sequence[Any]": "pad_width",
    "int | float | str": "ord",
    "int | Sequence[int] | Array | np.ndarray": "indices_or_sections",
    "Sequence[ArrayLike] | ArrayLike": "start_indices",
    "Any": "precision device out_sharding padding dimension_numbers optimize range buffer dim accuracy "
           "algorithm",
}
PARAMETERS = {name: kind for kind, names in _NAMES_OF_TYPE.items() for name in names.split()}
#: Of functions that take lists where others of those names do not.
_TAKE_LISTS = """numpy.full.fill_value numpy.full_like.fill_value numpy.append.arr numpy.append.values
    numpy.iscomplexobj.x numpy.isrealobj.x numpy.tile.A numpy.histogram.a numpy.histogram2d.x
    numpy.histogram2d.y numpy.histogram_bin_edges.a numpy.compress.condition numpy.delete.arr
    numpy.extract.condition numpy.extract.arr numpy.insert.arr numpy.insert.values numpy.repeat.a
    numpy.apply_along_axis.arr random.categorical.logits random.multivariate_normal.mean
    random.multivariate_normal.cov nn.scaled_matmul.lhs nn.scaled_matmul.rhs
    numpy.apply_over_axes.a lax.qdwh.x nn.scaled_matmul.lhs_scales
    nn.scaled_matmul.rhs_scales nn.one_hot.x nn.initializers.constant.value"""
PARAMETERS |= {name: "NestedArrayLike" for name in _TAKE_LISTS.split()}
_NEW = """like_arr r_matrix w_vector taus src group_sizes lhs_scale rhs_scale a_matrix c_matrix dl d du
    lhs_scales rhs_scales theta phi c h arr idxs scatter_indices"""
PARAMETERS |= {name: "ArrayLike" for name in _NEW.split() if name not in PARAMETERS}
PARAMETERS |= {name: "Any" for name in "pads axis_index_groups group_offset diff_n".split()
               if name not in PARAMETERS}
#: Of parameters that collect arguments, and of those that mean something else in one function.
PARAMETERS |= {
    "*args": "ArrayLike", "*xi": "ArrayLike", "*varargs": "Any",
    "*shapes": "ShapeLike", "*operands": "Any", "*cases": "ArrayLike", "*values": "ArrayLike",
    "**kwargs": "Any", "**kw": "Any", "numpy.result_type.*args": "ArrayLike | DTypeLike",
    "numpy.ix_.*args": "NestedArrayLike", "numpy.from_dlpack.x": "Any", "numpy.asarray.a": "Any",
    "numpy.array.object": "Any", "numpy.copy.a": "NestedArrayLike", "numpy.promote_types.a": "DTypeLike",
    "numpy.promote_types.b": "DTypeLike", "numpy.isdtype.kind": "Any", "numpy.isscalar.element": "Any",
    "numpy.iterable.y": "Any", "numpy.issubdtype.arg1": "Any", "numpy.issubdtype.arg2": "Any",
    "numpy.can_cast.from_": "Any",
    "numpy.block.arrays": "NestedArrayLike", "numpy.fft.ihfft.a": "NestedArrayLike",
    "numpy.pad.mode": "str | Callable[..., Any]", "numpy.fromfunction.function": "Callable[..., Any]",
    "numpy.mask_indices.mask_func": "Callable[..., Any]",
    "numpy.piecewise.funclist": "Sequence[ArrayLike | Callable[..., Any]]", "numpy.piecewise.*args": "Any",
    "numpy.isin.element": "NestedArrayLike", "scipy.special.comb.k": "ArrayLike",
    "nn.dot_product_attention.key": "ArrayLike",
    "numpy.einsum.subscripts": "Any", "numpy.einsum_path.subscripts": "Any",
    "numpy.unravel_index.indices": "ArrayLike",
    "numpy.tensordot.axes": "int | Sequence[Any]", "numpy.linalg.tensordot.axes": "int | Sequence[Any]",
    "numpy.histogram.bins": "NestedArrayLike | str", "numpy.histogram2d.bins": "NestedArrayLike | str",
    "numpy.histogram_bin_edges.bins": "NestedArrayLike | str",
    "numpy.histogramdd.sample": "ArrayLike | Sequence[ArrayLike]",
    "numpy.polyint.k": "NestedArrayLike", "numpy.linalg.cond.p": "int | float | str",
    "numpy.linalg.matrix_rank.M": "ArrayLike",
    "numpy.trim_zeros.filt": "NestedArrayLike", "numpy.apply_along_axis.*args": "Any",
    "numpy.array_equal.a1": "NestedArrayLike",
    "numpy.array_equal.a2": "NestedArrayLike", "numpy.array_equiv.a1": "NestedArrayLike",
    "numpy.array_equiv.a2": "NestedArrayLike", "numpy.shape.a": "NestedArrayLike",
    "numpy.ndim.a": "NestedArrayLike", "numpy.size.a": "NestedArrayLike", "lax.zeta.q": "ArrayLike",
    "scipy.special.zeta.q": "ArrayLike", "scipy.special.kl_div.q": "ArrayLike",
    "scipy.special.rel_entr.q": "ArrayLike", "scipy.special.polygamma.n": "ArrayLike",
    "scipy.special.factorial.n": "ArrayLike", "segment_ids": "ArrayLike", "lax.gather.mode": "Any",
    "lax.gather.start_indices": "ArrayLike",
    "lax.dynamic_slice.slice_sizes": "Sequence[int]", "lax.gather.slice_sizes": "Sequence[int]",
    "lax.draw.words": "ArrayLike", "lax.reduce.operands": "Any",
    "lax.reduce.init_values": "Any", "lax.sort_key_val.keys": "ArrayLike",
    "lax.convert_element_type.new_dtype": "DTypeLike | None",
    **{f"lax.scatter{kind}.mode": "Any" for kind in ("", "_add", "_max", "_min", "_mul", "_sub")},
    "random.key_data.keys": "_KeyLike", "random.key_impl.keys": "_KeyLike",
    "random.wrap_key_data.dtype": "Any", "random.triangular.mode": "ArrayLike",
    "random.choice.a": "int | ArrayLike",
}

#: Annotations of the functions themselves that are short for something.
SPELLINGS = {
    "tuple": "tuple[int, ...]", "Callable": "Callable[..., Any]", "Sequence": "_Arrays", "AxisName": "Any",
    "np.dtype": "np.dtype[Any]",
    "Callable | None": "Callable[..., Any] | None",
    "tuple[int | DimExpr, ...]": "tuple[Any, ...]",
}

#: Result -> the functions that have it; the others give what they are annotated with, or an Array.
_FUNCTIONS_OF_RESULT = {
    "list[Array]": "numpy.meshgrid numpy.broadcast_arrays numpy.array_split numpy.dsplit numpy.hsplit "
                   "numpy.split numpy.vsplit",
    "tuple[Array, ...]": "numpy.unstack numpy.ix_ numpy.diag_indices numpy.diag_indices_from "
                         "numpy.mask_indices numpy.nonzero numpy.unravel_index",
    "tuple[Array, Array]": "numpy.tril_indices numpy.triu_indices numpy.tril_indices_from "
                           "numpy.triu_indices_from numpy.histogram numpy.polydiv numpy.frexp numpy.modf "
                           "numpy.divmod",
    "tuple[Array, Array, Array]": "numpy.histogram2d",
    "tuple[Array, list[Array]]": "numpy.histogramdd",
    "tuple[list[Any], str]": "numpy.einsum_path",
    "tuple[Array, Array, Array, Array]": "numpy.linalg.lstsq",
    "Any": "numpy.gradient lax.reduce lax.custom_linear_solve lax.custom_root",
    "int": "numpy.size lax.axis_size",
    "np.finfo[Any]": "numpy.finfo",
    "np.iinfo[Any]": "numpy.iinfo",
    "UniqueAll": "numpy.unique_all",
    "UniqueCounts": "numpy.unique_counts",
    "UniqueInverse": "numpy.unique_inverse",
    "EigResult": "numpy.linalg.eig",
    "EighResult": "numpy.linalg.eigh",
    "SlogdetResult": "numpy.linalg.slogdet",
}
RESULTS = {name: kind for kind, names in _FUNCTIONS_OF_RESULT.items() for name in names.split()}

#: Function -> (flag, result where the flag is False, result where it is True).
FLAGS = {
    "numpy.linspace": ("retstep", "Array", "tuple[Array, Array]"),
    "numpy.average": ("returned", "Array", "tuple[Array, Array]"),
    "numpy.indices": ("sparse", "Array", "tuple[Array, ...]"),
    "numpy.intersect1d": ("return_indices", "Array", "tuple[Array, Array, Array]"),
    "numpy.linalg.svd": ("compute_uv", "Array", "SVDResult"),
    "lax.svd": ("compute_uv", "Array", "tuple[Array, Array, Array]"),
    "nn.logsumexp": ("return_sign", "Array", "tuple[Array, Array]"),
    "scipy.special.logsumexp": ("return_sign", "Array", "tuple[Array, Array]"),
}

NDARRAY = "np.ndarray[Any, np.dtype[Any]]"
_LOOP = "unroll: int | bool | None = None"
_SORT = "dimension: int = -1, is_stable: bool = True, num_keys: int = 1"
_SCAN = "length: int | None = None, reverse: bool = False, unroll: int | bool = 1"
_UNIQUE = "axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, "
_UNIQUE += "fill_value: ArrayLike | None = None, sorted: bool = True"
_TREE = {name: ["(x: _T, axis_name: Any, *, axis_index_groups: Any = None) -> _T"]
         for name in ("lax.pmax", "lax.pmean", "lax.pmin", "lax.psum")}
_AT_LEAST = ["(ary: NestedArrayLike, /) -> Array", "(*arys: NestedArrayLike) -> Any"]
#: Signatures whose parts depend on each other. A Python number that a loop carries becomes an Array; where
#: the functions of a loop take other types than its first value has, such as an Array for an int in a tuple,
#: theirs are the result's. Signatures overlap as little as can be: of several that fit a lambda, mypy makes
#: Any.
SIGNATURES: dict[str, list[str]] = {
    "numpy.where": [
        "(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, "
        "fill_value: ArrayLike | None = None) -> Array",
        "(condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, "
        "fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]"],
    "numpy.unique": [
        f"(ar: ArrayLike, return_index: Literal[False] = False, return_inverse: Literal[False] = False, "
        f"return_counts: Literal[False] = False, {_UNIQUE}) -> Array",
        f"(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, "
        f"return_counts: bool = False, {_UNIQUE}) -> Any"],
    "numpy.polyfit": [
        "(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: Literal[False] = False, "
        "w: ArrayLike | None = None, cov: Literal[False] = False) -> Array",
        "(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, "
        "w: ArrayLike | None = None, cov: bool | str = False) -> Any"],
    "numpy.atleast_1d": _AT_LEAST, "numpy.atleast_2d": _AT_LEAST, "numpy.atleast_3d": _AT_LEAST,
    "numpy.vectorize": [
        "(pyfunc: Callable[..., _T], *, excluded: Collection[int | str] = ..., signature: str | None = None) "
        "-> Callable[..., _T]"],
    "numpy.linalg.qr": [
        "(a: ArrayLike, mode: Literal['reduced', 'complete', 'full'] = 'reduced') -> QRResult",
        "(a: ArrayLike, mode: Literal['r']) -> Array", "(a: ArrayLike, mode: str) -> Any"],
    **_TREE,
    "lax.pvary": ["(x: _T, axis_name: Any) -> _T"],
    "lax.pcast": ["(x: _T, axis_name: Any, *, to: str) -> _T"],
    "lax.pbroadcast": ["(x: _T, axis_name: Any, source: int) -> _T"],
    "lax.pswapaxes": ["(x: _T, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> _T"],
    "lax.ppermute": ["(x: _T, axis_name: Any, perm: Sequence[tuple[int, int]]) -> _T"],
    "lax.pshuffle": ["(x: _T, axis_name: Any, perm: Sequence[int]) -> _T"],
    "lax.psum_scatter": ["(x: _T, axis_name: Any, *, scatter_dimension: int = 0, "
                         "axis_index_groups: Any = None, tiled: bool = False) -> _T"],
    "lax.all_gather": ["(x: _T, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, "
                       "tiled: bool = False) -> _T"],
    "lax.all_to_all": ["(x: _T, axis_name: Any, split_axis: int, concat_axis: int, *, "
                       "axis_index_groups: Any = None, tiled: bool = False) -> _T"],
    "lax.optimization_barrier": ["(operand: _T, /) -> _T"],
    "lax.stop_gradient": ["(x: _T) -> _T"],
    "lax.with_sharding_constraint": ["(x: _T, shardings: Any) -> _T"],
    "lax.cond": ["(pred: ArrayLike, true_fun: Callable[..., _T], false_fun: Callable[..., _S], "
                 "*operands: Any, operand: Any = ...) -> _T | _S"],
    "lax.switch": ["(index: ArrayLike, branches: Sequence[Callable[..., _T]], *operands: Any, "
                   "operand: Any = ...) -> _T"],
    "lax.while_loop": [
        "(cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike], init_val: _Number) "
        "-> Array",
        "(cond_fun: Callable[[_C], ArrayLike], body_fun: Callable[[_C], _C], init_val: _C) -> _C",
        "(cond_fun: Callable[[_D], ArrayLike], body_fun: Callable[[_D], _D], init_val: _D) -> _D",
        "(cond_fun: Callable[[_T], ArrayLike], body_fun: Callable[[_T], _T], init_val: _Container) -> _T"],
    "lax.fori_loop": [
        f"(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, Array], ArrayLike], "
        f"init_val: _Number, *, {_LOOP}) -> Array",
        f"(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, _C], _C], init_val: _C, *, "
        f"{_LOOP}) -> _C",
        f"(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, _D], _D], init_val: _D, *, "
        f"{_LOOP}) -> _D",
        f"(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, _T], _T], init_val: _Container, *, "
        f"{_LOOP}) -> _T"],
    "lax.scan": [
        f"(f: Callable[[Array, _X], tuple[ArrayLike, _Y]], init: _Number, xs: _X | {NDARRAY}, {_SCAN}) "
        f"-> tuple[Array, _Y]",
        f"(f: Callable[[_C, _X], tuple[_C, _Y]], init: _C, xs: _X | {NDARRAY}, {_SCAN}) -> tuple[_C, _Y]",
        f"(f: Callable[[_C, None], tuple[_C, _Y]], init: _C, xs: None = None, {_SCAN}) -> tuple[_C, _Y]",
        f"(f: Callable[[_D, _X], tuple[_D, _Y]], init: _D, xs: _X | {NDARRAY}, {_SCAN}) -> tuple[_D, _Y]",
        f"(f: Callable[[_D, None], tuple[_D, _Y]], init: _D, xs: None = None, {_SCAN}) -> tuple[_D, _Y]",
        f"(f: Callable[[_T, Any], tuple[_T, _Y]], init: _Container, xs: Any = None, {_SCAN}) "
        f"-> tuple[_T, _Y]",
        f"(f: Callable[[_T, Any], tuple[_T, _Y]], init: Any, xs: _Container, {_SCAN}) "
        f"-> tuple[_T, _Y]"],
    "lax.map": [f"(f: Callable[[_X], _T], xs: _X | {NDARRAY}, *, batch_size: int | None = None) -> _T",
                "(f: Callable[[Any], _T], xs: _Container, *, batch_size: int | None = None) -> _T"],
    "lax.associative_scan": [
        "(fn: Callable[[_C, _C], _C], elems: _C, reverse: bool = False, axis: int = 0) -> _C",
        f"(fn: Callable[..., _T], elems: {NDARRAY} | _Container, reverse: bool = False, axis: int = 0) "
        f"-> _T"],
    "lax.sort": [f"(operand: ArrayLike, {_SORT}) -> Array",
                 f"(operand: Sequence[ArrayLike], {_SORT}) -> tuple[Array, ...]"],
    "random.clone": ["(key: _K) -> _K"],
    "random.fold_in": ["(key: _K, data: ArrayLike) -> _K"],
    "random.split": ["(key: _K, num: int | tuple[int, ...] = 2) -> _K"],
}

#: What `Array` has besides the functions of `jitcore.numpy` that are its methods: operators, and what its
#: concrete form defines.
_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
ARRAY = {
    "__getitem__": "(self, index: _Index) -> Array", "__len__": "(self) -> int",
    "__iter__": "(self) -> Iterator[Array]",
    **{f"__{side}{name}__": "(self, other: ArrayLike) -> Array"
       for name in _OPERATORS.split() for side in ("", "r")},
    **{f"__{side}divmod__": "(self, other: ArrayLike) -> tuple[Array, Array]" for side in ("", "r")},
    **{f"__{name}__": "(self, other: ArrayLike) -> Array" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"__{name}__": "(self) -> Array" for name in ("neg", "pos", "abs", "invert")},
    "__round__": "(self, ndigits: int | None = None) -> Array", "__bool__": "(self) -> bool",
    "__int__": "(self) -> int", "__float__": "(self) -> float", "__complex__": "(self) -> complex",
    "__index__": "(self) -> int", "__format__": "(self, spec: str) -> str",
    "__array__": "(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]",
    "__buffer__": "(self, flags: int) -> memoryview", "__dlpack__": "(self, **options: Any) -> Any",
    "__dlpack_device__": "(self) -> tuple[int, int]", "__copy__": "(self) -> Array",
    "__deepcopy__": "(self, memo: Any) -> Array", "addressable_data": "(self, index: int) -> Array",
    "block_until_ready": "(self) -> Array", "byteswap": "(self) -> Array", "clone": "(self) -> Array",
    "copy_to_host_async": "(self) -> None", "delete": "(self) -> None", "devices": "(self) -> set[Device]",
    "is_deleted": "(self) -> bool", "item": "(self, *args: int) -> Any",
    "tobytes": "(self, order: Literal['C', 'F', 'A', 'K', None] = 'C') -> bytes", "tolist": "(self) -> Any",
    "compress": "(self, condition: ArrayLike, axis: int | None = None) -> Array",
    "copy": "(self, order: str = 'K') -> Array",
    "to_device": "(self, device: Any, *, stream: Any = None) -> Array",
    "view": "(self, dtype: DTypeLike | None = None, type: None = None) -> Array",
    "reshape": "(self, *args: int | Sequence[int], order: str = 'C') -> Array",
    "transpose": "(self, *axes: int | Sequence[int] | None) -> Array",
}
PROPERTIES = {
    "aval": "ShapedArray", "shape": "tuple[int, ...]", "dtype": "np.dtype[Any]", "ndim": "int",
    "size": "int", "itemsize": "int", "nbytes": "int", "weak_type": "bool", "T": "Array", "mT": "Array",
    "real": "Array", "imag": "Array", "at": "_IndexUpdateHelper", "flat": "Iterator[Array]",
    "addressable_shards": "list[Any]", "committed": "bool", "data": "np.ndarray[Any, np.dtype[Any]]",
    "device": "Any", "global_shards": "list[Any]", "is_committed": "bool", "is_fully_addressable": "bool",
    "is_fully_replicated": "bool", "sharding": "Any",
}

#: Where aliases of types stand.
ALIASES = {"ConvGeneralDilatedDimensionNumbers": "jitcore.lax.convolution.patches",
           "DotDimensionNumbers": "jitcore.lax.derived", "PrecisionLike": "jitcore.lax.derived"}
