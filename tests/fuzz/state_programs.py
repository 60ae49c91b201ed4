"""Random programs with captured state: globals, cells, defaults, attributes, and what is inside of these.

In: a seed. Out: the source of a module with a function `f`, decorated with `compiled`, what it captures, functions
that change this between calls, and `CALLS`: pairs of a statement that is run first and the arguments of a call.

What is captured is in `state_kinds.py`, the ways into the user's functions in `state_entries.py`. Numbers are
multiples of a power of two and stay small; nothing depends on hashes, addresses or time.

`python -m tests.fuzz.state_programs --count 1000` compares programs with plain Python (see `state_runs.py`).
"""

from __future__ import annotations

import ast
import random
import re
from typing import NamedTuple

from tests.fuzz.state_entries import CALLBACKS, CALLS, ENTRIES, SPECIAL_METHODS
from tests.fuzz.state_kinds import KINDS, WEIGHTS, Kind
from tests.fuzz.state_names import declare_names, drop_unused
from tests.fuzz.state_vocabulary import (AMBIENT, AMBIENT_MODULE, ARRAYS, COUNTS, OTHER_ARRAYS, RAISING,
                                         REFUSED)


class State(NamedTuple):
    """An object that is captured: where it is, and what it is. is_local: only `f` can see it."""

    place: str
    kind: Kind
    is_local: bool = False


