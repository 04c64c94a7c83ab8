"""Rules that a statement writes as formulas: ``1 ≤ k ≤ n``, ``a ≠ b``, ``n·m ≤ 10^5``; which column each name is.

Which names there are, and which column each is, is told by `stated_names`.

Invariants: pure; rules are comparisons of sums and products of names and numbers, ``|x|`` is a length or a magnitude.
What it does not do: read words ("all different"), sums over rows, or formulas with dots.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from curation.programs.test_generation.demands import input_section
from curation.programs.test_generation.grammar import SeenInputs
from curation.programs.test_generation.shapes import is_whole

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "!=": operator.ne, "=": operator.eq,
}  # fmt: skip
_SPELLINGS = (
    (re.compile(r"\\(?:leqslant|leq|le)(?![a-z])|≤"), "<="),
    (re.compile(r"\\(?:geqslant|geq|ge)(?![a-z])|≥"), ">="),
    (re.compile(r"\\(?:neq|ne)(?![a-z])|\\not\s*=|≠"), "!="),
    (re.compile(r"\\lt(?![a-z])"), "<"),
    (re.compile(r"\\gt(?![a-z])"), ">"),
    (re.compile(r"\\(?:cdot|times)(?![a-z])|×|·"), "*"),
    (re.compile(r"\\(?:lvert|rvert|vert|mid)(?![a-z])"), "|"),
    (re.compile(r"\\(?:text|mathrm|texttt)\{[^{}]*\}"), ","),
    (re.compile(r"\\(?:left|right|big|quad|displaystyle)(?![a-z])|\\[ ,;!]|~"), " "),
    (re.compile(r"\b(?:and|for each|for all|where|or)\b"), ","),
)
MATH = re.compile(r"\$([^$]+)\$|\\\((.+?)\\\)", re.DOTALL)
SIGN = re.compile(r"(<=|>=|!=|=|<|>)")
DOTS = re.compile(r"\\[lc]?dots|…|\.\.\.")
_UNEQUAL = re.compile(r"(\\?[A-Za-z]\w*'*)\s*!=\s*(\\?[A-Za-z]\w*'*)")
_TERM = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>\\?[A-Za-z]\w*'*)|(?P<sign>[-+*^|()]))")
NAME = re.compile(r"\\?[A-Za-z]\w*'*")
_DISTINCT = re.compile(
    r"((?:\$[^$<>=]+\$\s*(?:,|and|, and)?\s*){1,9})\b(?:are|be)\b[^.;$]{0,40}\b(?:distinct|different)\b", re.IGNORECASE
)
"""Names of which words say that they differ: ``$a$, $b$ and $c$ are all distinct``."""
_MOST = 10**60

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A comparison of two expressions, in words of names; that of a word is its length.

    Example: ``1 ≤ k`` is ``Rule("1", "<=", "k")``
    """

    left: str
    sign: str
    right: str

    @property
    def names(self) -> frozenset[str]:
        """Return the names in it."""
        return frozenset(NAME.findall(f"{self.left} {self.right}"))

    @property
    def text(self) -> str:
        """Return it as it is written."""
        return f"{self.left} {self.sign} {self.right}"

    def holds(self, values: Values) -> bool:
        """Return whether it holds; all names have values."""
        return _OPERATORS[self.sign](_evaluate(self.left, values), _evaluate(self.right, values))


