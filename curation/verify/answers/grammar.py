r"""Parses single expressions, LaTeX or plain: tokens → `Expr`, by precedence.

It reads as people write: ``2x``, ``\frac12``, ``3\frac{1}{2}`` (mixed), ``\sin 2x``, ``\sin^2 x``, ``1/2x`` (= x/2),
``a/bc`` (= a/(bc)), ``|x|``, ``C_5^2``, ``x_{1}'``. Other text, and nesting deeper than `MAX_DEPTH`, raises
`AnswerParseError`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.verify.answers import expr as ex
from curation.verify.answers.expr import Expr, add, const, divide, fn, mul, neg, num, power, sym
from curation.verify.answers.tokens import FUNCTIONS, AnswerParseError, Token

MAX_DEPTH = 60
"""Max levels of nesting."""

CLOSING = {"(": ")", "{": "}", "[": "]", "⌊": "⌋", "⌈": "⌉", "|(": ")|", "{s": "}s"}
MAX_NUMBER_CHARS = 3000
"""Max digits of a number."""

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

_INVERSE = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec",
    "csc": "arccsc", "sinh": "arcsinh",
    "cosh": "arccosh", "tanh": "arctanh",
}  # fmt: skip
_OF_MANY = frozenset(("max", "min", "gcd", "lcm"))
_LETTERS = re.compile(r"[A-Za-z]+")
HALF = num(Fraction(1, 2))
TEN = num(10)

_STARTS = frozenset(("(", "{", "[", "⌊", "⌈", "|("))


def parse_expression(tokens: list[Token]) -> Expr:
    """Return the expression that all ``tokens`` form."""
    parser = ExpressionParser(tokens)
    expression = parser.sum_or_fraction()
    if parser.position != len(parser.tokens):
        raise AnswerParseError(f"it ends where more is expected, or at {parser.peek().text[:40]!r}")
    return expression


class ExpressionParser:
    """Parses a list of tokens once; its methods are grammar rules."""

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

    # numbers, names and words

    def number(self, token: Token) -> Expr:
        text = token.text
        if len(text) > MAX_NUMBER_CHARS:
            raise AnswerParseError("a number of very many digits")
        if self.at("_"):
            return self.in_base(text)
        mantissa, _, exponent = text.lower().partition("e")
        whole, point, decimals = mantissa.partition(".")
        value = Fraction(int((whole + decimals) or "0"), 10 ** len(decimals))
        if exponent:
            shift = int(exponent)
            return num(value * Fraction(10) ** shift, len(decimals) - shift)
        if point:
            return num(value, len(decimals))
        return self.mixed_number(value) or num(value)

    def mixed_number(self, whole: Fraction) -> Expr | None:
        r"""Read ``3\frac{1}{2}`` or ``3 1/2`` as a mixed number."""
        token = self.peek()
        if token.kind == "cmd" and token.text == "frac":
            saved, tokens = self.position, list(self.tokens)
            self.position += 1
            try:
                top, bottom = self.digit_group(), self.digit_group()
            except AnswerParseError:
                top = bottom = sym("?")
            plain = top.op == bottom.op == "num" and top.value.denominator == bottom.value.denominator == 1
            if plain and 0 < top.value < bottom.value and not self.at("^"):
                return num(whole + top.value / bottom.value)
            self.position, self.tokens = saved, tokens
        elif token.kind == "num" and token.text.isdigit() and self.peek(1).text == "/" and self.peek(2).kind == "num":
            bottom_text = self.peek(2).text
            if bottom_text.isdigit() and 0 < int(token.text) < int(bottom_text):
                self.position += 3
                return num(whole + Fraction(int(token.text), int(bottom_text)))
        return None

    def in_base(self, digits: str) -> Expr:
        self.position += 1
        base = self.group()
        return fn("base", sym(digits.lstrip("0") or "0"), base)

    def name(self, text: str, *, indexed: bool = True) -> Expr:
        combination = self.combination() if text == "C" and (self.at("_") or self.at("(")) else None
        if combination is not None:
            return combination
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
        """Read ``f(2)`` and ``f'(0)`` as names; None for f(x), which may be a product."""
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

    def combination(self) -> Expr | None:
        """Read what follows the C of ``C(5, 2)`` or ``C_5^2``."""
        saved = self.position
        is_call = self.next().text == "("
        argument = self.sum if is_call else self.group
        try:
            top = argument()
            self.expect("," if is_call else "^")
            bottom = argument()
            if is_call:
                self.expect(")")
        except AnswerParseError:
            self.position = saved
            return None
        return fn("binomial", top, bottom)

    def raw_group(self) -> str:
        """Return the text of a subscript."""
        if not self.at("{"):
            if self.peek().kind == "eof":
                raise AnswerParseError("a name without its index")
            return self.next().text
        self.position += 1
        level, texts = 1, []
        while level:
            token = self.next()
            if token.kind == "eof":
                raise AnswerParseError("unfinished subscript")
            level += (token.text == "{") - (token.text == "}")
            if level and token.text not in ("{", "}"):
                texts.append(token.text)
        return _index_in_order("".join(texts))

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
            tokens = [Token("sym", before)] if before else []
            tokens.append(Token("const", "pi") if function == "pi" else Token("fun", function))
            if after:
                tokens.append(
                    Token("fun", after) if after in FUNCTIONS else Token("word" if len(after) > 1 else "sym", after)
                )
        else:
            start = self.tokens[self.position - 1].at
            tokens = [Token("sym", letter, start + at) for at, letter in enumerate(word)]
        self.tokens[self.position - 1 : self.position] = tokens
        self.position -= 1
        return self.atom()

    def styled(self, style: str) -> Expr:
        inner = self.group()
        if style in _MARKS and (inner.op != "num" or style != "underline"):
            return sym(f"{style}({ex.show(inner)})") if not self.at("_") else self.name(f"{style}({ex.show(inner)})")
        return self.name(inner.name) if inner.op == "sym" and (self.at("_") or self.at("'")) else inner

    # functions, fractions, roots, sums and integrals

    def function(self, name: str) -> Expr:
        base: Expr | None = None
        exponent: Expr | None = None
        while True:
            if self.at("_") and base is None:
                self.position += 1
                base = self.group()
            elif self.at("^") and exponent is None:
                self.position += 1
                exponent = self.exponent()
            else:
                break
        if exponent == ex.MINUS_ONE and name in _INVERSE:
            name, exponent = _INVERSE[name], None
        value = _apply(name, base, self.arguments(name))
        return power(value, exponent) if exponent is not None else value

    def arguments(self, name: str) -> list[Expr]:
        braces = self.at("{") and (name in ("sqrt", "abs") or name in _OF_MANY)
        if self.at("(") or self.at("[") or braces or (self.at("{s") and name in _OF_MANY):
            closer = CLOSING[self.next().text]
            if self.depth > MAX_DEPTH:
                raise AnswerParseError("nested too deeply")
            self.depth += 1
            bars, self.bars = self.bars, 0
            args = [self.sum()]
            while self.at(",") or self.at(";"):
                self.position += 1
                args.append(self.sum())
            self.bars = bars
            self.depth -= 1
            self.expect(closer)
            return args
        if name == "sqrt":
            return [self.factor()]
        return [self.bare_argument()]

    def bare_argument(self) -> Expr:
        r"""Return the argument of ``\sin 2x``, up to a sign or another function."""
        if self.at("-"):
            self.position += 1
            return neg(self.bare_argument())
        argument = self.factor()
        while self.starts_factor() and self.peek().kind not in ("fun", "num") and not self.at("(") and not self.at("["):
            if self.peek().kind == "cmd" and self.peek().text in ("sum", "int", "prod"):
                break
            argument = mul(argument, self.factor())
        if argument.op == "num" and self.at("/") and self.peek(1).kind == "num":
            self.position += 1
            argument = divide(argument, self.atom())
        return argument

    def command(self, name: str) -> Expr:
        if name == "frac":
            top = self.digit_group()
            bottom = self.digit_group()
            variable = _differentiates(top, bottom)
            if variable is not None and self.starts_factor():
                return fn("diff", variable[0], num(variable[1]), self.term())
            return divide(top, bottom)
        if name == "sqrt":
            index: Expr | None = None
            if self.at("["):
                self.position += 1
                index = self.sum()
                self.expect("]")
            inner = self.group()
            return power(inner, HALF if index is None else divide(ex.ONE, index))
        if name == "binom":
            top = self.digit_group()
            return fn("binomial", top, self.digit_group())
        if name in ("sum", "prod"):
            return self.big_operator(name)
        if name == "int":
            return self.integral()
        if name == "lim":
            return self.limit()
        raise AnswerParseError(f"\\{name}")

    def big_operator(self, name: str) -> Expr:
        self.expect("_")
        self.expect("{")
        index = self.atom()
        self.expect("=")
        low = self.sum()
        self.expect("}")
        self.expect("^")
        high = self.group()
        value = fn(name, index, low, high, self.term())
        indexed = any(index.name in _LETTERS.findall(symbol.partition("_")[2]) for symbol in ex.symbols(value))
        return sym(ex.show(_in_order(value))) if indexed else value  # of an unknown sequence: a name

    def limit(self) -> Expr:
        """Return a term's limit as a variable approaches a number."""
        self.expect("_")
        self.expect("{")
        variable = self.atom()
        self.expect("→")
        bound = self.sum()
        self.expect("}")
        if variable.op != "sym":
            raise AnswerParseError("a limit in no variable")
        return fn("lim", variable, bound, self.term())

    def integral(self) -> Expr:
        """Read an integral up to the first d x outside braces; without bounds an antiderivative."""
        low = high = None
        if self.at("_"):
            self.position += 1
            low = self.group()
            self.expect("^")
            high = self.group()
        variable = self.take_differential()
        body = ex.ONE if self.peek().kind == "end of integral" else self.sum()
        if self.peek().kind == "end of integral":
            self.position += 1
        if low is None or high is None:
            return fn("antiderivative", variable, body)
        return fn("int", variable, low, high, body)

    def take_differential(self) -> Expr:
        """Remove the d x from the tokens ahead and return its variable."""
        level = inner = 0
        for at in range(self.position, len(self.tokens)):
            token = self.tokens[at]
            level += (token.text == "{") - (token.text == "}") if token.kind == "op" else 0
            width = self.differential_at(at)
            inner += token.kind == "cmd" and token.text == "int"
            if width and inner:
                inner -= 1
            elif width:
                name = self.tokens[at + width - 1].text[-1:] if width == 1 else self.tokens[at + width - 1].text
                is_alone = self.tokens[at - 1].text == "{" and level > 0
                stand_in = [Token("num", "1")] if is_alone else []
                self.tokens[at : at + width] = stand_in if level > 0 else [Token("end of integral", "")]
                return sym(name)
        raise AnswerParseError("an integral without its d x")

    def differential_at(self, at: int) -> int:
        """Return the number of tokens of the d x at ``at``, or 0."""
        token = self.tokens[at]
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else Token("eof", "")
        if token.kind == "word" and len(token.text) == 2 and token.text[0] == "d":
            return 1
        if token.text == "d" and token.kind in ("sym", "text") and following.kind == "sym":
            return 2
        if token.kind == "style" and following.text == "d" and at + 2 < len(self.tokens):
            return 3 if self.tokens[at + 2].kind == "sym" else 0
        return 0

    # sums, products, powers and brackets

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
        return self.factor()

    def denominator(self) -> Expr:
        bottom = self.signed_factor()
        while (
            bottom.op != "num"
            and self.peek().kind in ("sym", "const", "word")
            and bottom.op in ("sym", "pow", "mul", "const")
        ):
            bottom = mul(bottom, self.factor())
        return bottom

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
        return power(base, self.exponent())

    def exponent(self) -> Expr:
        if self.at("{"):
            return self.group()
        if self.at("-") or self.at("+"):
            negative = self.next().text == "-"
            inner = self.exponent()
            return neg(inner) if negative else inner
        base = self.name(self.next().text, indexed=False) if self.peek().kind == "sym" else self.atom()
        return power(base, self.exponent_after()) if self.at("^") else base

    def exponent_after(self) -> Expr:
        self.position += 1
        return self.exponent()

    def group(self) -> Expr:
        """Read ``{…}``, or the single token in its place."""
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
        r"""Return a sum, or two joined by ``\over`` or ``\choose``."""
        inner = self.sum()
        if self.peek().kind == "cmd" and self.peek().text in ("over", "choose"):
            over = self.next().text == "over"
            bottom = self.sum()
            inner = divide(inner, bottom) if over else fn("binomial", inner, bottom)
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


