"""Random `while` loops of integers: a slice that is noted to lie inside does, and results stay the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import lax, make_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.primitive import registry
from jitcore.passes import run_pipeline

X = np.arange(11.0)
COMPARISONS = (lax.lt, lax.le, lax.gt, lax.ge, lax.eq, lax.ne)


def read(x, place):
    return lax.dynamic_slice(x, (place,), (1,), allow_negative_indices=False)[0]


class Program:
    """A loop over three integers of one dtype, a flag and a sum of elements, the same at each trace."""

    def __init__(self, seed: int):
        r = self.random = random.Random(seed)
        self.dtype = np.dtype(r.choice(["int32", "int64", "int8", "uint8"]))
        self.state = r.getstate()

    def number(self, low: int = -5, high: int = 6):
        return self.dtype.type(self.random.randint(max(low, np.iinfo(self.dtype).min), high))

    def test(self, values):
        r = self.random
        one, other = r.choice(values), r.choice([*values, jnp.asarray(self.number())])
        return r.choice(COMPARISONS)(one, other)

    def compute(self, values):
        r, one = self.random, self.dtype.type(1)
        a, b, kind = r.choice(values), r.choice(values), r.randrange(9)
        if kind == 0:
            return a + self.number()
        if kind == 1:
            return a - b
        if kind == 2:
            return jnp.where(self.test(values), a, b)
        if kind == 3:
            return lax.cond(self.test(values), lambda a, b: a + one, lambda a, b: b, a, b)
        if kind == 4:
            return lax.rem(a, self.number(1, 7))
        if kind == 5:
            return jnp.minimum(a, jnp.maximum(b, self.number()))
        if kind == 6:
            both = self.test(values) & self.test(values)
            return lax.cond(both, lambda a, b: a - one, lambda a, b: b + one, a, b)
        if kind == 7:
            return a + (self.test(values) | ~self.test(values)).astype(self.dtype)
        return a * self.dtype.type(2) if self.dtype.kind == "u" else lax.abs(a)

    def body(self, carry):
        *values, goes_on, rounds, total = carry
        k = values[2]
        for _ in range(6):
            values.append(self.compute(values))
        r = self.random
        total = total + read(X, r.choice(values))
        place = r.choice(values)
        total = lax.cond(self.test(values), lambda p, s: s + read(X, p), lambda p, s: s * 0.5, place, total)
        goes_on = self.test(values) & (self.test(values) | goes_on)
        steps = [self.dtype.type(r.choice((1, 1, 2) if self.dtype.kind == "u" else (1, 1, 2, -1, -2))) for _ in range(2)]
        k = k + (jnp.where(self.test(values), *steps) if r.random() < 0.3 else steps[0]) if r.random() < 0.6 else values[-1]
        return r.choice(values[3:]), r.choice(values), k, goes_on, rounds + 1, total

    def holds(self, carry):
        i, _, k, goes_on, rounds, _ = carry
        r, found = self.random, rounds < 25
        if r.random() < 0.5:
            found = found & goes_on
        if r.random() < 0.7:
            found = found & r.choice(COMPARISONS)(i, self.number(1, 14))
        if r.random() < 0.3:
            found = found & ((k < self.number(1, 14)) | goes_on)
        found = found & (k < self.number(1, 14)) if r.random() < 0.4 else found
        return (rounds < r.randint(1, 9)) | found if r.random() < 0.2 else found

    def __call__(self, n):
        self.random.setstate(self.state)
        i, j = (jnp.asarray(self.random.choice([n * 0, n, self.number()])) for _ in range(2))
        init = i, j, jnp.asarray(self.dtype.type(0)), jnp.bool_(True), jnp.int32(0), 0.0 * X[0]
        return lax.while_loop(self.holds, self.body, init)


@pytest.fixture
def outside(monkeypatch) -> list:
    """Places outside of an array at which slices were that are noted to lie inside."""
    primitive, found = registry["dynamic_slice"], []
    usual = primitive.impl

    def checked(x, *places, slice_sizes, in_bounds=None):
        noted = in_bounds or (False,) * len(places)
        found.extend(
            (int(place), extent)
            for place, extent, size, is_inside in zip(places, x.shape, slice_sizes, noted)
            if is_inside and not 0 <= int(place) <= extent - size
        )
        return usual(x, *places, slice_sizes=slice_sizes, in_bounds=in_bounds)

    monkeypatch.setattr(primitive, "impl", checked)
    return found


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_what_is_known_of_a_loop_is_true(first, outside):
    for seed in range(first, first + 20):
        program = Program(seed)
        least, most = (int(end) for end in (np.iinfo(program.dtype).min, np.iinfo(program.dtype).max))
        before = make_jaxpr(program)(program.dtype.type(3))
        after = run_pipeline(before)
        for n in (0, 3, 7, 11, 100, most, most - 1, least, least + 1):
            arguments = [np.asarray(n, program.dtype)]
            expected, found = (run_jaxpr_numpy(jaxpr, arguments) for jaxpr in (before, after))
            assert not outside, (seed, n, outside)
            assert all(map(np.array_equal, expected, found)), (seed, n, expected, found)
