"""Loops of a script compiled in another process than the script's.

In: what `environment.describe` told of a frame, and the head of a loop in its code. Out: a `FromDisk`: what a
call of the loop's program checks, passes and writes, as source and constants, where its machine code is in
the cache on disk; or the reason why there is none.
"""

from __future__ import annotations

import enum
import functools
import importlib
import io
import pickle
import sys
import types
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jitcore.autojitted.entry import Entry
from jitcore.autojitted.function import UNLIMITED, AutojitFunction
from jitcore.autojitted.inputs.guards import ClassGuard
from jitcore.autojitted.inputs.reading import NumberPolicy, Reader, Unreadable
from jitcore.autojitted.options import Options
from jitcore.autojitted.recording.purity import OWN_MODULES
from jitcore.autojitted.tiers.budget import Account, find_hindrance, uses_arrays
from jitcore.autojitted.tiers.report import find_reason
from jitcore.core.jaxpr import list_equations
from jitcore.core.source import raise_interruption
from jitcore.dispatch.call_facts import ABSENT
from jitcore.process import streams
from jitcore.process.lists import find_native, pack
from jitcore.rewriter.bytecode.instructions import Unsupported
from jitcore.rewriter.writing.entered import EnteredOutline
from jitcore.rewriter.writing.outlined import list_columns, write_loop
from jitcore.rewriter.writing.outlining import Outline, OutlinedLoop, list_stored
from jitcore.scripts.entries import OPAQUE, list_assigned
from jitcore.scripts.environment import SYSTEM, Rebuilt, list_methods, list_stored_names
from jitcore.scripts.gates import HEAD
from jitcore.scripts.iterators import ANY_STEP, Column
from jitcore.scripts.regions import FromDisk, Job
from jitcore.scripts.running import ARRAYS

__all__ = ["Refused", "compile_loop"]

Function = types.FunctionType
#: Multiply-adds from which on a thread is woken up, see `CompileOptions`: 0.2 ms. Python did without, and a
#: machine whose cores are busy, or are threads of one core, is slower with two.
THREAD_WORK = 1 << 22


class Refused(Exception):
    """A loop that is left to Python. The text says why."""


def compile_loop(job: Job) -> FromDisk:
    """Raises: Refused."""
    rebuilt = Rebuilt(job.data)
    function = rebuilt.functions[0]
    OWN_MODULES.update(kind.__module__ for kind in rebuilt.classes.values())
    if not job.body:
        values = list(rebuilt.values.values())
        return describe_entry(compile_entry(function, values, rebuilt), rebuilt, (), None, job)
    variables = list_assigned(function.__code__, job.body) | job.lists if job.is_module else None
    try:
        outline = EnteredOutline(function.__code__, variables, {*job.sides, *job.ends, job.body[0]})
    except Unsupported as error:
        raise Refused(str(error)) from None
    loop = outline.find_loop(job.body)
    if loop is None or not outline.name_lists(loop) <= job.lists:
        raise Refused("it cannot be a function of its own")
    has_elements = not job.form.startswith(("while", "range", "run"))
    make_element = make_function(job.form, len(job.counts) - 2) if has_elements else None
    refused = None
    for sides in list_cuts(function.__code__, job):
        rest = outline.find_rest(loop, (*sides, *job.ends), job.lists, job.body[0], make_element,
                                 bool(job.ends))
        if job.ends and not outline.is_caught_alike(rest):
            continue
        if not job.ends and rest.counter is None and (sides or len(rest.exits) > 1):
            continue
        try:
            return compile_rest(rebuilt, outline, rest, job)
        except Refused as error:
            refused = refused or error
    raise refused or Refused("it cannot be a function of its own")


def list_cuts(code: types.CodeType, job: Job) -> Iterator[tuple[int, ...]]:
    """Parts of a loop to leave it at: none; those that print, or call what cannot be compiled; all of
    them."""
    opaque = tuple(offset for offset, names in job.sides.items() if names & OPAQUE)
    yield opaque
    if len(opaque) < len(job.sides):
        yield tuple(job.sides)


