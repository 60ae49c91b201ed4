"""Programs that reach state without getting it as an argument: source text, and what is done with it.

`PROGRAMS`: by name, the source of a module with a function `f`, and steps: the text of the arguments of a call,
or `!` and statements that run between calls. `COMPILED`: names of those that have to be compiled as a whole.
"""

PROGRAMS: dict[str, tuple[str, tuple[str, ...]]] = {}
COMPILED: set[str] = set()


def define(name: str, source: str, *steps: str, compiled: bool = False) -> None:
    PROGRAMS[name] = source, steps
    if compiled:
        COMPILED.add(name)


BOTH = ("np.ones(3)", "-np.ones(3)") * 3
ONES = ("np.ones(3)",) * 4
COUNTS = tuple(f"np.ones(3), {n}" for n in (1, 2, 3, 0))

# -- first reached in a decision -----------------------------------------------------------------------------
for name, change in {
    "append": "L.append(1)", "pop": "L.pop()", "insert": "L.insert(0, 7)", "extend": "L.extend([1, 2])",
    "item": "L[0] = 9", "slice": "L[:1] = [7, 8]", "add in place": "L[1] += 1", "augmented": "M['l'] += [5]",
    "new key": "M['k'] = 5", "setdefault": "M.setdefault('s', []).append(x[0])", "delete": "del M['l']",
    "new attribute": "O.m = 5", "attribute": "O.n += 1", "setattr": "setattr(O, 'q', 3)",
    "nested": "O.inner['z'].append(1)", "set": "S.add(4)", "deque": "Q.append(3)", "array": "A[0] += x[1]",
    "counter": "C['a'] += 1", "ordered": "R['r'] = 1", "function": "h.seen.append(1)", "class": "K.seen.append(1)",
    "class number": "K.n += 1", "global": "G = G + 1", "helper": "note(1)", "default": "collect(3)",
}.items():
    head = """
import collections
L, M, S, Q, A, G = [1, 2, 3, 4, 5, 6, 7], {'l': [1]}, {1}, collections.deque([1]), np.ones(3), 0
C, R = collections.Counter(), collections.OrderedDict()
class K:
    seen, n = [], 0
class Box: pass
O = Box()
O.n, O.inner = 0, {'z': []}
def h(): pass
h.seen = []
def note(v): L.append(v)
def collect(v, found=[]):
    found.append(v)
    return len(found)
def f(x):
    global G
"""
    define(f"branch: {name}", f"{head}    if x.sum() > 0:\n        {change}\n    return x + 1", *BOTH)
    define(f"loop: {name}", f"{head}    for i in range(3):\n        {change}\n    return x + i", *ONES[:2], "np.zeros(3)")
    define(f"branch in loops: {name}",
           f"{head}    for i in range(2):\n        for j in range(2):\n            if x[i] > j:\n                {change}\n"
           "    return x", "np.arange(3.)", "-np.ones(3)", "np.full(3, 2.)")

define("order of attributes that one side sets", """
class Box: pass
B = Box()
def f(x):
    B.__dict__.clear()
    if x[0] < 0:
        B.new = 1
    B.other = 2.0
    B.new = x.sum()
    return x
""", *BOTH)
define("a last attribute that one side sets", """
class Box: pass
B = Box()
def f(x):
    B.__dict__.clear()
    B.other = 2.0
    if x[0] < 0:
        B.new = 1
    B.new = x.sum()
    return x
""", *BOTH)
define("asking an object for its class", """
class Box:
    def __getattribute__(self, name):
        f.asked[name] = f.asked.get(name, 0) + 1
        return 2.0
_B = Box()
def f(x, n):
    _B.rate
    for i in range(n):
        f.seen.setdefault('s', []).append(i)
    return x * _B.rate
f.asked, f.seen = {}, {}
""", *COUNTS)

