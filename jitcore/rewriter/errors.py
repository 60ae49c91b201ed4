"""What is said when Python control flow on traced values cannot be compiled.

In: names of variables, their values, and the `Place` of the condition or loop. Out: a `ControlFlowError`,
laid out as all errors are (`jitcore.errors`): what happened, why, the user's line, a way out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from jitcore.core.trace import user_snippet
from jitcore.errors import ConcretizationTypeError, ControlFlowError, build_error
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.objects import Place, walk

#: The variable that holds what a function returns.
RESULT = "$result"


def name_variable(name: str) -> str:
    """A variable, stack slot or place as a reader knows it."""
    if name == RESULT:
        return "The return value"
    if name[0] == "$":
        return "An intermediate value"
    return name if " " in name else f"'{name}'"  # parts of containers have names already


def name_container(container: Any, names: Mapping[str, Any]) -> str:
    """A list, dict or set by the variable that holds it, or that holds what it is in."""
    kind = type(container).__name__
    for name, value in names.items():
        if value is container and name[0] != "$":
            return f"The {kind} '{name}'"
    for name, value in names.items():
        if name[0] != "$" and any(one is container for one in walk([value])):
            return f"A {kind} in '{name}'"
    return f"A {kind}"


def describe_value(value: Any) -> str:
    """A Python value in few words."""
    if type(value) in (list, tuple, dict, set):
        count = len(value)
        return f"a {type(value).__name__} of {count} item{'' if count == 1 else 's'}"
    aval = None if isinstance(value, Handle) else getattr(value, "aval", None)  # whose attributes are traced
    if aval is not None:
        return f"a traced {aval.long()}"
    text = repr(value)
    return text if len(text) <= 40 or isinstance(value, Handle) else f"a {type(value).__name__}"


def count_items(container: Any) -> str:
    return "1 item" if len(container) == 1 else f"{len(container)} items"


class _Shown:
    """A value in a headline: `{0:name}` is a variable, `{0:value}` a Python value, `{0:items}` how many items
    a container has, `{0}` a text."""

    def __init__(self, value: Any):
        self.value = value

    def __format__(self, spec: str) -> str:
        show = {"name": name_variable, "value": describe_value, "items": count_items, "": str}
        return show[spec](self.value)


_SET_ITEM = re.compile(r"(\w+) = \1\.at\[(\w+)\]\.set\((\w+)\)")


class Refusal(NamedTuple):
    """What is said where one thing cannot be compiled: a function of what the headline shows, and of the
    place, None for that of the user's code that runs.

    Advice speaks of arrays of jnp; under a mode they are NumPy's, whose items are assigned."""

    headline: str
    detail: str
    fix: str
    kind: type = ControlFlowError

    def __call__(self, *values: Any, in_loop: bool = False) -> Exception:
        *shown, place = values
        where = "inside a traced loop" if in_loop else "under a traced condition"
        headline, fix = self.headline.format(*map(_Shown, shown), where=where), self.fix
        if current.mode is not None:
            fix = _SET_ITEM.sub(r"\1[\2] = \3", fix).replace("jnp.", "np.")
        lines = user_snippet() if place is None else place.lines
        return build_error(self.kind, headline, detail=self.detail, where=lines, fix=fix)


_ONE_PROGRAM = "Both sides of a traced condition become one program, in which a variable is one thing."
_ONE_BODY = "All iterations of a traced loop are one program, in which a variable is one thing."
_UNKNOWN = "Behind it the program cannot know whether it is there."
_FILL = "fill an array instead, x = x.at[i].set(value), or loop over a range of known length."

# -- branches -----------------------------------------------------------------------------------------------
#: A Python value differs and is needed behind the condition.
branch_values_error = Refusal(
    "{0:name} is {1:value} where the condition holds and {2:value} where it does not.",
    "Only arrays and numbers can be chosen when the program runs.",
    "use numbers or arrays on both sides (a flag 0 or 1 for a word or None), or decide by a Python value.")
#: A name, and a difference: "shape (3,) and (2,)".
branch_types_error = Refusal(
    "{0:name} has {1} on the two sides of a condition.", _ONE_PROGRAM,
    "give both sides one shape and dtype, for example by jnp.where(condition, x, 0), jnp.pad or astype.")
branch_containers_error = Refusal(
    "{0:name} is {1:value} that depends on a traced condition.",
    "What is stored in it would have to be seen under the other names that it has on one side.",
    "choose the items instead, or store a copy: list(items).")
branch_structures_error = Refusal(
    "{0:name} is {1:value} where the condition holds and {2:value} where it does not.", _ONE_PROGRAM,
    "let both sides have the same number of items and the same keys, with 0 for what is missing.")
branch_set_error = Refusal(
    "{0} holds other elements on the two sides of a condition.",
    "The elements of a set are Python's, and traced values cannot be told apart.",
    "use an array of bools, one for each possible element: present = present.at[i].set(True).")
#: A key was deleted and set again.
reordered_error = Refusal("{0} gets its keys in another order.",
                          "A condition or loop of a program changes the values of keys only.",
                          "set table[key] without deleting it before.")