def compile_rest(rebuilt: Rebuilt, outline: Outline, rest: OutlinedLoop, job: Job) -> FromDisk:
    fresh = outline.find_fresh(rest).intersection(rest.parameters)
    rest = rest._replace(unsure=rest.unsure | fresh)
    own = make_region(rebuilt, outline, rest, job)
    values = [ABSENT if name in fresh else rebuilt.values.get(name, ABSENT) for name in rest.parameters]
    values += [find_count(one, rebuilt) for one in job.counts]
    code = own[0].__code__
    names = code.co_varnames[: code.co_argcount]
    varying = {*names[len(rest.parameters) :]}  # where the range begins and ends
    varying |= {name for name, variable in zip(names, rest.parameters) if variable in rest.varying}
    alone: dict[str, str] = {}
    try:
        entry = compile_entry(own[0], values, rebuilt, varying)
    except Refused as error:
        alone = {name: variable for name, variable, value in zip(names, rest.parameters, values)
                 if variable in rest.results and is_plain_array(value)}
        if not alone or not any(text in str(error) for text in _SHARING):
            raise
        entry = compile_entry(own[0], values, rebuilt, varying, alone.keys())
    told = describe_entry(entry, rebuilt, own, rest, job)
    renewed = frozenset(rest.results).difference(rest.parameters, rest.unsure_results) | fresh
    if not job.is_module:
        renewed |= {*outline.code.co_varnames} - outline.live[rest.head_block]
    return told._replace(ignored=fresh, counter=rest.counter, own=frozenset(alone.values()), renewed=renewed)


#: In reasons that do not hold for arrays that nobody else has.
_SHARING = "may share memory", "may be one of the arguments"


def is_plain_array(value: Any) -> bool:
    """Whether it is an array that owns its memory."""
    return type(value) is np.ndarray and value.flags.writeable and (
        value.flags.c_contiguous or value.flags.f_contiguous)


def find_count(told: Any, rebuilt: Rebuilt) -> Any:
    """What a program is told of its iterations, see `Ahead.tell`."""
    return rebuilt.values[told] if type(told) is str else told.fill() if type(told) is Column else told


def make_region(rebuilt: Rebuilt, outline: Outline, rest: OutlinedLoop, job: Job) -> list[Function]:
    """What is left of a loop, as a function of variables and, of a `for`, of the range that is left."""
    function = rebuilt.functions[0]
    if rest.free or stores_free(rebuilt, function.__code__.co_freevars):
        raise Refused("it shares variables with functions around it")
    code = write_loop(outline, rest, ABSENT)
    body = types.FunctionType(code, function.__globals__, function.__name__)
    if not rest.takes_iterable:
        return [body]
    names, columns = [f"p{k}" for k in range(len(rest.parameters))], list_columns(rest)
    step = "" if rest.make_element else job.form.removeprefix("range")
    told = ["start", "stop", *["step"] * (job.form == ANY_STEP)]
    if job.form == ANY_STEP:
        step = ""
    numbers = f"range({', '.join(told)}{step and ', ' + step})"
    passed = ", ".join([*names, "start" if rest.is_once else numbers, *columns])
    source = f"def region({', '.join([*names, *told, *columns])}):\n    return body({passed})\n"
    namespace = {"body": body, "__builtins__": __builtins__}
    exec(compile("\n" * (rest.line - 2) + source, code.co_filename, "exec"), namespace)
    return [namespace["region"], body, *([rest.make_element] if rest.make_element else [])]


def stores_free(rebuilt: Rebuilt, names: Sequence[str]) -> bool:
    """Whether a function that was told may assign variables of these names of functions around."""
    return bool(names) and any({*names}.intersection(list_stored(one.__code__)) for one in rebuilt.functions)


def make_function(form: str, count: int) -> Function:
    """The function of columns and a number that makes an element."""
    names = ", ".join([*[f"c{number}" for number in range(count)], "k"])
    namespace: dict[str, Any] = {"__builtins__": __builtins__}
    exec(compile(f"def make_element({names}):\n    return {form}\n", "<elements>", "exec"), namespace)
    return namespace["make_element"]


_VARIES = "it needs the value of a number that is another one in each iteration"


class _Policy(NumberPolicy):
    """Ints in containers and attributes are constants, but those that the script's functions assign; all
    others are arguments, unless their values are needed.

    varying: parameters that have another value in each entry: a program for one value would serve one
    entry. assigned: names of attributes."""

    def __init__(self, region: Function, varying: Iterable[str], assigned: frozenset[str]):
        super().__init__((), varying)
        self._region, self._assigned = region, {f".{name}" for name in assigned}

    def is_static(self, path, value):
        is_fixed = len(path) > 1 and type(value) is int and path[-1] not in self._assigned
        return path in self.pinned or is_fixed

    def pin(self, paths):
        """Those that may be: what is wrong without their values may be right with them."""
        free = frozenset(path for path in paths if path[0] not in self._varying)
        if free <= self.pinned:
            error = sys.exc_info()[1]
            raise Refused(_VARIES if error is None else str(find_reason(error, self._region)))
        super().pin(free)


