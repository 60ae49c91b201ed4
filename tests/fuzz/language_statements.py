"""Statements of the programs about Python's and NumPy's language that are rare, each about one thing.

Data only; letters and variables are those of `language_vocabulary.py`.
"""

from __future__ import annotations

#: Exceptions: groups, chains, what `finally` and `__exit__` do with them.
EXCEPTIONS = (
    "try:\n    raise ExceptionGroup('g', [ValueError(X), KeyError(I)])\nexcept* ValueError as error:\n    z = error.exceptions[0].args[0]\nexcept* KeyError:\n    k = -1", "try:\n    try:\n        z = u[I]\n    except IndexError as error:\n        raise ValueError(I) from error\nexcept ValueError as error:\n    z = str(error), type(error.__cause__).__name__",
    "try:\n    BODY\n    z = 1 / I\nexcept (ZeroDivisionError, TypeError) as error:\n    z = error.args\nelse:\n    BODY\nfinally:\n    k += 1", "for j in range(3):\n    try:\n        if C: continue\n        BODY\n    finally:\n        x += 1", "for j in range(3):\n    try:\n        if C: break\n        BODY\n    finally:\n        k += j",
    "def inner(a):\n    try:\n        return a / K\n    except ZeroDivisionError:\n        return a\n    finally:\n        items.append(1)\nz = inner(X)", "def inner(a):\n    try:\n        return a\n    finally:\n        a += 1\nz = inner(I)", "def inner(a):\n    for b in a:\n        try:\n            return 10 // b\n        except ZeroDivisionError:\n            continue\n        finally:\n            other.append(b)\nz = inner(L)",
    "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, kind, error, trace):\n        items.append(kind is None)\n        return kind is ValueError\nwith Quiet() as q:\n    if C: raise ValueError(I)\n    BODY", "with Marked(box) as q:\n    BODY", "with Marked(box), Marked(box):\n    x = X / I", "z = None\ntry:\n    z = int(T)\nexcept ValueError as error:\n    z = str(error)",
    "try:\n    assert C, (I, X)\nexcept AssertionError as error:\n    z = error.args", "try:\n    BODY\n    raise KeyError(T)\nexcept LookupError as error:\n    z = repr(error)", "error = ValueError(X)\nerror.add_note(T)\nz = error.__notes__, error.args", "try:\n    z = items[I]\nexcept IndexError:\n    z = K", "try:\n    z = table[I]\nexcept KeyError as error:\n    z = error.args[0]", "try:\n    a, b = L\nexcept ValueError as error:\n    z = str(error)",
    "def inner():\n    raise StopIteration(I)\ntry:\n    inner()\nexcept StopIteration as error:\n    z = error.value", "try:\n    z = unknown\nexcept NameError as error:\n    z = str(error)", "try:\n    z = A + A[1:]\nexcept ValueError as error:\n    z = str(error)", "try:\n    u[0] = T\nexcept ValueError as error:\n    z = str(error)", "z = I if not L else L[0]\nif z == 'q': raise RuntimeError(z)",
    "try:\n    del y\n    z = y\nexcept UnboundLocalError as error:\n    z = str(error)\ny = X", "for j in range(4):\n    try:\n        z = 6 // (j - n)\n    except ZeroDivisionError:\n        z = -1\n        break", "try:\n    u.shape = (1, 2, 3)\nexcept Exception as error:\n    z = type(error).__name__",
)
#: Functions, closures, arguments, classes.
FUNCTIONS = (
    "inners = [lambda a: a + j for j in range(3)]\nz = [one(X) for one in inners]", "inners = []\nfor j in range(3):\n    inners.append(lambda a, j=j: a * j)\nz = [one(I) for one in inners]", "def inner():\n    nonlocal k\n    def deep():\n        nonlocal k, x\n        k += 1\n        x = x + k\n    deep()\n    deep()\ninner()", "def inner(a, /, b, *, c=K):\n    return a, b, c\nz = inner(I, b=X)", "def inner(*a, **b):\n    return len(a), sorted(b), sum(a)\nz = inner(*L, k=X, j=I)",
    "def inner(a, b=[]):\n    b.append(a)\n    return len(b)\nz = inner(I), inner(X)", "inner = functools.partial(helper, b=I)\nz = inner(A)", "inner = functools.partial(total, K, scale=X)\nz = inner(I)", "z = kept(X)", "z = kept(I), kept(S)", "helper.calls = getattr(helper, 'calls', 0) + 1\nz = helper.calls", "z = (lambda: n + x)()", "z = (lambda a: (lambda b: a + b))(I)(X)", "def inner(n):\n    return 1 if n <= 1 else n * inner(n - 1)\nz = inner(min(abs(I), 6))", "def inner(a):\n    a[0] = K\n    return a\nz = inner(u) is u",
    "def inner(a):\n    a = a + 1\n    return a\nz = inner(A)", "def inner(a):\n    a += 1\n    return a\nz = inner(u)", "compose = lambda *fs: lambda a: functools.reduce(lambda b, f: f(b), fs, a)\nz = compose(abs, lambda a: a + K)(X)", "def deco(f):\n    @functools.wraps(f)\n    def g(*a):\n        items.append(len(a))\n        return f(*a)\n    return g\n@deco\ndef inner(a, b): return a * b\nz = inner(X, I), inner.__name__",
    "class Own:\n    scale = X\n    def __init__(self, a): self.a = a\n    def get(self): return self.a * self.scale\nz = Own(I).get()", "class Own(Boxed):\n    def add(self, v):\n        super().add(v)\n        self.level *= 2\n        return self\nz = Own(A).add(I).level", "z = Derived(u).add(X).level", "z = Derived(u).describe()", "Derived.made += I\nz = Derived.made", "z = Derived.of(L).values", "z = Derived.twice(X)", "box.level = S\nz = box.level", "box.name = T\nz = vars(box).keys()", "z = getattr(box, 'missing', I)", "setattr(box, 'level', I)", "z = Wrapped(A) + I", "z = (I + Wrapped(A)).a",
    "q1 = Wrapped(A)\nq1 += X\nz = q1.a", "z = [len(Wrapped(A)), bool(Wrapped(A[:1])), Wrapped(A)[0], list(Wrapped(A[:2]))]", "z = Wrapped(A) == Wrapped(A)", "z = Wrapped(L) < Wrapped(L)", "z = K in Wrapped(L)", "z = sorted([Wrapped([I]), Wrapped([K])])[0].a", "z = max(Wrapped([I]), Wrapped([K]), key=lambda w: w.a[0]).a", "z = -Wrapped(A)", "z = Wrapped(A)(I)", "z = np.add(Wrapped(A), 1)", "z = np.asarray(Wrapped(A)) * 2", "z = str(Wrapped([I]))", "z = f'{Wrapped([X])}'", "z = abs(Wrapped(A))", "z = {Wrapped([I]): X}[Wrapped([I])]",
    "r = Row(I, X)\nr.a += 1\nz = r", "z = replace(Row(I, X), b=K)", "z = Row(I, [X]) == Row(I, [X])", "z = Row(a=X, b=I).total", "z = sorted([Row(I, 1), Row(K, 2)])", "z = astuple(Row(I, A))", "z = Fixed(I, X)\nz = z.a + z.b", "try:\n    Fixed(I, X).a = 3\nexcept Exception as error:\n    z = type(error).__name__", "z = Colour.RED.value + I", "z = Colour(1 + I % 2)", "z = Level.HIGH + I", "z = Level.LOW < I", "z = [c.name for c in Colour]", "z = Pair(I, X)._replace(a=K)", "z = Pair(*L[:2])", "a, b = Pair(X, I)\nz = a - b", "z = Pair(1, 2) + (I,)", "z = Lazy(A).mean", "q1 = Lazy(A)\nz = q1.mean, q1.mean, q1.count",
    "meter.value = I\nz = meter.value", "meter.value += X\nz = meter.log", "meter.limit = S", "z = meter.unknown_name", "z = Slotted(I, X).a", "q1 = Slotted(I, X)\nq1.a *= 2\nz = q1.a", "z = copy.copy(box).values is box.values", "z = copy.deepcopy(items)", "z = isinstance(box, Boxed), issubclass(Derived, Boxed)", "z = type(box)(A).mean", "z = box.add(I).add(X).level", "z = id(box.values) == id(u)", "box.values = A\nbox.values += 1", "box.values[A > K] = 0", "box.items = [1]\nbox.items.append(I)\nz = box.items", "registry['f'] = helper\nz = registry['f'](X, I)", "z = {'+': lambda a, b: a + b, '*': lambda a, b: a * b}['*' if C else '+'](X, I)",
)
#: Iterators, generators, comprehensions.
ITERATION = (
    "def inner(a):\n    for b in a:\n        yield b\n        items.append(1)\nz = sum(inner(L))", "def inner():\n    b = yield 1\n    yield b * 2\nq1 = inner()\nnext(q1)\nz = q1.send(X)", "def inner(a):\n    yield from a\n    return len(a)\nz = list(inner(L))", "def inner():\n    j = 0\n    while True:\n        yield j\n        j += K + 1 if K > 0 else 1\nz = list(itertools.islice(inner(), 4))", "q1 = (w * x for w in L)\nx = 3.5\nz = list(q1)", "q1 = iter(L)\nz = [next(q1, None), next(q1, None), list(q1)]", "q1 = iter(L)\nfor j in q1:\n    if j > K: break\nz = list(q1)", "z = list(zip(L, q1 := iter(A)))",
    "z = [(k, list(g)) for k, g in itertools.groupby(sorted(L), key=lambda w: w > 1)]", "z = list(itertools.zip_longest(L, [1], fillvalue=X))", "z = [sum(p) for p in itertools.product(L[:2], [I, X])]", "z = list(itertools.permutations(L[:3], 2))", "z = list(map(lambda a, b: a + b, L, A))", "z = list(enumerate(A, I))", "z = dict(enumerate(L))", "z = list(iter(lambda q=[3]: q.append(0) or len(q), 4))", "q1, q2 = itertools.tee(L)\nz = list(q1), sum(q2)", "z = [a for a in A if not np.isnan(a)]", "z = [[a * b for a in L] for b in A[:2]]", "z = {round(float(a)): j for j, a in enumerate(A) if a == a and abs(a) < 99}", "z = {a > K for a in L}",
    "z = [y for w in L if (y := w * 2) > 2]", "z = any((last := w) > K for w in L)", "z = [*range(I), *L]", "z = sum(a * b for a, b in zip(A, A[::-1]))", "z = max((abs(a), j) for j, a in enumerate(L)) if L else None", "for j, (a, b) in enumerate(zip(L, L[1:])):\n    BODY", "for (a, b), w in zip([(1, 2), (I, X)], A):\n    x = a + b", "for a in L:\n    for b in L:\n        if a == b: continue\n        x += 1\n        break\n    else:\n        x -= 1", "for j in range(5):\n    if j == 1: items.append(j)\nelse:\n    k = j", "for j in range(I, I + 6, 2):\n    u[j % 3] += j", "for j in range(len(u) - 1, 0, -1):\n    u[j] += u[j - 1]",
    "for row in m:\n    row[0] += 1", "for row in m:\n    row += I", "for row in m.T:\n    row *= K", "for a in u:\n    a += 1", "for j, row in enumerate(m):\n    row[:] = row[::-1]", "for a in m.flat:\n    x += a", "for j, a in np.ndenumerate(m):\n    x += a * j[0]", "for j in np.ndindex(2, 2):\n    m[j] += 1", "while len(items) > 2:\n    items.pop()", "while True:\n    k += 1\n    if k > 5 or C: break\n    BODY", "k = 5\nwhile k:\n    k -= 1\n    x += k if C else 1", "i = 0\nwhile i < len(u) and u[i] > K:\n    u[i] -= 1\n    i += 1", "for a in list(items):\n    if a > 1: items.remove(a)", "for a in items:\n    items[0] = a", "for key in table:\n    table[key] = I", "for j in range(3):\n    u = u + j\n    v = u",
    "for j in range(3):\n    u, v = v, u + 1", "for j in range(3):\n    w = u\n    u = u * 2\n    w[0] = j", "for j in range(3):\n    other = other + [j]", "for j in range(3):\n    t = t + str(j)", "for j in range(4):\n    x = float(j) if j % 2 else j", "for j in range(3):\n    q = u[j % 2]\n    u[0] = q + 1", "for j in range(4):\n    n = n * 3 % 1000003", "for j in range(3):\n    p = p + u[j]", "for j in range(3):\n    k = j\n    def inner(): return k\n    z = inner()", "for x in (1, 2.5, True):\n    y = x", "for j in reversed(L):\n    x -= j", "for j in sorted(set(L)):\n    x += j", "for a, *b in [(1, 2, 3), (I, X)]:\n    x += len(b)",
)
#: Numbers: types, limits, rounding.
NUMBERS = (
    "z = I // K if K else 0, I % 3, -I // 3, -I % 3, I // -3", "z = X // 0.3, X % 0.3, -X // 0.3, -X % 0.3, divmod(-X, 0.3)", "z = round(2.5), round(3.5), round(-2.5), round(X), round(X * 10, -1)", "z = round(I, -1), round(15, -1), round(25, -1)", "z = int(-2.7), int(X), math.floor(-X), math.ceil(-X), math.trunc(-X)", "z = I ** 20, (-I) ** 3, 2 ** -1, 0 ** 0, 0.0 ** 0", "z = (I << 40) >> 38, -I >> 1, ~I & 7, I ^ -1", "z = 2 ** 63 - 1 + I, -2 ** 63 - I, (2 ** 62 + I) * 2", "z = 2 ** 53 + 1 == float(2 ** 53), 2 ** 53 + I > X, 10 ** 20 + I", "z = (2 ** 70 + I) % 1000, (2 ** 70 + I) // 7, float(2 ** 70 + I)", "z = I * 1.0 == I, 1 == True, hash(X) == hash(int(X))",
    "z = np.int8(100) + np.int8(I % 100)", "z = np.uint8(5) - np.uint8(I % 9)", "z = np.int32(2 ** 31 - 1) + np.int32(I % 5)", "z = np.uint8(200) + 100 if C else np.uint8(1)", "z = np.uint8(200) + 300", "z = np.int64(I % 7) ** -1", "z = np.int64(I % 7) / 0", "z = np.int64(I % 7) // 0, np.int64(I % 7) % 0", "z = np.float64(X) / 0, np.float64(X) // 0, np.float64(X) % 0", "z = -np.uint8(3), ~np.uint8(3), abs(np.int8(-128)), -np.int8(-128)", "z = np.bool_(C) + np.bool_(True), np.bool_(C) * 2, np.bool_(C) & C", "z = np.bool_(C) - np.bool_(True)", "z = -np.bool_(C)", "z = ~np.bool_(C), ~C", "z = np.float32(X) + 1.0, np.float32(X) + np.float64(1), np.float32(X) * I", "z = np.float16(60000) * 2, np.float16(X % 9) + 1",
    "z = np.float32(X) == X, np.float32(0.1) == 0.1, np.float32(0.1) < 0.1", "z = np.uint64(2 ** 63) > np.int64(-1), np.uint64(5) + np.int64(I % 9)", "z = np.int64(2 ** 53 + 1) == np.float64(2 ** 53)", "z = S.dtype, (S + 1).dtype, (S * 1.0).dtype, (S + True).dtype", "z = type(S + 1), type(1 + S), type(X + S), type(S == 1), type(S if C else 1)", "z = int(S), float(S), bool(S), complex(S)", "z = S.item(), type(S.item())", "z = round(S), round(S, 1), type(round(S, 2))", "z = math.floor(S), math.sqrt(abs(S)), math.isfinite(S)", "z = S.real, S.imag, S.conjugate()", "z = [1, 2, 3][np.int64(I) % 3]", "z = [0] * np.int64(2)", "z = range(np.int64(3))[I % 3]", "z = 'ab'[np.int64(1)]",
    "z = np.abs(-X), np.sign(-X), np.floor(-X), np.rint(2.5), np.trunc(-X)", "z = np.maximum(X, float('nan')), max(X, float('nan')), max(float('nan'), X)", "z = min(X, I, K), max(I, X), min(0.0, -0.0), max(True, 1)", "z = sum([0.1] * 10), math.fsum([0.1] * 10), sum([I, X, True])", "z = X == X, X != X, X < float('nan'), [X] == [X], X in [X]", "z = float('nan') in [float('nan')], [x] == [x], x is x", "z = complex(X, I) * (1 - 2j), abs(complex(I, X)), complex(X) == X", "z = (X + 1j) ** 2, (I + 0j).real, (1j * I).imag", "z = (-8) ** (1 / 3), (-1) ** 0.5 if C else 0", "z = np.sqrt(-1.0), np.log(0.0), np.log(-1.0)", "z = np.array([-1.0, 4.0]) ** 0.5, np.sqrt(np.array([-1]))", "z = np.array([2, 3]) ** np.array([2, 0]), np.array([2.0]) ** -1",
    "z = np.array([2, 3]) ** -1", "z = np.array([1, 2]) / np.array([0, 1]), np.array([1, 2]) // np.array([0, 1]), np.array([1, -7]) % np.array([0, 3])", "z = np.array([-7, 7]) // 2, np.array([-7, 7]) % 2, np.array([-7.5, 7.5]) // 2, np.fmod([-7, 7], 3)", "z = np.array([250, 3], np.uint8) + 10, np.array([100], np.int8) * 2", "z = np.array([250], np.uint8) + np.array([10], np.int8)", "z = np.array([1, 2], np.uint8) - 3", "z = np.array([1], np.uint8) + 300", "z = np.array([1, 2], np.int8) + 1.5, np.array([1], np.float32) + 1.5, np.array([1], np.float32) + np.float64(1.5)", "z = np.array([1.7, -1.7, 300.0]).astype(np.int8), np.array([1.7, -1.7]).astype(int)", "z = np.array([np.nan, np.inf]).astype(np.float32)",
    "z = np.array([300, -1]).astype(np.uint8), np.array([2 ** 40]).astype(np.int32)", "z = np.array([0.5, 1.5, 2.5]).round(), np.round([0.125, 0.375], 2), np.array([15, 25]).round(-1)", "z = np.array([True, False]).sum(), np.array([1, 2], np.int8).sum().dtype, np.array([1], np.uint8).mean().dtype", "z = np.array([1, 2], np.float16).mean(), np.array([60000, 60000], np.float16).sum(), np.ones(3, np.float32).mean().dtype", "z = np.array([1, 2], np.int8).cumsum().dtype, np.array([1, 2], np.int8).prod().dtype, np.cumsum([True, True])", "z = I.bit_length(), (255).to_bytes(2, 'big'), int.from_bytes(b'\\x01\\x02', 'little')", "z = X.hex() if C else X.is_integer()", "z = X.as_integer_ratio() if X == X and abs(X) < 1e300 else 0", "z = float('1e400'), float('-0'), int('0x1f', 16), int('-12')", "z = 7 // 2 * 2 + 7 % 2 == 7, -7 // 2, 7 // -2, -7 % 3, 7 % -3", "z = 1 < I < 5 < 10, I == 1 == True, not I, I and X, I or X, 0 or '' or T",
    "z = True + True, True * X, -True, ~True, True == 1.0, True << 2", "z = 0.1 + 0.2, 1e16 + 1, 1e308 * 10, 5e-324 / 2, 1 / 3", "z = X * 1e308 * 10, -X * 1e308 * 10 - 1e308", "n = 1\nfor j in range(70): n *= 2\nz = n", "n = 1\nfor j in range(1, 25): n *= j\nz = n", "k = 0\nfor j in range(100): k = k * 31 + j & 0xFFFFFFFF\nz = k", "n = 2 ** 62\nfor j in range(3): n += n\nz = n", "n = np.int32(2 ** 30)\nfor j in range(3): n += np.int32(2 ** 30)\nz = n", "n = np.uint8(0)\nfor j in range(300): n += np.uint8(1)\nz = n", "x = 1.0\nfor j in range(5): x /= 3\nz = x", "x = np.float32(1)\nfor j in range(5): x /= 3\nz = x", "x = 0\nfor j in range(5): x += 0.1\nz = x",
)
#: Arrays: indices, views, aliases, layouts, methods that change them.
ARRAYS = (
    "z = m[..., 0], m[None].shape, m[:, None, 1].shape, m[()] is m", "z = u[True].shape, u[False].shape, u[None, ..., None].shape", "z = u[[]], u[np.array([], int)], m[[], :].shape, u[:0]", "z = u[10:], u[-10:2], u[5:1], u[::-2], u[3:0:-1], u[:-10:-1]", "z = m[[0, 1], :, None].shape, m[:, [0, 1]][0], m[[1]][:, [0]]", "z = m[[[0], [1]], [0, 1]]", "z = m[np.array([True, False]), 1:]", "z = m[m > K], m[:, m[0] > K]", "z = np.arange(24).reshape(2, 3, 4)[:, [0, 1], 1], np.arange(24).reshape(2, 3, 4)[[0, 1], :, [1, 2]]", "z = np.arange(24).reshape(2, 3, 4)[0, :, [1, 2]].shape, np.arange(24).reshape(2, 3, 4)[..., [1, 2], 0].shape", "z = u[np.int64(1)], u[np.array(1)], u[(1,)], u[-1:][0]",
    "z = u[1.0]", "z = u['a']", "z = m[5, 0]", "z = m[0, 1, 2]", "z = u[[7]]", "z = u[[True, False]]", "u[[0, 0, 1]] += 1", "u[u > 100] = 5", "u[...] = K", "u[None] = 1", "u[[0, 2]] = u[[2, 0]]", "m[[0, 1]] = m[[1, 0]]", "m[:, [0, 1]] = m[:, [1, 0]]", "m[0], m[1] = m[1].copy(), m[0].copy()", "u[:2], u[2:4] = u[2:4].copy(), u[:2].copy()", "u[:2], u[2:4] = u[2:4], u[:2]", "u[1:] = u[:-1]", "u[:-1] = u[1:]", "u[1:] += u[:-1]", "u[::-1] += u", "u *= u[::-1]", "u += u[0]", "u -= u.mean()", "u /= u.max()", "m -= m.mean(axis=0)", "m /= m.sum()", "m += m.T[:2, :2].sum()", "u[u.argmax()] = K", "u[np.argsort(u)[:2]] = 0", "m[m.argmax(0), [0, 1, 2]] = 9", "m.flat[1] = K", "m.flat[::2] = I", "z = m.flat[3], list(m.flat)[:2], m.flat[1:3]",
    "m.ravel()[0] = K", "m.reshape(-1)[0] = K", "m.T.reshape(-1)[0] = K", "m.flatten()[0] = K", "m.T[0][1] = K", "m[:, 0][1] = K", "m[1:, 1:][0, 0] = K", "m[[0]][0, 0] = K", "u[::2][1] = K", "u[1:][1:][0] = K", "np.diagonal(m).sum()", "np.fill_diagonal(m, K)", "u.real[0] = 2", "w = u[1:3]\nw += 1\nw = w + 1\nw[0] = 9", "w = u.view()\nw[0] = K", "w = np.asarray(u)\nw[0] = K", "w = np.array(u)\nw[0] = K", "w = np.asarray(u, float)\nw[0] = K", "w = u.astype(float)\nw[0] = K", "w = u.astype(u.dtype, copy=False)\nw[0] = K", "w = u.reshape(-1)\nw[0] = K", "w = np.ravel(u)\nw[0] = K", "w = u.squeeze()\nw[0] = K", "w = u.T\nw[0] = K", "w = np.atleast_2d(u)\nw[0, 0] = K", "w = u[None, :]\nw[0, 0] = K", "w = np.broadcast_to(u, (2, u.size))\nz = w.flags.writeable, w[1, 0]", "w = np.broadcast_to(u, (2, u.size))\nw[0, 0] = 1",
    "w = np.concatenate([u])\nw[0] = K", "w = np.where(True, u, u)\nw[0] = K", "w = u[u == u]\nw[0] = K", "w = np.squeeze(m[:1])\nw[0] = K", "w = np.split(u, [2])[0]\nw[0] = K", "w = m.swapaxes(0, 1)\nw[0, 1] = K", "w = np.expand_dims(u, 1)\nw[0] = K", "w = np.flip(u)\nw[0] = K", "w = np.roll(u, 1)\nw[0] = K", "w = np.real(u)\nw[0] = K", "w = np.rollaxis(m, 1)\nw[0, 0] = K", "w = np.moveaxis(m, 0, 1)\nw[0, 0] = K", "w = +u\nw[0] = K", "w = abs(u)\nw[0] = K", "w = u.clip(-9, 9)\nw[0] = K", "w = np.ascontiguousarray(u)\nw[0] = K\nz = w is u", "w = np.require(u, float)\nz = w is u", "w = u.copy()\nw[0] = K\nz = w.flags.owndata", "w = np.nan_to_num(u, copy=False)\nz = np.shares_memory(w, u)",
    "w = u if C else v\nw[0] = K", "w = u[:] if C else v[::-1]\nw[0] = K", "w = [u, v][I % 2]\nw[0] = K", "w = {'a': u}.get('a', v)\nw[0] = K", "pair = u, v\npair[0][0] = K", "other = [u, v]\nother[1][0] = K\nother[0] += 1\nother = [1]", "box.values = u\nu[0] = K\nz = box.values[0]", "box.values = u[1:]\nbox.values[0] = K", "SHARED[:2] = u[:2]", "SHARED[:] = SHARED[::-1]", "SHARED[0] = u[0]\nu[1] = SHARED[0]", "np.add(u, 1, out=u)", "np.add(u[1:], u[:-1], out=u[1:])", "np.multiply(u, K, u)", "np.subtract(u, v, out=v)", "np.add(u, v, out=u, where=u > 0)", "np.sqrt(np.abs(u), out=u)", "np.cumsum(u, out=u)", "np.clip(u, 0, 2, out=u)", "np.maximum(u, 0, out=u)", "np.dot(m, m.T, out=np.zeros((2, 2)))", "u.sum(out=np.zeros(()))", "np.copyto(u, K, where=u > 1)", "np.putmask(u, u > 1, [K, 2])", "np.place(u, u > 1, [K])", "u.put([0, -1], [K, 2])", "np.put_along_axis(m, np.array([[0], [1]]), K, 1)",
    "z = np.take_along_axis(m, np.argsort(m, 1), 1)", "u.partition(1)", "u[::-1].sort()", "m.sort(axis=0)", "m[0].sort()", "np.random.default_rng(1).shuffle(u)", "z = u.argpartition(1)[:2].size", "z = u.searchsorted([K, X])", "z = u.repeat([1, 2, 0, 1, 1]) if u.size == 5 else 0", "u.resize(3, refcheck=False)", "u.shape = (-1, 1)\nz = u.shape", "m.shape = 6", "u.dtype = np.int64", "u = u.byteswap()", "z = u.tobytes()[:4]", "z = u.tolist(), u.item(0), u.nbytes, u.data.contiguous", "z = bytes(np.array([1, 2], np.uint8)), memoryview(np.arange(3))[1]", "z = np.frombuffer(b'\\0\\1\\2', np.uint8) + K", "z = np.array(list(T)), np.char.upper(np.array(['a', 'b']))", "z = np.array([T, 'x']) == 'x'", "z = np.array([1, 'a'], object)[0] + I", "z = np.array([None, X], object) == None", "z = np.array([[1, 2], [3]], dtype=object)[0]", "z = np.datetime64('2020-01-31') + np.timedelta64(I % 9, 'D'), np.arange('2020-01', '2020-03', dtype='datetime64[M]')",
    "r = np.zeros(2, [('a', int), ('b', float)])\nr['a'] = I % 100\nr[0]['b'] = X\nz = r", "r = np.rec.array([(1, 2.0)], dtype=[('a', int), ('b', float)])\nz = r.a + K", "z = np.ma.array([1.0, 2.0], mask=[True, False]) + X", "z = np.ma.masked_invalid(u / 1).mean()", "z = np.matrix([[1, 2], [3, 4]]) * np.matrix([[I % 9], [1]])", "z = np.matrix(m)[0]", "z = Marked2(u) + 1", "z = type(Marked2(u)[1:]).__name__, type(np.sin(Marked2(np.arange(2.0)))).__name__", "z = np.poly1d([1, 2, K])(X)", "z = np.polyval([1, K], X), np.polyfit([0, 1, 2], [1, 3, 5], 1).round(6)", "z = np.vectorize(lambda a: a + K)(L)", "z = np.vectorize(helper)(A, 3)", "z = np.apply_along_axis(lambda r: r.sum(), 1, m)", "z = np.frompyfunc(lambda a, b: a + b, 2, 1)(A, 1)", "z = np.piecewise(A, [A < 0, A >= 0], [lambda a: -a, lambda a: a + 1])", "z = np.fromiter((a * 2 for a in A), float)", "z = np.nditer(u).size if hasattr(np.nditer(u), 'size') else u.size",
    "z = np.array_split(u, 2), np.split(u, [1, 3])", "z = np.block([[m, m], [m, m]]).shape", "z = np.lexsort((A, A))", "z = np.unique(A, return_inverse=True, return_counts=True)", "z = np.histogram(A, bins=[0, 1, 2]), np.bincount([1, 2, 2], weights=[0.5, 1, 2])", "z = np.nonzero(m), np.argwhere(A > K)", "z = np.triu_indices(2), np.indices((2, 2))[0]", "z = np.gradient(A, 0.5), np.diff(A, n=2), np.ediff1d(A)", "z = np.percentile(A, [25, 50]), np.median(m, axis=0), np.ptp(m, 1)", "z = np.std(A, ddof=1), np.var(m, axis=0), np.average(m, 0), np.cov(m), np.corrcoef(m)", "z = np.linalg.solve(m[:, :2] + np.eye(2) * 9, [1, X]), np.linalg.inv(np.eye(2) * 2)", "z = np.einsum('ij,ij->', m, m), np.tensordot(m, m, 2), np.vdot(A, A), np.trace(m)", "z = np.fft.fft(A).real.round(6), np.fft.rfft(A).shape", "z = np.convolve(A, [1, K], 'same'), np.correlate(A, [1, 2])", "z = np.isin(A, L), np.intersect1d(A, L), np.union1d(L, [K]), np.setxor1d(A, A)",
    "z = np.pad(A, 2, mode='edge'), np.pad(A, (1, 0), constant_values=K)", "z = np.trapezoid(A, dx=0.5), np.interp(X, [0, 1], [2, 3]), np.cross([1, 2, 3], [I % 9, 0, 1])", "z = np.packbits([1, 0, 1]), np.unpackbits(np.array([5], np.uint8))", "z = np.logspace(0, 2, 3), np.geomspace(1, 8, 4), np.linspace(0, 1, 3, endpoint=False), np.linspace(0, 5, 3, dtype=int)", "z = np.arange(0, 1, 0.3), np.arange(5, 0, -2), np.arange(3, dtype=np.float32), np.arange(I % 5, X + 5 if X == X and abs(X) < 99 else 5)", "z = np.full((2, 2), A[:2]), np.full(2, K, int), np.empty(0), np.identity(2), np.tri(2)", "z = np.array([A, A]), np.array([[I, X]]), np.array(X), np.array([]), np.array([[]]), np.array([L, L])", "z = np.array(range(3)), np.array((1, X)), np.array([True, I]), np.array([S, None])", "z = np.array({1, 2}), np.array({'a': 1})", "z = np.size(L), np.shape(A), np.ndim(X), np.shape(L), len(m)", "z = np.all(A), np.any(m, axis=0), np.count_nonzero(m > K, axis=1)", "z = np.nanmean(A), np.nanmax(m, axis=1), np.nanstd(A), np.nancumsum(A)",
    "z = A.max(initial=K), A.sum(where=A > 0), A.min(axis=0, keepdims=True), m.sum(axis=(0, 1))", "z = np.sum(m, axis=-1, dtype=np.float32), np.prod(A, dtype=float), np.mean(A, dtype=np.float32)", "z = m.argmax(), m.argmin(axis=1), A.argsort()[::-1], np.argsort(-m, axis=0)", "z = np.sort(A)[::-1], np.sort(m, axis=None), sorted(A), sorted(A, reverse=True)", "z = (m @ m.T).diagonal(), m.dot(A[:3]), np.matmul(A[:2], m), np.outer(A, L)", "z = u.flags.c_contiguous, m.T.flags.f_contiguous, u[::2].flags.contiguous, m.strides", "z = np.copy(m, order='K').flags.f_contiguous, (m + 1).flags.f_contiguous, (m.T + 1).flags.f_contiguous, m.T.copy().flags.c_contiguous",
)
#: Containers and texts.
CONTAINERS = (
    "table[1] = 'a'\ntable[True] = X\ntable[1.0] = I\nz = table", "z = {1: 'a', 1.0: 'b', True: X}", "z = {I: 1, X: 2, S: 3}", "z = {1, 1.0, True, I}", "z = set(L) & {1, 2}, set(L) - {1}, {1} ^ set(L), set(L) | {X}", "z = sorted(set(L) | {I}), frozenset(L) == set(L), {1} < {1, 2}", "z = Counter(L) + Counter([I]), Counter(T).most_common(2)", "q1 = defaultdict(list)\nfor a in L: q1[a % 2].append(a)\nz = q1", "q1 = OrderedDict(a=1, b=I)\nq1.move_to_end('a')\nz = q1", "q1 = deque(L, maxlen=2)\nq1.append(I)\nq1.rotate(1)\nz = q1", "q1 = deque([1, 2])\nq1.appendleft(X)\nz = q1.pop(), list(q1)", "z = dict(table, c=I), {**table, 'a': X}, table | {'a': 1}", "table |= {'z': I}", "z = list(table.items())[:1], 'a' in table, table.keys() & {'a', 'b'}",
    "z = table.pop('zz', I), table.setdefault('a', X)", "del table['a']", "table.clear()\ntable['q'] = I", "z = [table.get(k, 0) for k in ('a', 'b', 1)]", "for key, a in table.items():\n    table[key] = [a]", "z = {v: k for k, v in table.items()}", "z = min(table, key=lambda k: str(k), default=None)", "z = sorted(table.items(), key=lambda kv: str(kv))", "for key in list(table):\n    del table[key]", "try:\n    for key in table:\n        table['new' + str(key)] = 1\nexcept RuntimeError as error:\n    z = str(error)", "items[:] = sorted(items, key=lambda a: (a % 2, -a))", "items[::2] = [0] * len(items[::2])", "items[len(items):] = [I]", "items[0:0] = [X, I]", "del items[::2]", "del items[1:]", "items += (I, X)", "if len(items) < 9: items *= 2", "items = items * 0", "z = items.pop(0), items[-1:]", "z = [1, 2] < [1, X], [1] == [1.0], [I, 2] == [I, 2.0], (1, X) >= (1, 2)", "z = items is other, items == other, items + other == items",
    "other = items\nother.append(I)\nz = items", "other = items[:]\nother.append(I)\nz = items", "rows = [[0] * 2] * 2\nrows[0][0] = X\nz = rows", "rows = [[0] * 2 for _ in range(2)]\nrows[0][0] = X\nz = rows", "rows = [list(r) for r in m]\nrows[1][1] = I\nz = rows", "rows = m.tolist()\nrows[0][0] = X\nz = rows", "z = list(map(list, zip(*m.tolist())))", "z = [sum(r) for r in zip(*m.tolist())]", "a, *b = L\nz = a, b", "a, (b, *c0) = I, [X, 1, 2]\nz = b, c0", "[a, b] = I, X\nz = a - b", "a = b = [I]\na.append(X)\nz = b", "items.sort(key=lambda a: -a)", "items.sort(key=abs, reverse=True)", "z = sorted(L, key=lambda a: (a > 1, a))", "z = sorted(T), sorted([T, 'b', 'A'], key=str.lower)", "z = max(L + [I], key=lambda a: a % 3), min([T, 'zz'], key=len)", "z = list(reversed(L)), L[::-1] == list(reversed(L))", "z = bisect.bisect(sorted(L), I), heapq.nsmallest(2, L + [I]), heapq.merge([1], [X]) is None", "q1 = [3, 1, 2]\nheapq.heapify(q1)\nheapq.heappush(q1, I)\nz = heapq.heappop(q1), q1",
    "z = T.encode(), b'ab'[0], bytes([1, 2]) + b'c', bytearray(b'ab')", "z = T.find('b'), T.center(6, '*'), T.title(), T.isalpha(), T.partition('a')", "z = f'{X:10.3f}|{I:<5}|{T!r}|{X:+.1e}|{I:#x}|{C!s:>6}'", "z = '{0} {1:.2f} {k}'.format(I, X, k=T), '%5.1f|%-4d|%s' % (X, I, T)", "z = f'{A}', f'{S}', f'{S:.3f}', str(S), repr(S), f'{m.shape}'", "z = f'{A[0]:.2f}', '%.2f' % A[0], '{:.1f}'.format(A[-1]), str(A[0])", "z = repr(A.tolist()), str([S, X]), repr({'a': S}), str((S,))", "z = ' '.join(f'{a:.1f}' for a in A), ','.join(str(int(a)) for a in L)", "z = str(X), repr(X), str(float(I)), str(X * 1e20), str(1e-7 * X)", "z = T.join(['1', str(I)]), T + str(X), T * (I % 3)", "z = re.sub('[ab]', lambda m0: m0[0].upper(), T), re.findall('.', T)", "z = str(None), str(True), str(b'a'), repr('a\\n'), ascii('é')", "z = T == 'ab', T < 'b', T in ('ab', 'c'), 'a' in T, T[0:1], T[-1:], T[::-1]", "z = ord('a') + I % 5, chr(ord('a') + I % 5), T.count('a')",
    "print(A)", "print(S, X, I)", "print(f'{S:.3f}', end='')", "print(m, A[0], sep='\\n')", "print('x', *L)", "print([S, X], {'a': S}, (I,))", "for j in range(2):\n    print(j, u[j])", "for a in A:\n    print(f'{a:.2f}', end=' ')", "print(A.sum(), A.mean(), A.max())", "print(A > K, A.dtype, A.shape)", "print('%d %s' % (I, S))", "print(repr(S), str(S), C)", "print(np.round(A, 2))", "print(type(S), type(I), type(A[0]))", "print(None, [None, X], T)",
    "with np.errstate(divide='ignore', invalid='ignore'):\n    z = A / 0", "with np.errstate(all='raise'):\n    z = A / 2", "old = np.geterr()['divide']\nz = old", "with np.printoptions(precision=2):\n    z = str(A)", "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    z = A / 0", "warnings.warn(T)", "z = locals().keys() & {'u', 'x'}", "z = sorted(vars(box))", "z = eval('n + 1')", "exec('z = 1')", "z = dir(box)[-1]", "z = __name__ == 'user_programs_state'", "z = f.__name__", "import math as inner_math\nz = inner_math.pi * X", "from itertools import chain as inner_chain\nz = list(inner_chain(L, [1]))", "z = globals()['COUNT']", "z = (n, x) if C else [n]", "z = n if C else x if flag else None", "z = ... is Ellipsis, NotImplemented is None", "pass", "z = np.random.rand(2)", "z = np.random.randint(5)", "z = random.random()", "np.random.seed(3)\nz = np.random.rand()", "z = np.random.default_rng(I % 9).normal(size=2)",
)
RARE = EXCEPTIONS + FUNCTIONS + ITERATION + NUMBERS + ARRAYS + CONTAINERS
#: Definitions that these statements need.
DEFINITIONS = '''\
import abc, bisect, enum, heapq, warnings
from dataclasses import astuple, replace
from typing import NamedTuple

registry = {}


def kept(v, seen=[]):
    seen.append(v)
    return len(seen)


class Derived(Boxed):
    made = 0

    def __init__(self, values, level=3):
        super().__init__(values, level)
        Derived.made += 1
        type(self).last = level

    @classmethod
    def of(cls, values):
        return cls(np.array(values))

    @staticmethod
    def twice(v):
        return v * 2

    def add(self, v):
        self.level -= 1
        return super().add(v)

    def describe(self):
        return f"{type(self).__name__} {self.level}"


class Wrapped:
    def __init__(self, a):
        self.a = a

    def __add__(self, other):
        return Wrapped(self.a + other)

    __radd__ = __add__

    def __iadd__(self, other):
        self.a = self.a + other
        return self

    def __neg__(self):
        return Wrapped(-self.a)

    def __abs__(self):
        return sum(abs(self.a))

    def __len__(self):
        return len(self.a)

    def __getitem__(self, n):
        return self.a[n]

    def __eq__(self, other):
        return list(self.a) == list(other.a)

    def __lt__(self, other):
        return self.a[0] < other.a[0]

    def __hash__(self):
        return hash(tuple(self.a))

    def __call__(self, v):
        return self.a[0] * v

    def __contains__(self, v):
        return any(v == one for one in self.a)

    def __str__(self):
        return f"<{', '.join(map(str, self.a))}>"

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype)


class Marked:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.box.level += 10
        return self.box.level

    def __exit__(self, kind, error, trace):
        self.box.level = -1 if kind else 0
        return kind is ZeroDivisionError


class Marked2(np.ndarray):
    def __new__(cls, values):
        return np.asarray(values).view(cls)


@dataclass(order=True)
class Row:
    a: float
    b: float = 1.5
    total: float = 0.0

    def __post_init__(self):
        self.total = self.a * 2


@dataclass(frozen=True)
class Fixed:
    a: float
    b: float


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Pair(NamedTuple):
    a: float
    b: float = 2.0


class Lazy:
    def __init__(self, values):
        self.values, self.count = values, 0

    @functools.cached_property
    def mean(self):
        self.count += 1
        return self.values.mean()


class Meter:
    def __init__(self):
        self.log, self._value = [], 0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, v):
        self.log.append(v)
        self._value = v

    def __setattr__(self, name, v):
        super().__setattr__(name, v if name != "limit" else v * 2)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return len(name)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


meter = Meter()
'''