_INDEX_SUM = re.compile(r"[-+]?\w+(?:[-+]\w+)+")


def _index_in_order(index: str) -> str:
    """Return a subscript with its sum sorted: letters, then numbers."""
    if not _INDEX_SUM.fullmatch(index):
        return index
    terms = re.findall(r"[-+]\w+", index if index[0] in "+-" else f"+{index}")
    ordered = sorted(terms, key=lambda term: (term[1:].isdigit(), term[0] == "-", term))
    return "".join(ordered).removeprefix("+")


def _differentiates(top: Expr, bottom: Expr) -> tuple[Expr, int] | None:
    """Return the variable and the order of d/dx, d²/dx²."""
    if top == sym("d") and bottom.op == "mul" and len(bottom.args) == 2:
        order, letter = 1, bottom.args[1]
    elif top.op == "pow" and top.args[0] == sym("d") and bottom.op == "mul" and len(bottom.args) == 2:
        letter, exponent = bottom.args[1].args if bottom.args[1].op == "pow" else (bottom.args[1], ex.ONE)
        if exponent != top.args[1] or exponent.op != "num" or not 1 <= exponent.value <= 4:
            return None
        order = int(exponent.value)
    else:
        return None
    return (letter, order) if bottom.args[0] == sym("d") and letter.op == "sym" else None


