"""The `Cursor` that the grammar's parts share, and the rules for numbers, names and words."""

from __future__ import annotations

import re
from fractions import Fraction

from curation.verify.answers import expr as ex
from curation.verify.answers.expr import Expr, const, fn, num, sym
from curation.verify.answers.tokens import FUNCTIONS, AnswerParseError, Token

MAX_DEPTH = 60
"""Levels of nesting."""

CLOSING = {"(": ")", "{": "}", "[": "]", "⌊": "⌋", "⌈": "⌉", "|(": ")|", "{s": "}s"}
MAX_NUMBER_CHARS = 3000
"""Digits of a number that is still computed with."""

_FUNCTION_LETTERS = frozenset("fghFGH")
GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta lambda mu nu xi rho sigma tau phi chi psi omega".split()
)
_MARKS = frozenset(
    "vec hat widehat bar overline tilde widetilde dot ddot overrightarrow underline mathbb mathcal".split()
)
_FUNCTION_IN_WORD = re.compile(
    r"([a-zA-Z]?)(arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi)(.*)"
)


_INDEX_SUM = re.compile(r"[-+]?\w+(?:[-+]\w+)+")


def _in_order(index: str) -> str:
    """Return a subscript with its sum sorted: letters, then numbers."""
    if not _INDEX_SUM.fullmatch(index):
        return index
    terms = re.findall(r"[-+]\w+", index if index[0] in "+-" else f"+{index}")
    ordered = sorted(terms, key=lambda term: (term[1:].isdigit(), term[0] == "-", term))
    return "".join(ordered).removeprefix("+")


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = [token for token in tokens if token.text != "space"]
        self.position = 0
        self.depth = 0
        self.bars = 0

    def peek(self, ahead: int = 0) -> Token:
        at = self.position + ahead
        return self.tokens[at] if at < len(self.tokens) else Token("eof", "")

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def at(self, text: str) -> bool:
        token = self.peek()
        return token.text == text and token.kind == "op"

    def expect(self, text: str) -> None:
        if not self.at(text):
            raise AnswerParseError(f"{self.peek().text!r} where {text!r} was expected")
        self.position += 1

    def digit_group(self) -> Expr:
        r"""Return an argument of ``\frac`` as TeX reads it: braces, a letter, or one digit."""
        token = self.peek()
        if token.kind == "sym":
            self.position += 1
            return const(token.text) if token.text in ("e", "i") else sym(token.text)
        if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.position] = Token("num", token.text[1:])
            return num(int(token.text[0]))
        return self.group()

    def starts_factor(self) -> bool:
        """Return whether a factor begins here."""
        raise NotImplementedError

    def sum(self) -> Expr:
        """Return a sum of terms."""
        raise NotImplementedError

    def term(self) -> Expr:
        """Return a product."""
        raise NotImplementedError

    def factor(self) -> Expr:
        """Return an atom with the exponents and marks that follow it."""
        raise NotImplementedError

    def exponent(self) -> Expr:
        """Return what follows ^."""
        raise NotImplementedError

    def group(self) -> Expr:
        """Read ``{…}``, or the single token in its place."""
        raise NotImplementedError

    def styled(self, style: str) -> Expr:
        r"""Return the expression under a ``\vec`` or in another type face."""
        raise NotImplementedError

    def name(self, text: str, *, indexed: bool = True) -> Expr:
        """Return a variable with its indices and primes; digits after a letter count if ``indexed``."""
        raise NotImplementedError

    def atom(self) -> Expr:
        """Return a number, a name, a bracket, a function's value."""
        raise NotImplementedError


