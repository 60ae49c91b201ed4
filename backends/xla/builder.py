"""The builder: what a primitive's `hlo` rule writes its StableHLO with.

In: values (shape, dtype, a name in the text). Out: values. Rules see no text: an operation is a name of the
StableHLO specification, operands, attributes and regions.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.xla.text import format_attribute, format_constant, format_matrix, name_type
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.reduce import MONOIDS

#: What a type of a result may be given as.
Type = tuple[Sequence[int], np.dtype]


class HloValue(NamedTuple):
    """A value of the text."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def type(self) -> str:
        return name_type(self.shape, self.dtype)


class HloBuilder:
    """Methods that the loop program's builder has too mean the same: rules of lowering that need no others
    serve both.

    Args:
        lower_jaxpr: (builder, closed_jaxpr, operands) -> results; writes a jaxpr.
        apply_scalar: (builder, name, *operands) -> result; writes a scalar operation of each element.
        target: the platform, "cpu" or "tpu"."""

    def __init__(self, lower_jaxpr: Callable, apply_scalar: Callable, target: str):
        self._lower_jaxpr, self._apply_scalar, self.target = lower_jaxpr, apply_scalar, target
        self.lines: list[str] = []
        self._count = 0
        self._constants: list[dict[tuple, HloValue]] = [{}]

    # -- operations ---------------------------------------------------------------------------------------
    def op(self, name: str, *operands: HloValue, shape=None, dtype=None, **attributes: Any) -> HloValue:
        """An operation with one result, whose type is that of the first operand unless given."""
        first = operands[0] if operands else None
        shape = first.shape if shape is None else shape
        return self.ops(name, operands, [(shape, first.dtype if dtype is None else dtype)], **attributes)[0]

    def ops(self, name: str, operands: Sequence[HloValue], results: Sequence[Type],
            regions: Sequence[str] = (), **attributes: Any) -> list[HloValue]:
        """An operation in MLIR's generic form. attributes: see `text.format_attribute`."""
        made = [self.name_value(shape, dtype) for shape, dtype in results]
        given = ", ".join(f"{key} = {format_attribute(value)}" for key, value in attributes.items())
        text = f'"stablehlo.{name}"({", ".join(operand.name for operand in operands)})'
        text += f" <{{{given}}}>" if given else ""
        text += f" ({', '.join(regions)})" if regions else ""
        kinds = ", ".join(value.type for value in made)
        text += f" : ({', '.join(operand.type for operand in operands)}) -> "
        text += kinds if len(made) == 1 else f"({kinds})"
        if made:
            text = f"{', '.join(value.name for value in made)} = {text}"
        self.lines.append(text)
        return made

    def name_value(self, shape: Sequence[int], dtype) -> HloValue:
        """A value that an operation gives, or an argument of the function that is written."""
        self._count += 1
        return HloValue(f"%{self._count}", tuple(map(int, shape)), np.dtype(dtype))

    def region(self, types: Sequence[Type], write: Callable[..., Sequence[HloValue]],
               is_closed: bool = False) -> str:
        """A region with arguments of these types that returns what `write` makes of them. is_closed: it may
        name no value from outside."""
        arguments = [self.name_value(*kind) for kind in types]
        with self._nested(is_closed) as lines:
            results = write(*arguments)
            names, kinds = (", ".join(getattr(value, part) for value in results) for part in ("name", "type"))
            lines.append(f'"stablehlo.return"({names}) : ({kinds}) -> ()')
        listed = ", ".join(f"{value.name}: {value.type}" for value in arguments)
        head = f"^bb0({listed}):\n" if arguments else ""
        return "{\n" + head + "".join(f"  {line}\n" for line in lines) + "}"

    @contextlib.contextmanager
    def _nested(self, is_closed: bool) -> Iterator[list[str]]:
        """Within, lines are written to the list, and constants are not seen outside."""
        lines, constants = self.lines, self._constants
        self.lines, self._constants = [], [{}] if is_closed else [*constants, {}]
        try:
            yield self.lines
        finally:
            self.lines, self._constants = lines, constants

    # -- attributes -----------------------------------------------------------------------------------------
    @staticmethod
    def join_fields(kind: str, **fields: Any) -> str:
        """An attribute of axes: `#stablehlo.gather<offset_dims = [0], ...>`; empty lists are left out."""
        parts = [f"{name} = {list(value) if not isinstance(value, int) else value}"
                 for name, value in fields.items() if isinstance(value, int) or len(value)]
        return f"#stablehlo.{kind}<{', '.join(parts)}>"

    join_pairs = staticmethod(format_matrix)

    @staticmethod
    def join_layout(spec: Sequence[int], letters: str) -> str:
        """Which axis of a convolution is which: `[b, 0, 1, f]`."""
        names = [""] * len(spec)
        for position, dim in enumerate(spec):
            names[dim] = letters[position] if position < 2 else str(position - 2)
        return f"[{', '.join(names)}]"

    @staticmethod
    def join_precisions(precision: Any) -> str:
        """Of both operands; the highest unless another one is asked for."""
        name = getattr(precision, "name", None) or "HIGHEST"
        return f"[{', '.join([f'#stablehlo<precision {name}>'] * 2)}]"

    # -- values from nothing --------------------------------------------------------------------------------
    def constant(self, value: Any, dtype=None) -> HloValue:
        """An array or a number of this dtype as a constant."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(dtype)
        text = format_constant(array)
        for known in self._constants:
            if text in known:
                return known[text]
        made = self.name_value(array.shape, array.dtype)
        self.lines.append(f'{made.name} = "stablehlo.constant"() <{{value = {text}}}> : () -> {made.type}')
        if array.size < 1 << 12:
            self._constants[-1][text] = made
        return made

    def full(self, value: Any, shape: Sequence[int], dtype) -> HloValue:
        """An array with one number at each place: XLA would write all elements of a constant out."""
        return self.broadcast(self.constant(np.asarray(value).astype(dtype)), shape)

    def iota(self, shape: Sequence[int], dtype, dimension: int) -> HloValue:
        if np.dtype(dtype) == dtypes.bool_:
            return self.convert(self.iota(shape, dtypes.int32, dimension), dtype)
        return self.op("iota", shape=shape, dtype=dtype, iota_dimension=dimension)

    # -- what most rules need -------------------------------------------------------------------------------
    def broadcast(self, x: HloValue, shape: Sequence[int], dims: Sequence[int] = ()) -> HloValue:
        """x along these axes of the shape; an extent of 1 is repeated."""
        if x.shape == tuple(shape) and tuple(dims) == tuple(range(x.ndim)):
            return x
        return self.op("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(dims))

    def match(self, *values: HloValue) -> list[HloValue]:
        """Scalars repeated to the shape of the others."""
        shape = next((value.shape for value in values if value.shape), ())
        return [self.broadcast(value, shape) if value.shape != shape else value for value in values]

    def convert(self, x: HloValue, dtype) -> HloValue:
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if dtype == dtypes.bool_:
            x = self.convert(x, dtypes.float32) if dtypes.is_narrow(x.dtype) else x
            return self.compare("NE", x, self.full(0, x.shape, x.dtype))
        if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
            return self.convert(self.map("real", x), dtype)
        return self.op("convert", x, dtype=dtype)

    def compare(self, direction: str, x: HloValue, y: HloValue, kind: str | None = None) -> HloValue:
        """direction: "EQ", "NE", "LT", "LE", "GT" or "GE"."""
        x, y = self.match(x, y)
        kind = kind or {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(dtypes.kind_of(x.dtype), "UNSIGNED")
        return self.op("compare", x, y, dtype=dtypes.bool_,
                       comparison_direction=f"#stablehlo<comparison_direction {direction}>",
                       compare_type=f"#stablehlo<comparison_type {kind}>")

    def choose(self, which: HloValue, on_true: HloValue, on_false: HloValue) -> HloValue:
        """on_true where `which` holds, else on_false."""
        which, on_true, on_false = self.match(which, on_true, on_false)
        return self.op("select", which, on_true, on_false, dtype=on_true.dtype)

    def select(self, which: HloValue, *cases: HloValue) -> HloValue:
        """cases[which]; `which` is bool for two cases, else int32 clamped to the range."""
        chosen = cases[0]
        for number, case in enumerate(cases[1:], 1):
            is_mask = which.dtype == dtypes.bool_
            hit = which if is_mask else self.compare("GE", which, self.constant(number, which.dtype))
            chosen = self.choose(hit, case, chosen)
        return chosen

    def reshape(self, x: HloValue, shape: Sequence[int]) -> HloValue:
        return x if x.shape == tuple(shape) else self.op("reshape", x, shape=shape)

    def transpose(self, x: HloValue, permutation: Sequence[int]) -> HloValue:
        shape = [x.shape[dim] for dim in permutation]
        return self.op("transpose", x, shape=shape, permutation=tuple(permutation))

    def slice(self, x: HloValue, starts: Sequence[int], limits: Sequence[int], strides=None) -> HloValue:
        strides = (1,) * x.ndim if strides is None else strides
        shape = [len(range(*along)) for along in zip(starts, limits, strides)]
        return self.op("slice", x, shape=shape, start_indices=tuple(starts), limit_indices=tuple(limits),
                       strides=tuple(strides))

    def map(self, name: str, *values: HloValue) -> HloValue:
        """A scalar operation on each element; scalars are repeated."""
        return self._apply_scalar(self, name, *values)

    def cast(self, x: HloValue, dtype) -> HloValue:
        """Floats as integers; what the type does not hold, NaN included, is its least number."""
        info, found = np.iinfo(dtype), self.convert(x, dtype)
        low, high = (self.full(limit, x.shape, x.dtype) for limit in (float(info.min), -float(info.min)))
        inside = self.map("and", self.compare("GE", x, low), self.compare("LT", x, high))
        return self.choose(inside, found, self.constant(info.min, dtype))

    def bitcast(self, x: HloValue, dtype) -> HloValue:
        return x if x.dtype == dtype else self.op("bitcast_convert", x, dtype=dtype)

    def integer_pow(self, x: HloValue, y: int) -> HloValue:
        """x**y by squaring; the reciprocal for negative y."""
        base, result, left = x, None, abs(y)
        while left:
            if left & 1:
                result = base if result is None else self.map("mul", result, base)
            left >>= 1
            base = self.map("mul", base, base) if left else base
        one = self.full(1, x.shape, x.dtype)
        return one if result is None else result if y > 0 else self.map("div", one, result)

    def pow(self, x: HloValue, y: HloValue) -> HloValue:
        return self.map("pow", x, y)

    def reduce(self, monoid: str, x: HloValue, axes: Sequence[int]) -> HloValue:
        """The fold of x over axes; sums and products of half precision are made in float32."""
        kind = MONOIDS[monoid]
        if dtypes.is_half(x.dtype) and kind.accumulates:
            return self.convert(self.reduce(monoid, self.convert(x, dtypes.float32), axes), x.dtype)
        shape = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
        scalar = ((), x.dtype)
        body = self.region([scalar, scalar], lambda *pair: [self.map(monoid, *pair)], is_closed=True)
        start = self.constant(kind.identity(x.dtype))
        return self.ops("reduce", [x, start], [(shape, x.dtype)], [body], dimensions=tuple(axes))[0]

    def index(self, x: HloValue) -> HloValue:
        """Positions in an integer type in which XLA can compare them with every extent."""
        if x.dtype == dtypes.uint64:
            x = self.map("min", x, self.full(np.iinfo(np.int64).max, x.shape, x.dtype))
            return self.convert(x, dtypes.int64)
        small = dtypes.int64 if x.dtype == dtypes.uint32 else dtypes.int32
        return self.convert(x, small) if x.dtype.itemsize < 8 else x

    def loop(self, test: Callable, step: Callable, init: Sequence[HloValue]) -> list[HloValue]:
        """A `while`: test and step are functions of the values that it carries."""
        kinds = [(value.shape, value.dtype) for value in init]
        regions = [self.region(kinds, lambda *carry: [test(*carry)]),
                   self.region(kinds, lambda *carry: step(*carry))]
        return self.ops("while", init, kinds, regions)

    def compare_in_total_order(self, direction: str, x: HloValue, y: HloValue) -> HloValue:
        """Floats as their bits are ordered, -NaN first and NaN last; other types as `compare`."""
        return self.compare(direction, x, y, "TOTALORDER" if dtypes.is_floating(x.dtype) else None)

    # -- programs in programs -----------------------------------------------------------------------------
    def inline(self, closed_jaxpr: ClosedJaxpr, operands: Sequence[HloValue]) -> list[HloValue]:
        """The outputs of a jaxpr for these operands."""
        return self._lower_jaxpr(self, closed_jaxpr, operands)

    def apply(self, function: Callable, *operands: HloValue, **params: Any) -> list[HloValue]:
        """What a function of `jitcore.lax` makes of these values: it is traced, and its jaxpr is written."""
        avals = tuple([ShapedArray(value.shape, value.dtype) for value in operands])
        return self.inline(_trace(function, avals, tuple(sorted(params.items()))), operands)


@functools.lru_cache(maxsize=512)
def _trace(function: Callable, avals: tuple[ShapedArray, ...], params: tuple) -> ClosedJaxpr:
    def run(*operands):
        outs = function(*operands, **dict(params))
        return list(outs) if isinstance(outs, (tuple, list)) else [outs]

    jaxpr, consts = trace_to_jaxpr(run, avals)
    return ClosedJaxpr(jaxpr, consts)
