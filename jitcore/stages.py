"""Ahead-of-time use of `jit`, stage by stage: `f.trace(x).lower().compile()(x)`.

In: a jitted function and example arguments, which may be `ShapeDtypeStruct`s. Out: `Traced` (a jaxpr),
`Lowered` (an optimized jaxpr), `Compiled` (an executable for exactly these types). Each stage can be printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitcore import tree_util
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray, ShapeDtypeStruct
from jitcore.core.source import api_boundary
from jitcore.core.trace import Tracer
from jitcore.dispatch.backend import Backend, find_backend, find_compiler, find_lowering
from jitcore.dispatch.fast_call import FastCallable, FastCalls
from jitcore.dispatch.function import Entry, JitFunction, read_values
from jitcore.dispatch.options import NOTHING_SPECIAL, read_compiler_options
from jitcore.dispatch.program import Program
from jitcore.dispatch.signature import CallSignature, read_call
from jitcore.hypertext import Shown, fold, show_text
from jitcore.sharding import Spread

__all__ = ["Compiled", "Lowered", "Traced", "show_stages"]


class Stage:
    """What the stages share: the function, its signature and its program."""

    def __init__(self, fun, function: JitFunction, call: CallSignature, program: Program):
        self._fun, self._function, self._call, self._program = fun, function, call, program

    @property
    def fun_name(self) -> str:
        return self._program.traced.fun_name

    @property
    def in_tree(self) -> tree_util.PyTreeDef:
        """Treedef of (args, kwargs), static arguments left out."""
        return self._call.make_in_tree()

    @property
    def out_tree(self) -> tree_util.PyTreeDef:
        return self._program.traced.make_out_tree()

    @property
    def in_avals(self) -> Any:
        """The avals of the arguments, as (args, kwargs)."""
        return self.in_tree.unflatten(self._call.avals)

    @property
    def out_info(self) -> Any:
        """The result with a `ShapeDtypeStruct` in place of each array."""
        return make_out_info(self._program)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Indices of the donated leaves."""
        return tuple(i for i, donated in enumerate(self._program.donated) if donated)

    def _show(self, *stages: str) -> str:
        """The signature, and forms of the program, of which the last is open."""
        texts, jaxpr = _list_texts(self._program), self._program.traced.jaxpr
        types = [", ".join(aval.short() for aval in avals) for avals in (jaxpr.in_avals, jaxpr.out_avals)]
        found = [(stage, texts[stage]()) for stage in stages if stage in texts]
        parts = [fold(stage, text._repr_html_() if isinstance(text, Shown) else show_text(text),
                      number == len(found)) for number, (stage, text) in enumerate(found, 1)]
        title = f"{type(self).__name__}: {self.fun_name}({types[0]}) -> ({types[1]})"
        return f"<div>{show_text(title, 1000)}{''.join(parts)}</div>"


class Traced(Stage):
    """A function traced for given argument types."""

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._program.closed_jaxpr

    def _repr_html_(self) -> str:
        return self._show("jaxpr")

    @api_boundary
    def lower(self) -> Lowered:
        """Runs the passes."""
        return Lowered(self._fun, self._function, self._call, self._program)


class Lowered(Stage):
    """A traced function after the passes, ready to be compiled."""

    def as_text(self, dialect: str | None = None) -> str:
        """The optimized jaxpr; 'stablehlo': the module that XLA gets.

        Raises: ValueError for any dialect but None, 'jaxpr' and 'stablehlo'."""
        if dialect == "stablehlo":
            return self._lower_to_stablehlo()
        if dialect not in (None, "jaxpr"):
            raise ValueError(
                f"unknown dialect {dialect!r}: lowered programs are printed as 'jaxpr' or 'stablehlo'")
        return str(self._program.compiled_jaxpr)

    def _repr_html_(self) -> str:
        return self._show("jaxpr", "optimized jaxpr")

    def _lower_to_stablehlo(self) -> str:
        backend = self._program.backend
        program = self.make_program(backend if hasattr(backend, "lower_text") else find_lowering("xla"))
        return program.backend.lower_text(program.compiled_jaxpr)

    def make_program(self, backend: Backend) -> Program:
        """The same function for a backend."""
        program = self._program
        if backend is program.backend:
            return program
        spread = program.sharding if isinstance(program.sharding, Spread) else None
        return Program(program.traced, program.donated, program.options, backend, spread)

    @api_boundary
    def compile(self, compiler_options: Mapping[str, Any] | None = None, *,
                target: str | None = None) -> Compiled:
        """compiler_options: as those of `jit`, which they override key by key. target: what to compile for
        instead of the backend of the function: another backend, "cpu" or "xla", or a TPU that need not be
        there, "tpu:v5e", "tpu:v6e", "tpu:v5p", with a topology "tpu:v5e:2x2". What is compiled for such a one
        can be looked at, not called.

        Raises: ValueError for an unknown target; ImportError naming what to install for it."""
        name = self._program.backend.name
        program = self.make_program(find_backend(name) if target is None else find_compiler(target))
        if compiler_options:
            merged = dict(program.options.compiler_options) | dict(read_compiler_options(compiler_options))
            options = program.options._replace(compiler_options=tuple(sorted(merged.items())))
            program = Program(program.traced, program.donated, options, program.backend, program.sharding)
        return Compiled(self._fun, self._function, self._call, program)