# -- code of the user's that C code or an operator enters ----------------------------------------------------
for name, body in {
    "sorted": "sorted([3, 1, 2], key=cb)", "sort": "L.sort(key=cb)", "map": "list(map(cb, [1, 2]))",
    "filter": "list(filter(cb, [1, 2]))", "max": "max([1, 2], key=cb)", "sum of a generator": "sum(cb(v) for v in (1, 2))",
    "any": "any(cb(v) > 0 for v in (1, 2))", "all": "all(cb(v) > 1 for v in (1, 2))",
    "any of traced": "any(cb(v) > 0 for v in x)", "reduce": "functools.reduce(lambda a, b: cb(a) + b, x)",
    "takewhile": "list(itertools.takewhile(lambda v: cb(v) > 0, x))", "next": "next(cb(v) for v in x)",
    "accumulate": "list(itertools.accumulate([1, 2], lambda a, b: cb(a) + b))", "partial": "functools.partial(cb, 2)()",
    "sub": "re.sub('a', lambda m: str(cb(1)), 'aab')", "default factory": "collections.defaultdict(lambda: cb(0))['a']",
    "property": "Thing().p", "len": "len(Thing())", "bool": "1 if Thing() else 2", "item": "Thing()[2]", "add": "Thing() + 1",
    "in": "3 in Thing()", "equal": "Thing() == 1", "less": "Thing() < 1", "negative": "-Thing()", "call": "Thing()(1)",
    "iterate": "[v for v in Thing()]", "hash": "{Thing(): 1}[Thing()]", "index": "x[Thing()]", "str": "str(Thing())",
    "missing attribute": "Lazy().zz", "descriptor": "Thing().d", "ufunc": "np.add(Odd(), x)", "new": "Made(x).v",
    "context": "use_context(x)", "generator context": "use_generator(x)", "copy": "copy.deepcopy(Odd()).v",
    "cached": "cached(2)", "dispatch": "single(1)", "generator": "list(count(2))", "iterator": "list(Steps(2))",
    "class method": "Thing.k(2)", "static method": "Thing.s(2)", "set item": "put(Thing())", "in place": "grow(Thing())",
}.items():
    define(f"entered: {name}", f"""
import collections, copy, functools, itertools, re
from contextlib import contextmanager
STATE, L = [], [3, 1, 2]
def cb(v):
    STATE.append(1)
    return v
class Desc:
    def __get__(self, one, kind): STATE.append('g'); return 3
class Thing:
    d = Desc()
    @property
    def p(self): STATE.append('p'); return 3
    def __len__(self): STATE.append('l'); return 2
    def __getitem__(self, i):
        STATE.append(i)
        if i > 2: raise IndexError
        return i
    def __setitem__(self, i, v): STATE.append((i, v))
    def __add__(self, o): STATE.append('a'); return o
    def __iadd__(self, o): STATE.append('i'); return o
    def __contains__(self, o): STATE.append('c'); return True
    def __eq__(self, o): STATE.append('e'); return True
    def __lt__(self, o): STATE.append('t'); return True
    def __neg__(self): STATE.append('n'); return 1
    def __hash__(self): STATE.append('h'); return 1
    def __index__(self): STATE.append('x'); return 1
    def __call__(self, v): STATE.append('k'); return v
    def __str__(self): STATE.append('s'); return 'thing'
    @classmethod
    def k(cls, v): STATE.append(cls.__name__); return v
    @staticmethod
    def s(v): STATE.append('v'); return v
class Lazy:
    def __getattr__(self, name): STATE.append(name); return 4
class Odd:
    v = 3
    def __array_ufunc__(self, *args, **options): STATE.append('u'); return 7
    def __deepcopy__(self, memo): STATE.append('d'); return self
class Made:
    def __new__(cls, *args): STATE.append('n'); return super().__new__(cls)
    def __init__(self, v): STATE.append('i'); self.v = v
class Context:
    def __enter__(self): STATE.append('in'); return 2
    def __exit__(self, *args): STATE.append('out')
class Steps:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        STATE.append(self.n)
        self.n -= 1
        if self.n < 0: raise StopIteration
        return self.n
@contextmanager
def scope(n):
    STATE.append(n)
    try: yield n
    finally: STATE.append(-n)
@functools.lru_cache
def cached(n): STATE.append('c'); return n
@functools.singledispatch
def single(v): STATE.append('o'); return v
@single.register
def _(v: int): STATE.append('i'); return v
def count(n):
    for i in range(n):
        STATE.append(i)
        yield i
def use_context(x):
    with Context() as k: return x * k
def use_generator(x):
    with scope(len(x)) as k: x = x * k
    return x
def put(thing): thing[1] = 2
def grow(thing):
    thing += 1
    return thing
def f(x): return {body}, x + 1
""", "np.array([3., 1, 2])", "np.array([3., 1, 2])", "np.array([1., 2])", "np.array([3., 1, 2])")

