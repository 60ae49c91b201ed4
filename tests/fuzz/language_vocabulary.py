"""Expressions, statements and arguments of the programs about Python's and NumPy's language.

Data only. Capital letters stand for expressions: `A` an array of one axis, `M` of two, `I` an int, `X` a float, `S` a
NumPy scalar, `C` a condition, `L` a list of numbers, `T` a text, `Z` any of these, `K` a small number; lower-case names
are variables.
"""

from __future__ import annotations

#: What a letter may become. Names of variables are added for half of the places.
EXPRESSIONS = {
    "A": ("A + A", "A - A", "A * A", "A / A", "A // A", "A % A", "A + I", "I - A", "A * X", "A / I", "A // K", "A % K", "K / A", "A + S", "S * A", "-A", "+A", "abs(A)",
          "A ** 2", "A ** K", "K ** A", "2 ** A", "A ** 0.5", "A[::-1]", "A[1:]", "A[:-1]", "A[::2]", "A[-3:]", "A[4:0:-1]", "A[:]", "A[...]", "A[None][0]", "A[A > A]", "A[A.argsort()]",
          "A[[0, 2, -1]]", "A[np.array([1, 1, 0])]", "A[I:]", "A[:I]", "A[-I:]", "A.copy()", "A.astype(D)", "np.sqrt(A)", "np.sin(A)", "np.exp(A * 0.1)", "np.log(np.abs(A) + 1)", "np.floor(A)", "np.rint(A)",
          "np.where(A > A, A, A)", "np.where(A > K, I, A)", "np.where(A == A, X, S)", "np.maximum(A, A)", "np.minimum(A, K)", "np.clip(A, 0, 3)", "A.clip(min=1)", "np.sort(A)", "np.argsort(A, kind='stable')", "np.cumsum(A)",
          "np.cumprod(A)", "np.diff(A)", "np.roll(A, I)", "np.concatenate([A, A])", "np.concatenate((A, A[:1]))", "np.append(A, K)", "np.zeros(3, D)", "np.ones_like(A)", "np.arange(I)", "np.arange(3.0)",
          "np.arange(I, I + 4)", "np.arange(0, 2, 0.5)", "np.linspace(0, I, 4)", "np.full(3, K)", "np.full(3, X)", "np.zeros_like(A, D)", "np.array([I, X, K])", "np.array([I, K])", "np.array([S, S])", "np.array(L)",
          "np.asarray(L, float)", "np.array(L + [K])", "M[0]", "M[:, 1]", "M[-1, ::-1]", "M.sum(axis=0)", "M.mean(axis=1)", "M.max(0)", "M.ravel()", "M.T.ravel()", "M.flatten('F')", "M @ A[:3]", "M.diagonal()", "np.diag(M)",
          "M[M > K]", "M[[0, 1], [1, 0]]", "M.argmax(axis=1)", "A & 3", "A | 1", "A ^ A", "~A", "A << 1", "A >> 1", "A == A", "A != K", "A < X", "(A > K) & (A < 3)", "~(A > K)", "np.logical_and(A, A)", "np.isnan(A)",
          "np.isfinite(A / A)", "np.sign(A)", "np.mod(A, K)", "np.fmod(A, 3)", "np.divmod(A, 3)[0]", "divmod(A, 2)[1]", "np.power(A, 2)", "np.float32(A)", "np.round(A, 1)", "A.round()", "np.unique(A)", "np.repeat(A, 2)",
          "np.tile(A, 2)", "np.flip(A)", "np.outer(A, A)[0]", "np.convolve(A, A[:2])", "np.interp(A, [0.0, 1.0, 2.0], [1.0, 3.0, 2.0])", "np.nonzero(A)[0]", "np.flatnonzero(A > K)", "np.searchsorted(np.sort(A), A)", "np.trunc(A)",
          "np.real(A)", "A.T", "A.reshape(-1)", "A.reshape(-1, 1)[:, 0]", "np.atleast_1d(S)", "np.hstack([A, I])", "np.r_[A, K]", "A.view()", "np.digitize(A, [0.0, 1.5])", "np.bincount(np.arange(3), minlength=4)", "np.cross(A[:3], A[:3])",
          "np.add.accumulate(A)", "np.maximum.accumulate(A)", "np.add.outer(A, A)[1]", "np.multiply.reduce(M)", "np.gradient(A)", "np.nan_to_num(A / A)", "np.delete(A, 0)", "np.insert(A, 1, K)", "np.setdiff1d(A, A[:2])", "np.partition(A, 1)",
          "np.einsum('ij,j->i', M, A[:3])", "np.select([A > 1, A < 0], [A, K], X)", "np.stack([A, A])[1]", "np.vstack([A, A]).sum(0)", "np.meshgrid(A, A)[0][0]", "np.hypot(A, A)", "np.arctan2(A, K)", "np.array([w * 2 for w in A])",
          "np.array([w if w > K else X for w in A])", "np.fromiter((w + 1 for w in L), float)", "np.array(sorted(A))", "np.array([*A, K])", "np.take(A, [0, -1])", "A.take([1, 0])", "np.compress([True, False, True], A)", "np.heaviside(A, 0.5)",
          "np.in1d(A, L) if hasattr(np, 'in1d') else np.isin(A, L)", "np.array(A, dtype=D, copy=True)", "np.ascontiguousarray(A[::2])", "np.copysign(A, -1)", "np.negative(A)", "np.square(A)", "np.array([len(L), K, 1.5])"),
    "M": ("M + M", "M * K", "M.T", "M.T @ M", "M + A[:3]", "M + A[:2, None]", "M - M.mean(axis=0)", "M / M.sum(axis=1, keepdims=True)", "M[::-1]", "M[:, ::-1]", "M[:, [2, 0]]", "M[1:]", "np.outer(A, A)", "A[:, None] * A[None, :]", "M.reshape(3, 2)", "M.reshape(-1, 1)",
          "np.dot(M, M.T)", "np.eye(3)", "np.zeros((2, 3), D)", "np.vstack([A[:3], A[:3]])", "np.column_stack([A, A])", "np.array([[K, I], [X, 2]])", "np.array([A[:2], A[:2]])", "M.astype(D)", "np.where(M > K, M, 0)", "np.cumsum(M, axis=1)", "np.sort(M, axis=0)",
          "np.concatenate([M, M], axis=1)", "np.tril(M)", "np.triu(M, 1)", "np.pad(M, 1)", "np.roll(M, 1, axis=0)", "np.transpose(M)", "np.swapaxes(M, 0, 1)", "M[np.ix_([0, 1], [2, 0])]", "np.abs(M)", "M % 3", "np.expand_dims(A, 0)", "np.array([L[:2], L[:2]])", "np.rot90(M)", "np.kron(M, [[1, 2]])",
          "np.repeat(M, 2, axis=0)", "np.apply_along_axis(np.sum, 0, M)[None]", "np.broadcast_to(A[:3], (2, 3))", "np.diag(A)", "np.full((2, 3), K)", "np.fromfunction(lambda i, j: i + j, (2, 3))", "np.array([[i * j for j in range(3)] for i in range(2)])", "M.copy('F')", "np.asfortranarray(M)"),
    "I": ("I + I", "I - I", "I * I", "I // K", "I % K", "I // I", "I % I", "-I", "abs(I)", "I ** 2", "I & 3", "I | 4", "I ^ I", "I << 2", "I >> 1", "~I", "len(A)", "len(L)", "len(T)", "int(X)", "int(S)", "int(A[0])", "int(A.sum())", "round(X)", "A.size", "A.ndim", "M.shape[0]", "M.shape[-1]",
          "int(A.argmax())", "max(I, K)", "min(I, I, 3)", "I if C else I", "sum(L[:2])", "divmod(I, 3)[1]", "divmod(I, K)[0]", "int(C)", "int('12')", "L.index(1)", "L.count(1)", "T.count('a')", "ord(T[0])", "math.floor(X)", "math.ceil(X)", "I * 10 ** 3", "I + 2 ** 62", "I * 2 ** 40", "int(1e3)", "bool(I)",
          "I.bit_length()", "(I or 3)", "(I and 2)", "pow(I, 2)", "pow(3, 2, 5)", "math.gcd(I, 12)", "math.isqrt(abs(I))", "sum(w > K for w in A)", "sum(1 for w in L if w)", "math.factorial(3)", "hash(I) % 7", "True + I", "int(S > K)", "S.size", "A.itemsize", "math.comb(5, 2)", "I.__add__(1)", "int(round(X))"),
    "X": ("X + X", "X - I", "X * X", "X / I", "X / K", "X // K", "X % K", "X ** 2", "-X", "abs(X)", "float(I)", "float(S)", "float(A[1])", "math.sqrt(abs(X))", "math.sin(X)", "math.exp(X * 0.1)", "math.log(abs(X) + 1)", "math.pi", "I / 2", "I / I", "X if C else I", "round(X, 1)", "round(X, 2)", "min(X, K)", "max(X, I, 0.5)",
          "float('inf')", "float('nan')", "1e-3", "sum(L) / 3", "float(A.sum())", "A.tolist()[0]", "S.item()", "abs(complex(X, I))", "math.hypot(X, I)", "math.fmod(X, 2)", "math.atan2(X, K)", "divmod(X, 2)[1]", "X.real", "X - int(X)", "math.floor(X) + 0.5", "math.copysign(1.0, X)", "math.tanh(X)", "math.trunc(X) / 4", "X * C",
          "float(f'{X:.2f}')", "pow(abs(X), 0.5)", "math.fsum(L)", "math.dist([X], [K])", "(X or 2.5)", "X.__mul__(2)", "math.degrees(X)", "I ** -1", "2 ** X", "math.prod(L)", "math.isfinite(X) * 1.5", "statistics.mean(L)", "X.is_integer() + 0.5"),
    "S": ("A[0]", "A[-1]", "A[1]", "A[I]", "A[I % 3]", "M[0, 1]", "M[-1][2]", "M[I % 2, 1]", "A.sum()", "A.mean()", "A.max()", "A.min()", "A.prod()", "A.std()", "A.var()", "A.argmin()", "np.sum(A)", "np.mean(M)", "np.median(A)", "np.dot(A, A)", "A @ A", "np.linalg.norm(A)", "M.trace()", "M.sum()", "A.any()", "A.all()", "np.ptp(A)",
          "S + S", "S - K", "S * I", "S / X", "S / K", "S // K", "S % 3", "S ** 2", "-S", "abs(S)", "S + X", "I * S", "K / S", "S // S", "S == S", "S < K", "np.sqrt(abs(S))", "np.float32(X)", "np.float64(I)", "np.int8(3)", "np.int32(K)", "np.uint8(200)", "np.uint8(7) + np.uint8(250)", "np.bool_(C)", "np.exp(X)", "np.abs(I)", "np.maximum(I, X)",
          "np.add(I, K)", "np.round(S, 1)", "round(S, 1)", "round(S)", "S.astype(D)", "np.count_nonzero(A)", "np.argmax(A)", "np.percentile(A, 25)", "np.sum(A > K)", "(A > K).sum()", "np.trapezoid(A)", "np.max([I, X])", "np.sum(L)", "np.mean(L)", "max(A)", "min(A)", "sum(A)", "sum(w * 2 for w in A)", "np.nan", "np.pi", "np.float64('nan')",
          "np.nanmax(A)", "np.nansum(A / A)", "A.item(0)", "np.isclose(X, S)", "np.allclose(A, A)", "np.array_equal(A, A)", "np.sign(X)", "np.int64(I) // K", "np.int64(I) % 3", "np.linalg.det(M @ M.T + np.eye(len(M)))", "np.inner(A, A)", "np.vdot(A, A)", "np.cov(A)", "np.bitwise_and(I, 3)", "np.floor(X)", "np.hypot(I, K)",
          "np.array(S)[()]", "np.array(I) + K", "np.asarray(X) * S", "np.average(A, weights=np.abs(A) + 1)", "np.quantile(A, 0.3)", "functools.reduce(lambda a, b: a + b, A)", "functools.reduce(lambda a, b: a * 0.5 + b, A, K)", "np.divide(I, K)", "np.floor_divide(I, K)", "np.corrcoef(A, A[::-1])[0, 1]", "np.fmax(X, S)", "np.int16(I) << 1"),
    "C": ("I > K", "X < K", "S > K", "I == I", "K < I < 5", "0 <= X < S", "not C", "C and C", "C or C", "A[0] > A[1]", "A.sum() > K", "(A > K).any()", "np.all(A > K)", "I in L", "I not in (1, 2, 3)", "T == 'ab'", "T.startswith('a')", "'a' in T", "len(L) > 2", "bool(I)", "C is True", "x is None", "table.get('a') is not None", "isinstance(S, float)",
          "isinstance(I, int)", "isinstance(A[0], np.floating)", "S == S", "S != S", "math.isnan(X)", "np.isnan(S)", "any(w > K for w in A)", "all(w > K for w in L)", "A.dtype == np.float64", "A.dtype.kind == 'f'", "np.issubdtype(A.dtype, np.integer)", "A.size == 0", "A.shape == A.shape", "X is X", "flag", "not flag", "K <= S <= 3.5", "X > 0 or 1 / X", "I and X", "(A == A).all()",
          "callable(I)", "hasattr(A, 'shape')", "T < 'b'", "[I, 1] == [1, 1]", "(I, X) < (2, 1.0)", "L == L", "{1, 2} <= set(L)", "A.ndim == 1 and A[0] == A[0]", "np.array_equal(A, A)", "type(I) is int", "type(S) is np.float64", "S is not None", "bool(S)", "A is A"),
    "L": ("L + L", "L[::-1]", "L[1:]", "L[:I]", "sorted(L)", "sorted(L, reverse=True)", "sorted(L, key=lambda w: -w)", "[w + 1 for w in L]", "[w for w in L if w > K]", "[I, X]", "[I] * 3", "list(range(I))", "list(range(I, -1, -1))", "A.tolist()", "list(map(int, L))", "list(A[:2])", "[*L, I]", "[w * v for w, v in zip(L, L)]", "[k * w for k, w in enumerate(L)]",
          "list(set(L))[:1]", "list(reversed(L))", "list(filter(lambda w: w > K, L))", "L * 2", "[len(T), I]", "list(dict.fromkeys(L))", "[I for _ in range(3)]", "list(table.values())", "[x := X, x + 1]", "[w if w > 1 else -w for w in L]", "list(itertools.accumulate(L))", "[min(L, default=I), K]", "sorted({K, 1, 2})", "[int(w) for w in A]", "[float(w) for w in A]", "L.copy()",
          "[a - b for a, b in zip(L[1:], L)]", "list(itertools.chain(L, [K]))", "[sum(p) for p in itertools.pairwise(L)]", "[sum(c) for c in itertools.combinations([1, 2, I], 2)]", "list(itertools.islice(L, 2))", "[np.int64(w) for w in L]", "sum([[1], L], [])", "[w for r in [[1, I], [2]] for w in r]", "list(itertools.takewhile(lambda w: w < 4, L))"),
    "T": ("T + T", "T.upper()", "T * 2", "T[::-1]", "T[0]", "f'{I}'", "f'{X:.3f}'", "f'{S:8.2f}|'", "f'{I:>5d}{K!r}'", "'%d %.2f' % (I, X)", "'{:.1e}'.format(X)", "str(I)", "str(X)", "str(S)", "repr(S)", "repr(X)", "'-'.join(map(str, L))", "T.replace('a', 'b')", "'yes' if C else 'no'", "str(A.dtype)", "str(A.shape)", "str(L)", "repr(A)", "str(A)", "f'{A}'", "chr(97 + I % 3)",
          "T.strip()", "T.ljust(5, '.')", "type(S).__name__", "type(I).__name__", "''.join(reversed(T))", "T.split('a')[0]", "f'{C}'", "f'{X=:.1f}'", "f'{X:{I % 5 + 6}.2f}'", "bin(I)", "hex(I)", "format(X, '+.2f')", "T.zfill(4)", "str(M)", "f'{K:,}'", "f'{S!r:>20}'", "str((I, X))", "repr([S, I])", "f'{X:e}'", "f'{I:08b}'", "f'{X:%}'"),
    "Z": ("A", "M", "I", "X", "S", "C", "L", "T", "(I, X)", "[A, I]", "{'k': S, 'j': X}", "None", "A, S", "complex(X, I)", "X + 1j", "A + 1j", "np.complex64(1 + 2j) * X", "[[I, X], [S, K]]", "{I, K}", "dict(a=I, b=A)", "(L, T)", "range(I)", "slice(I, None)", "A.dtype", "A.shape", "type(S)", "(S, S)", "dict(zip('ab', L))", "np.unravel_index(3, (2, 3))", "np.unique(A, return_counts=True)", "divmod(S, K)", "divmod(I, K)",
          "np.modf(X)", "np.modf(A)", "np.frexp(A)", "A.tolist()", "M.tolist()", "{w: w * w for w in L}", "tuple(A)", "tuple(w for w in A if w > K)", "np.histogram(A, bins=3)", "np.where(A > K)", "np.array(None)", "np.array('ab')", "np.float64(X).as_integer_ratio()", "np.array([A, A]).shape", "A.strides", "A.flags.writeable", "np.datetime64('2020-01-01') + I", "np.array([1, None, 'a'], object)[:2]", "zip", "enumerate(L).__class__"),
    "D": ("float", "int", "np.float32", "np.float64", "np.int32", "np.int8", "np.uint8", "bool", "'i4'", "A.dtype", "complex", "np.int64", "np.uint16", "'float32'", "np.float16"),
    "K": ("0", "1", "2", "3", "-1", "0.5", "-0.25", "1.5", "4", "True", "-2", "7", "-0.0"),
}
#: Variables of a kind.
VARIABLES = {"A": ("u", "v", "w"), "M": ("m", "g"), "I": ("n", "k", "j"), "X": ("x", "y"), "S": ("p", "q"), "C": ("flag", "c"), "L": ("items", "other"), "T": ("word", "t"),
             "Z": ("z",), "D": (), "K": ()}
