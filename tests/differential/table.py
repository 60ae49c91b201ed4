"""Tables of calls by function, and the calls that functions of a kind have in common.

In: what the modules of `tables` say. Out: `TABLES[namespace].rows[function]`, the texts of its calls and how near
their values have to be.
"""

from __future__ import annotations

import dataclasses

INTEGERS = "i8 u8 i16 i32 u32 i64".split()
FLOATS = "f16 bf16 f32 f64".split()
COMPLEX = "c64 c128".split()
ALL = ["b", *INTEGERS, *FLOATS, *COMPLEX]
REAL = ["b", *INTEGERS, *FLOATS]
INEXACT = FLOATS + COMPLEX
EDGES = "b i8 u32 bf16 f32 f64 c64".split()  # whose special values are tried
SCALARS = ["True", "2", "-1.5", "2j"]


@dataclasses.dataclass
class Row:
    """The calls of one function.

    Attributes:
        calls: texts, in order. ulps: how far values may be from JAX's, in units of the last place of the dtype;
            0 asks for the same values and signs of zeros. of_largest: the unit is that of the largest value.
        at_least: what this is taken for where it is less."""

    calls: list[str] = dataclasses.field(default_factory=list)
    ulps: float = 0
    of_largest: bool = False
    at_least: float = 0.0

    def loosen(self, call: str) -> Row:
        """The row for a call: derivatives are products of several values."""
        is_derivative = "grad(" in call or "jvp(" in call
        return Row([], 16 * max(self.ulps, 2), True, 1.0) if is_derivative else self