# -- what is entered is compiled ----------------------------------------------------------------------------
define("compiled: operators", """
class V:
    def __init__(self, a): self.a = a
    def __add__(self, other): return V(self.a + (other.a if isinstance(other, V) else other))
    __radd__ = __add__
    def __mul__(self, k): return V(self.a * k * SCALE[0])
    def __rmul__(self, k): return self * k
    def __neg__(self): return V(-self.a)
    def __getitem__(self, i): return self.a[i]
    def __setitem__(self, i, v): self.a[i] = v
    def __len__(self): return len(self.a)
    def __matmul__(self, other): return (self.a * other.a).sum()
    def __eq__(self, other): return (self.a == other.a).all()
SCALE, W = [2.0], V(np.arange(3.))
def f(x):
    v = V(x) + W
    v[0] = 9.
    v += 1.
    return (2 * v).a, (-v).a, v[1], len(v), v @ W, v == W, (1. + v).a
""", *BOTH, "!SCALE[0] = 5.", *BOTH[:2], compiled=True)
define("compiled: properties and contexts", """
class Scaled:
    def __init__(self): self.depth, self.k = 0, 2.
    @property
    def factor(self): return self.k * len(LOG)
    def __enter__(self):
        self.depth += 1
        return self
    def __exit__(self, *args): LOG.append(self.depth)
LOG, ONE = [1], Scaled()
def f(x):
    with ONE as s:
        y = x * s.factor
    return y
""", *BOTH, compiled=True)
define("compiled: generators and keys", """
K, SEEN = [2.], []
def scale(v): return v * K[0]
def rows(x):
    for i in range(3):
        SEEN.append(i)
        yield scale(x[i])
def f(x):
    return sum(rows(x)), max(scale(v) for v in x), sorted([3, 1, 2], key=lambda v: -scale(v)), [v for v in map(scale, x)], any(scale(v) > 3 for v in x)
""", *BOTH, "!K[0] = -1.", *BOTH[:2], compiled=True)
define("compiled: bound methods", """
class Counter:
    def __init__(self): self.n = 0
    def hit(self, v):
        self.n += 1
        return v * self.n
ONE = Counter()
HIT = ONE.hit
def f(x): return HIT(x), ONE.n
""", *BOTH, compiled=True)

# -- attributes of functions and classes ---------------------------------------------------------------------
define("attributes: the object itself", """
def g(): pass
g.d = [1]
class Box: c = {'a': 1}
def f(x):
    g.d.append(x.sum())
    Box.c['n'] = len(g.d)
    return g.d, Box.c, x
""", *ONES, "!g.d = []", *ONES[:2], compiled=True)
define("attributes: of a class, of an object made here", """
class Part:
    items, size = [], 2
    def __init__(self, v): self.v = v
def f(x):
    p = Part(x)
    p.items.append(p.size)
    p.size += 1
    return p.v * p.size
""", *ONES, "!Part.size = 5", *ONES[:2])

# -- a loop that runs zero times -----------------------------------------------------------------------------
for name, lines in {
    "array in a cell": "    for _ in range(n): x = sum([x * k for k in (1, 2)])\n    g = lambda: x",
    "nonlocal": "    def step():\n        nonlocal x\n        x = x * 2\n    for _ in range(n): step()",
    "list": "    y = L\n    for _ in range(n): y = [y[1], y[0]]\n    y.append(1)",
    "list of other numbers": "    y = T\n    for _ in range(n): y = [v * 2 for v in y]\n    y.append(1)",
    "list in an attribute": "    for _ in range(n): O.l = [O.l[1], O.l[0]]\n    O.l[0] = 7.",
    "array in a dict": "    for _ in range(n): M['a'] = M['a'] * 2\n    M['a'][0] = 7",
    "global array": "    global A\n    for _ in range(n): A = A * 2\n    A[0] = 7",
}.items():
    define(f"zero trips: {name}", f"""
class Box: pass
L, T, O, M, A = [1., 2.], [1., 2], Box(), {{'a': np.ones(3)}}, np.ones(3)
O.l = [3., 4.]
KEPT = L, T, O.l, M['a'], A
def f(x, n):
{lines}
    x[0] = 5
    return x
""", *COUNTS, "!O.l, M['a'], A = KEPT[2:]", *COUNTS[::-1])

# -- the sides of a decision change one thing in several ways ------------------------------------------------
WAYS = {
    "item": "D['a'] = 1.", "update": "D.update(a=x[1])", "union": "globals()['D'].__ior__({'a': 3.})", "attribute": "O.m = 1.", "variable": "vars(O)['m'] = 2.",
    "variables": "O.__dict__.update(m=x[1])", "last": "L[-1] = 4.", "place": "L[1] = 5.", "turned": "L.reverse()", "slice": "L[:] = [x[0], 6.]",
    "store and turn": "L[0] = 7.; L.reverse()", "store and pop": "L[1] = 8.; L.pop(); L.append(9.)", "clear": "D['a'] = 5.; D.clear(); D['a'] = x[0]",
    "two keys": "D['p'] = 1.; D['q'] = 2.", "two keys, turned": "D['q'] = 3.; D['p'] = 4.", "nested": "if x[1] > s: L.reverse(); D.update(a=6.)", "nothing": "pass",
}
for number, (one, other) in enumerate((one, other) for one in WAYS for other in WAYS if one != other):
    if number % 5 == 0 or one in ("nested", "two keys"):
        define(f"both sides: {one}; {other}", f"""
class Box: pass
D, O, L, DEEP = {{'a': 0., 'b': 1.}}, Box(), [1., 2.], [[[[[[[[3.]]]]]]]]
O.m = 0.
def f(x, s):
    if x[0] > 0:
        {WAYS[one]}
    else:
        {WAYS[other]}
        DEEP[0][0][0][0][0][0][0][0] = x[1]
    return list(D), list(vars(O)), f'{{DEEP}}', x
""", "np.ones(2), 0.", "-np.ones(2), 2.", "np.ones(2), 3.", "!D.clear(); D['a'] = 0.", "-np.ones(2), -3.", "np.ones(2), -1.")

