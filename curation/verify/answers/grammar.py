r"""The grammar of single expressions, LaTeX or plain: tokens → `Expr`. A hand-written precedence parser.

It reads as people write: ``2x``, ``\frac12``, ``3\frac{1}{2}`` (mixed), ``\sin 2x``, ``\sin^2 x``, ``1/2x`` (= x/2),
``a/bc`` (= a/(bc)), ``|x|``, ``C_5^2``, ``x_{1}'``. Lists, relations, intervals and units are `reading`'s business.

Nesting deeper than `MAX_DEPTH` and whatever is not in the grammar raise `AnswerParseError`; nothing is evaluated here.
"""

from __future__ import annotations

from fractions import Fraction

from curation.verify.answers import expr as ex
from curation.verify.answers.expr import Expr, add, const, divide, fn, mul, neg, num, power, sym
from curation.verify.answers.functions import FunctionRules
from curation.verify.answers.names import CLOSING, MAX_DEPTH, NameRules
from curation.verify.answers.tokens import AnswerParseError, Token

_STARTS = frozenset(("(", "{", "[", "⌊", "⌈", "|("))


def parse_expression(tokens: list[Token]) -> Expr:
    """Return the expression that all of ``tokens`` is."""
    parser = ExpressionParser(tokens)
    expression = parser.sum_or_fraction()
    if parser.position != len(parser.tokens):
        raise AnswerParseError(f"it ends where more is expected, or at {parser.peek().text[:40]!r}")
    return expression


