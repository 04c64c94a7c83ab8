"""Constraints of VIVA patterns: tokens of the language, and expressions as functions of what has been read.

VIVA is vanb's Input Verification Assistant; its User's Guide (version 2.1) describes the language. Types and operators
are Java's: whole numbers of 32 and 64 bits wrap around, division cuts towards zero, reals are compared within an
epsilon. An expression's type is known when it is parsed.

Invariants: the standard library only, for this text runs within the sandbox too; what cannot be parsed raises
`VivaSyntaxError`, what fails while an input is read raises `VivaRefusalError`.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.verify.programs.viva_functions import BITS, SCALARS, VECTORS, VivaRefusalError, cast

_TOKEN = re.compile(
    r"""\s+|(?P<real>\d+\.\d*(?:[eE][+-]?\d+)?[fFdD]?|\.\d+(?:[eE][+-]?\d+)?[fFdD]?|\d+[eE][+-]?\d+[fFdD]?|\d+[fFdD])
    |(?P<whole>0[xX][0-9a-fA-F]+[lL]?|\d+[lL]?)|(?P<char>'(?:[^'\\]|\\.[0-7]{0,2})')|(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z_]\w*)|(?P<sign>>>>|<<|>>|\|\||\^\^|&&|>=|<=|==|!=|<>|%%|[-+*/%&|^~!<>=(){}\[\],;:@$\#])""",
    re.VERBOSE,
)
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"})
_JAVA_ONLY = re.compile(r"\\[pPQEGZhHvVRX]|\[(?:[^\]\\]|\\.)*?(?:(?<!\\)\[|&&)")
"""Regular expressions that Java and Python read differently."""
_RANK = {"integer": 0, "long": 1, "float": 2, "double": 3}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne,
}  # fmt: skip


class VivaSyntaxError(ValueError):
    """A pattern that is none."""


@dataclass(slots=True)
class Level:
    """Values read within one repetition: by name, with their texts; ``rows`` counts the rounds begun."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0


@dataclass(slots=True)
class Env:
    """What has been read, innermost repetition last. ``row`` is a row that a vector function looks at, or None."""

    levels: list[Level] = field(default_factory=lambda: [Level()])
    row: int | None = None
    epsilons: dict[str, float] = field(default_factory=lambda: {"float": 1e-6, "double": 1e-6})

    def find(self, name: str) -> Level:
        """Return the innermost level that holds a name."""
        for level in reversed(self.levels):
            if name in level.values:
                return level
        raise VivaRefusalError(f"no value for {name}")


Evaluate = Callable[[Env], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. ``type``: integer, long, float, double, string or boolean."""

    type: str
    value: Evaluate
    text: str = ""


@dataclass(slots=True)
class Tokens:
    """The tokens of a pattern, as (kind, text, position); the last one is of the kind ``end``."""

    pattern: str
    tokens: list[tuple[str, str, int]]
    at: int = 0

    @classmethod
    def of(cls, pattern: str) -> "Tokens":
        """Return the tokens of a pattern."""
        pattern = pattern.translate(_QUOTES)
        tokens, at = [], 0
        while at < len(pattern):
            match = _TOKEN.match(pattern, at)
            if match is None:
                raise VivaSyntaxError(f"line {pattern.count(chr(10), 0, at) + 1}: no token begins with {pattern[at]!r}")
            if match.lastgroup is not None:
                tokens.append((match.lastgroup, match[0], at))
            at = match.end()
        return cls(pattern, [*tokens, ("end", "", at)])

    @property
    def next(self) -> str:
        """Return the next token's text."""
        return self.tokens[self.at][1]

    @property
    def kind(self) -> str:
        """Return the next token's kind."""
        return self.tokens[self.at][0]

    def take(self, *texts: str) -> str | None:
        """Return the next token and go on, where it is a sign among ``texts``; None else."""
        if self.kind == "sign" and self.next in texts:
            return self.advance()
        return None

    def advance(self) -> str:
        """Return the next token and go on."""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def expect(self, text: str) -> None:
        """Go past a sign."""
        if self.take(text) is None:
            raise self.fault(f"{text!r} wanted, not {self.next!r}")

    def fault(self, words: str) -> VivaSyntaxError:
        """Return an error at the next token."""
        return VivaSyntaxError(f"line {self.pattern.count(chr(10), 0, self.tokens[self.at][2]) + 1}: {words}")


def parse_constraint(tokens: Tokens, scopes: Sequence[dict[str, str]]) -> Expression:
    """Return the constraint that comes next; ``scopes`` hold the types of names, innermost last."""
    return _Parser(tokens, scopes).either()


