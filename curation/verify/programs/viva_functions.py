"""The functions of VIVA's constraints: scalar ones of single values, vector ones of all rows of a repetition; and how
its types keep numbers.

Signatures are those of the first appendix of VIVA's User's Guide. Invariants: the standard library only.
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_NUMBERS = ("integer", "long", "float", "double")
_EPSILON = 1e-6
BITS = {"integer": 32, "long": 64}
"""Sizes of whole numbers."""


class VivaRefusalError(ValueError):
    """The input is not as the pattern says."""


def cast(kind: str, value: Any) -> Any:
    """Return a number as its type keeps it: whole numbers wrap around, floats have 24 bits."""
    if kind in BITS:
        half = 1 << (BITS[kind] - 1)
        return (int(value) + half) % (2 * half) - half
    if kind == "float":
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    return float(value)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the type that it returns for types of parameters (None: it does not take them), and its value."""

    type_of: Callable[[Sequence[str]], str | None]
    run: Callable[[str, Any], Any]


def _numbers(count: int, result: str | None = None) -> Callable[[Sequence[str]], str | None]:
    """Return a rule: so many numbers; the result is of that type, or of the first number's."""

    def type_of(types: Sequence[str]) -> str | None:
        return (result or types[0]) if len(types) == count and all(kind in _NUMBERS for kind in types) else None

    return type_of


def _any(result: str) -> Callable[[Sequence[str]], str | None]:
    return lambda _: result


def _one(wanted: str, result: str) -> Callable[[Sequence[str]], str | None]:
    return lambda types: result if list(types) == [wanted] else None


def _real(compute: Callable[..., float], count: int = 1) -> Function:
    def run(_kind: str, values: Sequence[float]) -> float:
        try:
            result = compute(*map(float, values))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            raise VivaRefusalError(f"{compute.__name__}{tuple(values)} has no value") from error
        if not math.isfinite(result):
            raise VivaRefusalError(f"{compute.__name__}{tuple(values)} is not finite")
        return result

    return Function(_numbers(count, "double"), run)


def _text(value: Any) -> str:
    """Return a value as Java writes it, as far as whole numbers, words, conditions and plain reals go."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _converted(kind: str) -> Function:
    def run(result: str, values: Sequence[Any]) -> Any:
        try:
            number = float(values[0]) if isinstance(values[0], str) and kind in ("float", "double") else values[0]
            return cast(result, int(number) if kind in ("integer", "long") else number)
        except (ValueError, OverflowError) as error:
            raise VivaRefusalError(f"{values[0]!r} is no {kind}") from error

    return Function(lambda types: kind if len(types) == 1 and types[0] != "boolean" else None, run)


def _if_type(types: Sequence[str]) -> str | None:
    return types[1] if len(types) == 3 and types[0] == "boolean" and types[1] == types[2] else None


SCALARS: dict[str, Function] = {
    **{name: _real(getattr(math, name)) for name in ("acos", "asin", "atan", "cos", "cosh", "exp", "sin", "sinh",
                                                    "sqrt", "tan", "tanh", "log10", "log2")},
    "ln": _real(math.log),
    "todegrees": _real(math.degrees),
    "toradians": _real(math.radians),
    "atan2": _real(math.atan2, 2),
    "pow": _real(math.pow, 2),
    "distance": _real(lambda a, b, c, d: math.hypot(a - c, b - d), 4),
    "concat": Function(_any("string"), lambda _, values: "".join(map(_text, values))),
    "if": Function(_if_type, lambda _, values: values[1] if values[0] else values[2]),
    "length": Function(_one("string", "integer"), lambda _, values: len(values[0])),
    "ljust": Function(_one("string", "boolean"), lambda _, values: not values[0].startswith(" ")),
    "rjust": Function(_one("string", "boolean"), lambda _, values: not values[0].endswith(" ")),
    "test": Function(_any("boolean"), lambda *_: True),
    "todouble": _converted("double"),
    "tofloat": _converted("float"),
    "tointeger": _converted("integer"),
    "tolong": _converted("long"),
    "tostring": Function(lambda types: "string" if len(types) == 1 else None, lambda _, values: _text(values[0])),
}  # fmt: skip


def _sum(kind: str, rows: Sequence[Sequence[Any]]) -> Any:
    total: Any = 0
    for row in rows:
        total = cast(kind, total + row[0])
    return total


def _ordered(holds: Callable[[Any, Any], bool]) -> Function:
    def run(_kind: str, rows: Sequence[Sequence[Any]]) -> bool:
        return all(holds(a[0], b[0]) for a, b in pairwise(rows))

    return Function(_numbers(1, "boolean"), run)


def _slack(value: Any) -> float:
    return _EPSILON if isinstance(value, float) else 0


VECTORS: dict[str, Function] = {
    "concatall": Function(_any("string"), lambda _, rows: "".join(_text(value) for row in rows for value in row)),
    "count": Function(_one("boolean", "integer"), lambda _, rows: sum(bool(row[0]) for row in rows)),
    "decreasing": _ordered(lambda a, b: a > b),
    "increasing": _ordered(lambda a, b: a < b),
    "nondecreasing": _ordered(lambda a, b: a <= b + _slack(a)),
    "nonincreasing": _ordered(lambda a, b: a >= b - _slack(a)),
    "sum": Function(_numbers(1), _sum),
    "testall": Function(_any("boolean"), lambda *_: True),
    "unique": Function(_any("boolean"), lambda _, rows: len({tuple(row) for row in rows}) == len(rows)),
}
