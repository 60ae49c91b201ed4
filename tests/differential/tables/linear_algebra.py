"""`jitcore.numpy.linalg`, `numpy.fft`, `scipy.linalg`, `scipy.fft`. In: names by kind."""

from tests.differential.table import ALL, FLOATS, INEXACT, Table

LINALG, FFT = Table("numpy.linalg"), Table("numpy.fft")
SCIPY_LINALG, SCIPY_FFT = Table("scipy.linalg"), Table("scipy.fft")

WIDE = ["f32", "f64", "c64", "c128"]
NEAR = {"ulps": 512, "of_largest": True}


def square(table: Table, names: str, *arguments: str) -> None:
    """Functions of a square matrix first: dtypes, stacks, empty ones, ones that are not square."""
    table.add(names, "{d}.definite[3, 3]", "{d}.definite[2, 3, 3]", d=WIDE, **NEAR)
    table.add(names, "i32[3, 3] + 20 * jnp.eye(3, dtype='int32')", "f16.definite[3, 3]", "bf16.definite[3, 3]", "b[3, 3]", "f32[2, 3]", "f32[3]", "f32[()]",
              "jnp.zeros((0, 0))", "jnp.zeros((2, 0, 0), 'float32')", "jnp.full((2, 2), jnp.nan)", "jnp.ones((2, 2))", "[[2.0, 1.0], [1.0, 3.0]]", "f32.positive[1, 1]", *arguments)


square(LINALG, "inv det slogdet pinv cholesky")
square(LINALG, "eigvalsh svdvals matrix_rank cond")
LINALG.add("cholesky", "f32.definite[3, 3], upper=True", "-f32.definite[3, 3]", "f32[3, 3], symmetrize_input=False")
LINALG.add("pinv", "{d}[3, 2]", "f32[2, 3], rtol=0.5", "f32.definite[3, 3], hermitian=True", "f32[0, 3]", d=WIDE)
LINALG.add("eigvalsh", "f32.definite[3, 3], UPLO='U'", "f32[3, 3], symmetrize_input=False", "f32.definite[3, 3], 'x'")
LINALG.add("eigh", "{f}({d}.definite[3, 3])[0]", "{f}(f32[2, 3])", "{f}(jnp.zeros((0, 0)))", "{f}(i32.definite[3, 3]).eigenvalues", "{f}(f32.definite[3, 3], UPLO='U')[0]", "{f}(f32.definite[2, 3, 3])[1].shape", d=WIDE, **NEAR)
LINALG.add("eig", "{f}(f32[2, 3])", "{f}({d}[3, 3])[1].dtype", "{f}({d}[3, 3])[0].shape", d=WIDE)
LINALG.add("eigvals", "jnp.sort({f}({d}.definite[3, 3]))", "f32[2, 3]", "jnp.zeros((0, 0))", d=WIDE, **NEAR)
LINALG.add("svd", "{d}[3, 2], compute_uv=False", "{d}[2, 3], False, False", "{f}({d}[3, 2])[0].shape", "{f}({d}[3, 2], full_matrices=False)[2].shape", "f32[3]", "f32[0, 3]", "f32[0, 3], compute_uv=False", "f32.definite[3, 3], compute_uv=False, hermitian=True", "i32[2, 2], compute_uv=False", "f16[2, 2], compute_uv=False", d=WIDE, **NEAR)
LINALG.add("qr", "{d}[3, 2], 'r'", "f32[2, 3], 'r'", "f32[0, 3], 'r'", "f32[3]", "i32[2, 2], 'r'", "f32[2, 2], 'other'", "f32[3, 2], 'raw'", "f32[3, 2], 'complete'", "f32[2, 3, 2], 'reduced'", d=WIDE, **NEAR)
LINALG.add("solve", "{d}.definite[3, 3], {d}[3]", "{d}.definite[3, 3], {d}[3, 2]", "f32.definite[2, 3, 3], f32[3]", "f32.definite[2, 3, 3], f32[2, 3]", "f32.definite[2, 3, 3], f32[2, 3, 1]", "f32[2, 3], f32[3]", "f32.definite[3, 3], f32[2]", "jnp.zeros((0, 0)), jnp.zeros(0)", "f32.definite[3, 3], i32[3]", "f32.definite[3, 3], c64[3]", "i32[2, 2], f32[2]",
           "jnp.ones((2, 2)), f32[2]", "f16.definite[2, 2], f16[2]", "f32.definite[3, 3], f64[3]", "[[2, 1], [1, 3]], [1, 2]", "f32.definite[3, 3], f32[()]", d=WIDE, **NEAR)
