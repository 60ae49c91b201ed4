"""`jitcore.numpy`: shapes, indices, products, polynomials, creation. In: names by kind."""

from tests.differential.table import ALL, FLOATS, INEXACT, INTEGERS
from tests.differential.tables.numpy_elementwise import NUMPY

SOME = ["b", "i8", "u32", "f16", "bf16", "f64", "c64"]


def move(names: str, *arguments: str) -> None:
    """Functions that move elements: each call in one dtype, the first in some."""
    NUMPY.add(names, arguments[0].replace("f32", "{d}", 1), d=SOME)
    NUMPY.add(names, *arguments)


# -- shapes ------------------------------------------------------------------------------------------------------
move("reshape", "f32[2, 3], (3, 2)", "f32[2, 3], -1", "f32[2, 3], (6,), order='F'", "f32[2, 3], (4,)", "f32[0, 3], (3, 0)", "f32[0, 3], (-1, 0)", "f32[()], ()", "f32[6], (2, -1)", "f32[6], (-1, -1)",
     "3, (1, 1)", "f32[2, 3], (3, 2), order='A'", "f32[6], 6", "f32[6], (2, 3.0)", "f32[2, 3], copy=True, shape=(6,)", "f32[5], (-2, -1)")
move("ravel", "f32[2, 3]", "f32[2, 3], order='F'", "f32[()]", "f32[0, 3]", "2", "[1, 2.5]", "f32[2, 3], order='K'", "'a'")
move("resize", "f32[2, 3], (4, 2)", "f32[3], 7", "f32[0], 3", "f32[3], (0,)", "f32[3], (-1,)", "2, (2, 2)")
move("transpose", "f32[2, 3], (1, 0)", "f32[2, 3, 2], (2, 0, 1)", "f32[2, 3, 2], (-1, 0, 1)", "f32[2, 3], (0, 0)", "f32[2, 3], (0,)", "f32[3], (0,)", "f32[0, 3], (1, 0)", "3.0, ()")
move("matrix_transpose", "f32[2, 3]", "f32[2, 3, 4]", "f32[3]", "f32[0, 3]")
move("swapaxes", "f32[2, 3, 4], 0, 2", "f32[2, 3], -1, 0", "f32[2, 3], 0, 2", "f32[3], 0, 0")
move("moveaxis", "f32[2, 3, 4], 0, -1", "f32[2, 3, 4], (0, 1), (2, 0)", "f32[2, 3], 0, (0, 1)", "f32[2, 3], (0, 0), (1, 0)", "f32[2, 3], 2, 0")
move("rollaxis", "f32[2, 3, 4], 2", "f32[2, 3, 4], 0, 3", "f32[2, 3], 0, 4", "f32[2, 3], 2")
move("squeeze", "f32[1, 3, 1]", "f32[1, 3, 1], 0", "f32[1, 3, 1], (0, -1)", "f32[1, 3], 1", "f32[3]", "2.0", "f32[1, 0]", "f32[1, 3], (0, 0)", "f32[1], 1")
move("expand_dims", "f32[2, 3], 1", "f32[3], (0, 2)", "f32[3], -1", "f32[3], 3", "f32[3], (0, 0)", "2.0, 0", "f32[3], ()")
move("atleast_1d atleast_2d atleast_3d", "f32[()]", "f32[3]", "f32[2, 3]", "2", "f32[3], i8[()]", "f32[0]", "[1, 2]", "", "f32[2, 2, 2, 2]", "True, 2.5")
move("broadcast_to", "f32[3], (2, 3)", "f32[2, 1], (2, 3)", "f32[3], (2, 2)", "f32[1], (0,)", "2, (2,)", "f32[2, 3], (3,)", "f32[()], ()", "f32[3], 3", "f32[0], (2, 0)")
move("broadcast_arrays", "f32[3], i8[2, 1]", "f32[3]", "", "f32[2], f32[3]", "2, f32[2]", "f32[0], 1")
NUMPY.add("broadcast_shapes", "(2, 1), (3,)", "", "(2,), (3,)", "(0,), (1,)", "()", "3, (2, 1)")
move("concatenate", "[f32[2, 3], f32[1, 3]]", "[f32[2, 3], f32[2, 1]], axis=1", "[f32[2, 3], i8[2]], axis=None", "[f32[3], i32[2]]", "[f32[0], f32[3]]", "[f32[3], f32[2, 3]]", "[]",
     "[f32[2, 3], f32[2, 2]]", "f32[2, 3]", "[f32[3], 1.0]", "(i8[2], u8[2])", "[f16[2], bf16[2]]", "[f32[3]], dtype='int32'", "[i32[2], c64[1]]", "[b[2], i8[1]]", "[f32[2], [1, 2]]", "[f32[()], f32[3]]", "[f32[3]], axis=1",
     "[[1, 2], [3.5]]", "[[1, 2], [True]]")
