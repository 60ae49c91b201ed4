"""The identity of a program: a text that equal programs share, and its hash.

In: a jaxpr. Out: a key that depends on what the program computes: primitives, params, operands by position,
types of arguments and results. Names of variables and functions, source positions and the values of constants
do not count: constants are run-time arguments of what is compiled. Caches of compiled programs use the key,
in memory and on disk; common subexpressions are found with the encoding of params.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.array import ConcreteArray
from jitcore.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, ShapedArray, Var
from jitcore.core.symbolic import DimExpr, bounds, free_variables
from jitcore.sharding import NamedSharding
from jitcore.sharding.mesh import Mesh, PartitionSpec

LOCAL = "local-"
"""Prefix of keys that hold in this process only."""

# Marks the identity of an object in an encoding. It occurs nowhere else: all other text is escaped by `repr`.
_IDENTITY = "\0"


def program_key(closed_jaxpr: ClosedJaxpr) -> str:
    """A key that two programs share only if they compute the same function of constants and arguments.

    A program with an object among its params that has no text (a callback) is known by that object's
    identity: its key begins with `LOCAL`, must not leave the process, and is valid while something keeps the
    object alive, as whatever was compiled from the jaxpr does.

    Returns: 32 hexadecimal digits, perhaps after `LOCAL`; the same in every process.
    Cost: linear in the program.
    Source: BLAKE2b, RFC 7693."""
    text = _encode_jaxpr(closed_jaxpr.jaxpr)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return LOCAL + digest if _IDENTITY in text else digest


def _encode_jaxpr(jaxpr: Jaxpr) -> str:
    number: dict[Var, int] = {}
    parts = []
    for var in jaxpr.constvars:
        number[var] = len(number)
        parts.append(encode_aval(var.aval))
    parts.append("|")
    for var in jaxpr.invars:
        number[var] = len(number)
        parts.append(encode_aval(var.aval))
    parts.append("{")
    for eqn in jaxpr.eqns:
        parts.append(eqn.primitive.name)
        if eqn.params:
            parts.append(encode_params(eqn.params))
        for atom in eqn.invars:
            parts.append(encode_literal(atom) if atom.__class__ is Literal else f" {number[atom]}")
        parts.append(";")
        for var in eqn.outvars:
            number[var] = len(number)
    parts.append("}")
    for atom in jaxpr.outvars:
        parts.append(encode_literal(atom) if atom.__class__ is Literal else f" {number[atom]}")
        parts.append(encode_aval(atom.aval))
    return "".join(parts)


def encode_aval(aval: ShapedArray) -> str:
    return _encode_type(aval.shape, aval.dtype) + ("~" if aval.weak_type else "")


def _encode_type(shape: tuple, dtype: np.dtype) -> str:
    name = dtypes.SHORT_NAMES[dtype]
    if not shape:
        return f"{name}[]"
    extents = [extent if extent.__class__ is int else encode_value(extent) for extent in shape]
    return f"{name}{extents}"


def encode_literal(literal: Literal) -> str:
    """dtype and bits of a literal: -0.0 differs from 0.0, 1 from 1.0."""
    return f" {dtypes.SHORT_NAMES[literal.aval.dtype]}:{literal.to_numpy().tobytes().hex()}"


def encode_params(params: dict[str, Any]) -> str:
    """Params as text, equal for equal params only; their order does not count."""
    names = params if len(params) == 1 else sorted(params)
    return "[" + "".join([f"{name}={encode_value(params[name])}" for name in names]) + "]"


def encode_value(value) -> str:
    """One parameter as text that ends itself: no two values of different meaning share it."""
    encode = _ENCODERS.get(value.__class__)
    return (encode or _find_encoder(value))(value)


# -- by type of the value -----------------------------------------------------------------------------------
def _encode_repr(value) -> str:
    return f"{value!r},"


def _encode_sequence(values) -> str:
    return f"{values.__class__.__name__[0]}({''.join(map(encode_value, values))})"


def _encode_dict(values: dict) -> str:
    items = sorted(encode_value(key) + encode_value(item) for key, item in values.items())
    return f"d({''.join(items)})"


def _encode_set(values) -> str:
    return f"f({''.join(sorted(map(encode_value, values)))})"


def _encode_dtype(dtype: np.dtype) -> str:
    return f"<{dtype.name}>"


def _encode_closed_jaxpr(closed: ClosedJaxpr) -> str:
    """An inner jaxpr's constants are part of the program: nobody passes them at run time."""
    return f"({_encode_jaxpr(closed.jaxpr)}{''.join(map(encode_value, closed.consts))})"


def _encode_array(value: np.ndarray) -> str:
    digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    return f"<{value.dtype.name}{list(value.shape)}{digest}>"


def _encode_symbolic(dim: DimExpr) -> str:
    limits = sorted((variable.name, *bounds(variable)) for variable in free_variables(dim))
    return f"<{str(dim)!r}{limits!r}>"


def _encode_identity(value) -> str:
    return f"{_IDENTITY}{id(value)},"


def _encode_enum(value: enum.Enum) -> str:
    return f"<{_name_class(value.__class__)}.{value.name}>"


def _encode_fields(value) -> str:
    """A named tuple or dataclass: its class and its fields."""
    names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
    fields = "".join(encode_value(getattr(value, name)) for name in names)
    return f"<{_name_class(value.__class__)}({fields})>"


def _encode_class(value: type) -> str:
    return f"<{_name_class(value)}>"


def _name_class(cls: type) -> str:
    """Module and name; the identity too for a class made inside a function, whose name others may share."""
    local = _encode_identity(cls) if "<locals>" in cls.__qualname__ else ""
    return f"{cls.__module__!r}.{cls.__qualname__!r}{local}"


_ENCODERS = {
    **dict.fromkeys((bool, int, float, complex, str, bytes, type(None), range, type(...)), _encode_repr),
    tuple: _encode_sequence, list: _encode_sequence, dict: _encode_dict,
    set: _encode_set, frozenset: _encode_set,
    ClosedJaxpr: _encode_closed_jaxpr, Jaxpr: lambda jaxpr: f"({_encode_jaxpr(jaxpr)})",
    ShapedArray: encode_aval, np.ndarray: _encode_array, type: _encode_class,
    ConcreteArray: lambda array: _encode_array(array.data) + "~" * array.weak_type,
    Mesh: lambda mesh: f"m({encode_value((*mesh.devices.flat,))}{encode_value(mesh.shape_tuple)})",
    PartitionSpec: lambda spec: f"p({encode_value(tuple(spec))})",
    NamedSharding: lambda sharding: f"n({encode_value(sharding.mesh)}{encode_value(sharding.spec)})",
}

# Types with subclasses, asked in this order. What stands in neither table is known by identity.
_ENCODERS_OF_BASES = ((np.dtype, _encode_dtype), (np.generic, _encode_array), (np.ndarray, _encode_array),
                      (DimExpr, _encode_symbolic), (enum.Enum, _encode_enum), (type, _encode_class))


def _find_encoder(value):
    """The encoder of a class that is not in the table itself; remembered for the class."""
    return _find_class_encoder(value.__class__)


@functools.lru_cache(maxsize=1024)
def _find_class_encoder(cls: type):
    for base, encode in _ENCODERS_OF_BASES:
        if issubclass(cls, base):
            return encode
    is_record = (issubclass(cls, tuple) and hasattr(cls, "_fields")) or (
        dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen)
    return _encode_fields if is_record else _encode_identity