@dataclass(frozen=True, slots=True)
class _Parser:
    tokens: Tokens
    scopes: Sequence[dict[str, str]]

    def either(self) -> Expression:
        left = self.both()
        while sign := self.tokens.take("||", "^^"):
            left = _logical(self.tokens, sign, left, self.both())
        return left

    def both(self) -> Expression:
        left = self.chain()
        while self.tokens.take("&&"):
            left = _logical(self.tokens, "&&", left, self.chain())
        return left

    def chain(self) -> Expression:
        start = self.tokens.tokens[self.tokens.at][2]
        left, whole = self.sum(), None
        while sign := self.tokens.take("%%", *_COMPARISONS):
            right = self.sum()
            one = _matching(self.tokens, left, right) if sign == "%%" else _comparison(self.tokens, sign, left, right)
            whole = one if whole is None else _logical(self.tokens, "&&", whole, one)
            left = right
        if whole is None:
            return left
        text = " ".join(self.tokens.pattern[start : self.tokens.tokens[self.tokens.at][2]].split())
        return Expression("boolean", whole.value, text)

    def sum(self) -> Expression:
        left = self.product()
        while sign := self.tokens.take("+", "-", "|", "^"):
            left = _arithmetic(self.tokens, sign, left, self.product())
        return left

    def product(self) -> Expression:
        left = self.factor()
        while sign := self.tokens.take("*", "/", "%", "&", "<<", ">>", ">>>"):
            left = _arithmetic(self.tokens, sign, left, self.factor())
        return left

    def factor(self) -> Expression:
        tokens = self.tokens
        if tokens.kind == "name":
            return self.named(tokens.advance())
        if sign := tokens.take("!", "-", "~"):
            return _unary(tokens, sign, self.factor())
        if tokens.take("("):
            inner = self.either()
            tokens.expect(")")
            return inner
        return constant(tokens)

    def named(self, name: str) -> Expression:
        tokens = self.tokens
        if tokens.take("("):
            parameters = [self.either()]
            while tokens.take(","):
                parameters.append(self.either())
            tokens.expect(")")
            return _call(tokens, name, parameters)
        kind = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
        if kind is None:
            raise tokens.fault(f"{name} is not known")
        if tokens.take("#"):
            return Expression("integer", lambda env: len(env.find(name).values[name]))
        if tokens.take("["):
            subscript = self.sum()
            tokens.expect("]")
            if subscript.type != "integer":
                raise tokens.fault(f"the subscript of {name} is no integer")
            return Expression(kind, lambda env: _nth(env, name, subscript.value(env)))
        if tokens.take("$"):
            return Expression("string", lambda env: _current(env, name, "texts"))
        return Expression(kind, lambda env: _current(env, name, "values"))


def _nth(env: Env, name: str, place: int) -> Any:
    values = env.find(name).values[name]
    if not 0 <= place < len(values):
        raise VivaRefusalError(f"subscript {place} is out of range for {name}[]")
    return values[place]


def _current(env: Env, name: str, of: str) -> Any:
    level = env.find(name)
    values = getattr(level, of)[name]
    if env.row is not None and level is env.levels[-1]:
        if env.row >= len(values):
            raise VivaRefusalError(f"{name} has no value in row {env.row}")
        return values[env.row]
    return values[-1]


def constant(tokens: Tokens) -> Expression:
    """Return the constant that comes next."""
    kind, text = tokens.kind, tokens.next
    fault = tokens.fault(f"no value begins with {text!r}")
    tokens.advance()
    value: Any
    if kind == "whole":
        type_ = "long" if text[-1] in "lL" else "integer"
        digits = text.rstrip("lL")
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" and len(digits) > 1 else 10
        try:
            value = int(digits, base)
        except ValueError:
            raise fault from None
        if value != cast(type_, value):
            raise tokens.fault(f"{text} is too large for its type")
    elif kind == "real":
        type_ = "float" if text[-1] in "fF" else "double"
        value = cast(type_, float(text.rstrip("fFdD")))
    elif kind == "char":
        type_, value = "integer", ord(text[1])
    elif kind == "string":
        type_, value = "string", text[1:-1]
    else:
        raise fault
    return Expression(type_, lambda _: value, text)


def _wider(tokens: Tokens, sign: str, *sides: Expression) -> str:
    if any(side.type not in _RANK for side in sides):
        raise tokens.fault(f"{sign} needs numbers, not {' and '.join(side.type for side in sides)}")
    return max((side.type for side in sides), key=_RANK.__getitem__)


def _logical(tokens: Tokens, sign: str, left: Expression, right: Expression) -> Expression:
    if left.type != "boolean" or right.type != "boolean":
        raise tokens.fault(f"{sign} needs conditions")
    if sign == "&&":
        return Expression("boolean", lambda env: left.value(env) and right.value(env), f"{left.text} && {right.text}")
    if sign == "||":
        return Expression("boolean", lambda env: left.value(env) or right.value(env), f"{left.text} || {right.text}")
    return Expression("boolean", lambda env: left.value(env) != right.value(env), f"{left.text} ^^ {right.text}")