def _in_order(expr: Expr) -> Expr:
    args = tuple(_in_order(arg) for arg in expr.args)
    if expr.op in ("add", "mul"):
        args = tuple(sorted(args, key=ex.show))
    return Expr(expr.op, args, expr.name, expr.value, expr.places)


def _apply(name: str, base: Expr | None, args: list[Expr]) -> Expr:
    first = args[0]
    if len(args) > 1 and name == "log" and base is None:
        base, first, args = args[1], args[0], args[:1]
    if len(args) == 1 and name in _OF_MANY:
        return sym(f"{name}({ex.show(first)})")
    if len(args) > 1 and name not in _OF_MANY:
        raise AnswerParseError(f"{name} of {len(args)} arguments")
    if name in ("log", "ln", "lg"):
        below = base or (TEN if name == "lg" else None)
        top = fn("ln", first)
        return top if below is None or below == const("e") else divide(top, fn("ln", below))
    if base is not None:
        raise AnswerParseError(f"{name} with a subscript")
    if name == "exp":
        return power(const("e"), first)
    if name == "sqrt":
        return power(first, HALF)
    if name == "cbrt":
        return power(first, num(Fraction(1, 3)))
    return fn(name, *args)


def is_modulus(token: Token) -> bool:
    """Return whether a token is mod, bmod or pmod."""
    return token.kind == "cmd" and token.text in ("mod", "bmod", "pmod")
