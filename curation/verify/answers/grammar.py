r"""The grammar of single expressions, LaTeX or plain: tokens → `Expr`. A hand-written precedence parser.

It reads as people write: ``2x``, ``\frac12``, ``3\frac{1}{2}`` (mixed), ``\sin 2x``, ``\sin^2 x``, ``1/2x`` (= x/2),
``a/bc`` (= a/(bc)), ``|x|``, ``C_5^2``, ``x_{1}'``. Lists, relations, intervals and units are `reading`'s business.

Nesting deeper than `DEEPEST` and whatever is not in the grammar raise `Unreadable`; nothing is evaluated here.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.verify.answers import expr as ex
from curation.verify.answers.expr import Expr, add, const, divide, fn, mul, neg, num, power, sym
from curation.verify.answers.tokens import FUNCTIONS, Token, Unreadable

DEEPEST = 60
"""Levels of nesting."""

LONGEST_NUMBER = 3000
"""Digits of a number that is still computed with."""

_CLOSERS = {"(": ")", "{": "}", "[": "]", "⌊": "⌋", "⌈": "⌉", "|(": ")|", "{s": "}s"}
_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta lambda mu nu xi rho sigma tau phi chi psi omega".split()
)
_MARKS = frozenset(
    "vec hat widehat bar overline tilde widetilde dot ddot overrightarrow underline mathbb mathcal".split()
)
_FUNCTION_IN_WORD = re.compile(
    r"([a-zA-Z]?)(arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi)(.*)"
)
_STARTS = frozenset(("(", "{", "[", "⌊", "⌈", "|("))
_INVERSE = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc", "sinh": "arcsinh",
    "cosh": "arccosh", "tanh": "arctanh",
}  # fmt: skip
HALF = num(Fraction(1, 2))
TEN = num(10)


def parse_expression(tokens: list[Token]) -> Expr:
    """The expression that all of ``tokens`` is."""
    parser = Parser(tokens)
    found = parser.sum()
    if parser.position != len(parser.tokens):
        raise Unreadable(f"what follows {parser.tokens[parser.position].text!r}")
    return found


class Parser:
    """One pass over a list of tokens; its methods are the rules of the grammar."""

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
            raise Unreadable(f"{self.peek().text!r} where {text!r} was expected")
        self.position += 1

    def sum(self) -> Expr:
        terms = [self.signed()]
        while self.peek().kind == "op" and self.peek().text in ("+", "-", "±", "∓"):
            terms.append(self.signed())
        if len(terms) == 1:
            return terms[0]
        return add(*terms)

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
        left = self.factor()
        while True:
            token = self.peek()
            if token.kind == "op" and token.text == "*":
                self.position += 1
                left = mul(left, self.signed_factor())
            elif token.kind == "op" and token.text in ("/", "÷", ":"):
                self.position += 1
                left = divide(left, self.denominator())
            elif token.kind == "cmd" and token.text in ("mod", "bmod", "pmod"):
                self.position += 1
                left = fn("mod", left, self.factor())
            elif self.starts_factor():
                left = self.implicit(left, token)
            else:
                return left

    def implicit(self, left: Expr, token: Token) -> Expr:
        if token.kind == "num":
            before = self.tokens[self.position - 1]
            if before.kind in ("num", "sym", "word"):
                raise Unreadable("two numbers side by side")
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
        if self.depth > DEEPEST:
            raise Unreadable("nested too deeply")
        self.depth += 1
        base = self.atom()
        while True:
            if self.at("^"):
                base = self.raised(base)
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

    def raised(self, base: Expr) -> Expr:
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
        below = self.atom()
        return power(below, self.exponent_after()) if self.at("^") else below

    def exponent_after(self) -> Expr:
        self.position += 1
        return self.exponent()

    def group(self) -> Expr:
        """``{…}`` or the single token that stands for it."""
        if not self.at("{"):
            return self.atom()
        self.position += 1
        if self.depth > DEEPEST:
            raise Unreadable("nested too deeply")
        self.depth += 1
        bars, self.bars = self.bars, 0
        inner = self.sum()
        if self.peek().kind == "cmd" and self.peek().text in ("over", "choose"):
            over = self.next().text == "over"
            below = self.sum()
            inner = divide(inner, below) if over else fn("binomial", inner, below)
        self.expect("}")
        self.bars = bars
        self.depth -= 1
        return inner

    def digit_group(self) -> Expr:
        r"""An argument of ``\frac``: braces, or one digit of a number, as TeX reads it."""
        token = self.peek()
        if token.kind == "num" and len(token.text) > 1 and token.text.isdigit():
            self.tokens[self.position] = Token("num", token.text[1:])
            return num(int(token.text[0]))
        return self.group()

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
        raise Unreadable(f"{token.text[:40]!r} in a formula")

    def number(self, token: Token) -> Expr:
        text = token.text
        if len(text) > LONGEST_NUMBER:
            raise Unreadable("a number of very many digits")
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
        return self.mixed(value) or num(value)

    def mixed(self, whole: Fraction) -> Expr | None:
        r"""``3\frac{1}{2}`` and ``3 1/2``: a whole number and a proper fraction."""
        token = self.peek()
        if token.kind == "cmd" and token.text in ("frac", "dfrac", "tfrac", "cfrac"):
            saved, tokens = self.position, list(self.tokens)
            self.position += 1
            try:
                top, below = self.digit_group(), self.digit_group()
            except Unreadable:
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

    def name(self, text: str) -> Expr:
        if text == "C" and self.at("_"):
            combination = self.combination()
            if combination is not None:
                return combination
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
        if (
            self.peek().kind == "num"
            and full.isalpha()
            and self.tokens[self.position - 1].kind == "sym"
            and len(full) == 1
        ):
            return sym(f"{full}_{self.next().text}")
        return sym(full)

    def combination(self) -> Expr | None:
        saved = self.position
        self.position += 1
        try:
            top = self.group()
            if self.at("^"):
                self.position += 1
                return fn("binomial", top, self.group())
        except Unreadable:
            pass
        self.position = saved
        return None

    def raw_group(self) -> str:
        """The text of a subscript."""
        if not self.at("{"):
            return self.next().text
        self.position += 1
        level, parts = 1, []
        while level:
            token = self.next()
            if token.kind == "eof":
                raise Unreadable("unfinished subscript")
            level += (token.text == "{") - (token.text == "}")
            if level and token.text not in ("{", "}"):
                parts.append(token.text)
        return "".join(parts)

    def word(self, word: str) -> Expr:
        lower = word.lower()
        if lower in _GREEK:
            return self.name(lower)
        if (len(word) > 3 and not (word.isupper() and len(word) <= 5)) or lower in ("sqrt",):
            match = _FUNCTION_IN_WORD.fullmatch(word)
            if match is None or len(match.group(3)) > 3:
                raise Unreadable(f"the word {word!r}")
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
            parts = [Token("sym", letter) for letter in word]
        self.tokens[self.position - 1 : self.position] = parts
        self.position -= 1
        left = self.atom()
        return left

    def styled(self, style: str) -> Expr:
        inner = self.group()
        if style in _MARKS:
            return sym(f"{style}({ex.show(inner)})") if not self.at("_") else self.name(f"{style}({ex.show(inner)})")
        return self.name(inner.name) if inner.op == "sym" and (self.at("_") or self.at("'")) else inner

    def bracketed(self, text: str) -> Expr:
        if text == "|":
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.expect("|")
            return fn("abs", inner)
        closer = _CLOSERS.get(text)
        if closer is None or text == "{s":
            raise Unreadable(f"{text!r} in a formula")
        if text == "{":
            self.position -= 1
            return self.group()
        if self.depth > DEEPEST:
            raise Unreadable("nested too deeply")
        self.depth += 1
        bars, self.bars = self.bars, 0
        inner = self.sum()
        self.bars = bars
        self.depth -= 1
        self.expect(closer)
        return {"⌊": fn("floor", inner), "⌈": fn("ceil", inner), "|(": fn("abs", inner)}.get(text, inner)

    def function(self, name: str) -> Expr:
        base: Expr | None = None
        raised: Expr | None = None
        while True:
            if self.at("_") and base is None:
                self.position += 1
                base = self.group()
            elif self.at("^") and raised is None:
                self.position += 1
                raised = self.exponent()
            else:
                break
        if raised == ex.MINUS_ONE and name in _INVERSE:
            name, raised = _INVERSE[name], None
        found = _apply(name, base, self.arguments(name))
        return power(found, raised) if raised is not None else found

    def arguments(self, name: str) -> list[Expr]:
        if self.at("(") or self.at("[") or (self.at("{") and name in ("sqrt", "abs", "max", "min", "gcd", "lcm")):
            closer = _CLOSERS[self.next().text]
            if self.depth > DEEPEST:
                raise Unreadable("nested too deeply")
            self.depth += 1
            bars, self.bars = self.bars, 0
            found = [self.sum()]
            while self.at(",") or self.at(";"):
                self.position += 1
                found.append(self.sum())
            self.bars = bars
            self.depth -= 1
            self.expect(closer)
            return found
        if name == "sqrt":
            return [self.factor()]
        return [self.bare_argument()]

    def bare_argument(self) -> Expr:
        r"""The argument of ``\sin 2x``: factors side by side, up to a sign or another function."""
        if self.at("-"):
            self.position += 1
            return neg(self.bare_argument())
        found = self.factor()
        while self.starts_factor() and self.peek().kind not in ("fun", "num") and not self.at("(") and not self.at("["):
            if self.peek().kind == "cmd" and self.peek().text in ("sum", "int", "prod"):
                break
            found = mul(found, self.factor())
        if found.op == "num" and self.at("/") and self.peek(1).kind == "num":
            self.position += 1
            found = divide(found, self.atom())
        return found

    def command(self, name: str) -> Expr:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            top = self.digit_group()
            return divide(top, self.digit_group())
        if name == "sqrt":
            index: Expr | None = None
            if self.at("["):
                self.position += 1
                index = self.sum()
                self.expect("]")
            inner = self.group()
            return power(inner, HALF if index is None else divide(ex.ONE, index))
        if name in ("binom", "dbinom", "tbinom"):
            top = self.digit_group()
            return fn("binomial", top, self.digit_group())
        if name in ("sum", "prod"):
            return self.big_operator(name)
        if name == "int":
            return self.integral()
        if name == "overline":
            return self.styled("overline")
        raise Unreadable(f"\\{name}")

    def big_operator(self, name: str) -> Expr:
        self.expect("_")
        self.expect("{")
        index = self.atom()
        self.expect("=")
        low = self.sum()
        self.expect("}")
        self.expect("^")
        high = self.group()
        return fn(name, index, low, high, self.term())

    def integral(self) -> Expr:
        low = high = None
        if self.at("_"):
            self.position += 1
            low = self.group()
            self.expect("^")
            high = self.group()
        body = self.sum()
        factors = body.args if body.op == "mul" else ()
        if len(factors) < 2 or factors[-2] != sym("d") or factors[-1].op != "sym" or low is None or high is None:
            raise Unreadable("an integral without its d x")
        return fn("int", factors[-1], low, high, mul(*factors[:-2]) if len(factors) > 2 else ex.ONE)


def _apply(name: str, base: Expr | None, args: list[Expr]) -> Expr:
    first = args[0]
    if len(args) > 1 and name == "log" and base is None:
        base, first, args = args[1], args[0], args[:1]
    if len(args) > 1 and name not in ("max", "min", "gcd", "lcm"):
        raise Unreadable(f"{name} of {len(args)} arguments")
    if name in ("log", "ln", "lg"):
        below = base or (TEN if name == "lg" else None)
        top = fn("ln", first)
        return top if below is None or below == const("e") else divide(top, fn("ln", below))
    if base is not None:
        raise Unreadable(f"{name} with a subscript")
    if name == "exp":
        return power(const("e"), first)
    if name == "sqrt":
        return power(first, HALF)
    if name == "cbrt":
        return power(first, num(Fraction(1, 3)))
    return fn(name, *args)