LINALG.add("lstsq", "{d}[5, 3], {d}[5]", "f32[5, 3], f32[5, 2]", "{f}(f32[3, 5], f32[3])[0]", "f32[5, 3], f32[4]", "f32[5, 3], f32[5], 0.5", "f64[5, 2], f64[5], numpy_resid=True", "f32[0, 3], f32[0]", "i32[5, 3], i32[5]", "f32[3], f32[3]", d=["f32", "f64"], ulps=4096, of_largest=True)
LINALG.add("norm", "{d}[3]", "{d}[2, 3]", d=ALL, **NEAR)
LINALG.add("norm", *(f"{x}, {order}" for x in ("f32[4]", "f64[2, 3]", "c64[2, 2]", "i32[3]") for order in ("1", "2", "-1", "-2", "np.inf", "-np.inf", "0", "'fro'", "'nuc'", "3", "0.5", "'x'")),
           "f32[2, 3, 4]", "f32[2, 3], axis=1", "f32[2, 3, 4], axis=(0, 1)", "f32[2, 3, 4], axis=(0, 1, 2)", "f32[2, 3], 1, keepdims=True", "f32[0]", "f32[0, 3], axis=1", "f32[0], np.inf", "2.5", "f32.special[13]", "f32[2, 3], axis=2", "f32[3], 3, 0", "f32[2, 3], 2, (0, 0)")
LINALG.add("vector_norm", "{d}[3]", "f32[2, 3]", "f32[2, 3], axis=1, ord=1", "f32[3], ord=np.inf", "f32[2, 3], keepdims=True", "i32[3], ord=3", "f32[3], ord=0", "f32[2, 3, 2], axis=(0, 2), ord=2", "f32[0]", "f32[3], ord='fro'", d=ALL, **NEAR)
LINALG.add("matrix_norm", "{d}[2, 3]", "f32[2, 2, 3], ord=1", "f32[2, 3], ord='nuc'", "f32[2, 3], keepdims=True", "f32[3]", "f32[2, 3], ord=2", "f32[2, 3], ord=-2", "f32[2, 3], ord='x'", d=ALL, **NEAR)
LINALG.add("matrix_power", "{d}[3, 3], 3", "{d}.definite[2, 2], -2", "{d}[2, 2], 0", "f32[2, 3], 2", "f32[2, 2], 1.5", "f32[2, 2], 1", "i32[2, 2], -1", "f32[2, 2, 2], 5", d=["i32", *WIDE], **NEAR)
LINALG.add("matrix_rank", "f32[3, 2]", "f32[3, 3], rtol=0.9", "jnp.zeros((2, 3))", "f32[2, 3, 3]", "f32[0, 3]")
LINALG.add("cond", *(f"f64[3, 3], {p}" for p in ("1", "2", "-2", "np.inf", "'fro'", "'x'")), "f32[2, 3]", "f32[2, 3], 1")
LINALG.add("multi_dot", "[f32[2, 3], f32[3, 4], f32[4, 2]]", "[f32[3], f32[3, 2]]", "[f32[2, 3]]", "[]", "[f32[2, 3], f32[2, 3]]", "[i8[2, 2], f32[2, 2]]", "[f32[3], f32[3]]", **NEAR)
LINALG.add("trace diagonal matrix_transpose", "{d}[2, 3]", "f32[2, 3, 4]", "f32[3]", "f32[()]", d=ALL, ulps=4)
LINALG.add("trace diagonal", "f32[2, 3], offset=1", "i8[3, 3], offset=-1", "f32[2, 3], offset=9")
LINALG.add("trace", "i8[3, 3], dtype='float32'", "b[3, 3]")
LINALG.add("matmul outer tensordot vecdot", "{d}[3], {d}[3]", "f32[2, 3], f32[2, 3]", "f32[2, 3], f32[3, 2]", "f32[3], i8[3]", "2.0, f32[3]", "f32[2, 3], f32[3]", d=["i32", "f16", *WIDE], ulps=16, of_largest=True)
LINALG.add("cross", "{d}[3], {d}[3]", "f32[2, 3], f32[3]", "f32[3, 2], f32[3, 2], axis=0", "f32[2], f32[2]", "f32[4], f32[4]", d=["i32", *WIDE], ulps=16, of_largest=True)
LINALG.add("tensorinv", "f64[2, 3, 6] + 5 * jnp.eye(6).reshape(2, 3, 6)", "f64[6, 2, 3] + 5 * jnp.eye(6).reshape(6, 2, 3), ind=1", "f32[2, 3]", "f32[2, 2], ind=0", **NEAR)
LINALG.add("tensorsolve", "f64[2, 3, 6] + 5 * jnp.eye(6).reshape(2, 3, 6), f64[2, 3]", "f32[2, 3], f32[2]", "f64[6, 2, 3] + 5 * jnp.eye(6).reshape(6, 2, 3), f64[6]", **NEAR)
for names, call in (("inv det pinv cholesky", "{f}(x)"), ("slogdet", "{f}(x)[1]"), ("eigvalsh svdvals norm", "{f}(x)"), ("solve", "{f}(x, jnp.arange(3.0))"), ("matrix_power", "{f}(x, 3)")):
    LINALG.add(names, f"grad(lambda x: jnp.sum({call}))(f64.definite[3, 3])", f"jvp(lambda x: {call}, (f64.definite[3, 3],), (f64.definite[3, 3],))", f"vmap(lambda x: {call})(f32.definite[2, 3, 3])", f"vmap(lambda x: {call})(f32[0, 3, 3])")