class Trust(Enum):
    """How the names of columns were found.

    Behind nouns (`stated_names`); as a description introduces them (`introduced_names`), so that limits are drawn from,
    but all that the given inputs have in common is kept; in the order in which they are mentioned, whatever stands
    before them: where no validator looks nothing is drawn from their limits, two of eight packages were misread.
    """

    TOLD = "told"
    INTRODUCED = "introduced"
    MENTIONED = "mentioned"


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Which column each name is, and the rules of which all names are known.

    Their rules are kept whatever the ``trust``.
    """

    columns: Mapping[str, int]
    rules: tuple[Rule, ...]
    trust: Trust = Trust.TOLD

    @property
    def is_told(self) -> bool:
        """Return whether a noun stands before each name."""
        return self.trust is Trust.TOLD

    @property
    def is_limited(self) -> bool:
        """Return whether numbers may be drawn from the limits that the names have."""
        return self.trust is not Trust.MENTIONED

    def broken(self, seen: Sequence[SeenInputs]) -> Rule | None:
        """Return a rule that an input breaks, None where it keeps all."""
        names = {column: name for name, column in self.columns.items()}
        of_column: dict[int, list[Rule]] = {}
        for rule in self.rules:
            of_column.setdefault(max(self.columns[name] for name in rule.names), []).append(rule)
        rows: dict[int, list[int]] = {}
        for block in seen:
            rules = of_column.get(block.column, ())
            if rules or block.column in names:
                rows[block.column] = list(map(_number, block.tokens))
            known = {names[column]: value for column, value in block.env.items() if column in names}
            for rule in rules:
                beside = {name: rows.get(self.columns[name], []) for name in rule.names if name not in known}
                told = all(len(values) == len(block.tokens) for values in beside.values())
                if told and not _all_hold(rule, known, beside, len(block.tokens)):
                    return rule
        return None

    def compared(self) -> Iterator[tuple[int, int, str]]:
        """Yield the rules that compare two columns as such: (later column, earlier column, sign)."""
        turned = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "!=": "!=", "=": "="}
        for rule in self.rules:
            if rule.left in self.columns and rule.right in self.columns and rule.left != rule.right:
                a, b = self.columns[rule.left], self.columns[rule.right]
                yield (a, b, rule.sign) if a > b else (b, a, turned[rule.sign])

    def limits(self) -> dict[int, tuple[int | None, int | None]]:
        """Return the least and the greatest number that a column may have, as far as rules name them.

        Through other columns, too: of ``1 ≤ l ≤ r ≤ 9`` both may be from 1 to 9.
        """
        ends: dict[int, tuple[int | None, int | None]] = {}
        for rule in self.rules:
            for name, sign, other in (
                (rule.left, rule.sign, rule.right),
                (rule.right, {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(rule.sign, ""), rule.left),
            ):
                own = name.strip("| ")
                if own not in self.columns or NAME.search(other) or sign not in ("<=", "<", ">=", ">"):
                    continue
                value, column = _evaluate(other, {}), self.columns[own]
                low, high = ends.get(column, (None, None))
                if sign[0] == "<":
                    value -= sign == "<"
                    high = value if high is None else min(high, value)
                    low = -value if "|" in name and low is None else low
                elif "|" not in name:
                    value += sign == ">"
                    low = value if low is None else max(low, value)
                ends[column] = low, high
        for _ in self.columns:
            for later, earlier, sign in self.compared():
                if sign[0] == "<":
                    _narrow(ends, later, earlier, int(sign == "<"))
                elif sign[0] == ">":
                    _narrow(ends, earlier, later, int(sign == ">"))
        return ends


def _narrow(ends: dict[int, tuple[int | None, int | None]], smaller: int, greater: int, apart: int) -> None:
    """Give two columns the ends that follow where one is smaller than the other by ``apart`` at least."""
    (low, high), (least, most) = ends.get(smaller, (None, None)), ends.get(greater, (None, None))
    if most is not None:
        ends[smaller] = low, most - apart if high is None else min(high, most - apart)
    if low is not None:
        ends[greater] = low + apart if least is None else max(least, low + apart), most


def stated_rules(statement: str) -> list[Rule]:
    """Return the comparisons that a statement's description of its input writes as formulas."""
    rules: list[Rule] = []
    for match in MATH.finditer(input_section(statement)):
        text = plain_formula(match[1] or match[2])
        if DOTS.search(text) or "\\sum" in text:
            continue
        plain = without_unequal(text)
        if plain != text:
            rules += [Rule(_based(a), "!=", _based(b)) for a, b in _UNEQUAL.findall(text)]
        text = plain
        parts = SIGN.split(text)
        sides = [[piece for piece in map(str.strip, part.split(",")) if piece] for part in parts[::2]]
        for place, sign in enumerate(parts[1::2]):
            left, right = sides[place], sides[place + 1]
            if not left or not right:
                continue
            lefts = left if place and all_names(left) else left[-1:] if place else _listed(left)
            rights = right if place + 2 < len(sides) and all_names(right) else right[:1]
            if place + 2 == len(sides):
                rights = right[:1]
            rules += [Rule(_based(a), sign, _based(b)) for a in lefts for b in rights]
    for match in _DISTINCT.finditer(input_section(statement)):
        listed = [piece.strip() for one in MATH.finditer(match[1]) for piece in plain_formula(one[1]).split(",")]
        if len(listed) > 1 and all(map(NAME.fullmatch, listed)):
            rules += [Rule(a, "!=", b) for a, b in itertools.combinations(map(_based, listed), 2) if a != b]
    return list(dict.fromkeys(rules))


def without_unequal(formula: str) -> str:
    """Return a chain of comparisons in which names that are said to differ are listed: both lie between its ends.

    Example: of ``1 <= a != b <= n`` it is ``1 <= a, b <= n``; ``a != b`` stays
    """
    unequal = _UNEQUAL.findall(formula)
    chained = len(SIGN.findall(formula)) > len(unequal)
    return _UNEQUAL.sub(r"\1, \2", formula) if unequal and chained else formula


def _listed(pieces: list[str]) -> list[str]:
    return pieces if all_names(pieces) else pieces[-1:]


def all_names(pieces: Sequence[str]) -> bool:
    return all(NAME.fullmatch(piece.strip("| ")) is not None for piece in pieces)


def plain_formula(formula: str) -> str:
    """Return a formula with ASCII signs, digits together, and subscripts without braces."""
    text = " ".join(formula.split())
    text = re.sub(r"(?<=\d)(?:\\,|\{,\}|\\;|\\!|,(?=\d{3}(?!\d)))(?=\d)", "", text)
    for pattern, plain in _SPELLINGS:
        text = pattern.sub(plain, text)
    text = re.sub(r"_\{?\s*(\w+)\s*\}?", r"_\1", text)
    text = re.sub(r"\^\{?\s*(\d+)\s*\}?", r"^\1", text)
    text = _unbalanced(text)
    return text.replace("{", " ").replace("}", " ").replace("'_", "_").replace("−", "-")