for name, body in {
    "reverse": "L.reverse(); L[0], L[1] = L[1], L[0]", "rotate": "L.insert(0, L.pop()); L[0] = L[1]; L[1] = x[0]", "dict": "D.update(a=x[0]); D['a'] = D['b']; D.update(b=1.)",
    "attributes": "vars(O).update(a=x[0]); O.a = O.b; vars(O)['b'] = 2.", "nothing": "L.reverse(); L[0] += 0 * n; L.reverse()",
}.items():
    for head in ("for i in range(n)", "if x[0] > 0"):
        define(f"stores behind methods: {head} {name}", f"""
class Box: pass
L, D, O = [1., 2.], {{'a': 1., 'b': 2.}}, Box()
O.a, O.b = 3., 4.
def f(x, n):
    {head}:
        {body}
    return x
""", "np.array([1., 2.]), 2", "np.array([-1., 2.]), 1", "np.array([2., 1.]), 3", "np.array([3., 1.]), 20", "np.array([4., 1.]), 21", "np.array([4., 1.]), 0")
for name, body in {
    "in turns": "if x[0] > 1: T = (L, x[0])\n        if x[0] > 1: L[1] += x[1]", "caught": "try:\n            if x[0] > 1: raise ValueError\n        except ValueError: T = (L, x[0])\n        if x[0] > 1: L[1] += x[1]",
    "in a list": "if x[0] > 1: K[0] = L\n        if x[1] > 0: L[0] = x[0]\n        else: K[1] = [L[0], 1.]", "in an object": "if x[0] > 1: O.l = L\n        else: O.l = O.k\n        L[0] = x[1]; O.k[1] = x[0]",
}.items():
    define(f"a list of other numbers on one side: {name}", f"""
class Box: pass
L, O = [1., 2.], Box()
T, K, O.l, O.k = (L, 1.), [L, L], L, [5., 6.]
def f(x, n):
    global T
    for i in range(n):
        {body}
    return T, K, O.l
""", "np.array([-1., .5]), 2", "np.array([2., -.5]), 2", "np.array([2., .5]), 3", "np.array([0., 1.]), 20")

# -- calls that are compared with plain Python ---------------------------------------------------------------
for name, reach in {"array": "A", "list": "K[0]", "object": "O.a", "default": "own()"}.items():
    define(f"compared: the argument is reached as {name}", f"""
class Box: pass
A, O = np.zeros(4), Box()
K, O.a = [A], A
def own(a=A): return a
def f(x):
    x[1] += 1
    {reach}[0] = x[1] * 2
    return x[0]
""", *["A"] * 6, *["np.ones(4)"] * 3, "A")
define("compared: ufuncs of Python functions", """
SEEN = []
def g(v):
    SEEN.append(v)
    return v * 2
U = np.frompyfunc(g, 1, 1)
def f(x): return U(x), U(2.0), len(SEEN)
""", *["1.5"] * 6, "np.ones(2)", "np.ones(2)")

# -- one object or two --------------------------------------------------------------------------------------
for name, body in {
    "tuples": "T is U, T is V", "in a list": "L[0] is L[1], L[0] is T", "default": "get({}) is T", "bools": "(y > 1) is True, (x[0] > 0) is True, (y > 1) is (y > 2)",
    "floats": "O.a is O.b, y is y", "items": "[v is y for v in L]", "ints": "[n is k for k in (1, 2)]", "none": "y is None, T is None", "flags": "flag(x, y)", "partials": "L[4] is O.p, O.p(y)",
}.items():
    define(f"is: {name}", f"""
class Box: pass
import functools
T, V, O = (1, 'u'), (1, 'v'), Box()
O.p = functools.partial(max, 2.0)
U, L = T, [T, T, (), 1.5, O.p]
O.a = O.b = 2.5
def get(d, default=T): return d.get('k', default)
def flag(x, y):
    on = y > 1
    for v in x:
        if v > y: on = v > 2
    return on is True, on is False, True is on, on is (y > 1) or on is None
def f(x, y, n):
    L[3] = y
    return {body}
""", "np.ones(2), 2.5, 1", "np.ones(2), 0.5, 2", "np.ones(2), 1.5, 3", "!L[1] = (1, 'u'); U = L[1]; O.b = 1.5 + 1", "np.ones(2), 4.5, 1", "np.ones(2), 3, 2")

