"""Loops over Python numbers: up to ten million steps."""

from __future__ import annotations

import math
import random

from benchmarks.plain_program import PlainProgram


def sum_squares(limit):
    total = 0
    for k in range(limit):
        total += k * k % 7
    return total


def estimate_pi(steps):
    total = 0.0
    for k in range(steps):
        total += (-1) ** k / (2 * k + 1)
    return 4 * total


def collatz(limit):
    longest = best = 0
    for start in range(1, limit):
        n, steps = start, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > longest:
            longest, best = steps, start
    return best, longest


def throw_darts(seed, count):
    generator, hits = random.Random(seed), 0
    for _ in range(count):
        x, y = generator.random(), generator.random()
        hits += x * x + y * y < 1
    return 4 * hits / count


def draw_by_recurrence(seed, count):
    state, total = seed, 0
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2147483648
        total ^= state
    return total


def count_primes(limit):
    count = 0
    for n in range(2, limit):
        for divisor in range(2, math.isqrt(n) + 1):
            if n % divisor == 0:
                break
        else:
            count += 1
    return count


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def count_coprime(limit):
    return sum(gcd(a, b) == 1 for a in range(1, limit) for b in range(1, a))


def integrate(steps):
    x, v = 1.0, 0.0
    for _ in range(steps):
        v -= 0.001 * x
        x += 0.001 * v
    return x, v


def find_root(value):
    x = value
    for _ in range(50):
        x = (x + value / x) / 2
    return x


def escape(side):
    rows = []
    for i in range(side):
        row = ""
        for j in range(side):
            c = complex(-2 + 2.6 * j / side, -1.2 + 2.4 * i / side)
            z, n = 0j, 0
            while abs(z) < 2 and n < 50:
                z, n = z * z + c, n + 1
            row += " .:-=+*#%@"[n // 5 % 10]
        rows.append(row)
    return rows


def count_in_small(n):
    total = 0
    for k in range(n):
        total += k
    return total


def find_perfect(limit):
    found = []
    for n in range(2, limit):
        total = 1
        for divisor in range(2, int(math.sqrt(n)) + 1):
            if n % divisor == 0:
                total += divisor
                if divisor != n // divisor:
                    total += n // divisor
        if total == n:
            found.append(n)
    return found


def pack_floats(steps):
    state = {"x": 0.5, "n": 0}
    while state["n"] < steps:
        state["x"] = 3.9 * state["x"] * (1 - state["x"])
        state["n"] += 1
    return state


ROWS = (
    PlainProgram("1e7 additions", sum_squares, lambda: (10_000_000,)),
    PlainProgram("alternating series", estimate_pi, lambda: (2_000_000,)),
    PlainProgram("Collatz", collatz, lambda: (30_000,)),
    PlainProgram("darts", throw_darts, lambda: (1, 500_000)),
    PlainProgram("linear congruence", draw_by_recurrence, lambda: (1, 3_000_000)),
    PlainProgram("primes by division", count_primes, lambda: (50_000,)),
    PlainProgram("coprime pairs", count_coprime, lambda: (600,)),
    PlainProgram("an oscillator", integrate, lambda: (5_000_000,)),
    PlainProgram("a square root", find_root, lambda: (2.0,)),
    PlainProgram("a picture of letters", escape, lambda: (100,)),
    PlainProgram("a short loop", count_in_small, lambda: (10,)),
    PlainProgram("perfect numbers", find_perfect, lambda: (20_000,)),
    PlainProgram("numbers in a dict", pack_floats, lambda: (1_000_000,)),
)