class NameRules(Cursor):
    """Rules for numbers, names with their indices, and runs of letters."""

    def number(self, token: Token) -> Expr:
        text = token.text
        if len(text) > MAX_NUMBER_CHARS:
            raise AnswerParseError("a number of very many digits")
        if self.at("_"):
            return self.in_base(text)
        mantissa, _, exponent = text.lower().partition("e")
        whole, point, part = mantissa.partition(".")
        value = Fraction(int((whole + part) or "0"), 10 ** len(part))
        if exponent:
            shift = int(exponent)
            return num(value * Fraction(10) ** shift, len(part) - shift)
        if point:
            return num(value, len(part))
        return self.mixed_number(value) or num(value)

    def mixed_number(self, whole: Fraction) -> Expr | None:
        r"""Read ``3\frac{1}{2}`` or ``3 1/2`` as a mixed number, else return None."""
        token = self.peek()
        if token.kind == "cmd" and token.text == "frac":
            saved, tokens = self.position, list(self.tokens)
            self.position += 1
            try:
                top, below = self.digit_group(), self.digit_group()
            except AnswerParseError:
                top = below = sym("?")
            plain = top.op == below.op == "num" and top.value.denominator == below.value.denominator == 1
            if plain and 0 < top.value < below.value and not self.at("^"):
                return num(whole + top.value / below.value)
            self.position, self.tokens = saved, tokens
        elif token.kind == "num" and token.text.isdigit() and self.peek(1).text == "/" and self.peek(2).kind == "num":
            below_text = self.peek(2).text
            if below_text.isdigit() and 0 < int(token.text) < int(below_text):
                self.position += 3
                return num(whole + Fraction(int(token.text), int(below_text)))
        return None

    def in_base(self, digits: str) -> Expr:
        self.position += 1
        base = self.group()
        return fn("base", sym(digits.lstrip("0") or "0"), base)

    def name(self, text: str, *, indexed: bool = True) -> Expr:
        if text == "C" and self.at("_"):
            combination = self.combination()
            if combination is not None:
                return combination
        if text == "C" and self.at("("):
            binomial = self.binomial_before()
            if binomial is not None:
                return binomial
        called = self.call_of(text) if text in _FUNCTION_LETTERS else None
        if called is not None:
            return called
        full = text
        if text == "Delta" and self.peek().kind == "sym":
            full += self.next().text
        while True:
            if self.at("_"):
                self.position += 1
                full += "_" + self.raw_group()
            elif self.at("'"):
                self.position += 1
                full += "'"
            elif self.at("^") and (
                self.peek(1).text in ("'", "*") or (self.peek(1).text == "{" and self.peek(2).text in ("'", "*"))
            ):
                self.position += 1
                full += "^" + self.raw_group()
            else:
                break
        if full in ("e", "i"):
            return const(full)
        before, digits = self.tokens[self.position - 1], self.peek()
        adjacent = digits.kind == "num" and digits.at == before.at + 1 and before.kind == "sym"
        to_a_power = self.peek(1).text == "^" and self.peek(2).text == "{"
        if indexed and adjacent and len(full) == 1 and full.isalpha() and not to_a_power:
            return sym(f"{full}_{self.next().text}")
        return sym(full)

    def call_of(self, name: str) -> Expr | None:
        """Read ``f(2)`` and ``f'(0)`` as names of values; None for f(x), which may be a product."""
        at = self.position
        while self.tokens[at : at + 1] and self.tokens[at].text == "'":
            at += 1
        end = next((end for end in range(at, len(self.tokens)) if self.tokens[end].text == ")"), 0)
        inside = self.tokens[at + 1 : end]
        if not inside or self.tokens[at].text != "(" or any(token.text == "(" for token in inside):
            return None
        if at == self.position and not all(token.kind in ("num", "const") or token.text in "-/." for token in inside):
            return None
        called = sym(name + "".join(token.text for token in self.tokens[self.position : end + 1]))
        self.position = end + 1
        return called

    def binomial_before(self) -> Expr | None:
        """Read ``C(5, 2)``; None for anything else."""
        saved = self.position
        self.position += 1
        try:
            top = self.sum()
            if self.at(","):
                self.position += 1
                below = self.sum()
                self.expect(")")
                return fn("binomial", top, below)
        except AnswerParseError:
            pass
        self.position = saved
        return None

    def combination(self) -> Expr | None:
        saved = self.position
        self.position += 1
        try:
            top = self.group()
            if self.at("^"):
                self.position += 1
                return fn("binomial", top, self.group())
        except AnswerParseError:
            pass
        self.position = saved
        return None

    def raw_group(self) -> str:
        """Return the text of a subscript."""
        if not self.at("{"):
            if self.peek().kind == "eof":
                raise AnswerParseError("a name without its index")
            return self.next().text
        self.position += 1
        level, parts = 1, []
        while level:
            token = self.next()
            if token.kind == "eof":
                raise AnswerParseError("unfinished subscript")
            level += (token.text == "{") - (token.text == "}")
            if level and token.text not in ("{", "}"):
                parts.append(token.text)
        return _in_order("".join(parts))

    def word(self, word: str) -> Expr:
        lower = word.lower()
        if lower in GREEK:
            return self.name(lower)
        if (len(word) > 3 and not (word.isupper() and len(word) <= 5)) or lower in ("sqrt",):
            match = _FUNCTION_IN_WORD.fullmatch(word)
            if match is None or len(match.group(3)) > 3:
                raise AnswerParseError(f"the word {word!r}")
        else:
            match = _FUNCTION_IN_WORD.fullmatch(word)
        if match is not None:
            before, function, after = match.groups()
            parts = [Token("sym", before)] if before else []
            parts.append(Token("const", "pi") if function == "pi" else Token("fun", function))
            if after:
                parts.append(
                    Token("fun", after) if after in FUNCTIONS else Token("word" if len(after) > 1 else "sym", after)
                )
        else:
            start = self.tokens[self.position - 1].at
            parts = [Token("sym", letter, start + at) for at, letter in enumerate(word)]
        self.tokens[self.position - 1 : self.position] = parts
        self.position -= 1
        return self.atom()

    def styled(self, style: str) -> Expr:
        inner = self.group()
        if style in _MARKS and (inner.op != "num" or style != "underline"):
            return sym(f"{style}({ex.show(inner)})") if not self.at("_") else self.name(f"{style}({ex.show(inner)})")
        return self.name(inner.name) if inner.op == "sym" and (self.at("_") or self.at("'")) else inner
