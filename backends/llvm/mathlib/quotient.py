"""Quotients of many numbers by one whose inverse is known: x / y, rounded correctly.

In: lane values x, y and 1 / y, the same y in every lane; out: one. Stage: rendering. Method: the product with
the inverse, corrected by the rest x - q y, which is exact, times the inverse. That is the quotient rounded
correctly, as long as nothing over- or underflows (Brisebarre, Muller and Raina, "Accelerating correctly
rounded floating-point division when the divisor is known in advance", 2004). Three operations, of which two
can start in every cycle, instead of one that keeps the unit for divisions busy for up to sixteen.
"""

# Exponents of y, and of x, on either side of one, for which everything stays far from the ends of the range.
DIVISORS = {32: 20, 64: 100}
OPERANDS = {32: 50, 64: 800}


def build_quotient(e, x, divisor, inverse):
    product = x * inverse
    rest = e.fma(-product, divisor, x)
    is_some = x != 0.0  # the sign of a zero is that of the product
    quotient = e.select(is_some, e.fma(rest, inverse, product), product)
    hard = _is_past(e, inverse, DIVISORS[e.bits]) | is_some & _is_past(e, x, OPERANDS[e.bits])
    return e.replace(hard, quotient, lambda: x / divisor)


def _is_past(e, x, exponent):
    """Whether a magnitude is not from 2**-exponent up to 2**exponent. Infinities and NaN are past it."""
    smallest, count = (number << e.mantissa for number in (e.bias - exponent, 2 * exponent))
    past = (e.to_bits(x) & ~e.sign_bit) - smallest
    return e.lanes(e.builder.icmp_unsigned(">=", past.value, e.int_const(count).value))
