"""Encodes Python values as plain data between a judged function and the comparison.

A value becomes JSON; kinds that JSON lacks become an object ``{"t": kind, "v": …}``. An instance of a subclass becomes
its base, so no comparison runs the program's methods (``__eq__``, ``__hash__`` …). Anything else (functions, modules,
objects of the program's classes) raises `NotData`.

Invariants: ``decode(encode(value)) == value`` with the same types for the kinds listed; decoding builds only plain
values and calls nothing that the text names.
"""

from __future__ import annotations

import array
import base64
import collections
import decimal
import fractions
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

_MAX_DEPTH = 150


class NotData(Exception):
    """A value that cannot pass as data; the text names its type."""


class TooDeep(NotData):
    """A value nested too deep, or within itself."""


def encode(value: object) -> str:
    """Return a value as one line of JSON. Raises `NotData`."""
    return json.dumps(_plain(value, 0), separators=(",", ":"))


def decode(text: str | bytes) -> Any:
    """Return the value that `encode` wrote. Raises `NotData` if the text is invalid."""
    try:
        return _value(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError) as error:
        raise NotData(f"not a value: {type(error).__name__}") from error


def _plain(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise TooDeep("a value nested too deep, or within itself")
    if value is None or value is True or value is False:
        return value
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind):
            return encoder(value, depth + 1)
    if isinstance(value, Iterator):
        return {"t": "iterator", "v": [_plain(item, depth + 1) for item, _ in zip(value, range(10**6))]}  # noqa: B905
    tolist = getattr(value, "tolist", None)  # numpy's scalars and arrays
    if type(value).__module__ == "numpy" and callable(tolist):
        return _plain(tolist(), depth + 1)
    raise NotData(f"a value of type {type(value).__name__}")


def _whole(value: Any, _: int) -> object:
    number = int.__index__(value)
    return number if -(2**53) < number < 2**53 else {"t": "int", "v": hex(number)}


def _items(kind: str, values: Any, depth: int) -> object:
    return {"t": kind, "v": [_plain(item, depth) for item in values]}


def _pairs(kind: str, value: Any, depth: int) -> object:
    return {"t": kind, "v": [[_plain(key, depth), _plain(item, depth)] for key, item in dict.items(value)]}


_ENCODERS: dict[type, Callable[[Any, int], object]] = {
    int: _whole,
    float: lambda value, _: float.__float__(value),
    str: lambda value, _: str.__str__(value),
    list: lambda value, depth: [_plain(item, depth) for item in list.__iter__(value)],
    tuple: lambda value, depth: _items("tuple", tuple.__iter__(value), depth),
    collections.OrderedDict: lambda value, depth: _pairs("ordered", value, depth),
    collections.Counter: lambda value, depth: _pairs("counter", value, depth),
    dict: lambda value, depth: _pairs("dict", value, depth),
    set: lambda value, depth: _items("set", set.__iter__(value), depth),
    frozenset: lambda value, depth: _items("frozenset", frozenset.__iter__(value), depth),
    collections.deque: lambda value, depth: _items("deque", collections.deque.__iter__(value), depth),
    bytes: lambda value, _: {"t": "bytes", "v": base64.b64encode(bytes.__getitem__(value, slice(None))).decode()},
    bytearray: lambda value, _: {"t": "bytearray", "v": base64.b64encode(bytes(memoryview(value))).decode()},
    array.array: lambda value, depth: _items("array", (value.typecode, array.array.tolist(value)), depth),
    memoryview: lambda value, depth: _items("memoryview", (value.format, value.tolist()), depth),
    complex: lambda value, _: {"t": "complex", "v": [value.real, value.imag]},
    range: lambda value, _: {"t": "range", "v": [value.start, value.stop, value.step]},
    fractions.Fraction: lambda value, _: {"t": "fraction", "v": [hex(value.numerator), hex(value.denominator)]},
    decimal.Decimal: lambda value, _: {"t": "decimal", "v": decimal.Decimal.__str__(value)},
    re.Match: lambda value, _: {"t": "match", "v": [value.string, value.start(), value.end()]},
    type({}.keys()): lambda value, depth: _items("keys", value, depth),
    type({}.values()): lambda value, depth: _items("values", value, depth),
    type({}.items()): lambda value, depth: _items("items", value, depth),
}

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda inner: int(inner, 16),
    "tuple": lambda inner: tuple(map(_value, inner)),
    "dict": lambda inner: {_value(key): _value(item) for key, item in inner},
    "ordered": lambda inner: collections.OrderedDict((_value(key), _value(item)) for key, item in inner),
    "counter": lambda inner: collections.Counter({_value(key): _value(item) for key, item in inner}),
    "set": lambda inner: set(map(_value, inner)),
    "frozenset": lambda inner: frozenset(map(_value, inner)),
    "deque": lambda inner: collections.deque(map(_value, inner)),
    "iterator": lambda inner: iter(list(map(_value, inner))),
    "bytes": base64.b64decode,
    "bytearray": lambda inner: bytearray(base64.b64decode(inner)),
    "array": lambda inner: array.array(inner[0], inner[1]),
    "memoryview": lambda inner: memoryview(array.array(inner[0], inner[1])),
    "complex": lambda inner: complex(*inner),
    "range": lambda inner: range(*inner),
    "fraction": lambda inner: fractions.Fraction(int(inner[0], 16), int(inner[1], 16)),
    "decimal": decimal.Decimal,
    "match": lambda inner: re.compile(re.escape(inner[0][inner[1] : inner[2]])).match(inner[0], inner[1]),
    "keys": lambda inner: dict.fromkeys(map(_value, inner)).keys(),
    "values": lambda inner: dict(enumerate(map(_value, inner))).values(),
    "items": lambda inner: dict(map(_value, inner)).items(),
}


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if isinstance(plain, dict):
        return _DECODERS[plain["t"]](plain["v"])
    return plain