move("stack", "[f32[3], f32[3]]", "[f32[3], i8[3]], axis=1", "[f32[2, 3], f32[2, 3]], axis=-1", "[f32[3], f32[2]]", "[]", "[1, 2.5]", "f32[2, 3]", "[f32[3]], axis=3", "[f32[3], f32[3]], dtype='int8'", "[True, 2]")
move("vstack hstack dstack column_stack", "[f32[3], f32[3]]", "[f32[2, 3], i8[2, 3]]", "[f32[2], f32[3]]", "[]", "[1, 2]", "f32[2, 3]", "[f32[2, 3], f32[3]]", "[f32[0], f32[0]]", "[1.5, f32[()]]")
NUMPY.add("vstack hstack dstack", "[f32[3], f32[3]], dtype='int32'")
move("block", "[[f32[2, 2], f32[2, 1]]]", "[[f32[2, 2]], [f32[1, 2]]]", "f32[3]", "[f32[3], i8[2]]", "[]", "[[f32[2]], f32[2]]", "[1, 2.5]", "(f32[2],)", "[[f32[2, 2], f32[1, 1]]]", "[[1, 2], [3, 4]]")
move("append", "f32[2, 3], f32[3]", "f32[2, 3], i8[1, 3], 0", "f32[3], 2", "f32[2, 3], f32[3], 0", "2, 3", "f32[0], f32[0]", "i8[2], 2.5")
move("split array_split", "f32[4], 2", "f32[5], 3", "f32[5], [1, 3]", "f32[2, 4], 2, 1", "f32[4], [3, 1]", "f32[4], [7]", "f32[0], 2", "f32[4], 0", "f32[4], []", "f32[2, 4], (1,), axis=-1", "f32[()], 1", "f32[4], [-1]", "f32[4], 2, axis=1")
move("hsplit vsplit dsplit", "f32[2, 4, 2], 2", "f32[4], 2", "f32[2, 4], [1]", "f32[()], 1", "f32[3, 3, 3], 2")
move("unstack", "f32[2, 3]", "f32[2, 3], axis=1", "f32[()]", "f32[0, 2]", "f32[2], axis=1")
move("flip", "f32[2, 3]", "f32[2, 3], 1", "f32[2, 3], (0, 1)", "f32[2, 3], 2", "f32[()]", "2", "f32[0]", "f32[2, 3], (0, 0)", "f32[3], ()")
move("fliplr flipud", "f32[2, 3]", "f32[3]", "f32[()]", "f32[2, 0]")
move("rot90", "f32[2, 3]", "f32[2, 3], 2", "f32[2, 3], -1", "f32[2, 3], 4", "f32[2, 3, 2], 1, (0, 2)", "f32[3]", "f32[2, 3], 1, (0, 0)", "f32[2, 3], 1, (0, 3)")
move("roll", "f32[5], 2", "f32[2, 3], 1", "f32[2, 3], -1, 1", "f32[2, 3], (1, 2), (0, 1)", "f32[2, 3], 1, (0, 1)", "f32[0], 2", "f32[5], i32[()]", "f32[5], 1.5", "f32[2, 3], 1, 2", "f32[2, 3], (1, 2), 1", "f32[()], 1", "f32[5], (1, 2)",
     "f32[2, 3], i8.count[2], (0, 1)")
move("tile", "f32[3], 2", "f32[2, 3], (2, 1)", "f32[3], (2, 2)", "f32[3], 0", "2, 3", "f32[3], ()", "f32[3], -1", "f32[3], (1, 2, 1, 1)", "f32[2, 2], 2.0")
move("repeat", "f32[3], 2", "f32[2, 3], 2, axis=1", "f32[3], i32.count[3]", "f32[3], i32.count[3], total_repeat_length=5", "f32[2, 3], 2", "f32[3], [1, 0, 2]", "f32[3], [1, 2]", "f32[3], 0", "f32[3], -1", "2, 3", "f32[0], 2", "f32[2, 3], [2], axis=0",
     "f32[3], 1.5", "f32[3], [2]", "f32[()], 3", "f32[2, 3], i32.count[2], axis=0", "f32[3], True")
move("pad", "f32[3], 1", "f32[2, 3], ((1, 0), (2, 1))", "f32[2, 3], (1, 2)", "f32[3], 2, mode='constant', constant_values=3", "i8[3], 1, constant_values=2.7", "f32[2, 3], 1, constant_values=((1, 2), (3, 4))",
     *(f"{d}[3], 2, mode='{m}'" for d in ("f32", "i32") for m in ("edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median", "linear_ramp", "empty", "other")),
     "f32[3], 5, mode='reflect'", "f32[3], 5, mode='symmetric'", "f32[3], 5, mode='wrap'", "f32[3], 2, mode='linear_ramp', end_values=5", "f32[3], 2, mode='reflect', reflect_type='odd'", "f32[3], 2, mode='mean', stat_length=2",
     "f32[0], 1", "f32[0], 1, mode='edge'", "f32[3], -1", "f32[3], (1, 2, 3)", "f32[()], 1", "f32[3], 0", "f32[3], 1.5", "f32[1], 2, mode='reflect'", "f32[2, 3], {0: 1}", "c64[3], 1", "b[3], 1", "2, ()")