LINALG.add("norm", "grad({f})(f32[3])", "grad({f})(jnp.zeros(3))", "grad(lambda x: {f}(x, 1))(f32[3])", "grad(lambda x: {f}(x, np.inf))(f32[3])", "grad({f})(c64[3])")

# -- transforms of Fourier -----------------------------------------------------------------------------------------------
FOURIER = "fft ifft rfft irfft hfft ihfft"
FFT.add(FOURIER, "{d}[2, 5]", d=ALL, ulps=32, of_largest=True)
FFT.add(FOURIER, "f32[5], 3", "f32[5], 8", "f32[2, 3], axis=0", *(f"f32[5], norm='{n}'" for n in ("ortho", "forward", "backward", "other")), "f32[0]", "f32[1]", "f32[()]", "f32[5], 0", "f32[5], -1", "f32[2, 3], axis=2", "[1, 2, 3]", "f32[0, 3]", "f32[5], 2.5", "f32[2, 3], 4, 0, 'ortho'", "f32[0], 4", "f32.special[13]", "2.0",
        "grad(lambda x: jnp.sum(jnp.abs({f}(x)) ** 2))(f64[5])", "jvp({f}, (f64[4],), (f64[4],))", "vmap({f})(f32[2, 4])", "c64[5], 4")
FFT.add("fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", "{d}[3, 4]", d=ALL, ulps=64, of_largest=True)
FFT.add("fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", "f32[3, 4], s=(2, 6)", "f32[2, 3, 4], axes=(0, 2)", "f32[3, 4], norm='ortho'", "f32[3, 4], norm='forward'", "f32[3]", "f32[3, 4], axes=(0,)", "f32[3, 4], s=(2,)", "f32[3, 4], axes=(0, 0)", "f32[0, 3]", "f32[3, 4], axes=(0, 2)", "f32[3, 4], s=(2, 3), axes=(0,)", "f32[3, 4], axes=()", "f32[2, 3, 4, 5], axes=(0, 1, 2, 3)",
        "vmap({f})(f32[2, 3, 4])", "grad(lambda x: jnp.sum(jnp.abs({f}(x)) ** 2))(f64[2, 4])")
FFT.add("fftfreq rfftfreq", "5", "6, 0.5", "1", "0", "-1", "5, f32[()]", "2.5", "5, dtype='float16'", "5, 0", "5, d=2j", "6, d=2", ulps=4)
FFT.add("fftshift ifftshift", "{d}[5]", "f32[2, 3]", "f32[2, 3], 1", "f32[2, 3], axes=(0, 1)", "f32[0]", "f32[()]", "f32[2, 3], 2", "[1, 2, 3]", "f32[3], axes=()", d=ALL)

SCIPY_FFT.add("dct idct", *(f"{{d}}[5], {t}" for t in (1, 2, 3, 4)), "f32[2, 5], axis=0", "f32[5], 2, 3", "f32[5], 2, 8", "f32[5], norm='ortho'", "f32[0]", "f32[5], type=5", "f32[5], norm='other'", "f32[1]", "c64[3]", "f32[5], norm='backward'", "grad(lambda x: jnp.sum({f}(x) ** 2))(f64[4])", "vmap({f})(f32[2, 4])", "f32[5], norm='forward'",
              "f32[()]", "f32[3], axis=1", d=["f32", "f64", "i32", "f16", "b"], ulps=64, of_largest=True)