class _Writer:
    """Writes one program."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.theme = self.choose("decision", "decision", "entry", "entry", "attribute", "fate", "stale", "rebound", "mixed", "mixed")
        self.is_closed = self.chance(0.25)
        self.states: list[State] = []
        self.defined: list[str] = []  # definitions before f
        self.behind: list[str] = []  # and behind it
        self.entered: list[tuple[str, str]] = []  # name and definition of ways into functions
        self.changes: list[str] = []
        self.parameters = "x, n, s, k"
        self.given: Kind | None = None  # what the last parameter is, if there is one more
        self.numbers = 0
        self.is_inner = False  # a function of the module is written
        self.loops = 0
        self.budget = self.random.randint(2, 4 if self.chance(0.5) else 8)

    def choose(self, *options):
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # -- what is captured -------------------------------------------------------------------------------------
    def add_state(self) -> None:
        name, kind = f"G{self.number()}", KINDS[self.random.choices(list(KINDS), [WEIGHTS.get(name, 1.5) for name in KINDS])[0]]
        if self.states and self.chance(0.25):
            kind = self.states[-1].kind
        value = self.choose(*kind.values)
        place = self.choose("global", "global", "object", "function", "class", "module", "dict", "default", "own", "self", "instance", "list", "alias", "namespace")
        if self.theme == "decision" and self.chance(0.6):
            place = "global"
        if self.theme == "attribute":
            place = self.choose("object", "function", "class", "module", "own", "self", "instance")
        if place in ("own", "self"):  # f is a function or a method
            place = self.form = getattr(self, "form", place)
        lower = name.lower()
        held = [state for state in self.states if state.kind is kind and not state.is_local and not state.place.startswith(("f.", "owner."))]
        match place:
            case "object":
                lines, found = f"{lower} = Box(0)\n{lower}.state = {value}", f"{lower}.state"
            case "function":
                lines, found = f"def {lower}():\n    return 1\n\n\n{lower}.state = {value}", f"{lower}.state"
            case "class":
                lines, found = f"class {name}:\n    state = {value}\n", f"{name}.state"
            case "instance":
                lines, found = f"class {name}Type:\n    state = {value}\n\n\n{lower} = {name}Type()", f"{lower}.state"
            case "module":
                lines, found = f"{lower} = types.ModuleType('{lower}')\n{lower}.state = {value}", f"{lower}.state"
            case "namespace":
                lines, found = f"{lower} = types.SimpleNamespace(state={value})", f"{lower}.state"
            case "dict":
                lines, found = f"{name} = {{'k': {value}}}", f"{name}['k']"
            case "list":
                lines, found = f"{name} = [{value}, 0]", f"{name}[0]"
            case "default":
                self.parameters += f", {lower}={value}"
                self.states.append(State(lower, kind, True))
                return
            case "own":
                self.behind.append(f"f.state{lower} = {value}")
                self.states.append(State(f"f.state{lower}", kind))
                return
            case "self":
                self.behind.append(f"{self.choose('owner', 'Owner')}.state{lower} = {value}")
                self.states.append(State(f"owner.state{lower}", kind))
                return
            case "alias" if held:
                lines, found = f"{name} = {self.choose(*held).place}", name
            case _:
                lines, found = f"{name} = {value}", name
        self.defined.append(lines)
        self.states.append(State(found, kind))

    def add_parameter(self) -> None:
        """An object that is an argument, which may be one of the captured objects."""
        self.given = self.choose(*(state.kind for state in self.states)) if self.chance(0.7) else KINDS[self.choose("list", "dict", "object")]
        self.parameters += ", o"
        self.states.append(State("o", self.given, True))

    def state(self) -> State:
        seen = [state for state in self.states if not (self.is_inner and state.is_local)]
        return self.choose(*seen) if seen else self.states[0]

    def reach(self, state: State) -> str:
        """An expression of the object, which cannot be assigned to."""
        place = state.place
        if self.chance(0.75) or state.is_local:
            return place
        others = [other.place for other in self.states if other.kind is state.kind and not other.is_local]
        name = f"via{self.number()}"
        kind = self.choose("helper", "property", "item", "method", "lambda", "choice", "choice", "getattr", "packed", "globals", "cached")
        match kind:
            case "helper":
                self.defined.append(f"def {name}():\n    return {place}\n")
                return f"{name}()"
            case "property":
                self.defined.append(f"class {name}Type:\n    @property\n    def there(self):\n        return {place}\n\n\n{name} = {name}Type()")
                return f"{name}.there"
            case "item":
                self.defined.append(f"class {name}Type:\n    def __getitem__(self, j):\n        return {place}\n\n\n{name} = {name}Type()")
                return f"{name}[0]"
            case "method":
                self.defined.append(f"class {name}Type:\n    def get(self):\n        return {place}\n\n\n{name} = {name}Type()")
                return f"{name}.get()"
            case "cached":
                self.defined.append(f"@functools.lru_cache\ndef {name}():\n    return {place}\n")
                return f"{name}()"
            case "lambda":
                return f"(lambda: {place})()"
            case "choice":
                return f"({place} if {self.condition()} else {self.choose(*others)})"
            case "getattr" if re.fullmatch(r"\w+\.\w+", place):
                return "getattr({}, '{}')".format(*place.split("."))
            case "globals" if re.fullmatch(r"G\d+", place) and not self.is_closed and self.chance(0.3):
                return f"globals()['{place}']"
        return f"[{place}, 0][0]"

    # -- expressions ------------------------------------------------------------------------------------------
    def value(self) -> str:
        """A number; in `f` it may be traced."""
        if self.is_inner:
            return self.choose("v", "v", "v", "1", "v * 2", "v + 1", "0.5")
        return self.choose("1", "0.5", "n", "s", "t", "t", "x[0]", "x[-1]", "x.sum()", "k", "len(x)", "x[0] * 2", *(["i", "i", "i", "x[i % 4]"] if self.loops else []))

    def condition(self) -> str:
        state = self.state()
        read = self.fill(self.choose(*state.kind.reads), state.place)
        if self.is_inner:
            return self.choose("v > 1", "v > 0", "v < 1", "v != 2", f"{read}", f"{read} > 1", f"v > {read}")
        return self.choose("x[0] > 0", "x.sum() > 1", "s > 0", "t > 0.5", "x[0] > s", "k > 1", "x[-1] < 1", "n > 1", "n > 2", "len(x) > 3", "n == 0", "not x[0] > 0", "x.max() > 2 and s > 0",
                           "t < 3 or n > 2", read, f"{read} > 1", f"x[0] > {read}", f"t > {read}", *(["i > 0", "i == 1", "x[i % 4] > 0", "i < n - 1", "i % 2"] if self.loops else []))

    def fill(self, template: str, place: str) -> str:
        """The template with a place and a value; in a function of the module without the variables of `f`."""
        value = self.value()
        if self.is_inner:
            constants = {"n": self.choose("0", "1", "2"), "s": "0.5", "x": "np.arange(3.0)", "k": "1", "t": "v"}
            template = re.sub(r"(?<![\w.'])[nsxkt]\b(?!['=])(?! (in|for) )", lambda found: constants[found[0]], template) if " for k" not in template else template
        found = re.sub(r"\bV\b", lambda _: value, template)
        return re.sub(r"\bE\b", lambda _: place, found)

    # -- statements: each gives lines ---------------------------------------------------------------------------
    def read(self) -> list[str]:
        state = self.state()
        total = "v" if self.is_inner else "t"
        return [f"{total} = {total} + {self.fill(self.choose(*state.kind.reads), self.reach(state))}"]

    def write(self) -> list[str]:
        state = self.state()
        if state.kind.rebinds and self.chance(0.3):
            return self.fill(self.choose(*state.kind.rebinds), state.place).splitlines()
        template, kind = self.choose(*state.kind.writes), self.random.random()
        others = [other.place for other in self.states if other.kind is state.kind and not other.is_local]
        if kind < 0.06:
            return ["q = " + state.place, *self.fill(template, "q").splitlines()]
        if kind < 0.11 and others:
            return [f"for q in ({state.place}, {self.choose(*others)}):", *indent(self.fill(template, "q").splitlines())]
        if kind < 0.16 and not self.is_inner and "t" not in re.findall(r"\w+", template):
            name, self.is_inner = f"put{self.number()}", True
            lines = self.fill(template.replace("V", "v"), "c").splitlines()
            self.is_inner = False
            self.defined.append("\n".join([f"def {name}(c, v):", *indent(lines), "    return v", ""]))
            return [f"{name}({state.place}, {self.value()})"]
        return self.fill(template, self.reach(state)).splitlines()

    def write_on_both_sides(self) -> list[str]:
        """One object is changed in several ways, another way on each side of a decision."""
        state = self.state()
        sides = [[line for _ in range(self.random.choice((1, 1, 2, 3)))
                  for line in self.fill(self.choose(*state.kind.writes), state.place).splitlines()] for _ in range(2)]
        return [f"if {self.condition()}:", *indent(sides[0]), "else:", *indent(sides[1])]

    def enter(self) -> list[str]:
        """Code of the user's is entered."""
        if not self.entered or (len(self.entered) < 3 and self.chance(0.4)):
            self.define_entry()
        name, definition = self.choose(*self.entered)
        use = re.sub(r"\bH(?=\b|[A-Za-z])", name, self.choose(*self.uses[name]))
        use = re.sub(r"\bV\b", lambda _: self.value(), use)
        try:
            ast.parse(use, mode="eval")
        except SyntaxError:
            return use.splitlines()
        gives_none = use.startswith("print(") or ".append(" in use or "setattr(" in use
        return [f"t = t + {use}" if self.chance(0.8) and not gives_none else use]

    uses: dict[str, tuple[str, ...]]

    def define_entry(self) -> None:
        group = self.choose(CALLS, CALLS, CALLBACKS, CALLBACKS, SPECIAL_METHODS, SPECIAL_METHODS)
        way, name = ENTRIES[self.choose(*group)], f"h{self.number()}"
        outside, self.is_inner = (self.loops, self.is_inner), True
        self.loops = 0
        lines = []
        for line in way.definition.splitlines():
            space = line[: len(line) - len(line.lstrip())]
            if line.strip() == "BODY":
                lines += [space + one for one in self.body()]
            else:
                state = self.state()
                result = self.choose("v", "v", "v", "v * 2", "1", self.fill(self.choose(*state.kind.reads), state.place))
                line = line.replace("EXPRESSION", self.effect())
                lines.append(re.sub(r"\bRET\b", lambda _: result, line))
        self.loops, self.is_inner = outside
        definition = re.sub(r"\bH(?=\b|[A-Za-z])", name, "\n".join(lines))
        self.defined.append(definition)
        self.entered.append((name, definition))
        self.uses = {**getattr(self, "uses", {}), name: way.uses}

    def effect(self) -> str:
        """A write that is an expression."""
        for _ in range(20):
            text = "\n".join(self.write())
            try:
                ast.parse(text, mode="eval")
                return text
            except SyntaxError:
                continue
        return "v"

    def body(self) -> list[str]:
        """Statements of a function of the module."""
        lines = self.write() if self.chance(0.85) else self.read()
        if self.chance(0.2):
            lines += self.choose(self.write, self.read)()
        kind = self.random.random()
        if kind < 0.15:
            lines = [f"if {self.condition()}:", *indent(lines), *(["else:", *indent(self.write())] if self.chance(0.4) else [])]
        elif kind < 0.22:
            lines = ["for j in range(2):", *indent(lines)]
        elif kind < 0.25:
            lines = ["try:", *indent(lines), "except (KeyError, IndexError, AttributeError):", "    pass"]
        if self.chance(0.06 if self.theme != "fate" else 0.2):
            lines += re.sub(r"\bt\b", "v", self.choose(*REFUSED)).replace("V", "v").splitlines()
        return lines

    def rebound(self) -> list[str]:
        """A name that is made anew in a loop, which may run zero times; it is written behind it."""
        kinds = [state.place for state in self.states if state.kind is KINDS["array"]]
        lists = [state.place for state in self.states if state.kind is KINDS["list"]]
        count = self.choose("n", "n", "k", "int(s)", "len(x) - 4")
        if self.chance(0.6):
            first = self.choose("x", "x", *kinds)
            renew = self.choose("g = g * 2", "g = sum([g * w for w in (1, 2)])", "g = sum(g * w for w in (1, 2))", "g = (lambda: g * 2)()", "g = g.copy()", "g = np.where(g > 0, g, 1.0)",
                                "step()", "g = g + 1", "g = [g * w for w in (1, 2)][-1]", "g = max([g.sum() * w for w in (1, 2)]) + g", "h = lambda: g * 2\ng = h()")
            step = ["def step():", "    nonlocal g", "    g = g * 2"] if renew == "step()" else []
            behind = self.choose("g[0] = 5", "g += 1", "g[:] = t", "g[0] = s", "g.fill(2)", "g[1:] = g[:-1]")
        else:
            first = self.choose("[1, 2]", "[s, 1.0]", *lists, *lists)
            renew = self.choose("g = [g[1], g[0]]", "g = g[1:] + [sum(g)]", "g = [w * 2 for w in g]", "g = list(g)", "g = sorted(g)", "g = g + [1]", "g = [sum(g)]", "g = g[::-1]")
            step, behind = [], self.choose("g.append(1)", "g.append(t)", "g[0] = 5", "g += [1]", "g.clear()", "g.extend([1, 2])")
        loop = [f"for i in range({count}):"] if self.chance(0.75) else ["w = 0", f"while w < {count} and ({self.condition()}):", "    w += 1"]
        tail = [behind] if self.chance(0.8) else [f"if {self.condition()}:", "    " + behind]
        return [f"g = {first}", *step, *loop, *indent(renew.splitlines()), *tail, *(["t = t + len(g)"] if self.chance(0.4) else [])]

    def local(self) -> list[str]:
        return [self.choose("x = x * 2", "x[0] = t", "x = x + s", "t = t * 0.5", "t = x.sum()", "x += 1", "t = t + s", "x = x[::-1]", "print('t', t)", "print(n)", "x[:] = x * 0.5", "t = t + n",
                            "t = int(t)", "print(f'{t:.2f}')", "x = np.sort(x)", "t = s", "t = t + k")]

    def block(self, depth: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 2)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        self.budget -= 1
        theme, kind = self.theme, self.random.random()
        if depth and kind < {"decision": 0.6, "rebound": 0.2, "stale": 0.2}.get(theme, 0.33):
            return self.surround(depth)
        if theme == "rebound" and self.chance(0.5) or self.chance(0.02):
            return self.rebound()
        if self.chance({"fate": 0.3, "mixed": 0.1}.get(theme, 0.03)):
            return self.fill(self.choose(*REFUSED, *RAISING), "t").splitlines()
        if self.chance({"stale": 0.2, "mixed": 0.03}.get(theme, 0.0)):
            read, change = self.choose(*AMBIENT)
            if "ambient" in read and AMBIENT_MODULE not in self.defined:
                self.defined.append(AMBIENT_MODULE)
            self.changes.append(change)
            return read.splitlines() if "\n" in read else [f"t = t + {read}"]
        if self.loops and self.chance(0.06):
            return [f"if {self.condition()}:", "    " + self.choose("break", "continue")]
        kind = self.random.random()
        if kind < {"entry": 0.6, "stale": 0.5, "decision": 0.15, "rebound": 0.15}.get(theme, 0.35):
            return self.enter()
        if kind < 0.78:
            return self.write()
        return self.read() if kind < 0.9 else self.local()

    def surround(self, depth: int) -> list[str]:
        """A decision, a loop or a clause with statements in it."""
        kind = self.random.random()
        if self.chance(0.15):
            return self.write_on_both_sides()
        if kind < 0.42:
            lines = [f"if {self.condition()}:", *indent(self.block(depth - 1))]
            if self.chance(0.15):
                lines += [f"elif {self.condition()}:", *indent(self.block(depth - 1))]
            return lines + (["else:", *indent(self.block(depth - 1))] if self.chance(0.4) else [])
        if kind < 0.82 and self.loops < 2:
            return self.loop(depth)
        if kind < 0.92:
            lines = ["try:", *indent(self.block(depth - 1))]
            if self.chance(0.6):
                lines += indent([self.fill(self.choose(*RAISING), "t")])
            lines += [f"except {self.choose('Exception', '(ZeroDivisionError, IndexError)', 'ValueError', 'Exception as error')}:", *indent(self.block(0))]
            lines += ["else:", *indent(self.block(0))] if self.chance(0.2) else []
            return lines + (["finally:", *indent(self.block(0))] if self.chance(0.3) else [])
        if kind < 0.95 and not self.loops:
            return [f"if {self.condition()}:", *indent(self.write()), f"    return {self.choose('t', 'x', 't, x')}"]
        name, loops, self.loops = f"inner{self.number()}", self.loops, 0
        lines, self.loops = self.block(0), loops
        return [f"def {name}(w):", "    nonlocal t", *indent(lines), "    return w", self.choose(f"{name}(1)", f"t = t + {name}(t)", f"t = t + sum(map({name}, (1, 2)))", f"{name}(s)")]

    def loop(self, depth: int) -> list[str]:
        state, counter = self.state(), f"c{self.number()}"
        place = state.place if state.kind is not KINDS["iterator"] else "x"
        head, first = self.choose(
            ("for i in range(2):", []), ("for i in range(3):", []), ("for i in range(n % 6):", []), ("for i in range(n % 6):", []), ("for i in range(k):", []), ("for i in range(k):", []),
            ("for i in range(len(x)):", []), ("for i, w in enumerate(x):", []), ("for i in range(int(x[0])):", []), ("for i in (0, 1, n):", []),
            (f"for i, w in enumerate(list({place})[:3]):", []), ("for i in range(4)[n % 5:]:", []),
            (f"while {counter} < 3 and ({self.condition()}):", [f"{counter} += 1", f"i = {counter}"]),
        )
        self.loops += 1
        lines = self.block(depth - 1)
        self.loops -= 1
        return [*([f"{counter} = 0"] if first else []), head, *indent(first + lines)]

    # -- the whole ----------------------------------------------------------------------------------------------
    def change(self) -> str:
        """A statement between calls."""
        self.is_inner = True
        found = ""
        state = self.state()
        if self.changes and self.chance(0.5):
            found = self.choose(*self.changes)
        elif self.entered and self.chance(0.5 if self.theme == "stale" else 0.1):
            found = self.replace(*self.choose(*self.entered))
        if not found and not state.is_local:
            template = self.choose(*state.kind.writes, *state.kind.rebinds, *(f"E = {value}" for value in state.kind.values))
            found = self.fill(template, state.place)
        self.is_inner = False
        return re.sub(r"\bv\b", self.choose("1", "2.5", "3"), found)

    def replace(self, name: str, definition: str) -> str:
        """Other code in the place of a function."""
        methods = re.findall(rf"class ({name}\w*)[^\n]*:\n(?:(?!\nclass)(?:.|\n))*?def (\w+)\((?:self|cls)", definition)
        if methods:
            owner, method = self.choose(*methods)
            if f"@property\n    def {method}" in definition:
                return f"{owner}.{method} = property(lambda self: 4)"
            return f"{owner}.{method} = lambda self, *args: {self.choose('2', '3')}"
        if "yield" in definition or f"def {name}(" not in definition:
            return f"f.__code__ = (lambda {re.sub('=.*', '', self.parameters)}: n + 7).__code__" if "=" not in self.parameters else ""
        return self.choose(f"{name} = lambda v=1, *args, **options: 5", f"{name} = lambda v=1, *args, **options: v * 3", f"{name}.__code__ = (lambda v: 7).__code__",
                           f"{name}.__defaults__ = (2,)")

    def results(self) -> str:
        options = ["t", "t", "x", "x + t", "x * 2", "n", *(state.place for state in self.states), *(self.fill(self.choose(*state.kind.reads), state.place) for state in self.states)]
        options += [f"[{state.place}]" for state in self.states if self.chance(0.1)]
        options += ["f"] if self.chance(0.03) else []
        return ", ".join(self.random.sample(options, self.random.choice((1, 1, 2, 2, 3, 4))))

    def calls(self) -> list[tuple[str, str]]:
        names = [f"change{i + 1}()" for i in range(len(self.changed))]
        counts, found = self.choose(*COUNTS), []
        kept = [state.place for state in self.states if state.kind is KINDS["array"] and not state.is_local and not self.is_closed]
        for position, n in enumerate(counts):
            array = self.choose(*ARRAYS, "A0", "A0", *kept[:1])
            if position > 1 and self.chance(0.12):
                array = self.choose(*OTHER_ARRAYS)
            change = self.choose(*names) if names and position and self.chance(0.35) else ""
            s = self.choose("0.5", "-1.0", "1.5", "2.0", "0.25") if self.chance(0.95) else self.choose("1", "np.float32(0.5)", "True")
            k = self.choose("np.int64(1)", "np.int64(2)", "np.int64(0)", "np.int64(3)") if self.chance(0.95) else self.choose("2", "np.int32(1)")
            captured = [state.place for state in self.states if state.kind is self.given and not state.is_local and not self.is_closed]
            last = f", {self.choose(*self.given.values, *captured, *captured)}" if self.given else ""
            found.append((change, f"{array}, {n}, {s}, {k}{last}"))
        return found

    def program(self) -> str:
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            self.add_state()
        if self.chance(0.2) and not any(state.is_local for state in self.states):
            self.add_parameter()
        if all(state.is_local for state in self.states):
            self.theme = "decision" if self.theme != "rebound" else "rebound"
            while all(state.is_local for state in self.states):
                self.add_state()
        lines = ["@compiled", "", f"    t = {self.choose('0.0', '0', 's', 'x[0]', '1')}"]
        while self.budget > 0:
            lines += indent(self.statement(2))
        lines.append(f"    return {self.results()}")
        lines[1] = f"def f({self.parameters}):"
        if getattr(self, "form", "") == "self":
            lines = [re.sub(r"\bowner\.", "self.", line) for line in lines]
            lines[1] = f"def run(self, {self.parameters}):"
            lines = ["class Owner:", *indent(lines), "owner = Owner()", "def f(*values):", "    return owner.run(*values)"]
        self.changed = [text for _ in range(self.random.choice((0, 1, 1, 2))) if (text := self.change())]
        for i, text in enumerate(self.changed):
            self.behind.append("\n".join([f"def change{i + 1}():", *indent(text.splitlines())]))
        parts = [*drop_unused(self.defined, [*lines, *self.behind]), "\n".join(lines), *self.behind]
        names = [f"change{i + 1}" for i in range(len(self.changed))]
        if self.is_closed:
            seen = ", ".join(dict.fromkeys(state.place.split(".")[0].split("[")[0] for state in self.states if not state.is_local))
            given = ", ".join(f"{name}={name}" for name in ["f", "peek", *names])
            parts = ["def make():", *(indent("\n".join([*parts, "def peek():", f"    return {seen},", f"return dict({given})"]).splitlines())), "globals().update(make())"]
        text = "\n".join([f"A0 = {self.choose(*ARRAYS)}", *parts, f"CALLS = {self.calls()!r}"])
        text += "\nREPEATS = 4" if self.chance(0.12) else ""
        if "range(n)" in text or "< n" in text:
            text = text.replace(f"{2**62}, ", "4, ")
        return declare_names(text)


def indent(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def write_program(seed: int) -> str:
    """The source of a program, to be run behind `state_vocabulary.PRELUDE`."""
    for attempt in range(20):
        try:
            source = _Writer(seed * 20 + attempt).program()
            compile(source, "", "exec")
            return source
        except SyntaxError:  # quotes inside of an f-string
            continue
    raise AssertionError(seed)


if __name__ == "__main__":
    from tests.fuzz.state_runs import main

    main()
