"""The part of the grammar that reads functions, and commands with arguments."""

from __future__ import annotations

import re
from fractions import Fraction

from curation.verify.answers import expr as ex
from curation.verify.answers.expr import Expr, const, divide, fn, mul, neg, num, power, sym
from curation.verify.answers.names import CLOSING, MAX_DEPTH, Cursor
from curation.verify.answers.tokens import AnswerParseError, Token

_INVERSE = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec",
    "csc": "arccsc", "sinh": "arcsinh",
    "cosh": "arccosh", "tanh": "arctanh",
}  # fmt: skip
_OF_MANY = frozenset(("max", "min", "gcd", "lcm"))
_LETTERS = re.compile(r"[A-Za-z]+")
HALF = num(Fraction(1, 2))
TEN = num(10)


class FunctionRules(Cursor):
    """Rules for ``\\sin 2x``, ``\\log_2``, ``\\frac``, roots, binomials, sums and integrals."""

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
        r"""Return the argument of ``\sin 2x``: factors side by side, up to a sign or another function."""
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
            below = self.digit_group()
            variable = _differentiates(top, below)
            if variable is not None and self.starts_factor():
                return fn("diff", variable[0], num(variable[1]), self.term())
            return divide(top, below)
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
        if name == "overline":
            return self.styled("overline")
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
        indexed = any(index.name in _LETTERS.findall(other.partition("_")[2]) for other in ex.symbols(value))
        return sym(ex.show(_in_order(value))) if indexed else value  # of a sequence that nobody knows: a name

    def limit(self) -> Expr:
        """Return the limit of a term as a variable goes to a number."""
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
        """Read an integral up to the first d x outside of braces; a d x in a numerator stands for 1.

        Without bounds it is an antiderivative.
        """
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
        """Cut the d x out of the tokens ahead and return its variable."""
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
                alone = self.tokens[at - 1].text == "{" and level > 0
                stand_in = [Token("num", "1")] if alone else []
                self.tokens[at : at + width] = stand_in if level > 0 else [Token("end of integral", "")]
                return sym(name)
        raise AnswerParseError("an integral without its d x")

    def differential_at(self, at: int) -> int:
        """Return how many tokens the d x at ``at`` takes; 0 where there is none."""
        token = self.tokens[at]
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else Token("eof", "")
        if token.kind == "word" and len(token.text) == 2 and token.text[0] == "d":
            return 1
        if token.text == "d" and token.kind in ("sym", "text") and following.kind == "sym":
            return 2
        if token.kind == "style" and following.text == "d" and at + 2 < len(self.tokens):
            return 3 if self.tokens[at + 2].kind == "sym" else 0
        return 0


def _differentiates(top: Expr, below: Expr) -> tuple[Expr, int] | None:
    """Return the variable and the order of d/dx, d²/dx²."""
    if top == sym("d") and below.op == "mul" and len(below.args) == 2:
        order, letter = 1, below.args[1]
    elif top.op == "pow" and top.args[0] == sym("d") and below.op == "mul" and len(below.args) == 2:
        letter, exponent = below.args[1].args if below.args[1].op == "pow" else (below.args[1], ex.ONE)
        if exponent != top.args[1] or exponent.op != "num" or not 1 <= exponent.value <= 4:
            return None
        order = int(exponent.value)
    else:
        return None
    return (letter, order) if below.args[0] == sym("d") and letter.op == "sym" else None


def _in_order(expr: Expr) -> Expr:
    """Return an expression with the terms of sums and the factors of products in one order."""
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