SCIPY_FFT.add("dctn idctn", "{d}[3, 4]", "f32[3, 4], norm='ortho'", "f32[3, 4], axes=(1,)", "f32[3, 4], s=(2, 5)", "f32[3, 4], type=3", "f32[3]", "f32[2, 3, 4], axes=(0, 2)", "f32[0, 3]", d=["f32", "f64", "i32", "f16"], ulps=128, of_largest=True)

# -- SciPy's linear algebra -----------------------------------------------------------------------------------------------
square(SCIPY_LINALG, "cholesky inv det expm")
SCIPY_LINALG.add("cholesky", "f32.definite[3, 3], lower=True", "-f32.definite[3, 3]")
square(SCIPY_LINALG, "lu_factor cho_factor")
SCIPY_LINALG.add("lu", "f64.definite[3, 3]", "{d}[3, 2]", "{d}[2, 3]", "f32[3]", "f32[3, 3], permute_l=True", "i32[2, 2]", "f32[2, 3, 3]", "jnp.zeros((0, 0))", d=WIDE, **NEAR)
SCIPY_LINALG.add("cho_solve", "(jnp.linalg.cholesky({d}.definite[3, 3]), True), {d}[3]", "(f32.definite[3, 3], False), f32[3, 2]", "(f32[3, 3], True), f32[2]", "(f32[2, 3], True), f32[2]", d=WIDE, **NEAR)
SCIPY_LINALG.add("lu_solve", "lu_factor({d}.definite[3, 3]), {d}[3]", "lu_factor(f32.definite[3, 3]), f32[3, 2], 1", "lu_factor(f32.definite[3, 3]), f32[3], trans=2", "lu_factor(f32.definite[3, 3]), f32[2]", "lu_factor(f32.definite[3, 3]), f32[3], trans=3", d=WIDE, **NEAR)
SCIPY_LINALG.add("solve", "{d}.definite[3, 3], {d}[3]", "f32.definite[3, 3], f32[3, 2], assume_a='pos'", "f32.definite[3, 3], f32[3], lower=True, assume_a='pos'", "f32.definite[3, 3], f32[3], assume_a='other'", "f32[2, 3], f32[2]", "i32[2, 2], i32[2]", "f32.definite[3, 3], f32[2]", "f32.definite[3, 3], f32[3], assume_a='sym'", d=WIDE, **NEAR)
SCIPY_LINALG.add("solve_triangular", "{d}.definite[3, 3], {d}[3]", *(f"f64.definite[3, 3], f64[3, 2], trans={t}, lower={low}" for t in (0, 1, "'C'") for low in (True, False)), "f32.definite[3, 3], f32[3], unit_diagonal=True", "f32[2, 3], f32[2]", "f32.definite[3, 3], f32[2]", "i32[2, 2], f32[2]", "f32.definite[3, 3], f32[3], trans=7", d=WIDE, **NEAR)
SCIPY_LINALG.add("eigh", "{d}.definite[3, 3], eigvals_only=True", "f32[2, 3]", "f32.definite[3, 3], f32.definite[3, 3], eigvals_only=True", "f32.definite[3, 3], lower=False, eigvals_only=True", "f32.definite[3, 3], type=2, eigvals_only=True", "jnp.zeros((0, 0)), eigvals_only=True", d=WIDE, **NEAR)
SCIPY_LINALG.add("eigh_tridiagonal", "f64[5], f64[4], eigvals_only=True", "f32[5], f32[4], eigvals_only=True", "f32[5], f32[5], eigvals_only=True", "{f}(f64[5], f64[4])[0]", "f64[5], f64[4], eigvals_only=True, select='i', select_range=(1, 2)", "c64[3], c64[2], eigvals_only=True", ulps=4096, of_largest=True)
SCIPY_LINALG.add("svd", "{d}[3, 2], compute_uv=False", "f32[3]", "f32[2, 3], full_matrices=False, compute_uv=False", "{f}(f32[3, 2])[0].shape", "i32[2, 2], compute_uv=False", d=WIDE, **NEAR)
SCIPY_LINALG.add("qr", "{d}[3, 2], mode='r'", "f32[3], mode='r'", "f32[2, 3], mode='economic'", "f32[3, 2], pivoting=True, mode='r'", "f32[3, 2], mode='other'", "f32[3, 2], mode='full'", "i32[2, 2], mode='r'", d=WIDE, **NEAR)
SCIPY_LINALG.add("schur", "{f}({d}.definite[3, 3])[0].shape", "{f}(f32[3, 3], 'complex')[0].dtype", "f32[2, 3]", "f32[2, 2], output='other'", "{f}(i32[2, 2])[0].dtype", d=WIDE)
SCIPY_LINALG.add("hessenberg", "f64[3, 3]", "f32[2, 3]", "f32[3, 3], calc_q=True", "jnp.zeros((0, 0))", **NEAR)
SCIPY_LINALG.add("polar", "{d}[3, 3]", "f32[3, 2]", "f32[2, 3], side='left'", "f32[3, 3], side='other'", "f32[3]", "f32[3, 2], method='svd'", d=["f32", "f64"], ulps=4096, of_largest=True)
SCIPY_LINALG.add("sqrtm", "{d}.definite[3, 3]", "f32[2, 3]", "f32.definite[2, 2], blocksize=2", d=WIDE, ulps=4096, of_largest=True)
SCIPY_LINALG.add("expm", "jnp.triu(f32.definite[3, 3]), upper_triangular=True", "f32.small[3, 3], max_squarings=2", "i32[2, 2]", "f32[2, 2], max_squarings=0", ulps=20000, of_largest=True)
SCIPY_LINALG.add("expm", "grad(lambda x: jnp.sum({f}(x)))(f64.small[3, 3])", "vmap({f})(f32[2, 3, 3])")
SCIPY_LINALG.add("expm_frechet", "f64.small[3, 3], f64.small[3, 3]", "f32.small[3, 3], f32.small[3, 3], compute_expm=False", "f64.small[3, 3], f64.small[3, 3], method='blockEnlarge'", "f32[2, 3], f32[2, 3]", "f32[2, 2], f32[3, 3]", "f32[2, 2], f32[2, 2], method='other'", **NEAR)
SCIPY_LINALG.add("solve_sylvester", "f64.definite[3, 3], f64.definite[2, 2], f64[3, 2]", "f64.definite[3, 3], f64.definite[2, 2], f64[3, 2], method='eigen'", "f32.definite[3, 3], f32[2, 3], f32[3, 2]", "f32.definite[2, 2], f32.definite[2, 2], f32[2, 2], method='other'", ulps=4096, of_largest=True)
SCIPY_LINALG.add("funm", "{f}(f64.definite[3, 3], jnp.exp).dtype", "{f}(f64.definite[3, 3], jnp.exp, disp=False)[0].shape", "f32[2, 3], jnp.exp")
SCIPY_LINALG.add("rsf2csf", "jnp.eye(3), jnp.eye(3)", "f32[2, 3], f32[2, 3]", **NEAR)
SCIPY_LINALG.add("qr_multiply", "f64[3, 2], f64[2]", "f64[3, 3], f64[3, 2], mode='left'", "f32[3, 2], f32[5]", **NEAR)
SCIPY_LINALG.add("block_diag", "{d}[2, 2], {d}[1, 3]", "", "f32[2], i8[1, 1]", "2.0, f32[2]", "f32[2, 2, 2]", "f32[0, 3], f32[2]", "[1, 2], 3", d=ALL)
SCIPY_LINALG.add("toeplitz hankel", "{d}[3]", "{d}[3], {d}[4]", "f32[3], i8[2]", "[1, 2, 3]", "2.0", "f32[2, 3]", "f32[0]", d=ALL)
SCIPY_LINALG.add("circulant companion fiedler fiedler_companion", "{d}.positive[4]", "f32[0]", "f32[1]", "f32[2, 3]", "[1, 2, 3]", "f32[()]", "f32[2]", d=["i8", "i32", *FLOATS, "c64", "b"], ulps=8, of_largest=True)
SCIPY_LINALG.add("leslie", "{d}[3], {d}[2]", "f32[3], f32[3]", "f32[1], f32[0]", "[1, 2], [3]", "f32[2, 3], f32[2]", "i8[3], f32[2]", d=["i32", *INEXACT])
SCIPY_LINALG.add("convolution_matrix", "{d}[3], 4", *(f"f32[3], 4, mode='{m}'" for m in ("full", "valid", "same", "other")), "f32[3], 0", "f32[0], 3", "f32[2, 3], 3", "f32[3], 2, 'valid'", "f32[3], 2.5", d=["i32", *INEXACT])
SCIPY_LINALG.add("hilbert invhilbert helmert pascal invpascal hadamard dft", "3", "1", "0", "4", ulps=256, of_largest=True)
SCIPY_LINALG.add("hadamard", "4, dtype='float32'", "6", "8, dtype='int8'")
SCIPY_LINALG.add("dft", "4, 'sqrtn'", "4, scale='n'", "4, 'other'")
SCIPY_LINALG.add("pascal invpascal", "4, kind='lower'", "4, kind='upper'", "4, kind='other'", "20")
SCIPY_LINALG.add("helmert", "4, full=True")