def _unbalanced(text: str) -> str:
    """Return a formula in which commas stand for brackets that only it opens, or only closes: ``(1 <= n`` in words."""
    signs, open_places = list(text), []
    for place, sign in enumerate(text):
        if sign == "(":
            open_places.append(place)
        elif sign == ")" and open_places:
            inner = text[open_places.pop() + 1 : place]
            if SIGN.search(inner):  # a remark
                signs[place - len(inner) - 1] = signs[place] = ","
        elif sign == ")":
            signs[place] = ","
    for place in open_places:
        signs[place] = ","
    return "".join(signs)


def base_name(name: str) -> str:
    """Return a name without the index that runs over rows: ``a_i`` is ``a``, ``x_1`` stays."""
    return re.sub(r"_[a-z]$", "", name.strip())


def _based(expression: str) -> str:
    return NAME.sub(lambda match: base_name(match[0]), expression.strip())


def _number(token: str) -> int:
    """Return a number's value, rounded, or a word's length."""
    if is_whole(token):
        return int(token)
    try:
        return round(float(token))
    except (ValueError, OverflowError):  # "infinity" is a word
        return len(token)


def _all_hold(rule: Rule, known: Values, rows: Mapping[str, Sequence[int]], count: int) -> bool:
    """Return whether a rule holds in every row; what varies from row to row is in ``rows``."""
    sides = [_values_of(side, known, rows, count) for side in (rule.left, rule.right)]
    return all(map(_OPERATORS[rule.sign], *sides))


def _values_of(side: str, known: Values, rows: Mapping[str, Sequence[int]], count: int) -> Iterable[int]:
    varying = [name for name in set(NAME.findall(side)) if name in rows]
    if not varying:
        return itertools.repeat(_evaluate(side, known), count)
    if side.strip() in rows:
        return rows[side.strip()]
    together = zip(*(rows[name] for name in varying), strict=True)
    return [_evaluate(side, {**known, **dict(zip(varying, row, strict=True))}) for row in together]


def readable(rule: Rule) -> bool:
    try:
        rule.holds(dict.fromkeys(rule.names, 1))
    except ValueError:
        return False
    return True


def _evaluate(expression: str, values: Values) -> int:
    """Return the value of a sum of products; raises ValueError where it is none."""
    tokens = _terms(expression)
    value, at = _sum(tokens, 0, values)
    if at != len(tokens):
        raise ValueError(f"{expression!r} is no sum of products")
    return value


@lru_cache(maxsize=1024)
def _terms(expression: str) -> list[str]:
    tokens, at = [], 0
    text = expression.strip()
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise ValueError(f"{expression!r} is no sum of products")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


def _sum(tokens: Sequence[str], at: int, values: Values) -> tuple[int, int]:
    total, at = _product(tokens, at, values)
    while at < len(tokens) and tokens[at] in "+-":
        sign = 1 if tokens[at] == "+" else -1
        value, at = _product(tokens, at + 1, values)
        total += sign * value
    return total, at


def _product(tokens: Sequence[str], at: int, values: Values) -> tuple[int, int]:
    total, at = _factor(tokens, at, values)
    scale = 1
    while at < len(tokens) and tokens[at] not in ("+", "-", ")", "|"):
        value, at = _factor(tokens, at + (tokens[at] == "*"), values)
        total *= value
    return total * scale, at


def _factor(tokens: Sequence[str], at: int, values: Values) -> tuple[int, int]:
    if at >= len(tokens):
        raise ValueError("the formula ends")
    token = tokens[at]
    if token == "-":
        value, at = _factor(tokens, at + 1, values)
        return -value, at
    if token in ("(", "|"):
        value, at = _sum(tokens, at + 1, values)
        if at >= len(tokens) or tokens[at] != {"(": ")", "|": "|"}[token]:
            raise ValueError("a bracket is open")
        base, at = abs(value) if token == "|" else value, at + 1
    elif token[0].isdigit():
        base, at = _literal(tokens, at)
    elif token in values:
        base, at = values[token], at + 1
    else:
        raise ValueError(f"{token} is not known")
    if at + 1 < len(tokens) and tokens[at] == "^" and tokens[at + 1].isdigit():
        if int(tokens[at + 1]) > 60 and abs(base) > 1:
            return min(_MOST, base ** min(200, int(tokens[at + 1]))), at + 2
        return base ** int(tokens[at + 1]), at + 2
    return base, at


def _literal(tokens: Sequence[str], at: int) -> tuple[int, int]:
    """Return a number; ``1.5 * 10^5`` is one."""
    token = tokens[at]
    if "." not in token:
        return int(token), at + 1
    whole, _, decimals = token.partition(".")
    if tokens[at + 1 : at + 4][:3] == ["*", "10", "^"] and at + 4 < len(tokens):
        return int(whole + decimals) * 10 ** max(0, int(tokens[at + 4]) - len(decimals)), at + 5
    raise ValueError(f"{token} is no whole number")