def _comparison(tokens: Tokens, sign: str, left: Expression, right: Expression) -> Expression:
    kind = _wider(tokens, sign, left, right)
    compare = _COMPARISONS[sign]
    if kind in BITS or sign in ("<", ">"):
        return Expression("boolean", lambda env: compare(cast(kind, left.value(env)), cast(kind, right.value(env))))

    def near(env: Env) -> bool:
        a, b = cast(kind, left.value(env)), cast(kind, right.value(env))
        equal = abs(a - b) < env.epsilons[kind]
        return not equal if sign in ("!=", "<>") else equal or (sign in ("<=", ">=") and compare(a, b))

    return Expression("boolean", near)


def _matching(tokens: Tokens, left: Expression, right: Expression) -> Expression:
    if left.type != "string" or right.type != "string" or not right.text.startswith('"'):
        raise tokens.fault("%% needs a string and a constant string")
    text = right.text[1:-1].replace("\\\\", "\\")
    if _JAVA_ONLY.search(text):
        raise tokens.fault(f"{text} is a regular expression that Java and Python read differently")
    try:
        pattern = re.compile(text, re.ASCII)
    except re.error as error:
        raise tokens.fault(f"{text} is no regular expression: {error}") from error
    return Expression("boolean", lambda env: pattern.fullmatch(left.value(env)) is not None)


def _arithmetic(tokens: Tokens, sign: str, left: Expression, right: Expression) -> Expression:
    kind = _wider(tokens, sign, left, right)
    if sign in ("|", "^", "&", "<<", ">>", ">>>") and kind not in BITS:
        raise tokens.fault(f"{sign} needs whole numbers")
    compute = _whole_operator(sign, kind) if kind in BITS else _real_operator(sign)
    return Expression(kind, lambda env: cast(kind, compute(cast(kind, left.value(env)), cast(kind, right.value(env)))))


def _divided(a: int, b: int) -> int:
    if not b:
        raise VivaRefusalError("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _whole_operator(sign: str, kind: str) -> Callable[[int, int], int]:
    bits = BITS[kind]
    operators: dict[str, Callable[[int, int], int]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divided,
        "%": lambda a, b: a - b * _divided(a, b),
        "|": operator.or_, "^": operator.xor, "&": operator.and_,
        "<<": lambda a, b: a << (b % bits), ">>": lambda a, b: a >> (b % bits),
        ">>>": lambda a, b: (a % (1 << bits)) >> (b % bits),
    }  # fmt: skip
    return operators[sign]


def _real_operator(sign: str) -> Callable[[float, float], float]:
    def divide(a: float, b: float) -> float:
        if abs(b) < 1e-15:
            raise VivaRefusalError("division by zero")
        return math.fmod(a, b) if sign == "%" else a / b

    return {"+": operator.add, "-": operator.sub, "*": operator.mul}.get(sign, divide)


def _unary(tokens: Tokens, sign: str, inner: Expression) -> Expression:
    if sign == "!":
        if inner.type != "boolean":
            raise tokens.fault("! needs a condition")
        return Expression("boolean", lambda env: not inner.value(env), f"!({inner.text})")
    kind = _wider(tokens, sign, inner)
    if sign == "~" and kind not in BITS:
        raise tokens.fault("~ needs a whole number")
    negate: Callable[[Any], Any] = operator.invert if sign == "~" else operator.neg
    return Expression(kind, lambda env: cast(kind, negate(inner.value(env))))


def _call(tokens: Tokens, name: str, parameters: list[Expression]) -> Expression:
    types = [parameter.type for parameter in parameters]
    if name in SCALARS:
        scalar = SCALARS[name]
        result = scalar.type_of(types)
        if result is not None:
            kind = result
            return Expression(kind, lambda env: scalar.run(kind, [one.value(env) for one in parameters]))
    elif name in VECTORS:
        vector = VECTORS[name]
        result = vector.type_of(types)
        if result is not None:
            kind = result
            return Expression(kind, lambda env: vector.run(kind, _rows(env, parameters)))
    else:
        raise tokens.fault(f"there is no function {name}")
    raise tokens.fault(f"{name} does not take {', '.join(types)}")


def _rows(env: Env, parameters: list[Expression]) -> list[Any]:
    """Return the parameters' values in each row of the innermost repetition."""
    before, rows = env.row, []
    try:
        for row in range(env.levels[-1].rows):
            env.row = row
            rows.append([parameter.value(env) for parameter in parameters])
    finally:
        env.row = before
    return rows