move("trim_zeros", "f32.count[9]", "i32.count[9], 'f'", "i32.count[9], 'b'", "jnp.zeros(3)", "f32[0]", "[0, 1, 0]")
move("delete", "f32[5], 1", "f32[5], [0, 2]", "f32[2, 3], 1, axis=1", "f32[5], slice(1, 3)", "f32[5], -1", "f32[5], 7", "f32[2, 3], 1", "f32[5], b[5]", "f32[5], []", "f32[5], i32.count[2], assume_unique_indices=True", "f32[5], [1, 1]")
move("insert", "f32[5], 1, 2.0", "f32[5], [0, 2], f32[2]", "f32[2, 3], 1, f32[2], axis=1", "f32[5], slice(1, 3), 1.0", "i8[5], 1, 2.5", "f32[5], 9, 1", "f32[2, 3], 1, 5", "f32[5], -1, 1.0", "f32[5], [1, 1], [7, 8]", "f32[2, 3], 1, f32[3], axis=0")
move("ediff1d", "f32[5]", "f32[2, 3]", "f32[5], to_end=1, to_begin=[2, 3]", "i8[5], to_end=2.5", "f32[0]", "f32[1]", "b[3]", "2")
move("diff", "f32[5]", "f32[5], 2", "f32[2, 3], axis=0", "f32[5], n=0", "f32[5], n=-1", "f32[5], n=7", "f32[5], prepend=0.0", "f32[5], append=i32[2]", "b[5]", "f32[()]", "i8[5], prepend=2.5", "f32[2, 3], axis=1, prepend=1", "f32[0]")
NUMPY.add("gradient", "{d}[5]", "{d}[3, 4]", "{d}[5], 2", d=["i32", *FLOATS, "c64"], ulps=16, of_largest=True)
NUMPY.add("gradient", "f32[5], f32.sorted[5]", "f32[3, 4], 2.0, f32.sorted[4]", "f32[3, 4], axis=1", "f32[1]", "f32[3, 4], 1, 2, 3", "f32[5], axis=1", "f32[5], edge_order=2", "f32[3, 4], axis=()", "i8[5]", "b[4]")
NUMPY.add("trapezoid", "{d}[2, 5]", "{d}[5], {d}.sorted[5]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("trapezoid", "f32[2, 5], dx=0.5, axis=0", "f32[5], f32[2, 5]", "f32[0]", "f32[1]", "f32[5], f32[4]")

# -- indices -------------------------------------------------------------------------------------------------------
move("take", "f32[5], i32.count[3]", "f32[2, 3], i32.count[4]", "f32[2, 3], 1, axis=1", "f32[5], 2", *(f"f32[5], i32[4], mode='{m}'" for m in ("clip", "wrap", "fill", "raise", "other")), "i8[5], i32[4], mode='fill'", "u8[5], i32[4]",
     "b[5], i32[4]", "f32[5], i32[4], fill_value=7", "f32[0], i32[3]", "f32[0], i32[0]", "f32[5], f32[2]", "f32[5], [1, 2]", "f32[2, 3], [[0], [1]], axis=0", "f32[5], u8.count[2]", "f32[5], b[2]", "f32[3], 9", "c64[5], i32[4]", "2.0, 0",
     "f32[2, 3], 0, axis=2", "f32[5], i32.count[3], unique_indices=True, indices_are_sorted=True")
move("take_along_axis", "f32[2, 3], i32.count[2, 2], 1", "f32[2, 3], i32[2, 3], 0", "f32[5], i32.count[3], None", "f32[2, 3], i32[2, 2], 1, mode='clip'", "f32[2, 3], i32.count[1, 2], 1", "f32[2, 3], i32.count[3], 1", "f32[2, 3], f32[2, 2], 1",
     "f32[2, 3], u8.count[2, 2], -1", "f32[2, 3], i32[2, 2], 1, mode='fill', fill_value=-1", "i32[2, 3], i32[2, 2], 1", "f32[0, 3], i32[0, 2], 1")
move("choose", "i32.count[3] % 2, [f32[3], f32[3]]", "i32[4], [f32[4], f32[4]], mode='wrap'", "i32[4], [f32[4], f32[4]], mode='clip'", "i32[4], [f32[4], f32[4]]", "1, [2.5, 3]", "f32[3], [f32[3]]", "b[3], [f32[3], i8[3]]")
move("compress", "b[3], f32[3]", "b[2], f32[2, 3], axis=0", "b[3], f32[5]", "b[5], f32[3]", "[1, 0, 2], f32[3]", "b[4], f32[2, 3]", "b[3], f32[3], size=2", "b[3], f32[3], size=3, fill_value=9")
move("extract", "b[3], f32[3]", "b[2, 3], f32[2, 3]", "f32.count[3], f32[3]", "b[3], f32[3], size=2", "b[3], f32[3], size=3, fill_value=1")
move("put", "f32[5], i32.count[2], f32[2], inplace=False", "f32[5], i32[3], 1, mode='wrap', inplace=False", "f32[5], i32[3], 1, mode='clip', inplace=False", "i8[5], [1], [2.5], inplace=False", "f32[5], [1], 2", "f32[5], i32.count[4], f32[2], inplace=False",
     "f32[2, 3], [1, 4], 2.0, inplace=False", "f32[5], [7], 2.0, inplace=False")
move("put_along_axis", "f32[2, 3], i32.count[2, 1] % 3, 7, 1, inplace=False", "f32[2, 3], i32.count[2, 1] % 3, f32[2, 1], -1, inplace=False", "f32[5], i32.count[2], 1.0, None, inplace=False", "f32[2, 3], i32[2, 1], 7, 1")
move("place", "f32[5], b[5], f32[2], inplace=False", "f32[5], b[5], f32[0], inplace=False", "i8[5], b[5], [2.5], inplace=False", "f32[5], b[5], 3, inplace=False", "f32[5], b[4], [1], inplace=False")
move("fill_diagonal", "f32[3, 3], 2, inplace=False", "f32[2, 3], f32[2], inplace=False", "f32[4, 2], 1, wrap=True, inplace=False", "i8[3, 3], 2.5, inplace=False", "f32[3], 1, inplace=False", "f32[2, 2, 2], 5, inplace=False", "f32[3, 3], 2", "f32[2, 3, 2], 1, inplace=False")
NUMPY.add("unravel_index", "{d}.count[3], (2, 3)", d=[*INTEGERS, "f32"])
NUMPY.add("unravel_index", "i32[4], (2, 3)", "5, (2, 3)", "9, (2, 3)", "-1, (2, 3)", "i32.count[2, 2], (5,)", "3, ()", "3, 5", "i32.count[2], (0, 3)")
NUMPY.add("take_along_axis", "f32[5], jnp.array([-6, -5, -4, 7]), 0, mode='clip'", "f32[2, 3], jnp.array([[-4], [2]]), 1, mode='clip'",
          "f32[5], jnp.array([-4, 3]), 0, mode='promise_in_bounds', wrap_negative_indices=True")
NUMPY.add("take", "f32[0], jnp.array([0])", "f32[0, 2], jnp.array([0]), axis=1")
NUMPY.add("ravel_multi_index", "(i8.count[2] % 2, i8.count[2] % 3), (2, 3), mode='ignore'")
NUMPY.add("ravel_multi_index", "(i32.count[3] % 2, i32.count[3] % 3), (2, 3)", "(i32[3], i32[3]), (2, 3), mode='clip'", "(i32[3], i32[3]), (2, 3), mode='wrap'", "(i32[3], i32[3]), (2, 3)", "(1, 2), (2, 3)", "(1, 2), (2, 3), order='F'",
          "(f32[2], f32[2]), (2, 3)", "(1,), (2, 3)", "(i8.count[3] % 2, i32.count[3] % 3), (2, 3)", "(9, 0), (2, 3)", "(1, 2), (2, 3), mode='other'")
NUMPY.add("ix_", "i32[2], i32[3]", "b[3]", "i32[2, 2]", "", "[1, 2], [0]", "f32[2]", "f32[0]")
NUMPY.add("indices", "(2, 3)", "(2, 3), dtype='float32'", "(2, 3), sparse=True", "()", "(0, 2)", "(2,), dtype='int8'", "3")
NUMPY.add("diag_indices", "3", "2, 3", "0", "-1", "2.5", "2, 0")
NUMPY.add("diag_indices_from", "f32[3, 3]", "f32[2, 3]", "f32[3]", "f32[2, 2, 2]")
NUMPY.add("tril_indices triu_indices", "3", "3, 1", "3, -1, 4", "0", "2, 5", "-1")
NUMPY.add("tril_indices_from triu_indices_from", "f32[3, 3]", "f32[2, 3], 1", "f32[3]", "f32[2, 3], k=-1")
NUMPY.add("mask_indices", "3, jnp.triu", "3, jnp.tril, -1", "3, jnp.triu, size=4")
NUMPY.add("tri", "3", "2, 3, 1", "3, dtype='int32'", "0", "3, k=-1, dtype='bool'", "2, 4, -3", "2.5")
move("tril triu", "f32[3, 3]", "f32[2, 3], 1", "f32[2, 3, 3], -1", "f32[3]", "f32[0, 3]", "f32[()]", "f32[2, 3], 7")
move("diag", "f32[3]", "f32[3, 3]", "f32[3], 1", "f32[2, 3], -1", "f32[2, 3], 7", "f32[()]", "f32[2, 2, 2]", "f32[0]", "[1, 2]")
move("diagflat", "f32[3]", "f32[2, 2]", "f32[3], -1", "2", "f32[0]")
move("diagonal", "f32[3, 3]", "f32[2, 3], 1", "f32[2, 3, 4], 0, 1, 2", "f32[2, 3], -2", "f32[3]", "f32[2, 3], 7", "f32[2, 3], 0, 0, 0", "f32[2, 3], 0, -1, -2")
NUMPY.add("trace", "{d}[3, 3]", "{d}[2, 3]", d=ALL)
NUMPY.add("trace", "f32[2, 3], 1", "f32[2, 3, 4], 0, 1, 2", "f32[3]", "i8[3, 3], dtype='float32'", "f32[2, 3], 5", "f32[0, 0]", "b[3, 3], dtype='int8'", ulps=4)
NUMPY.add("packbits", "{d}[9]", "b[2, 5], axis=1", "b[9], bitorder='little'", "b[0]", "b[2, 5]", "b[9], bitorder='x'", d=["b", "i8", "u8", "i32", "f32"])
NUMPY.add("unpackbits", "u8[3]", "u8[2, 3], axis=1", "u8[3], bitorder='little'", "u8[3], count=10", "u8[3], count=-3", "u8[0]", "i32[3]", "u8[3], count=99", "u8[()]", "b[2]")

# -- products --------------------------------------------------------------------------------------------------------
NUMPY.add("dot matmul inner outer vdot kron", "{d}[3], {d}[3]", "{d}[2, 3], {d}[3, 3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("dot matmul inner outer vdot kron", "f32[3], i8[3]", "f32[3], 2.0", "2, 3", "f32[0], f32[0]", "f32[2, 0], f32[0, 3]", "f32[2, 3], f32[2, 3]", "f32[3], f32[2]", "f16[3], bf16[3]", "i8[3], u8[3]", "b[3], i32[3]",
          "f32[2, 3, 2], f32[2, 3]", "f32[3], f32[3], preferred_element_type='float64'", "i8[3], i8[3], preferred_element_type='int32'", "f32[3], [1, 2, 3]", "f32[2, 2, 3], f32[2, 3, 2]", "f32.special[13], f32.special[13]", "c64[3], f32[3]")
NUMPY.add("tensordot", "{d}[2, 3], {d}[3, 2], 1", "{d}[2, 3], {d}[2, 3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("tensordot", "f32[2, 3, 4], f32[4, 3, 2], axes=([1, 2], [1, 0])", "f32[3], f32[3], 0", "f32[2, 3], f32[2, 3], 1", "f32[2, 3], f32[2, 3], axes=(0, 0)", "f32[2], f32[2], 2", "f32[2, 3], i8[3], 1", "f32[0, 3], f32[3, 2], 1")
NUMPY.add("vecdot", "{d}[2, 3], {d}[3]", "{d}[3], {d}[3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("vecdot", "f32[2, 3], f32[2, 3], axis=0", "f32[3], f32[2]", "f32[()], f32[()]", "f32[3], i8[3]", "f32[3], f32[3], preferred_element_type='float64'", "f32[0], f32[0]")
NUMPY.add("matvec", "{d}[2, 3], {d}[3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("vecmat", "{d}[3], {d}[3, 2]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("matvec vecmat", "f32[2, 3, 3], f32[2, 3]", "f32[3], f32[3]", "f32[2, 3], i8[3]", "f32[2, 3], f32[2, 3]")
NUMPY.add("cross", "{d}[3], {d}[3]", "{d}[2, 3], {d}[3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("cross", "f32[2], f32[2]", "f32[3], f32[2]", "f32[3, 2], f32[3, 2], axis=0", "f32[4], f32[4]", "f32[2, 3], f32[2, 3], axisc=0", "f32[3], i8[3]", "f32[()], f32[3]")
NUMPY.add("einsum", "'ij,jk->ik', {d}[2, 3], {d}[3, 2]", "'ii', {d}[3, 3]", "'ij->', {d}[2, 3]", "'i,i', {d}[3], {d}[3]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("einsum", "'ij->ji', f32[2, 3]", "'ii->i', f32[3, 3]", "'...j,j', f32[2, 2, 3], f32[3]", "'ij,jk,kl', f32[2, 3], f32[3, 2], f32[2, 2]", "'ij,ij->j', f32[2, 3], f32[2, 3]", "'i,j', f32[2], i8[3]", "'ij,jk', f32[2, 3], f32[2, 2]",
          "f32[2, 3], [0, 1], [1]", "'ij,j->i', f32[2, 3], f32[3], preferred_element_type='float64'", "'ij', f32[3]", "'i->ii', f32[3]", "'i,i->', f32[0], f32[0]", "'ab,bc->ac', f32[2, 3], f32[3, 2], optimize=False", "'b,b->b', b[3], b[3]", "'...', f32[2, 3]",
          "'i->', 2.0", "'ij,k', f32[2, 3], 2.0", "'', 3.0", "'ij,i', f16[2, 3], bf16[2]")
NUMPY.add("convolve correlate", "{d}[5], {d}[3]", "{d}[3], {d}[5], 'same'", "{d}[5], {d}[2], mode='valid'", d=ALL, ulps=16, of_largest=True)
NUMPY.add("convolve correlate", "f32[5], f32[0]", "f32[5], i8[3], 'full'", "f32[2, 3], f32[3]", "f32[5], 2.0", "f32[5], f32[3], 'other'", "[1, 2], [3, 4]", "f32[5], f32[3], preferred_element_type='float64'", "f32[1], f32[1]")

# -- polynomials -------------------------------------------------------------------------------------------------------
NUMPY.add("polyval", "{d}[3], {d}[2]", "{d}[3], 2", d=ALL, ulps=16, of_largest=True)
NUMPY.add("polyval", "f32[3], i8[2]", "[1, 2], 3", "f32[0], f32[2]", "f32[20], f32.unit[2]", "f32[2, 2], f32[2]", "i32[3], 1.5")
NUMPY.add("polyadd polysub polymul", "{d}[3], {d}[5]", "f32[3], i8[2]", "f32[0], f32[2]", "2, f32[3]", "[1, 2], [3]", "f32[2, 2], f32[2]", d=ALL, ulps=16, of_largest=True)
NUMPY.add("polymul", "[0, 0, 1], f32[2], trim_leading_zeros=True")
NUMPY.add("polydiv", "{d}[5], {d}.positive[3]", "f32[2], f32.positive[3]", "f32[3], [1.0, 0.0], trim_leading_zeros=True", d=INEXACT + ["i32"], ulps=64, of_largest=True)
NUMPY.add("polyder", "{d}[4]", "f32[4], 2", "f32[4], 0", "f32[4], -1", "f32[4], 7", "f32[0]", "f32[1]", "[1, 2, 3]", "f32[2, 2]", d=ALL, ulps=8)
NUMPY.add("polyint", "{d}[4]", "f32[4], 2", "f32[4], 0", "f32[4], -1", "f32[4], 1, 3.0", "f32[4], 2, [1, 2]", "f32[4], 2, f32[3]", "f32[0]", "[1, 2, 3]", "i8[3], 1, 2", d=ALL, ulps=8)
NUMPY.add("polyfit", "f32.sorted[6], f32[6], 2", "f64.sorted[6], f64[6], 1", "f64.sorted[6], f64[6, 2], 2", "f64.sorted[6], f64[6], 1, w=f64.positive[6]", "f64.sorted[6], f64[6], 1, full=True", "f64.sorted[6], f64[6], 1, cov=True", "f32[6], f32[5], 1", "f32[0], f32[0], 1",
          "i32.sorted[6], i32[6], 1", "f64.sorted[6], f64[6], -1", "f64[2, 3], f64[3], 1", ulps=2000, of_largest=True)
NUMPY.add("poly", "{d}[3]", "f32[3, 3]", "f32[0]", "[1, 2]", "f32[2, 3]", d=[*INTEGERS, *FLOATS, "c64"], ulps=64, of_largest=True)
NUMPY.add("roots", "jnp.asarray([1., -3., 2.])", "f32[0]", "f32[1]", "jnp.asarray([0., 1., -2.])", "[1, -3, 2]", "f64.positive[2]", "jnp.zeros(3)", "f32[2, 2]", "jnp.asarray([1., -2., 0.])", ulps=256, of_largest=True)
NUMPY.add("vander", "{d}[3]", "{d}[3], 2", d=ALL, ulps=8)
NUMPY.add("vander", "f32[3], 5, increasing=True", "f32[3], 0", "f32[3], -1", "f32[0]", "f32[2, 2]", "[1, 2]")

# -- creation --------------------------------------------------------------------------------------------------------
NUMPY.add("zeros ones empty", "(2, 3)", "3", "()", "(2,), '{d}'", "(0, 3)", "(-1,)", "2.5", "(2, 3), dtype=int", "2, float", "2, complex", "2, bool", "2, 'other'", d=["int8", "float16", "bfloat16", "complex64", "bool"])
NUMPY.add("zeros_like ones_like empty_like", "{d}[2, 3]", "{d}[2], dtype='int8'", d=ALL)
NUMPY.add("zeros_like ones_like empty_like", "2", "2.5", "f32[2], shape=(3,)", "[1, 2]", "True", "1j", "f32[2, 3], 'int16', shape=()")
NUMPY.add("full", "(2,), 3", "(2,), 2.5", "(2,), True", "(), 1j", "(2,), f32[2]", "(2, 3), f32[3]", "(2,), 3, '{d}'", "3, [1, 2, 3]", "(2,), f32[3]", "(2,), 300, 'int8'", "(2,), 2.7, 'int32'", "(-1,), 2", "(2,), bf16[()]", "(0,), 1", "2, nan", d=["int8", "float16", "complex64", "bool"])
NUMPY.add("full_like", "{d}[2, 3], 2", "{d}[2], 2.5", "f32[2], 1, 'int8'", "f32[2], f32[2]", "f32[2], 3, shape=(3,)", "2, 3.5", "2.5, 3", "[1, 2], 1.5", "f32[2], f32[3]", d=ALL)
NUMPY.add("arange", "1j", "3, dtype='complex64'", "c64[()]", "i16.positive[()]")
NUMPY.add("array", "bytearray(b'ab')", "memoryview(b'abc')", "[0.0, None]")
NUMPY.add("iscomplexobj isrealobj", "[1, 2j]", "[c64[2], c64[2]]")
NUMPY.add("arange", "3", "3.0", "1, 4", "1, 4, 2", "4, 1, -1", "0.5, 3", "3, dtype='float16'", "0", "-2", "1, 2, 0.25", "3, 1", "True", "2j", "f32[()]", "0, 3, 0", "i8.positive[()]", "3, dtype='bfloat16'", "5, dtype='bool'", "0, 1, 0.1", "stop=3", "1, stop=3", "step=2",
          "[1]", "'a'", "0, 10, 3, 'uint8'", "300, dtype='int8'", "np.float32(3)", "np.int64(3)", "np.float64(3)", "2.0, 5", "nan", "f64[()]", "u8.positive[()]", ulps=2)
NUMPY.add("linspace", "0, 1", "0, 1, 5", "0, 1, 5, endpoint=False", "0, 1, 5, retstep=True", "f32[3], 2.0, 4", "f32[3], f32[3], 4, axis=-1", "0, 10, 4, dtype='int32'", "0, 1, 0", "0, 1, 1", "0, 1, -1", "{d}[()], {d}[()], 5", "1j, 2, 3", "0, 1, 1, endpoint=False, retstep=True",
          "0, 1, 0, retstep=True", "0, 1, 2.5", "-5, 5, 7, dtype='int8'", "0, inf, 3", "nan, 1, 3", "f32[0], 1, 3", "True, False, 3", "i8[2], i8[2], 3", "0, 1, 5, dtype='float16'", d=["i8", "i32", *FLOATS, "c64"], ulps=4)
NUMPY.add("logspace", "0, 2, 5", "0.0, 1.0, 3, base=2", "{d}.positive[()], {d}.positive[()], 3", "0, 1, 3, endpoint=False", "0, 2, 3, dtype='int32'", "0, 1, 0", "f32[2], 1, 3, axis=1", d=["i32", *FLOATS], ulps=32)
NUMPY.add("geomspace", "1, 100, 3", "1.0, 8.0, 4, endpoint=False", "{d}.positive[()], {d}.positive[()], 3", "-1, -8, 4", "1, 1000, 4, dtype='int32'", "1j, 8j, 4", "0, 1, 3", "1, 2, 0", "1, 2, 1", "f32.positive[2], 9.0, 3, axis=1", d=["i32", *FLOATS], ulps=64)
NUMPY.add("eye", "3", "2, 3", "3, k=1", "3, k=-1, dtype='int8'", "0", "2, 3, 7", "-1", "2.0", "3, dtype='bool'", "2, 0")
NUMPY.add("identity", "3", "2, 'complex64'", "0", "-1", "2.5")
NUMPY.add("meshgrid", "f32[2], i8[3]", "f32[2], f32[3], indexing='ij'", "f32[2], f32[3], sparse=True", "f32[2]", "", "f32[2], f32[3], f32[2]", "2, 3.0", "f32[2, 2], f32[2]", "f32[2], f32[3], indexing='x'", "f32[0], f32[2]", "f32[2], f32[3], copy=False")
NUMPY.add("array asarray", "[1, 2]", "[1, 2.5]", "[True, 2]", "[1j, 2]", "[[1, 2], [3, 4]]", "[[1, 2], [3]]", "[]", "[[]]", "3", "2.5", "1j", "True", "(1, 2)", "[f32[2], i8[2]]", "[f32[()], 1]", "'a'", "None", "[None]", "{d}[2]", "{d}[2], dtype='float32'", "{d}[2], 'int8'",
          "[1, 2], dtype='{d}'", "[2.5], dtype='int32'", "range(3)", "np.float32(2)", "np.int64(2)", "[np.float16(2), 1]", "[2**40]", "2**70", "[2**31]", "-1, dtype='uint8'", "300, dtype='int8'", "[300], dtype='int8'", "np.arange(3)", "[[f32[2]], [f32[2]]]", "{}", "[1, 'a']", "nan, 'int32'",
          "[True, False]", "[1.5, f64[()]]", "bf16[2], copy=True", "1e300", "[1e300], 'float32'", "[bf16[()], 1]", d=["i8", "u32", "f16", "bf16", "f64", "c64", "b"])
NUMPY.add("array", "f32[2], ndmin=2", "2, ndmin=1", "f32[2, 2], ndmin=1", "[1, 2], order='F'", "[1, 2], ndmin=3")
NUMPY.add("copy", "f32[2]", "2", "[1, 2]", "True", "i8[0]", "f32[2], order='K'")
NUMPY.add("bartlett blackman hamming hanning", "5", "0", "1", "-2", "2", "5.5", ulps=16, of_largest=True)
NUMPY.add("kaiser", "5, 2.0", "1, 2", "0, 1.0", "5, 0", "4, f32.positive[()]", ulps=32, of_largest=True)
NUMPY.add("fromfunction", "lambda i, j: i + j, (2, 3)", "lambda i: i * 2, (3,), dtype='int32'", "lambda i: 1, (3,)", "lambda i, j: i == j, (2, 2), dtype=int", "lambda: 1, ()")
NUMPY.add("frombuffer", "b'abcd', 'uint8'", "b'abcdefgh', 'float32'", "b'abcdefgh', 'int16', 2, 1", "b'abc', 'int16'", "b'', 'uint8'")
NUMPY.add("fromstring", "'1 2 3', sep=' '", "'1,2', 'int32', sep=','", "'1 2', 'float16', sep=' ', count=1")
NUMPY.add("fromiter", "(x for x in (1, 2)), 'int32'", "[1, 2], 'float32', 2")

# -- dtypes ----------------------------------------------------------------------------------------------------------
NUMPY.add("result_type", "{d}[2], i16[2]", "{d}[2], 1", "{d}[2], 2.5", "{d}[2], 1j", "1, 2.5", "True, 1", "'float16', 'bfloat16'", "f32[2], 'int8'", "1", "2.5", "", "[1, 2]", "int, 'int8'", "float", d=ALL)
NUMPY.add("promote_types", "'int8', 'uint8'", "'int8', 'float16'", "'float16', 'bfloat16'", "int, 'int8'", "float, 'int32'", "'bool', 'int8'", "'uint32', 'int8'", "'uint64', 'int64'", "complex, 'float64'", "'other', 'int8'", "'float64', 'complex64'")
NUMPY.add("can_cast", "'int8', 'int16'", "'int32', 'float32'", "'float32', 'int32', 'unsafe'", "'float64', 'float32', 'same_kind'", "'bfloat16', 'float32'", "'int8', 'bfloat16'")
NUMPY.add("issubdtype", "'float32', np.floating", "'bfloat16', np.floating", "'int8', np.integer", "'bool', np.integer", "'complex64', np.inexact", "'float32', 'float64'", "'bfloat16', np.inexact", "float, np.floating")
NUMPY.add("isdtype", "'float32', 'real floating'", "'int8', ('bool', 'integral')", "'bfloat16', 'numeric'", "'int8', 'other'", "'uint8', 'unsigned integer'", "'float32', 'float32'")
NUMPY.add("iscomplexobj isrealobj isscalar iterable ndim shape size", "f32[2, 3]", "c64[2]", "2", "1j", "[1, 2]", "f32[()]", "np.float32(2)", "'a'", "f32[0, 3]", "[[1, 2], [3]]", "None")
NUMPY.add("size", "f32[2, 3], 1", "f32[2, 3], axis=-1", "f32[2, 3], axis=2", "f32[2, 3], axis=(0, 1)")
NUMPY.add("apply_along_axis", "jnp.sum, 0, f32[2, 3]", "lambda x: x[::-1], 1, i32[2, 3]", "lambda x: jnp.outer(x, x), 1, f32[2, 3]", "jnp.sum, 2, f32[2, 3]", "jnp.max, -1, i8[2, 3]", ulps=4)
NUMPY.add("apply_over_axes", "jnp.sum, f32[2, 3, 2], (0, 2)", "jnp.max, i8[2, 3], 1", "jnp.sum, f32[2, 3], [0, 0]", ulps=4)
NUMPY.add("vectorize", "{f}(lambda x, y: x + y)(f32[2, 1], i8[3])", "{f}(jnp.dot, signature='(n),(n)->()')(f32[2, 3], f32[3])", "{f}(lambda x: x * 2, excluded=set())(f32[3])",
          "{f}(jnp.dot, signature='(n),(n)->()')(f32[3], f32[2])", "{f}(lambda x: (x, x + 1))(i32[3])", "{f}(lambda x: x, signature='(n)->(n)')(2.0)", ulps=4)
# -- derivatives and vmap ------------------------------------------------------------------------------------------
NUMPY.transforms("ravel flip diff gradient trapezoid transpose stack")
NUMPY.transforms("dot outer convolve kron", "f32[3]")
NUMPY.transforms("roll repeat tile", "2")
NUMPY.transforms("pad", "1, mode='reflect'")
NUMPY.transforms("take", "jnp.asarray([0, 2, 7])")
NUMPY.transforms("polyval", "2.0")
NUMPY.alias("concat=concatenate permute_dims=transpose")