# -- an attempt that is given up -----------------------------------------------------------------------------
for name, lines in {
    "exit suppresses": "    with Calm() as k: y = x[k]", "half a generator": "    g = rows(); y = next(g) + next(g)",
    "refused in the middle": "    L.append(1); print(x, file=OUT); L.append(2)", "deleted": "    y = Mortal(); y = 1",
    "raises": "    try:\n        if x[0] > 0: raise ValueError(x[0])\n    finally: L.append(1)",
}.items():
    define(f"given up: {name}", f"""
import io
L, OUT = [], io.StringIO()
class Calm:
    def __enter__(self): L.append('in'); return 5
    def __exit__(self, kind, error, trace): L.append(str(kind)); return True
class Mortal:
    def __del__(self): L.append('gone')
def rows():
    for i in range(4):
        L.append(i)
        yield i
def f(x):
{lines}
    return x + 1
""", "np.ones(3)", "np.ones(8)", "-np.ones(3)", "np.ones(3)")

# -- objects that other objects know -------------------------------------------------------------------------
for name, body in {
    "list": "PUSH(v)", "dict": "PUT(len(D), v)", "array": "FILL(v)", "read": "COUNT(1) + TOTAL()", "library": "ADD('ab')",
    "in an object": "O.push(v); O.push(O.count(v))", "of a class": "O.put(v)", "given away": "O.kept = L.append; O.kept(v)",
    "of a new list": "l = []; O.all.append(l.append); [add(v) for add in O.all]",
    "of an object of yours": "O.all.append(O.note); O.all[0](v)", "in a loop": "add = L.append; [add(i) for i in range(n)]",
    "as a callback": "list(map(PUSH, [v, 1]))", "in a traced loop": "add = L.append\n    for i in range(n): add(v * i)",
    "of a list in a traced loop": "l = []; add = l.append\n    for i in range(n): add(v * i)\n    O.l = l",
    "under a condition": "add = L.append\n    if v > 1: add(v)",
}.items():
    define(f"methods: {name}", f"""
import collections
L, D, A, C = [1], {{}}, np.zeros(2), collections.Counter()
PUSH, PUT, FILL, COUNT, TOTAL, ADD = L.append, D.setdefault, A.fill, L.count, A.sum, C.update
class Box:
    put = L.append
    def __init__(self): self.l, self.all = [], []
    def note(self, v): self.l.append(v)
O = Box()
O.push, O.count = O.l.append, O.l.count
def f(v, n):
    {body}
    return v, len(L), COUNT(1), TOTAL(), C['a'], len(O.l)
""", "1, 1", "2, 2", "3.0, 3", "!L.append(1); A[0] = 5", "4.0, 20", "0.5, 0", "np.ones(2)[0], 40", "1.5, 3")
for name, body in {
    "vars": "D['n'] = v; A.m = D['n']", "two objects": "A.n = v; C.m = C.n", "borg": "b = Borg(); b.n = v; v = Borg().n",
    "returned": "v = A.__dict__, vars(B)", "kept": "KEPT.append(vars(A)); A.n = v", "exchanged": "B.__dict__ = {'n': v}; v = B.n",
    "of a new object": "b = Box(); d = vars(b); d['n'] = v; KEPT.append(b); v = d, b.n",
}.items():
    define(f"attributes in a dict: {name}", f"""
class Box: pass
class Borg:
    shared = {{'n': 1}}
    def __init__(self): self.__dict__ = self.shared
A, B, C, KEPT = Box(), Box(), Box(), []
A.n, B.n = 1, 2
C.__dict__, D = A.__dict__, vars(A)
def f(v):
    {body}
    return v, A.n, C.n, D
""", "1", "2", "3.0", "!A.n = 7", "4.0", "0")
define("attributes in a dict: shared later", """
class Box: pass
A, B = Box(), Box()
A.n, B.n = 1, 2
def f(v):
    A.n = v
    return B.n
""", "1.0", "2.0", "!B.__dict__ = A.__dict__", "3.0", "4.0", "!B.__dict__ = dict(n=1)", "5.0")
for name, body in {
    "new dict": "return {A: v, (B, 1): 2}", "captured dict": "D[A] = v; return D", "frozenset": "r = O.s is None or A in O.s; O.s = frozenset([A, B]); return r",
    "slice": "r = O.s is None or O.s.start is A; O.s = slice(A, B); return r", "hash": "return hash(A) == _HASH, hash((A, 1)) == hash((A, 1)), A.__hash__() == _HASH",
    "repr": "return repr(A) == _TEXT", "str": "return str(A) == _TEXT", "f-string": "return f'{A}' == _TEXT", "percent": "return '%s' % A == _TEXT",
    "format": "return '{}'.format(A) == _TEXT", "in a list": "return str([A]) == f'[{_TEXT}]'", "method": "return A.__repr__() == _TEXT", "enum": "return {Kind.A: v}, Kind.B",
    "slots": "r = O.s is None or O.s.x; O.s = Part(); O.s.x = O.s.y = v; return r", "class": "class P: k = v\n    O.s = P; return P.k",
    "type": "P = type('P', (), {}); O.all.append(P()); return type(O.all[0]) is P", "class of the object": "A.__class__ = Part; r = type(A) is Part; A.__class__ = Box; return r",
    "named tuple": "P = collections.namedtuple('P', 'x'); O.all.append(P(v)); return type(O.all[0]) is P",
}.items():
    define(f"the object itself: {name}", f"""
import collections, enum
class Kind(enum.Enum): A, B = 1, 2
class Box: pass
class Slots: __slots__ = ('x',)
class Part(Slots): pass
A, B, O, D = Box(), Box(), Box(), {{}}
O.all, O.s = [], None
_HASH, _TEXT = hash(A), repr(A)
def f(v):
    A.v = v
    {body}
""", *("1.0", "2.0", "3", "!D.clear()", "4.0", "0.0"))
define("equal keys and ranges", """
D, T, R = {1: 5.0}, {(1, 'a'): 1.0}, range(0, 3, 2)
def f(x): return list(D), [k[0] for k in T], R.stop, x
""", *ONES, "!D = {1.0: 5.0}", *ONES[:2], "!T = {(True, 'a'): 1.0}; R = range(0, 4, 2)", *ONES[:2], "!D = {True: 5.0}; T = {(1.0, 'a'): 1.0}", *ONES[:2])
for name, body in {
    "in a comprehension": "g = [g * w for w in (2,)][-1]", "in an inner function": "g = double()[0]",
    "in a function made in the loop": "h = lambda: [g * 2]; g = h()[0]", "by itself": "g = g * 2",
}.items():
    define(f"a variable in a cell, made anew in a loop: {name}", f"""
class Box: pass
O, G = Box(), np.ones(2)
O.a = np.ones(2)
def f(x):
    global G
    O.a, G = O.a * 0.5, G * 0.5
    for g in (O.a, G):
        def double(): return [g * 2]
        while not x[0] > 0:
            {body}
            x = x + 1
        g += 1
    return O.a
""", "np.ones(2)", "-np.ones(2)", "np.ones(2)")
define("a parameter in a cell, made anew in a loop", """
def f(x):
    x = np.sort(x)
    def inner():
        g = x
        while x.sum() > 1:
            g = sum([g for w in (2,)])
        g += 1
    inner()
    return x
""", "-np.ones(2)", "np.zeros(2)")
for name, body in {
    "a name without a value": "h(v)", "a missing key": "{}[v]", "a division": "1 // 0", "an index": "[1][1]",
    "an attribute": "None.x", "a conversion": "int('x')", "a raise": "(_ for _ in ()).throw(KeyError(1))",
}.items():
    define(f"an error in a helper's branch, caught by the caller: {name}", f"""
def make():
    def helper(v):
        if v > 0.5: return {body}
        return v
    def f(x):
        seen, t = [], 0
        try: t = helper(x[0] * 2)
        except Exception as error: seen.append(type(error).__name__)
        finally: t += 1
        return t, seen
    if 0: h = None
    return f
f = make()
""", *BOTH)
define("a cell assigned before it is reached in a branch", """
def make():
    G, L = {}, []
    def note(v):
        G['k'] = [v]
        L.append(v)
        return v
    def choose(v):
        if v > 0.5: return note(v)
        return 0
    def f(x):
        nonlocal G, L
        G, L = {'k': [0.5]}, [1]
        t = choose(x[0] * 2)
        return t, G, L
    return f
f = make()
""", *BOTH)
for name, change in {
    "attribute": "del O.new", "delattr": "delattr(O, 'new')", "item": "del D['new']", "global": "del G",
    "class attribute": "del K.new", "list item": "del L[0]", "made and deleted": "O.p = x[0]; del O.p",
    "through vars": "del vars(O)['new']", "pop": "D.pop('new')",
}.items():
    define(f"deleted on every way: {name}", f"""
class Box: pass
class K: new = 1
O, G = Box(), 1
D, L = {{}}, []
def f(x, s):
    global G
    if x.max() > 2 and s > 0: pass
    else: {change}
    return O, D, L
""", *("!O.m = 1; O.new = 2; K.new = 1; G = 5; D.update(m=1, new=2); L[:] = [4, 5]", "np.ones(2), -1.0") * 3,
           "!O.m = 1; O.new = 2; K.new = 1; G = 5; D.update(m=1, new=2); L[:] = [4, 5]", "np.full(2, 3.), 1.0")