#: An attribute, key or cell that is set for the first time.
one_sided_error = Refusal("{0:name} is set only on one side of a condition.", _UNKNOWN,
                          "give it a value before the condition, or on both sides.")
numpy_array_error = Refusal(
    "{0} is changed {where}.", "A NumPy array would be changed while tracing, whatever the program does.",
    "use an array of jnp, x = x.at[i].set(v), or @autojit, which compiles stores into NumPy's.")
iterator_error = Refusal(
    "{0} is advanced {where}.", "Its position is Python's, and cannot depend on values of the program.",
    "take the elements before, values = list(iterator), and index an array of them.")


def branch_container_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    """A list, dict or set was changed in place."""
    if isinstance(one, dict):
        extra = [", ".join(repr(key) for key in own if key not in others)
                 for own, others in ((one, other), (other, one))]
        sides = "only where the condition holds", "only where it does not"
        texts = [f"{keys} {side}" for keys, side in zip(extra, sides) if keys]
        headline = f"{name} has {' and '.join(texts) or 'its keys in another order on the two sides'}."
        fix = "set the same keys on both sides, table[key] = 0 where there is no value."
    else:
        headline = (f"{name} has {count_items(one)} where the condition holds and {len(other)} where it does "
                    "not.")
        fix = _find_queue_fix(name) or (
            "append on both sides, values.append(x if condition else 0), or use an array and "
            "x = x.at[i].set(value).")
    refusal = Refusal("{0}", "A container has one length and one set of keys in a program.", fix)
    return refusal(headline, place)


def _find_queue_fix(name: str) -> str:
    """What helps for a queue; "" for other containers."""
    if " deque" not in name:
        return ""
    return ("use an array of the largest size and two ints: queue[last] = x; last += 1; x = queue[first]; "
            "first += 1.")


# -- loops --------------------------------------------------------------------------------------------------
#: A name, and a difference: "shape (2,) and (4,)".
carry_types_error = Refusal(
    "{0:name} has {1} before and behind an iteration of a traced loop.", _ONE_BODY,
    "keep the shape: allocate the largest before the loop and fill it, x = x.at[i].set(value).")
carry_structure_error = Refusal(
    "{0:name} is {1:value} before and {2:value} behind an iteration of a traced loop.", _ONE_BODY, _FILL)
lent_memory_error = Refusal(
    "An array whose memory variables exchange in a traced loop is used under another name.", _ONE_BODY,
    "use one name for it in the loop, or a copy, x = x.copy().")
carry_kind_error = Refusal("{0:name} is a number before and {1:value} behind an iteration of a traced loop.",
                           _ONE_BODY, "keep it a number or an array in each iteration.")
carry_object_error = Refusal(
    "{0:name} changes from {1:value} to {2:value} in a traced loop.",
    "Which one it is depends on the number of iterations, which is not known while tracing.",
    "use a number or an array for it, or a loop whose range Python knows.")
carry_unsettled_error = Refusal(
    "The types of what a traced loop changes do not settle.",
    "Each iteration gives a variable another type than the one before.",
    "convert before the loop to the type that the body gives, for example x = x.astype(float).")
#: An attribute that is not there before the loop, or not behind an iteration.
loop_attribute_error = Refusal("{0:name} is set for the first time, or deleted, inside a traced loop.",
                               _UNKNOWN, "give it a value before the loop, and do not delete it there.")
endless_loop_error = Refusal(
    "A traced loop has no way out.", "Its condition always holds, and nothing breaks it.",
    "add a `break` or a condition that depends on what the body changes.")


def loop_container_error(name: str, before: Any, behind: Any, place: Place) -> Exception:
    refusal = Refusal(
        "{0} has {1:items} before and {2} behind an iteration of a traced loop.",
        "The number of iterations is not known while tracing, and so the container has no length.",
        _find_queue_fix(name) or _FILL)
    return refusal(name, before, len(behind), place)


# -- calls --------------------------------------------------------------------------------------------------
#: The class of an exception.
caught_outside_error = Refusal(
    "{0} is raised under a traced condition, and a caller may catch it.",
    "What a program raises ends it: the `except` around this call cannot go on with it.",
    "return a flag instead of raising, or put the `try` into the function that raises.")
#: What Python asked for, `len() of a text`.
text_error = Refusal(
    "{0} needs the value of what is traced in it.",
    "The program makes texts of traced values when it runs; it can print them.",
    "print the text, or make it behind the call, of what the function returns.", ConcretizationTypeError)
traced_length_error = Refusal(
    "len() of a range with traced bounds is asked for.", "Its length is known when the program runs.",
    "compute it, n = (stop - start) // step, or use it as bound of the loop itself.")
traced_iterable_error = Refusal("Something else than a loop uses a {0}() of traced values.",
                                "What it holds is known when the program runs.",
                                "let a `for` loop go through it, or compute from its bounds.")
strict_zip_error = Refusal("zip(strict=True) of a traced range is asked for.",
                           "Whether all have the same length is known when the program runs.",
                           "compare the lengths before, and leave strict out.")
recursion_error = Refusal(
    "{0}() calls itself under a traced condition.",
    "Whether it ends is known when the program runs: both sides are traced, so tracing never ends.",
    "write a `while` loop with the arguments as variables, or make what ends the recursion static.")