class Compiled(FastCallable, Stage):
    """An executable for the argument types that it was compiled for.

    A call runs it. Static arguments are left out. Raises: TypeError when types or structure differ."""

    def __init__(self, fun, function: JitFunction, call: CallSignature, program: Program):
        FastCallable.__init__(self, FastCalls(), self._check_and_call)
        Stage.__init__(self, fun, function, call, program)
        self._entry = Entry(program, call)

    def _check_and_call(self, args: tuple, kwargs: dict) -> Any:
        call = read_call(self._fun, NOTHING_SPECIAL, args, kwargs)
        if any(isinstance(leaf, Tracer) for leaf in call.leaves):
            raise TypeError("Cannot trace a function lowered and compiled for a particular signature: "
                            "call the jitted function itself here.")
        expected = self.in_tree
        if call.make_in_tree() != expected:
            raise TypeError("Function compiled with input pytree does not match the input pytree it was "
                            f"called with: {expected} and {call.make_in_tree()}")
        if any(part[:2] != wanted[:2] for part, wanted in zip(call.parts, self._call.parts)):
            raise TypeError("Argument types differ from the types for which this computation was compiled. "
                            f"The mismatches are:\n{self._list_mismatches(call)}")
        call.donated = self._call.donated
        self._entry.slow_calls += 1
        self._fast.learn(call, kwargs, self._entry)
        return self._entry.call(call.leaves, read_values(self._fun, call, self._entry.backend))

    def _list_mismatches(self, call: CallSignature) -> str:
        names = self._call.name_leaves(self._fun)
        return "\n".join(f"Argument '{name}' compiled with {ShapedArray(*wanted).long()} and called with "
                         f"{ShapedArray(*part).long()}"
                         for name, part, wanted in zip(names, call.parts, self._call.parts)
                         if part[:2] != wanted[:2])

    def as_text(self, stage: str | None = None) -> str:
        """A stage, as `inspect` names them: 'loop program', 'kernel'. Without one the most detailed text that
        the backend keeps, else the optimized jaxpr.

        Raises: ValueError for a stage that there is none of."""
        return show_stages(self._program, stage or list_stages(self._program)[-1])

    def _repr_html_(self) -> str:
        return self._show("jaxpr", "optimized jaxpr", "loop program")

    def cost_analysis(self) -> dict[str, float]:
        """'flops', 'bytes accessed' (arguments and results, once each) and 'optimal_seconds', the time that
        the machine allows for them, as far as the backend tells. On the CPU that is by its measured roofline.

        Cost: a second, once for a machine, for which its memory and arithmetic are measured."""
        executable = self._program.executable
        found = dict(executable.cost())
        if found and hasattr(executable, "find_least_seconds"):
            found["optimal_seconds"] = executable.find_least_seconds()
        return found

    def memory_analysis(self) -> MemoryStats:
        return MemoryStats(self._program)

    def runtime_executable(self):
        return self._program.executable


class MemoryStats:
    """Bytes of arguments, results, and results that take over the memory of arguments; what else the backend
    knows: `temp_size_in_bytes`, `generated_code_size_in_bytes`."""

    def __init__(self, program: Program):
        jaxpr = program.traced.jaxpr
        self.argument_size_in_bytes = sum(map(_count_bytes, jaxpr.in_avals))
        self.output_size_in_bytes = sum(map(_count_bytes, jaxpr.out_avals))
        reused = [aval for aval, is_reused in zip(jaxpr.in_avals, program.reused) if is_reused]
        self.alias_size_in_bytes = sum(map(_count_bytes, reused))
        if hasattr(program.executable, "memory"):
            vars(self).update(program.executable.memory())

    def __repr__(self) -> str:
        return "MemoryStats(" + ", ".join(f"{name}={value}" for name, value in vars(self).items()) + ")"


def _count_bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


def make_out_info(program: Program) -> Any:
    """The program's result with a `ShapeDtypeStruct` in place of each array."""
    avals = program.traced.jaxpr.out_avals
    infos = [ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]
    return program.traced.unflatten(infos)


def _list_texts(program: Program) -> dict[str, Callable[[], str]]:
    return {"jaxpr": lambda: Shown(str(program.closed_jaxpr), program.closed_jaxpr),
            "optimized jaxpr": lambda: Shown(str(program.compiled_jaxpr), program.compiled_jaxpr),
            **program.executable.texts(program.argument_names)}


def list_stages(program: Program) -> list[str]:
    """What can be shown, in the order of the data flow."""
    return list(_list_texts(program))


def show_stages(program: Program, stage: str | None = None) -> Any:
    """A stage of a program as text, or all of them in a dict, in the order of the data flow: for one that
    cannot be written, why.

    Raises: ValueError for a stage that there is none of; NotImplementedError for one that cannot be
    written."""
    texts = _list_texts(program)
    if stage is None:
        found = {}
        for name, make in texts.items():
            try:
                found[name] = make()
            except NotImplementedError as error:
                found[name] = str(error)
        return found
    if stage not in texts:
        raise ValueError(f"unknown stage {stage!r}: the stages are {', '.join(texts)}")
    return texts[stage]()