for name, change in {
    "both sides": "if x.sum() > 0:\n        del O.new; O.new = 1\n        v = D.pop('new'); D['new'] = v\n"
                  "    else:\n        del O.new; O.new = 2\n        v = D.pop('new'); D['new'] = 1",
    "a known loop": "for i in range(3):\n        del O.new; O.new = i; v = D.pop('new'); D['new'] = v + 1",
    "a traced loop": "while x.sum() > 0:\n        v = O.new; del O.new; O.new = v + 1\n        x = x - 1",
    "new ones": "if x.sum() > 0:\n        O.a = 1; O.b = 2; del O.a; O.a = 3\n    else:\n        O.b = 1; O.a = 2",
}.items():
    define(f"deleted and set again: {name}", f"""
class Box: pass
O, D = Box(), {{'m': 1, 'new': 2, 'end': 3}}
O.m, O.new, O.end = 1, 2, 3
def f(x):
    {change}
    return list(D), list(vars(O))
""", *[step for call in BOTH for step in (call, "!del O.end, D['end']; O.end = D['end'] = 4")])
for name, delete in {
    "attribute": "del O.new", "delattr": "delattr(O, 'new')", "global": "del G", "variable": "del v", "variable in a cell": "del c",
}.items():
    head = """
class Box: pass
O, G = Box(), 1
def f(x):
    global G
    O.new = G = v = c = 1
    h = lambda: c
"""
    define(f"deleted on one way and once more: {name}", f"""{head}    if x.sum() > 0: {delete}
    try: {delete}
    except (NameError, AttributeError): return 'not there', vars(O)
    return 'there', vars(O)
""", *BOTH)
    define(f"deleted in a loop: {name}", f"""{head}    while x.sum() > 0:
        {delete}
        x = x - 3
    try: return O.new, G, v, c
    except (NameError, AttributeError): return 'not there', vars(O)
""", *BOTH, "np.full(3, 9.)")
for name, body in {"print": "print(H)", "str": "t = str(H)", "f-string": "t = f'{H}'", "repr": "t = f'{H!r}'", "percent": "t = '%s' % H"}.items():
    define(f"a text that is none: {name}", f"""
class Half:
    def __str__(self): return TEXTS[-1]
    def __repr__(self): return 3
H, TEXTS = Half(), [None]
def f(x):
    try: {body}
    except Exception as error: return str(error)
    return x + 1
""", *ONES[:3], "!TEXTS.append('a')", *ONES[:2], "!TEXTS.append(1)", *ONES[:2])
for name, body in {
    "any": "any(shown(w) > 1 for w in x)", "all": "all(shown(w) > 1 for w in x)", "in": "4 in (shown(w) for w in x)",
    "next": "next((w for w in x if shown(w) > 1), 5)", "or": "shown(x[0]) > 1 or shown(x[1])", "first raises": "any(raising(w) > 1 for w in x)",
    "caught": "caught(x)", "zip": "any(a > 1 for a, b in zip(map(shown, x), x))", "chain": "any(w > 1 for w in itertools.chain(map(shown, x), [2]))",
}.items():
    define(f"what ends early: {name}", f"""
import itertools
COUNT = [0]
def shown(v):
    print('shown', len(COUNT))
    return v
def raising(v):
    COUNT[0] += 1
    if COUNT[0] > 1: raise ValueError('second')
    return v
def caught(x):
    try: return any(raising(w) > 1 for w in x)
    except ValueError as error: return str(error)
def f(x):
    COUNT[0] = 0
    return {body}
""", "[4.0, 1.0]", "[0.0, 1.0]", "[0.0, 4.0]", "np.array([4.0, 1.0])", "np.array([0.0, 1.0])", "[1.0, 2.0]")
for name, text in {
    "f-string": "f'{t:.2f}'", "percent": "'%.2f' % t", "format": "'{:.2f}'.format(t)", "precision": "f'{x.sum():.{int(x.sum() * 0 + 2)}f}'",
    "character": "'%c' % int(x.sum() * 0 + 2e9)", "too few": "'%d' % (x.sum(), 1)", "unknown": "f'{x.sum():q}'", "missing": "'{1}'.format(x.sum())",
}.items():
    define(f"a format that does not fit: {name}", f"""
def f(x):
    t = x[:2]
    x += 1
    try: print({text})
    except ValueError as error: return str(error)
    finally: x *= 2
    return x
""", *ONES)
for name, body in {
    "a sum": "for i in range(3): t = t + i", "a large one": "for i in range(3): t = t + S", "doubled": "for i in range(int(x.sum())): t = t + t",
    "steps": "for i in range(int(x.sum())): t = 3 * t - t", "of an array": "t = int(A[0]) + 1, -int(A[1]), abs(int(A[1])), int(A[0]) - 1",
    "a sum of an array": "t = int(A.sum()) + 1", "the smallest": "best = S + S - 1\n    for v in A[2:]:\n        if best + 1 < 0: t = 1\n        if v < best: best = v\n    t = best",
    "shifted": "for i in range(int(x.sum())): t = (t << 1) + 1", "negated": "for i in range(3): t = -t - 1 if t > 0 else -t",
    "divided": "t = int(A[1]) // -1, int(A[1]) % -1", "bits": "t = (int(A[0]) | 1) + 1, (int(A[0]) & -2) + 1, ~int(A[1])",
}.items():
    define(f"ints near the ends of 64 bits: {name}", f"""
S = 2 ** 62
A = np.array([2 ** 63 - 1, -2 ** 63, 5, 7])
def f(x, t):
    {body}
    return t
""", *(f"np.full(2, {n / 2}), {t}" for n in (3, 61, 62, 63, 70) for t in (1, 2 ** 62 - 3, 2 ** 63 - 2, 2 ** 62)))
for name, given in {
    "a method": "L, L.append", "a method in a tuple": "L, (L.append,)[0]", "a closure": "L, (lambda l: lambda v: l.append(v))(L)",
    "a default": "L, lambda v, l=L: l.append(v)", "a partial": "L, functools.partial(list.append, L)", "an object": "L, Box(L).put",
}.items():
    define(f"arguments that know each other: {name}", """
import functools
L = [1]
class Box:
    def __init__(self, l): self.l = l
    def put(self, v): self.l.append(v)
def f(given, put):
    before = len(given)
    put(5)
    after = len(given)
    del given[-1:]
    return before, after, given
""", *([given] * 12))
define("a list that loops replace, if they run", """
class G: state = [2.5]
def f(x, n):
    g = G.state
    for i in range(n):
        g = g[::-1]
    g.extend([2])
    return len(g)
""", *(("np.ones(2), 2", "np.ones(2), 0", "np.ones(2), 0", "np.ones(2), 1") * 5))
for name, choose in {
    "a branch": "if n > 1: pass\n    else: o = o * 0.5", "a loop": "for i in range(n): o = o * 0.5", "a while": "while n < 2: o, n = o * 0.5, n + 1",
    "an expression": "o = o if n > 1 else o * 0.5",
}.items():
    define(f"a part of what may be an argument: {name}", f"""
def f(n, o):
    {choose}
    return o[n % 2], o[n % 2:], o[1], o
""", *(f"{n}, np.ones((2, 2))" for n in (2, 1, 0, 4, 3, 7, 0, 1, 2)))
for name, change in {
    "rebound": "g3.state = [list(w) for w in g3.state]", "by a helper": "renew()", "shallow": "g3.state = list(g3.state)",
    "a local name": "p = [list(w) for w in p]",
}.items():
    define(f"a list under two names, made anew in a loop: {name}", f"""
class Box: pass
g3 = Box()
g3.state = [[2], [3]]
def renew(): g3.state = [list(w) for w in g3.state]
def f(x, s, o):
    p = o
    for i in range(len(x)):
        o[0] = [s + i]
        {change}
    return p, o
""", *[step for k in range(4) for step in ("!g3.state = [[2], [3]]", f"np.ones(4), {k}.0, g3.state")])
for name, change in {"by a loop": "for w in g: g[w] = t", "by items": "g['a'] = g['b'] = t", "by update": "g.update(a=t, b=t)"}.items():
    define(f"a dict made on each way, and changed in one of them: {name}", f"""
G = {{'a': .5, 'b': 2}}
def f(x, s):
    global G
    t = object
    if x[0] > s: g = dict(G)
    else:
        g = dict(G)
        if not x[0] > 0: g.update(b=1)
        else:
            {change}
    G = g
    return g
""", *(f"np.array([{v}]), 1.0" for v in (.5, -.5, 2., .5, -.5)))
for name, change in {
    "cast before shapes": "a -= np.arange(3.)", "shapes": "a += np.arange(3)", "out": "np.add(a, np.arange(3.), out=a)", "a part": "a[:2] -= np.arange(3.)",
    "matmul": "a @= np.ones((3, 3))", "text": "a += 'x'", "None": "a = a - None", "one text": "a[0] -= 'x'", "bools": "b -= b",
    "an output": "np.less(a, a, out=np.zeros(3, bool))", "rows": "a = np.concatenate([a, np.ones((2, 2))])", "reshape": "a = a.reshape(3, 3)",
    "index": "a = a[9]", "axis": "a = a.sum(axis=3)", "stack": "a = np.stack([a, a[:2]])", "solve": "a = np.linalg.solve(a, a)",
}.items():
    define(f"an error of NumPy that is caught: {name}", f"""
def f(a, b):
    try: {change}
    except ValueError as error: return 'value', str(error)
    except TypeError as error: return type(error).__name__, str(error)
    except Exception as error: return type(error).__name__, str(error)
    return a, b
""", *(("np.array([3, 1, 2, 0]), np.array([True, False])",) * 3))
for name, lines in {"read": "y = x * N", "not read": "y = x + 1", "set before": "N = x.sum(); y = x", "in a branch": "y = x\n    if x[0] > 5: N = 3"}.items():
    define(f"a global variable deleted: {name}", f"""
N = 1
def f(x):
    global N
    {lines}
    del N
    return y
""", *BOTH[:3], "!N = 4", *BOTH[:2], "!N = 2.5", *BOTH[:1])
