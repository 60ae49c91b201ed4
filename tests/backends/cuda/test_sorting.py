"""Sorting on the CUDA device in software, by digits and by a network: order, stability, bits, numbers of passes."""

from __future__ import annotations

import collections

import ml_dtypes
import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda.emulated import EmulatedDevice
from jitcore.backends.cuda.program import LoadedProgram
from jitcore.backends.cuda.sorting import network, programs
from jitcore.backends.gpu.tuning import Tuning
from jitcore.sharding import Device

DEVICE = Device("gpu", device_kind="emulated", backend="cuda:emulated")
RNG = np.random.default_rng(11)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf, 6e-8, -6e-8])


#: Keys whose bits are those of others, too.
LONG = ("bfloat16", "int16", "uint16", "int32", "int64")
BOTH = pytest.mark.parametrize("way", ["digits", "network"], indirect=True)


@pytest.fixture
def way(request, monkeypatch):
    jitcore.clear_caches()
    if request.param == "digits":
        monkeypatch.setattr(network, "LONGEST", 0)
    yield request.param
    jitcore.clear_caches()


def draw(dtype, *shape):
    """Numbers of every bit pattern, equal ones and special ones among them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        parts = [np.nan_to_num(draw(dtype.type(0).real.dtype, *shape)) for _ in range(2)]
        return (np.round(parts[0]) + 1j * parts[1]).astype(dtype)
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    x = RNG.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    x = np.where(RNG.random(shape) < 0.3, RNG.integers(0, 5, shape).astype(dtype), x)
    is_float = dtype.kind == "f" or dtype == ml_dtypes.bfloat16
    return np.where(RNG.random(shape) < 0.2, RNG.choice(SPECIAL, shape).astype(dtype), x) if is_float else x


def order_of(x, axis=-1):
    return np.argsort(
        x.astype(np.float32) if x.itemsize == 2 and x.dtype.kind not in "iu" else x, axis, kind="stable"
    )


def order_of_largest(x):
    """NaN first, and 0.0 before -0.0, equal ones in their order."""
    if x.dtype.kind in "biu":
        return np.argsort(~x, kind="stable")
    with np.errstate(invalid="ignore"):
        is_nan = np.isnan(x)
    wide = np.where(is_nan, 0, x).astype(np.float64)
    return np.lexsort((np.signbit(wide), -wide, ~is_nan))


def run(function, *args, seed=None, change=str):
    """(results with threads in an order that the seed says, names of functions and how often each is launched).
    change: of the PTX."""
    program = jit(function).lower(*args).compile(target="cuda:emulated")._program
    given, executable = [*program.const_values, *args], program.executable
    rendered = executable.read_latest()
    values = [
        np.asarray(given[i], aval.dtype) for i, aval in zip(program.kept, program.compiled_jaxpr.in_avals)
    ]
    load = LoadedProgram(rendered, change(executable.texts()["ptx"]()), EmulatedDevice(seed=seed), DEVICE)
    return [np.array(out) for out in load.run(*values)], count_launches(executable)


def count_launches(executable):
    lines = [line for line in executable.texts()["mapping"]().splitlines() if ": sort, " in line]
    names = [line.partition(":")[0].split("_")[1].rstrip("0123456789") for line in lines]
    return dict(collections.Counter(names))


def check(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


KEYS = ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16", "int32", "uint32", "float32", "int64", "uint64",
        "float64"]


@pytest.mark.parametrize("way, dtype", [*(("digits", dtype) for dtype in KEYS if dtype not in LONG),
                                        *(pytest.param("digits", dtype, marks=pytest.mark.slow) for dtype in LONG),
                                        ("network", "float16"), ("network", "uint64")], indirect=["way"])
def test_keys(way, dtype):
    x = draw(dtype, 4000 if way == "network" else 8300)
    (found, largest, places), launches = run(lambda x: (jnp.sort(x), *lax.top_k(x, 999)), x, seed=1)
    check(found, x[order_of(x)])
    check(places.astype(np.int64), order_of_largest(x)[:999])
    check(largest, x[places])
    assert launches.get("scatter", 0) == 2 * x.itemsize * (way == "digits")


@BOTH
def test_pairs(way):
    x = draw("complex64", 4000)
    check(run(lambda x: jnp.sort(x), x)[0][0], x[np.lexsort((x.imag, x.real))])


@pytest.mark.parametrize("dtype, tile", [("uint32", 8192), pytest.param("float64", 4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way, tiles, more", [
    *(("digits", *length) for length in ((0, 1), (1, 0), (34, 5))), ("network", 0, 4096),
    *(pytest.param("digits", *length, marks=pytest.mark.slow) for length in ((1, -1), (1, 1), (4, 5)))],
    indirect=["way"])
def test_lengths(way, dtype, tile, tiles, more):
    x = draw(dtype, tiles * tile + more)
    (found, order), _ = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x, seed=2)
    check(found, x[order_of(x)])
    check(order.astype(np.int64), order_of(x))


@BOTH
@pytest.mark.parametrize(
    "shape, axis", [((3, 5000), 1), ((2, 8200, 2), 1), ((1, 1), 0),
                    *(pytest.param(*case, marks=pytest.mark.slow) for case in (((5000, 3), 0), ((40, 30), 1)))]
)
def test_rows(way, shape, axis):
    x = draw("int16", *shape)
    (found, order), _ = run(lambda x: (jnp.sort(x, axis), jnp.argsort(x, axis)), x, seed=3)
    check(order.astype(np.int64), order_of(x, axis))
    check(found, np.take_along_axis(x, order, axis))


#: Of so many elements.
PATTERNS = {
    "all equal": lambda n: np.full(n, 0x01020304, np.uint32),
    "sorted": lambda n: np.arange(n, dtype=np.uint32) * 70_001,
    "from the last on": lambda n: np.arange(n, dtype=np.uint32)[::-1].copy(),
    "few different ones": lambda n: RNG.integers(0, 3, n).astype(np.uint32) << np.uint32(9),
}


@pytest.mark.parametrize("way, name", [("digits", name) for name in PATTERNS], indirect=["way"])
def test_patterns(way, name):
    x = PATTERNS[name](17_000)
    (found, order), _ = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x, seed=6)
    check(found, x[order_of(x)])
    check(order.astype(np.int64), order_of(x))


def test_numbers_of_tuning(use_tuning, monkeypatch):
    """Other sizes of tiles."""
    monkeypatch.setattr(network, "LONGEST", 0)
    use_tuning(Tuning(digit_block=384, most_digit_items=5, digit_count_items=16))
    x = draw("float32", 9001)
    (found, order), _ = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x, seed=7)
    check(found, x[order_of(x)])
    check(order.astype(np.int64), order_of(x))


@pytest.mark.parametrize(
    "way, seed", [("digits", None), ("digits", 1), ("network", 1)], indirect=["way"]
)
def test_several_keys_in_any_order_of_threads(way, seed):
    """Of different widths, the first one with many equal elements."""
    n = 9000 if way == "digits" else 3000
    keys = [
        RNG.integers(0, 3, n).astype(np.int8),
        RNG.integers(0, 9, n).astype(np.float64),
        draw("uint16", n),
    ]
    given = [*keys, np.arange(n)]
    found, _ = run(lambda *xs: lax.sort(xs, num_keys=3), *given, seed=seed)
    order = np.lexsort(keys[::-1])
    for one, x in zip(found, given):
        check(one, x[order])


@pytest.mark.parametrize("dtype", ["float16", "uint32"])
def test_a_long_row(dtype):
    """As the rule has it."""
    x = draw(dtype, 70_000)
    (found, order), _ = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x, seed=4)
    check(found, x[order_of(x)])
    check(order.astype(np.int64), order_of(x))


def only_the_first_tile_tells_sums(ptx):
    """Of what each tile tells, its own counts and then the sum up to it, the second is left out but for the first tile."""
    lines, count = ptx.splitlines(), 0
    for number, line in enumerate(lines):
        count = 0 if ".entry" in line else count + ("st.relaxed.gpu" in line)
        if "st.relaxed.gpu" in line and count == 2:
            lines[number] = ("{ .reg .pred %is; .reg .b32 %at; mov.u32 %at, %ctaid.x; setp.eq.u32 %is, %at, 0; "
                             f"@%is {line} }}")
    assert lines != ptx.splitlines()
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("way", ["digits"], indirect=True)
def test_tiles_add_up_what_those_before_tell(way):
    """As blocks do that run at one time; one after the other, they find the sum at the tile before."""
    x = draw("uint16", 5 * 8192 + 77)
    (found, order), _ = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x, change=only_the_first_tile_tells_sums)
    check(found, x[order_of(x)])
    check(order.astype(np.int64), order_of(x))


@BOTH
def test_memory_of_the_operand_may_be_that_of_the_result(way):
    for dtype in ("int8", "uint16", "float32"):
        x = draw(dtype, 4000)
        given = jitcore.device_put(x, jitcore.devices("cuda:emulated")[0])
        check(np.asarray(jit(lambda x: jnp.sort(x), donate_argnums=0)(given)), x[order_of(x)])


@BOTH
@pytest.mark.parametrize("extent", [1, 200, 5000])
def test_updates(way, extent):
    """The order of equal places is that of the updates: so sums have the bits of one sum after the other, but for those
    of few elements, of which each warp has a table."""
    i, x = RNG.integers(-extent, extent + extent // 9, 4000), draw("float32", 4000)
    x = np.where(np.abs(x) < 1e9, x, 1.5).astype(np.float32)
    (sums, last), _ = run(
        lambda i, x: (jnp.zeros(extent, "float32").at[i].add(x), jnp.zeros(extent, "float32").at[i].set(x)),
        i,
        x,
        seed=5,
    )
    expected, chosen = np.zeros((2, extent), np.float32)
    for place, value in zip(i[i < extent], x[i < extent]):
        expected[place] += value
        chosen[place] = value
    if extent == 5000:
        check(sums, expected)
    else:
        np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-6 * np.abs(x).sum())
    check(last, chosen)


def passes(count):
    return {"clear": 1, "count": 1, "scan": 1, "scatter": count}


def lone_passes(count):
    """Of rows of one tile."""
    return {"scatter": count}


#: (function, what it sorts, launches).
RULE = {
    "one tile": (jnp.sort, [np.zeros(1000, "u4")], {"tiles": 1}),
    "rows of one tile": (jnp.sort, [np.zeros((30, 4096))], {"tiles": 1}),
    "two keys": (lambda x, y: lax.sort((x, y), num_keys=2), [np.zeros(1000, "u4")] * 2, {"tiles": 2}),
    "many elements": (jnp.sort, [np.zeros(1_000_000, "u4")], passes(4)),
    "with places": (jnp.argsort, [np.zeros(1_000_000, "f4")], passes(4)),
    "with other operands": (lambda x, y, z: lax.sort((x, y, z)), [np.zeros(1_000_000, "f4")] * 3, passes(4)),
    "64 bits with places": (jnp.argsort, [np.zeros(1_000_000)], passes(8)),
    "8 bits": (jnp.sort, [np.zeros(9000, "i1")], passes(1)),
    "8 bits in one tile": (jnp.sort, [np.zeros(5000, "i1")], lone_passes(1)),
    "16 bits": (jnp.sort, [np.zeros(1_000_000, "f2")], passes(2)),
    "many rows": (jnp.sort, [np.zeros((4000, 9000), "u4")], passes(4)),
    "many rows of one tile": (jnp.sort, [np.zeros((4000, 5000), "u4")], lone_passes(4)),
    "updates of few elements": (lambda i, x: jnp.zeros(200).at[i].set(x), [np.zeros(5000, int), np.zeros(5000)], lone_passes(1)),
    "updates": (lambda i, x: jnp.zeros(70_000).at[i].add(x), [np.zeros(500_000, int), np.zeros(500_000)], passes(3)),
}


@pytest.mark.parametrize("name", RULE)
def test_launches(name):
    function, args, launches = RULE[name]
    compiled = jit(lambda *args: function(*args)).lower(*args).compile(target="cuda:sm_90")
    assert count_launches(compiled.runtime_executable()) == launches


def test_rows_that_are_too_long_are_the_hosts(monkeypatch):
    monkeypatch.setattr(programs, "LONGEST", 100)
    x = draw("float32", 2, 100)
    (found, order), launches = run(lambda x: (jnp.sort(x), jnp.argsort(x)), x)
    check(found, np.take_along_axis(x, order, 1))
    check(order.astype(np.int64), order_of(x))
    assert not launches