class Table:
    """The rows of a namespace.

    Attributes:
        namespace: below the package, such as "scipy.special". rows: by function. names: what `setup` defines."""

    def __init__(self, namespace: str, setup: str = ""):
        self.namespace, self.setup, self.rows = namespace, setup, {}
        TABLES[namespace] = self

    def add(self, names: str, *arguments: str, d: list[str] | None = None, ulps: float | None = None,
            of_largest: bool = False) -> Table:
        """Calls of functions with these arguments. `{d}` stands for each of the dtypes `d`; a text with `{f}` is
        a whole call, in which that is the function."""
        for name in names.split():
            row = self.rows.setdefault(name, Row())
            if ulps is not None:
                row.ulps, row.of_largest = ulps, of_largest
            for text in arguments:
                text = text if "{f}" in text else "{f}(" + text + ")"
                for dtype in (d or [""]) if "{d}" in text else [""]:
                    call = text.replace("{f}", name).replace("{d}", dtype)
                    if call not in row.calls:
                        row.calls.append(call)
        return self

    def alias(self, names: str) -> Table:
        """Functions `name=other`: a part of the calls of the other one."""
        for pair in names.split():
            name, _, other = pair.partition("=")
            row = self.rows[other]
            calls = [call for call in row.calls[::7] if call.startswith(f"{other}(")]
            self.rows[name] = Row([name + call.removeprefix(other) for call in calls], row.ulps, row.of_largest)
        return self

    def unary(self, names: str, d: list[str] | None = None, kind: str = "", ulps: float = 0,
              special: list[str] | None = None, **options) -> Table:
        """Elementwise functions of one argument: dtypes, shapes, Python scalars, special values."""
        d, draw = ALL if d is None else d, kind and f".{kind}"
        self.add(names, f"{{d}}{draw}[2, 3]", d=d, ulps=ulps, **options)
        self.add(names, "{d}.special[39]", d=[x for x in d if x in EDGES and (special is None or x in special)])
        self.add(names, *(f"f32{draw}[{shape}]" for shape in ("()", "0", "1", "0, 3")), "True", "1", "0.5", "1j", "'a'",
                 "None")
        return self.add(names, f"i32{draw}[0]")

    def binary(self, names: str, d: list[str] | None = None, kind: str = "", ulps: float = 0,
               special: list[str] | None = None, **options) -> Table:
        """Elementwise functions of two arguments: pairs of dtypes (all of them over the functions), shapes that
        broadcast, Python scalars, special values with each other."""
        d, draw = ALL if d is None else d, kind and f".{kind}"
        self.add(names, f"{{d}}{draw}[2, 3], {{d}}{draw}[2, 3]", d=d, ulps=ulps, **options)
        self.add(names, "{d}.special[13, 1], {d}.special[13]", d=[x for x in d if x in EDGES and (special is None or x in special)])
        self.add(names, *(f"f32{draw}[{one}], f32{draw}[{other}]" for one, other in (
            ("2, 3", "3"), ("2, 1", "1, 3"), ("()", "3"), ("0, 3", "3"), ("0", "1"), ("2", "3"))))
        for turn, name in enumerate(names.split(), len(self.rows)):
            for place, one in enumerate(d):
                other = d[(place + 1 + turn % (len(d) - 1)) % len(d)]
                scalar = SCALARS[(place + turn) % len(SCALARS)]
                self.add(name, f"{one}{draw}[3], {other}{draw}[3]", f"{one}{draw}[3], {scalar}")
            self.add(name, f"2, i8{draw}[3]", f"1.5, f16{draw}[3]", "2, 3", "2.0, 3", "True, 2", "'a', f32[3]")
        return self

    def reduction(self, names: str, d: list[str] | None = None, ulps: float = 0, where: bool = True,
                  dtype: bool = False, initial: str = "", **options) -> Table:
        """Functions of an array along axes: dtypes, axes, empty arrays, nan, and the options that they have."""
        d = ALL if d is None else d
        self.add(names, "{d}[2, 3]", d=d, ulps=ulps, **options)
        self.add(names, "{d}.special[3, 13], axis=0", d=[x for x in d if x in EDGES])
        self.add(names, "f32[2, 3], axis=0", "f32[2, 3], axis=-1", "f32[2, 3, 2], axis=(0, 2)", "f32[2, 3], axis=()",
                 "f32[2, 3], axis=1, keepdims=True", "f32[2, 3], keepdims=True", "f32[2, 3], axis=2",
                 "f32[2, 3], axis=(0, 0)", "f32[()]", "f32[1]", "f32[0]", "i32[0]", "f32[0, 3], axis=0", "f32[0, 3], axis=1",
                 "3", "2.5", "True", "[1, 2]", "(1.5, 2)")
        if where:
            self.add(names, "f32[2, 3], where=b[2, 3]", "i32[2, 3], axis=0, where=b[2, 3]",
                     "f32[2, 3], axis=1, where=False")
        if dtype:
            self.add(names, "{d}[2, 3], dtype='float32'", "{d}[2, 3], dtype='int8'", d=["b", "u8", "i32", "f16", "f64"])
            self.add(names, "f32[3], dtype='complex64'", "c64[3], dtype='float32'", "i32[3], dtype='bool'")
        if initial:
            self.add(names, f"{{d}}[2, 3], initial={initial}", d=["i8", "i32", "f16", "f32"])
            self.add(names, f"f32[0], initial={initial}", f"f32[2, 3], axis=0, initial={initial}, where=b[2, 3]")
        return self

    def transforms(self, names: str, argument: str = "", kind: str = "", complex_too: bool = False) -> Table:
        """Derivatives and `vmap` of functions of one array; `argument` are further arguments, with a comma."""
        draw, call = kind and f".{kind}", "{f}(x" + (f", {argument})" if argument else ")")
        for dtype in ["f32", "bf16"] + ["c64"] * complex_too:
            self.add(names, f"jvp(lambda x: {call}, ({dtype}{draw}[3],), ({dtype}[3],))")
        self.add(names, f"grad(lambda x: jnp.sum({call}))(f64{draw}[2, 3])", f"grad(lambda x: jnp.sum({call}))(i32{draw}[3])",
                 f"vmap(lambda x: {call})(f32{draw}[2, 3])", f"vmap(lambda x: {call})(i32{draw}[0, 3])",
                 f"vmap(grad(lambda x: jnp.sum({call})))(f16{draw}[2, 3])")
        return self


TABLES: dict[str, Table] = {}