#: Statements; `BODY` stands for statements, indented.
STATEMENTS = (
    "u = A", "v = A", "w = A", "m = M", "g = M", "n = I", "k = I", "x = X", "y = X", "p = S", "q = S", "c = C", "items = L", "other = L", "t = T", "z = Z", "z = Z", "z = Z", "u += A", "u *= K", "u -= S", "v /= K", "v //= K", "v **= 2", "u %= 3", "w |= 1", "w <<= 1", "u += I", "u += X", "m += K", "m -= A[:3]",
    "m @= np.eye(3)", "n += I", "n -= K", "n *= 2", "n //= K", "n %= 3", "k <<= 1", "k ^= 3", "x += X", "x *= K", "x /= I", "x **= 2", "x -= S", "p += S", "p *= K", "p /= 2", "items += [I]", "other += L", "if len(other) < 9: other *= 2", "t += T", "u[0] = X", "u[I] = K", "u[-1] = S", "u[1:] = A[:-1]", "u[:] = K", "u[::2] = I", "u[::-1] = u",
    "v[:3] = [1, 2, 3]", "v[A > K] = K", "v[v > K] += 1", "v[[0, 1]] = X", "w[1:3] *= 2", "w[...] = S", "u[I:] += v[0]", "m[0] = A[:3]", "m[0, 1] = X", "m[:, 1] += K", "m[I % 2] = K", "m[m > K] = 0", "m[::-1] = m", "m.T[0] = K", "m[0], m[1] = m[1], m[0]", "u[0], u[1] = u[1], u[0]", "n, k = k, n", "x, y = y, x + 1", "u, v = v, u", "(n, x), t = (I, X), T",
    "n, *other = L", "*other, n = I, K, 3", "a, b = A[:2]", "items[0] = I", "items[-1] = S", "del items[0]", "items.append(X)", "items.append(I)", "items.insert(0, K)", "items.pop()", "items.sort()", "items.reverse()", "items.extend(L)", "items[1:2] = [I, K]", "table['a'] = Z", "table['b'] = I", "table[I] = X", "table.setdefault('c', []).append(I)",
    "table.update(d=X)", "table.pop('a', None)", "z = table.get('a', K)", "u.sort()", "u.fill(K)", "np.add(u, K, out=u)", "np.copyto(v, K)", "np.add.at(u, [0, 0], K)", "np.put(v, [0], K)", "v = u", "v = u[1:]", "w = u[::-1]", "w = m[0]", "w = m.ravel()", "g = m.T", "g = m", "other = items", "print(Z)", "print(I, X, T, sep='|')", "print(f'{S:.2f} {I}')",
    "if C:\n    BODY", "if C:\n    BODY\nelse:\n    BODY", "if C:\n    BODY\nelif C:\n    BODY\nelse:\n    BODY", "for j in range(I):\n    BODY\n    if j > 3: break", "for j in range(3):\n    BODY", "for j in range(len(u)):\n    BODY", "for j, x in enumerate(A):\n    BODY", "for p in A:\n    BODY", "for w in M:\n    BODY", "for p, q in zip(A, A):\n    BODY",
    "for n in L:\n    BODY", "for j in reversed(range(4)):\n    BODY", "for key, z in list(table.items()):\n    BODY", "k = 0\nwhile k < 4:\n    k += 1\n    BODY", "k = 0\nwhile C and k < 5:\n    k += 1\n    BODY\nelse:\n    BODY", "for j in range(4):\n    if C: break\n    BODY\nelse:\n    BODY", "for j in range(4):\n    if C: continue\n    BODY", "for j in range(2, 9, 3):\n    BODY",
    "try:\n    BODY\nexcept (IndexError, ValueError):\n    BODY", "try:\n    BODY\nexcept ZeroDivisionError as error:\n    t = str(error)", "try:\n    BODY\nfinally:\n    BODY", "try:\n    BODY\nexcept Exception as error:\n    t = type(error).__name__ + str(error)[:60]", "try:\n    BODY\nexcept TypeError:\n    BODY\nelse:\n    BODY", "with np.errstate(all='ignore'):\n    BODY", "with contextlib.suppress(IndexError, TypeError):\n    BODY",
    "match n:\n    case 0:\n        BODY\n    case 1 | 2:\n        BODY\n    case _:\n        BODY", "match (I, X):\n    case (0, y):\n        BODY\n    case (n, float(x)) if x > 1:\n        BODY", "match table:\n    case {'a': z}:\n        BODY", "match L:\n    case [n, *other]:\n        BODY\n    case []:\n        BODY", "if (n := I) > 2:\n    BODY", "while (k := k - 1) > 0 and k < 6:\n    BODY",
    "if C: return Z", "if C: raise ValueError(T)", "assert C, T", "def inner(a, b=I, *c, d=X):\n    return a + b + d\nz = inner(S)", "def inner(a):\n    nonlocal x\n    x = x + a\n    return a * 2\nz = inner(I) + inner(X)", "def inner(a):\n    for b in a:\n        yield b * 2\nz = list(inner(A))", "inner = lambda a, b=K: a * b\nz = inner(S) + inner(b=I, a=X)", "def inner(a):\n    return a if a < 2 else inner(a - 2) + 1\nz = inner(min(abs(I), 9))",
    "z = {a: b for a, b in zip(L, A)}", "z = sorted(zip(L, L), key=lambda w: (w[1], -w[0]))", "z = max(L, key=lambda w: -w)", "z = [(j, a) for j, a in enumerate(A) if a > K]", "z = helper(A, I)", "z = helper(*[M, K])", "z = helper(**{'a': S, 'b': X})", "z = total(*L)", "z = total(I, X, scale=S)", "box.add(X)", "box.values[0] = I", "box.level += I", "z = box.mean", "z = box @ I", "z = box[I]",
    "z = Point(I, X)", "z = Point(X, S).norm()", "global COUNT\nCOUNT += I", "CACHE[n] = S", "SHARED[0] += K", "HISTORY.append(I)", "z = remember(I)", "a, b = divmod(I, K)\nz = a * b", "z = 'ab'.join(['1', T])", "z = np.where(A > K)[0].tolist()", "u = np.empty(3)\nu[:] = K", "w = np.zeros((2, 3))\nw[1] = A[:3]", "z = list(zip(*[L, L]))",
    "z = tuple(map(lambda a: a + K, A))", "z = ','.join(f'{a:.1f}' for a in A)", "z = sum(L) if L else None", "z = [row.sum() for row in M]", "z = next((a for a in A if a > K), None)", "z = next(iter(L))", "z = any(a == K for a in L)", "for key in sorted(table, key=str):\n    z = table[key]\n    BODY", "del x\nx = I", "z = [[]] * 2\nz[0].append(I)", "z = [None] * 3\nz[I % 3] = X",
    "z = set(L) | {I}", "z = Counter(L).most_common(1)", "z = (lambda *a, **b: (a, b))(I, k=X)", "z = u.view(np.int64) if u.dtype == np.float64 else u", "z = np.ma.masked_less(A, K).sum()", "z = np.matrix(M) * 2", "u = np.asarray(A)\nu.setflags(write=False)", "z = u.base is None", "z = np.shares_memory(u, v)", "z = id(u) == id(v)", "z = u is v", "z = m is g",
)
#: What is around the function.
AROUND = '''\
import contextlib, statistics
COUNT = 0
CACHE = {}
HISTORY = []
SHARED = np.zeros(3)
Point0 = namedtuple("Point0", "a b")


def helper(a, b=2):
    if b > 2:
        return a * b
    return a + b


def total(*values, scale=1):
    result = 0
    for value in values:
        result += value * scale
    return result


def remember(n):
    if n not in CACHE:
        CACHE[n] = len(CACHE) + 0.5
    return CACHE[n]


class Point(Point0):
    def norm(self):
        return (self.a * self.a + self.b * self.b) ** 0.5


class Boxed:
    def __init__(self, values, level=1):
        self.values, self.level = values, level

    def add(self, v):
        self.values = self.values + v
        self.level += 1
        return self

    @property
    def mean(self):
        return self.values.mean()

    def __matmul__(self, other):
        return self.values * other

    def __getitem__(self, n):
        return self.values[n]
'''
#: Arguments: values of a kind, which are chosen anew for each call.
ARGUMENTS = {
    "u, v": ("np.array([0.5, -1.0, 2.0, 0.25, 3.0])", "np.array([3.0, 1.5, 0.0, 2.0, -2.0])", "np.array([1, 2, 3, 0, -4])", "np.array([1, 200, 3, 0, 7], np.uint8)", "np.array([100, -100, 3, 0, 7], np.int8)", "np.array([1.5, -2.0, 0.5, 3.0, 0.0], np.float32)", "np.array([True, False, True, False, True])",
            "np.array([1, 2, 3, 0, -4], np.int32)", "np.arange(10.0)[::2]", "np.arange(5.0)[::-1]", "np.array([np.nan, 1.0, np.inf, -np.inf, 0.0])", "np.arange(5, dtype=np.uint64)", "np.array([1 + 2j, 0.5j, 3.0, 0.0, -1.0])", "np.array([2.0, 0.5])", "np.zeros(0)", "np.array([1.5, 2.0, 0.5, 3.0, 0.0], np.float16)", "np.arange(5, dtype=np.int16)", "np.array([0.5, 1.5, -2.5, 3.5, 4.5], '>f8')",
            "np.array(['a', 'b', 'c', 'd', 'e'])", "np.array([1, 2.5, 3, 4, 5], object)", "[1.0, 2.0, 3.0, 0.5, 4.0]"),
    "m": ("np.arange(6.0).reshape(2, 3)", "np.arange(6).reshape(2, 3) - 2", "np.arange(6.0).reshape(3, 2).T", "np.ones((2, 3), np.float32)", "np.arange(12.0).reshape(2, 6)[:, ::2]", "np.asfortranarray(np.arange(6.0).reshape(2, 3))", "np.array([[1, 2, 3], [4, 5, 250]], np.uint8)", "np.arange(9.0).reshape(3, 3)", "np.eye(2, 3, dtype=bool)"),
    "n": ("1", "2", "3", "0", "-1", "5", "np.int64(2)", "True", "2**62", "7", "-3", "2.0"),
    "x": ("0.5", "-1.5", "2.0", "0.0", "float('nan')", "3", "np.float64(0.5)", "np.float32(1.5)", "1e10", "float('inf')", "-0.0", "2.5"),
    "p": ("np.float64(1.5)", "np.int64(3)", "np.float32(0.25)", "np.uint8(200)", "np.int8(-100)", "np.float64(-2.0)", "np.bool_(True)", "np.float64('nan')", "1.5", "np.array(2.0)", "np.int32(7)", "np.float16(0.5)", "np.complex128(1j)"),
    "items": ("[1, 2, 3]", "[3, 1, 2, 1]", "[0.5, 2.0, 1.0]", "[1]", "[]", "[1, 2.5, 3]", "[2, 2]", "(1, 2, 3)", "[True, 2, 0]"),
    "table": ("{}", "{'a': 1}", "{'a': 0.5, 'b': 2}", "{1: 2.5, 'a': 2}"),
    "word": ("'ab'", "'abc'", "'b'", "''"),
    "flag": ("False", "True"),
}
