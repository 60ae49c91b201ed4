import sys
from functools import lru_cache

sys.setrecursionlimit(10_000)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@lru_cache(None)
def fib_memo(n):
    return n if n < 2 else fib_memo(n - 1) + fib_memo(n - 2)


print(fib(31), fib_memo(500))
