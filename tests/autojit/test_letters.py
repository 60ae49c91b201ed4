"""Texts that functions read letter by letter: what Python does, in compiled loops, one program for all texts of a length."""

import random

import numpy as np
import pytest

from jitcore import autojit

DNA = "".join(random.Random(3).choices("ACGT", k=150))
OTHER = "".join(random.Random(4).choices("ACGT", k=130))
MIXED = "".join(random.Random(5).choices("aBx19Z _-", k=120))


def count(s, letter):
    n = 0
    for c in s:
        if c == letter:
            n += 1
    return n


def count_in(s, letters):
    n = 0
    for i in range(len(s)):
        if s[i] in letters:
            n += i
    return n


def count_pairs(s, t):
    n = 0
    for a, b in zip(s, t[::-1]):
        if a != b:
            n += 1
    return n


def histogram(s):
    counts = np.zeros(128, dtype=int)
    for c in s:
        counts[ord(c)] += 1
    return counts


def add_digits(s):
    total = 0
    for c in s:
        total += int(c)
    return total


def count_digits(s):
    counts = np.zeros(10, dtype=int)
    for c in s:
        counts[int(c)] += 1
    return counts


def ask(s):
    total = 0
    for c in s:
        if c.isupper():
            total += 1
        elif c.isdigit():
            total += 100
        elif c.lower() == "x" or c.isspace():
            total += 10_000
    return total


def take(s, place):
    return s[place]


def greatest(s):
    most = s[0]
    for c in s:
        if c > most:
            most = c
    return most


def shift(s, k):
    total = 0
    for i, c in enumerate(s):
        total += ord(chr(ord(c) + k)) * i
    return total


def is_palindrome(s):
    i, j = 0, len(s) - 1
    while i < j:
        if s[i] != s[j]:
            return False
        i, j = i + 1, j - 1
    return True


def common(s, t):
    table = [[0] * (len(t) + 1) for _ in range(len(s) + 1)]
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            if s[i - 1] == t[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


def digest(s):
    found = 0
    for c in s:
        found = (found * 31 + ord(c)) % 1_000_003
    return found


def compare(s, t):
    return s == t, s != t, s == "A", "C" in s, s[:3] == t[:3], len(s), isinstance(s[0], str)


def use_whole(s, x):
    return x * len(s.split("A")), s.count("G"), f"{s[:3]} {x:.2f}", s.startswith("AC")


def choose(x, mode):
    return x * 2 if mode == "a long name of a mode, of more than thirty letters" else x + 1


FUNCTIONS = [
    (count, DNA, "A"), (count, DNA, "AC"), (count, DNA, DNA), (count_in, DNA, "GC"), (count_in, DNA, ""), (count_in, DNA, MIXED),
    (count_pairs, DNA, OTHER), (histogram, DNA), (add_digits, "0123456789" * 5), (add_digits, "0123456789" * 5 + "x"),
    (count_digits, "0123456789" * 5), (count_digits, "0123456789" * 5 + "\U0010ffff"), (ask, MIXED), (ask, "äÄ9 x" * 20), (take, DNA, 3), (take, DNA, -1), (take, DNA, 150), (take, DNA, -151), (greatest, DNA),
    (greatest, "a😀b" * 20), (shift, DNA, 5), (shift, DNA, -100), (is_palindrome, DNA), (is_palindrome, DNA + DNA[::-1]),
    (common, DNA, OTHER), (digest, DNA), (digest, "ä€😀" * 30), (digest, "\ud800x" * 20), (compare, DNA, DNA), (compare, DNA, OTHER),
    (use_whole, DNA, 1.5), (choose, 3, "a long name of a mode, of more than thirty letters"),
    (choose, 3.0, "another long name of a mode, of more than thirty letters"),
]


def observe(function, arguments):
    try:
        found = function(*arguments)
        return found.tolist() if isinstance(found, np.ndarray) else found
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore::jitcore.errors.AutojitWarning")
@pytest.mark.parametrize("function, arguments", [(function, arguments) for function, *arguments in FUNCTIONS])
def test_texts_are_those_of_python(function, arguments):
    decorated = autojit(function)
    expected = observe(function, arguments)
    assert [observe(decorated, arguments) for _ in range(3)] == [expected] * 3


def test_one_program_serves_all_texts_of_a_length():
    decorated = autojit(digest, strict=True)
    for seed in range(8):
        s = "".join(random.Random(seed).choices("ACGT", k=90))
        assert decorated(s) == digest(s)
    assert decorated.cache_info().traces == 1
    assert "i32[90]" in str(decorated.inspect("jaxpr"))


def test_constant_texts_are_read_at_places_of_the_program():
    letters = "ACGT"

    @autojit(strict=True)
    def draw(codes):
        total = 0
        for code in codes:
            if letters[code] == "G":
                total += 1
        return total

    codes = np.random.default_rng(0).integers(0, 4, 1000)
    assert draw(codes) == sum(letters[code] == "G" for code in codes)
    with pytest.raises(IndexError):
        draw(codes + 2)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    """A few statements about letters in a loop."""
    rng = random.Random(seed)
    conditions = ["a == b", "a < 'G'", "b in 'AC'", "s[i - 1] != a", "'C' <= a <= 'G'", "last == b", "ord(a) % 3 == 1", "not a == 'T'",
                  "a.lower() == b.lower()", "s[-1 - i] >= b"]
    body = []
    for _ in range(rng.randint(1, 4)):
        action = rng.choice(["n += 1", "n -= ord(b)", "last = a", "k = i", "n += k", "n ^= i"])
        body.append(f"        if {rng.choice(conditions)} {rng.choice(['and', 'or'])} {rng.choice(conditions)}:\n            {action}")
    source = ("def program(s, t):\n    n, k, last = 0, 0, s[0]\n    for i in range(len(t)):\n        a, b = s[i], t[i]\n"
              + "\n".join(body) + "\n    return n, k, last\n")
    names = {}
    exec(source, names)
    decorated = autojit(names["program"])
    for length in (40, 33, 40):
        s, t = ("".join(rng.choices("ACGT", k=length)) for _ in range(2))
        assert decorated(s, t) == names["program"](s, t), source