def list_assigned_attributes(rebuilt: Rebuilt) -> frozenset[str]:
    """Names of attributes that the script's functions and methods assign, but those that make objects."""
    methods = [one for kind in rebuilt.classes.values() for one in list_methods(kind)]
    codes = [one.__code__ for one in (*rebuilt.functions, *methods)]
    return frozenset(name for code in codes if code.co_name != "__init__" for name in list_stored_names(code))


def compile_entry(region: types.FunctionType, values: Sequence[Any], rebuilt: Rebuilt,
                  varying: Iterable[str] = (), alone: Container[str] = ()) -> Entry:
    """alone: parameters whose arrays nobody else has. Raises: Refused."""
    def attempt(**how: Any) -> tuple[Reader, Entry | Refused]:
        policy = _Policy(region, varying, list_assigned_attributes(rebuilt))
        reader = Reader(policy.is_static, own=alone, **how)
        try:
            return reader, compile_by(region, values, policy, reader)
        except Refused as error:
            return reader, error

    reader, found = attempt(packs=True)
    if isinstance(found, Refused) and reader.has_short:  # elements may have to be found by a traced number
        _, other = attempt(packs=True, least=2)
        found = found if isinstance(other, Refused) else other
    if isinstance(found, Refused) and reader.has_packed and not rebuilt.lists:
        _, found = attempt()
    if isinstance(found, Refused):
        raise found
    return found


def compile_by(region: types.FunctionType, values: Sequence[Any], policy: _Policy, reader: Reader) -> Entry:
    """Raises: Refused."""
    options = Options(thread_work=THREAD_WORK, prints=False)
    owner = AutojitFunction(region, options, account=Account(options.tuning, UNLIMITED))
    owner.policy = policy
    try:
        specs = reader.read_all(owner.parameters.names, values)
    except Unreadable as error:
        raise Refused(str(error)) from None
    hindrance = "" if uses_arrays(region, specs) else find_hindrance(region, specs, options.tuning)
    if hindrance:
        raise Refused(hindrance)
    try:
        return owner._trace(values, reader, specs)[0]
    except Refused:
        raise
    except Exception as error:
        raise_interruption(error)
        raise Refused(str(find_reason(error, region))) from None


def describe_entry(entry: Entry, rebuilt: Rebuilt, own: Sequence[Function], rest: OutlinedLoop | None,
                   job: Job) -> FromDisk:
    """A program as another process finds it. own: functions that were made here; rest: of a loop."""
    program = entry.program
    stored = program.executable.store() if hasattr(program.executable, "store") else None
    if stored is None:
        raise Refused("its program calls Python")
    jaxpr = program.traced.jaxpr  # which may tell nothing but that it fails
    primitives = {eqn.primitive.name for eqn in list_equations(jaxpr)}
    is_flag = [out.aval.dtype for out in jaxpr.outvars] == [bool]
    if rest is not None and not job.ends and is_flag and primitives.isdisjoint(("while", "scan")):
        raise Refused("each of its iterations does something that is left to Python")
    arguments, lines, constants = entry.source
    n_consts = len(program.traced.consts)
    consts = tuple(program.const_values[i] for i in program.kept if i < n_consts)
    kept = tuple(i - n_consts for i in program.kept if i >= n_consts)
    is_whole = len(kept) == len(program.traced.jaxpr.in_avals)
    parameters, results, exits, grown = (), (), (), () if rest is None else rest.grown
    if rest is not None:
        parameters, results = rest.parameters, rest.results
        exits = (*(one.offsets for one in rest.exits), *[(HEAD,)] * rest.is_limited)
    data = dump_constants(constants, rebuilt, own)
    numbers = {id(one): number for number, one in enumerate(constants)}
    codes = tuple((numbers[id(function)], numbers[id(code)]) for function, code in entry.codes)
    scalars = entry.scalars and entry.scalars._replace(
        takes=(*(None for _ in consts), *(entry.scalars.takes[i] for i in kept)))
    packs = any(isinstance(one, functools.partial) and one.func is pack for one in constants)
    if packs:
        find_native()  # is on disk then, for the process of the script
    needs = bool(consts) or needs_numpy(lines, constants) or (
        importlib.import_module(stored[0]).needs_numpy(stored[1], scalars))
    return FromDisk(parameters, results, exits, job.form, grown, arguments, tuple(lines), data, *stored,
                    consts, None if is_whole else kept, scalars, tuple(entry.arrays), codes, packs, needs)


