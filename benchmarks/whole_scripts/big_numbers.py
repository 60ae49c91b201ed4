from fractions import Fraction


def digits_of_e(n):
    one, total, k = 10 ** (n + 10), 0, 1
    term = one
    while term:
        total += term
        term //= k
        k += 1
    return str(total)[: n + 1]


def harmonic(n):
    return sum(Fraction(1, k) for k in range(1, n + 1))


print(digits_of_e(2000)[-10:])
print(str(harmonic(600).numerator)[:20])
