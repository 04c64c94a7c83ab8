"""What the parts of the grammar share: the position in the tokens, and the rules they call on one another."""

from __future__ import annotations

from curation.verify.answers.expr import Expr, const, num, sym
from curation.verify.answers.tokens import AnswerParseError, Token

MAX_DEPTH = 60
"""Levels of nesting."""

CLOSING = {"(": ")", "{": "}", "[": "]", "⌊": "⌋", "⌈": "⌉", "|(": ")|", "{s": "}s"}


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
        r"""Return an argument of ``\frac``: braces, a letter, or one digit of a number, as TeX reads it."""
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
        """Read ``{…}``, or the single token that stands for it."""
        raise NotImplementedError

    def styled(self, style: str) -> Expr:
        r"""Return the expression under a ``\vec`` or in another type face."""
        raise NotImplementedError

    def name(self, text: str, *, indexed: bool = True) -> Expr:
        """Return a variable with its indices and primes; digits right behind a letter count where ``indexed``."""
        raise NotImplementedError

    def atom(self) -> Expr:
        """Return a number, a name, a bracket, a function's value."""
        raise NotImplementedError