#: Our modules of what programs without arrays refer to: lists, `ABSENT`, guards of classes.
_WITHOUT_ARRAYS = frozenset(("jitcore.process.lists", "jitcore.process.versions",
                             "jitcore.dispatch.call_facts", "jitcore.autojitted.inputs.guards"))


def needs_numpy(lines: Sequence[str], constants: Sequence[Any]) -> bool:
    """Whether the code of a call asks something of arrays, or refers to what needs them."""
    body = "".join(f"    {line}\n" for line in lines)
    code = compile(f"def call():\n{body}", "<call>", "exec").co_consts[0]
    return not ARRAYS.isdisjoint(code.co_names) or any(map(is_of_numpy, constants))


def is_of_numpy(value: Any) -> bool:
    """Whether a constant is something of NumPy's, or code of ours for arrays."""
    if isinstance(value, functools.partial):
        return complex in value.args or is_of_numpy(value.func)
    modules = {getattr(value, "__module__", None) or "", type(value).__module__} - _WITHOUT_ARRAYS
    return any(module.partition(".")[0] in ("numpy", "jitcore") for module in modules)


class _Pickler(pickle.Pickler):
    """Constants of a program, with what stands for objects of the script and of this process.

    own: the region, and what it calls."""

    def __init__(self, file, rebuilt: Rebuilt, own: Sequence[Function], constants: Sequence[Any]):
        super().__init__(file, protocol=5)
        self.known: dict[int, tuple] = {id(ABSENT): ("absent", None)}
        self.known |= {id(SYSTEM): ("known", "sys"), id(SYSTEM.__dict__): ("names", "sys")}
        self.known |= {id(one): ("attribute", ("sys", name)) for name, one in vars(SYSTEM).items()
                       if name in vars(sys) and not name.startswith("__")}
        for name in ("MethodType", "BuiltinMethodType"):  # which are not pickled by their own names
            self.known[id(getattr(types, name))] = "attribute", ("types", name)
        if own:
            self.known[id(own[0].__globals__)] = "own names", None
        for number, module in enumerate(rebuilt.modules):
            self.known[id(module.__dict__)] = "module", number
            self.known[id(module)] = "module object", number
        for kind, functions in (("", rebuilt.functions), ("own ", own)):
            for number, function in enumerate(functions):
                self.known[id(function)] = f"{kind}function", number
                self.known[id(function.__code__)] = f"{kind}code", number
        for number, array in rebuilt.arrays.items():
            self.known[id(array)] = "array", number
        for number, kind in rebuilt.classes.items():
            self.known[id(kind)] = "class", number
            for member in kind if isinstance(kind, enum.EnumMeta) else ():
                self.known[id(member)] = "member", (number, member.value)
        for number, generator in rebuilt.generators.items():
            self.known[id(generator)] = "generator", number
        for value in constants:
            module = sys.modules.get(value.get("__name__")) if isinstance(value, dict) else None
            if module is not None and module.__dict__ is value:  # these are compared by identity
                for name, one in value.items():
                    owner = getattr(one, "__self__", None)
                    if type(one) in (int, float, complex) or streams.is_generator(owner):
                        self.known.setdefault(id(one), ("attribute", (module.__name__, name)))
            if isinstance(value, types.FunctionType):
                self.known.setdefault(id(value.__code__), ("code of", value))
            guard = getattr(value, "__self__", None)
            if isinstance(guard, ClassGuard):
                kind = guard.kind
                number = self.known.get(id(kind), (None, (kind.__module__, kind.__qualname__)))[1]
                self.known |= {id(value): ("check", number), id(guard.version): ("version", number),
                               id(guard.known): ("known version", number)}

    def persistent_id(self, value: Any) -> tuple | None:
        found = self.known.get(id(value))
        if found is not None:
            return found
        if isinstance(value, types.ModuleType):
            return "known", value.__name__
        if streams.is_generator(value):
            shared = streams.find_shared(value)
            if shared is None:
                raise Refused("it draws from a generator of this process")
            return "stream", shared
        if isinstance(value, dict) and isinstance(value.get("__name__"), str):
            module = sys.modules.get(value["__name__"])
            if module is not None and module.__dict__ is value:
                return "names", value["__name__"]
        if isinstance(value, types.CodeType):
            raise Refused("it runs code that is not known by a name")
        return None


def dump_constants(constants: list, rebuilt: Rebuilt, own: Sequence[Function]) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, rebuilt, own, constants).dump(constants)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"its program refers to something of this process: {error}") from None
    return file.getvalue()