class ExpressionParser(NameRules, FunctionRules):
    """One pass over a list of tokens; its methods are the rules of the grammar."""

    def sum(self) -> Expr:
        terms = [self.signed()]
        while self.peek().kind == "op" and self.peek().text in ("+", "-", "±", "∓"):
            terms.append(self.signed())
        total = terms[0] if len(terms) == 1 else add(*terms)
        if is_modulus(self.peek()):
            total = fn("residue" if self.next().text == "pmod" else "mod", total, self.factor())
        elif self.at("(") and is_modulus(self.peek(1)):
            self.position += 2
            total = fn("residue", total, self.sum())
            self.expect(")")
        return total

    def signed(self) -> Expr:
        signs: list[str] = []
        while self.peek().kind == "op" and self.peek().text in ("+", "-", "±", "∓"):
            signs.append(self.next().text)
        term = self.term()
        for sign in reversed(signs):
            if sign == "-":
                term = neg(term)
            elif sign in ("±", "∓"):
                term = Expr("pm" if sign == "±" else "mp", (term,))
        return term

    def term(self) -> Expr:
        product = self.factor()
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.position += 1
                product = mul(product, self.signed_factor())
            elif token.kind == "op" and token.text in ("/", "÷", ":"):
                self.position += 1
                product = divide(product, self.denominator())
            elif self.starts_factor() and not (self.at("(") and is_modulus(self.peek(1))):
                product = self.implicit_product(product, token)
            else:
                return product

    def implicit_product(self, left: Expr, token: Token) -> Expr:
        if token.kind == "num":
            last = left.args[-1] if left.op == "mul" else left
            if self.tokens[self.position - 1].kind in ("num", "word") and last.op != "pow":
                raise AnswerParseError("two numbers side by side")
        return mul(left, self.factor())

    def signed_factor(self) -> Expr:
        if self.at("-"):
            self.position += 1
            return neg(self.signed_factor())
        if self.at("+"):
            self.position += 1
            return self.signed_factor()
        return self.factor()

    def denominator(self) -> Expr:
        below = self.signed_factor()
        while (
            below.op != "num"
            and self.peek().kind in ("sym", "const", "word")
            and below.op in ("sym", "pow", "mul", "const")
        ):
            below = mul(below, self.factor())
        return below

    def starts_factor(self) -> bool:
        token = self.peek()
        if token.kind in ("num", "sym", "word", "fun", "const", "style"):
            return True
        if token.kind == "cmd":
            return token.text not in ("over", "choose", "not", "mod", "bmod", "pmod")
        return token.kind == "op" and (token.text in _STARTS or (token.text == "|" and not self.bars))

    def factor(self) -> Expr:
        if self.depth > MAX_DEPTH:
            raise AnswerParseError("nested too deeply")
        self.depth += 1
        base = self.atom()
        while True:
            if self.at("^"):
                base = self.power_of(base)
            elif self.at("!"):
                self.position += 1
                if self.at("!"):
                    self.position += 1
                    base = fn("factorial2", base)
                else:
                    base = fn("factorial", base)
            elif self.at("%"):
                self.position += 1
                base = mul(base, num(Fraction(1, 100)))
            elif self.at("°"):
                self.position += 1
                base = mul(base, const("deg"))
            else:
                break
        self.depth -= 1
        return base

    def power_of(self, base: Expr) -> Expr:
        self.position += 1
        if self.peek().text == "circ" or (self.at("{") and self.peek(1).text == "circ" and self.peek(2).text == "}"):
            self.position += 3 if self.at("{") else 1
            return mul(base, const("deg"))
        if base.op == "sym" and self.peek().kind == "num" and self.peek(1).text == "_":
            exponent = num(int(self.next().text)) if self.peek().text.isdigit() else self.atom()
            return power(self.name(base.name), exponent)
        if self.at("'"):
            self.position += 1
            return sym(f"{ex.show(base)}'")
        return power(base, self.exponent())

    def exponent(self) -> Expr:
        if self.at("{"):
            return self.group()
        if self.at("-") or self.at("+"):
            negative = self.next().text == "-"
            inner = self.exponent()
            return neg(inner) if negative else inner
        below = self.name(self.next().text, indexed=False) if self.peek().kind == "sym" else self.atom()
        return power(below, self.exponent_after()) if self.at("^") else below

    def exponent_after(self) -> Expr:
        self.position += 1
        return self.exponent()

    def group(self) -> Expr:
        """Read ``{…}``, or the single token that stands for it."""
        if not self.at("{"):
            return self.atom()
        self.position += 1
        if self.depth > MAX_DEPTH:
            raise AnswerParseError("nested too deeply")
        self.depth += 1
        bars, self.bars = self.bars, 0
        inner = self.sum_or_fraction()
        self.expect("}")
        self.bars = bars
        self.depth -= 1
        return inner

    def sum_or_fraction(self) -> Expr:
        """Return a sum, or two of them with an ``\\over`` or ``\\choose`` between."""
        inner = self.sum()
        if self.peek().kind == "cmd" and self.peek().text in ("over", "choose"):
            over = self.next().text == "over"
            below = self.sum()
            inner = divide(inner, below) if over else fn("binomial", inner, below)
        return inner

    def atom(self) -> Expr:
        token = self.next()
        if token.kind == "num":
            return self.number(token)
        if token.kind == "sym":
            return self.name(token.text)
        if token.kind == "const":
            return const(token.text)
        if token.kind == "fun":
            return self.function(token.text)
        if token.kind == "cmd":
            return self.command(token.text)
        if token.kind == "word":
            return self.word(token.text)
        if token.kind == "style":
            return self.styled(token.text)
        if token.kind == "op":
            return self.bracketed(token.text)
        raise AnswerParseError(f"{token.text[:40]!r} in a formula")

    def bracketed(self, text: str) -> Expr:
        if text == "|":
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.expect("|")
            return fn("abs", inner)
        closer = CLOSING.get(text)
        if closer is None or text == "{s":
            raise AnswerParseError(f"{text!r} in a formula")
        if text == "{":
            self.position -= 1
            return self.group()
        if self.depth > MAX_DEPTH:
            raise AnswerParseError("nested too deeply")
        self.depth += 1
        bars, self.bars = self.bars, 0
        inner = self.sum()
        self.bars = bars
        self.depth -= 1
        self.expect(closer)
        return {"⌊": fn("floor", inner), "⌈": fn("ceil", inner), "|(": fn("abs", inner)}.get(text, inner)


def is_modulus(token: Token) -> bool:
    """Return whether a modulus follows a token."""
    return token.kind == "cmd" and token.text in ("mod", "bmod", "pmod")
