"""Strings, bytes and ints of many digits."""

from __future__ import annotations

import random

from benchmarks.plain_program import PlainProgram


def count_words(text):
    counts = {}
    for word in text.split():
        word = word.strip(".,").lower()
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:10]


def shift_letters(text, by):
    out = []
    for letter in text:
        if letter.isalpha():
            base = ord("a") if letter.islower() else ord("A")
            out.append(chr((ord(letter) - base + by) % 26 + base))
        else:
            out.append(letter)
    return "".join(out)


def compress(text):
    parts, i = [], 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        parts.append(f"{text[i]}{j - i}")
        i = j
    return "".join(parts)


def find_palindromes(text):
    best = ""
    for middle in range(len(text)):
        for width in (0, 1):
            i, j = middle, middle + width
            while i >= 0 and j < len(text) and text[i] == text[j]:
                i, j = i - 1, j + 1
            if j - i - 1 > len(best):
                best = text[i + 1 : j]
    return best


def factorial(n):
    product = 1
    for k in range(2, n + 1):
        product *= k
    return product


def sum_digits(n):
    return sum(int(digit) for digit in str(2**n))


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def power(base, exponent, modulus):
    result = 1
    while exponent:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


def is_probably_prime(n):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = power(base, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def find_next_prime(n):
    while not is_probably_prime(n):
        n += 1
    return n


def parse_table(text):
    rows = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, *numbers = line.split(",")
        rows.append((name, [float(number) for number in numbers]))
    return {name: sum(numbers) / len(numbers) for name, numbers in rows}


def evaluate(tokens):
    """An expression in the order of Polish notation."""
    stack = []
    for token in tokens.split():
        if token in "+-*":
            b, a = stack.pop(), stack.pop()
            stack.append(a + b if token == "+" else a - b if token == "-" else a * b)
        else:
            stack.append(int(token))
    return stack[0]


def checksum(data):
    a, b = 1, 0
    for byte in data:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return b << 16 | a


def _make_words(count):
    generator = random.Random(count)
    return " ".join("".join(generator.choices("abcdefgh", k=generator.randrange(1, 5))) + generator.choice(("", ".", ",")) for _ in range(count))


def _make_table(rows):
    return "# data\n" + "\n".join(f"n{k}," + ",".join(str(k * j % 17 / 4) for j in range(8)) for k in range(rows))


ROWS = (
    PlainProgram("word counts", count_words, lambda: (_make_words(30_000),)),
    PlainProgram("Caesar's cipher", shift_letters, lambda: (_make_words(30_000), 5)),
    PlainProgram("run lengths", compress, lambda: ("aaabbbcd" * 10_000,)),
    PlainProgram("palindromes", find_palindromes, lambda: ("abacdcabba" * 200,)),
    PlainProgram("factorial of 3000", factorial, lambda: (3000,)),
    PlainProgram("factorial of 15", factorial, lambda: (15,)),
    PlainProgram("digits of 2**5000", sum_digits, lambda: (5000,)),
    PlainProgram("fibonacci number 20000", fibonacci, lambda: (20_000,)),
    PlainProgram("next prime of 60 digits", find_next_prime, lambda: (10**60,)),
    PlainProgram("a table from text", parse_table, lambda: (_make_table(3000),)),
    PlainProgram("Polish notation", evaluate, lambda: ("1 " + "2 + 3 * 7 - " * 2000,)),
    PlainProgram("checksum of bytes", checksum, lambda: (bytes(range(256)) * 2000,)),
)
