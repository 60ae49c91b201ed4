"""What Python's functions, operators and questions about types see of values, one expression at a time."""

from __future__ import annotations

import bisect
import collections
import copy
import functools
import heapq
import itertools
import math
import operator
import re
import statistics
import warnings

import numpy as np
import pytest

from jitcore import autojit

#: About an array x of three elements and an int n; those of a line have a common subject.
EXPRESSIONS = r"""
type(x).__name__ ;; type(x[0]).__name__ ;; type(x.sum()).__name__ ;; type(x.shape) ;; type(n)
isinstance(x, np.ndarray) ;; isinstance(x[0], float) ;; isinstance(x[0], np.generic) ;; isinstance(n, int) ;; isinstance(x.sum(), np.floating)
type(x.flat).__name__
x.dtype.type(3) ;; x.dtype.name ;; x.dtype.kind ;; x.dtype == float ;; x.dtype.itemsize ;; np.dtype(float) is x.dtype
[x[0]] == [x[0]] ;; (x[0], n) == (x[0], n) ;; x[0] in [x[0]] ;; {x[0]: 1}[x[0]]
sorted(x) ;; sorted(x, key=lambda v: -v) ;; min(x) ;; max(x, key=lambda v: v * v) ;; sum(x, 0.5) ;; any(x) ;; all(x)
list(x) ;; tuple(x) ;; set(x.tolist()) ;; dict(enumerate(x)) ;; [*x] ;; (*x, 1)
x.tolist() ;; x[0].item() ;; x.item(0) ;; float(x[0]) ;; int(x[0]) ;; bool(x[0]) ;; complex(x[0]) ;; round(x[0], 1) ;; round(float(x[0])) ;; abs(x[0]) ;; divmod(x[0], 2) ;; pow(x[0], 2) ;; -x[0] ;; +x[0]
math.floor(x[0]) ;; math.ceil(x[0]) ;; math.trunc(x[0]) ;; math.sqrt(abs(x[0])) ;; math.isclose(x[0], 1) ;; math.fsum(x) ;; math.prod(x) ;; math.dist(x, x) ;; math.hypot(*x) ;; math.gcd(n, 4) ;; math.comb(5, n) ;; math.factorial(n) ;; math.isqrt(n) ;; math.log(8, 2) ;; math.log2(n + 1) ;; math.frexp(x[0]) ;; math.modf(x[0]) ;; math.ldexp(x[0], n) ;; math.copysign(n, -1) ;; math.remainder(x[0], 2) ;; math.nextafter(x[0], 5) ;; math.ulp(x[0])
str(x) ;; repr(x) ;; str(x[0]) ;; repr(x[0]) ;; f"{x[0]:.2f}" ;; f"{x}" ;; "%s %r" % (x[0], n) ;; "{:5.1f}".format(x[0]) ;; format(x[0], ".3e") ;; str(n) ;; hash(n)
functools.reduce(operator.add, x) ;; list(itertools.accumulate(x)) ;; list(itertools.pairwise(x)) ;; operator.itemgetter(0)(x) ;; operator.add(x, n) ;; operator.getitem(x, 0) ;; operator.attrgetter("size")(x) ;; operator.methodcaller("sum")(x)
np.asarray(x) is x ;; np.asanyarray(x) is x ;; np.atleast_1d(x) is x ;; np.ravel(x) is x ;; x.view() is x ;; x[:] is x ;; x.base is None ;; x[1:].base is x ;; x.T is x ;; x.reshape(-1) is x ;; np.squeeze(x) is x ;; x.astype(x.dtype, copy=False) is x ;; np.ascontiguousarray(x) is x ;; np.real(x) is x ;; np.real_if_close(x) is x
copy.copy(x) is x ;; copy.deepcopy(x) is x ;; copy.copy([x])[0] is x
statistics.median(x) ;; statistics.stdev(x) ;; statistics.pstdev(x.tolist())
bisect.bisect_left(sorted(x), x[0]) ;; heapq.nlargest(2, x) ;; collections.Counter(x.tolist()) ;; collections.deque(x, 2)
np.float64(x[0]).hex() ;; x[0].is_integer() ;; x[0].as_integer_ratio()
x.max().dtype ;; x.mean().dtype ;; (x > 1).dtype ;; (x > 1).sum().dtype ;; x.argmax().dtype ;; np.where(x > 1)[0].dtype ;; np.arange(n).dtype ;; np.zeros(n).dtype ;; np.array([n, 1]).dtype ;; np.array([n, 1.5]).dtype ;; (x * n).dtype ;; (x[0] * n).dtype ;; np.cumsum(x).dtype
x.__class__ ;; x.__len__() ;; x.__getitem__(0) ;; x.__add__(1) ;; x.__array__() is x ;; x.__contains__(1) ;; x[0].__float__() ;; n.__add__(1) ;; n.__class__ ;; (1).__radd__(n)
getattr(x, "size") ;; getattr(x, "nope", 5) ;; hasattr(x, "nope") ;; hasattr(x, "sum") ;; callable(x) ;; callable(x.sum)
x.strides ;; x.nbytes ;; x.itemsize ;; x.flags.c_contiguous ;; x.flags["WRITEABLE"] ;; x.ndim ;; len(x) ;; x.size ;; np.size(x, 0) ;; np.shape(x) ;; np.ndim(n)
x is x ;; x[0] is x[0] ;; x.dtype is x.dtype
[v for v in x if v > 0][:1] ;; {v: 1 for v in x.tolist()} ;; {n: x[0]} ;; [i for i, v in enumerate(x) if v == max(x)] ;; next(iter(x)) ;; next((v for v in x if v > 99), None) ;; list(zip(x, x[1:])) ;; list(map(float, x)) ;; list(filter(lambda v: v > 0, x)) ;; max(enumerate(x), key=lambda p: p[1])[0]
x @ x ;; np.dot(x, x) ;; x.dot(x) ;; np.inner(x, x) ;; np.linalg.norm(x) ;; np.vdot(x, x) ;; np.outer(x, x)[0] ;; np.cross(x, x[::-1])
np.result_type(x, n) ;; np.can_cast(x.dtype, int) ;; np.promote_types(x.dtype, np.float32) ;; np.min_scalar_type(n) ;; np.issubdtype(x.dtype, np.floating) ;; np.isscalar(x[0]) ;; np.isscalar(n) ;; np.iscomplexobj(x) ;; np.isrealobj(x)
x[n - n] ;; x[-n:] ;; x[: n - 1] ;; x[n:] ;; x[::n] ;; x[[0, n - n]] ;; x[np.array([0])] ;; x[x > 0] ;; x[..., 0] ;; x[None].shape ;; x[True].shape ;; x[()].shape
np.array_str(x) ;; np.array2string(x, precision=2) ;; np.array_repr(x) ;; np.format_float_positional(x[0])
x == None ;; x is None ;; x != None ;; [x is None, x is not None] ;; None in [1] ;; x[0] == "a" ;; n == "a" ;; (n == None) is False
x.copy(order="F").flags.f_contiguous ;; np.asfortranarray(x).flags.f_contiguous ;; np.zeros((2, 2), order="F").flags.c_contiguous ;; np.ones_like(x, order="K").flags.c_contiguous
np.geterr()["over"] ;; np.get_printoptions()["precision"]
isinstance(x, collections.abc.Sequence) ;; isinstance(x, collections.abc.Iterable) ;; isinstance(x, collections.abc.Sized) ;; isinstance(n, (float, int)) ;; isinstance(x[0], (int, np.integer)) ;; isinstance(n, np.integer) ;; isinstance(x, (list, tuple, np.ndarray)) ;; issubclass(type(x[0]), float)
np.ndarray.sum(x) ;; np.ndarray.__add__(x, 1) ;; float.__add__(1.5, n) ;; int.__mul__(2, n) if type(n) is int else 0 ;; list.append ;; str.join(",", ["a"]) ;; np.add.reduce(x) ;; np.add(x, n) ;; np.add.accumulate(x) ;; np.add.outer(x, x)[0] ;; np.frompyfunc(lambda a: a, 1, 1)(x) ;; np.add.nin ;; np.add.__name__
"abcdef"[n] ;; "abcdef"[:n] ;; [1, 2, 3, 4, 5, 6, 7][n] ;; (1, 2, 3, 4, 5, 6, 7)[-n] ;; range(10)[n] ;; list(range(n)) ;; "a" * n ;; [0] * n ;; {0: "a", n: "b"}[n] ;; bin(n) ;; hex(n) ;; chr(97 + n) ;; n.bit_length() ;; 1 << n ;; 2 ** n ;; n ** 2 ;; n / 2 ;; n // 2 ;; n % 2 ;; -n ;; ~n ;; n & 1 ;; n | 1 ;; n ^ 1 ;; n >> 1 ;; n == 2 ;; n < 3 ;; 1 < n < 5
""".strip().split("\n")
ARRAYS = {
    "float64": np.array([1.5, -2.25, 3.0]), "int64": np.array([1, 2, 3]), "bool": np.array([True, False, True]),
    "float32": np.array([1.5, 2, 0.25], np.float32), "uint8": np.array([1, 200, 3], np.uint8),
    "column": np.arange(6.0).reshape(3, 2)[:, 1], "complex128": np.array([2j, 1, 0])}
SPACE = {one.__name__: one for one in (bisect, collections, copy, functools, heapq, itertools, math, operator, statistics)} | {"np": np}


@pytest.mark.parametrize("line", EXPRESSIONS, ids=lambda line: line.split(" ;; ")[0])
def test_expressions(line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, text in enumerate(line.split(" ;; ")):
            function = eval(f"lambda x, n: {text}", dict(SPACE))
            for name in ["float64", "int64", *list(ARRAYS)[2 + place % 3 :: 3]]:
                compiled = autojit(function)
                for n in (2, 2, np.int64(2), 3):
                    x = ARRAYS[name]
                    found, expected = attempt(compiled, x.copy(), n), attempt(function, x.copy(), n)
                    assert found == expected, (text, name, n)


def attempt(function, *values):
    """What it gives, as text, without the last digits of floats."""
    try:
        found = repr(function(*values))
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return re.sub(r"0x\w+", "", re.sub(r"\.(\d{9})\d+", r".\1", found))
