"""VIVA patterns: what an input has to look like, and whether one does.

A pattern is lines of values with constraints, and repetitions: ``{…}`` of lines, ``<…>`` within a line; to the end,
``[*n]`` times, or up to a line that matches ``[=…]``. A value stands one blank behind the one before it. The first
fault refuses an input: VIVA would go on and name more of them, its verdict is the same.

Invariants: `refusal` and `read_pattern` depend on their arguments only. The standard library only: `main` runs within
the sandbox, on an input that nobody trusts and a pattern whose regular expressions may take for ever.

What it does not do: Windows' and Mac's line ends (a pattern that asks for them is refused, not misread); functions
that a contest added in Java.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from curation.verify.programs.viva_expressions import (
    Env,
    Expression,
    Level,
    Tokens,
    constant,
    parse_constraint,
)
from curation.verify.programs.viva_functions import BITS, VivaRefusalError, cast

_REAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?")
_JAVA_REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?")
_WORD = re.compile(r"[^ \n]*")
_WHOLE = re.compile(r"[+-]?\d+")
_TYPES = {"int": "integer"} | {name: name for name in ("integer", "long", "float", "double", "string")}
_FLAGS = ("ignoreeoln", "ignoreblanks", "javaint", "javalong", "javadouble", "javafloat")
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

Match = Callable[["Input", Env], None]
"""Reads what a pattern describes; raises `VivaRefusalError` where it does not stand there."""


@dataclass(slots=True)
class Input:
    """An input while it is read: ``at`` is the next character; ``spaced`` says that a blank was read before it.

    ``begun``: something was asked of this line. A line of no values, as of ``<[*n] x>;`` with n = 0, is none in VIVA.
    """

    text: str
    flags: frozenset[str]
    at: int = 0
    spaced: bool = False
    begun: bool = False

    @property
    def line(self) -> int:
        """Return the number of the line that is read."""
        return self.text.count("\n", 0, self.at) + 1

    def fault(self, words: str) -> VivaRefusalError:
        """Return a refusal at this place."""
        return VivaRefusalError(f"line {self.line}: {words}")

    def at_end_of_line(self) -> bool:
        """Return whether no character of the line is left."""
        self.begun = True
        return self.at >= len(self.text) or self.text[self.at] == "\n"

    def at_end(self) -> bool:
        """Return whether no character is left."""
        return self.at >= len(self.text)

    def token(self) -> str:
        """Return the next word, and go past the one blank behind it."""
        self.begun = True
        self._skip()
        word = _WORD.match(self.text, self.at)[0]  # type: ignore[index]  # matches nothing, too
        if not word:
            raise self.fault("the input ends" if self.at_end() else "the line ends")
        self.at += len(word)
        self.spaced = not self.at_end_of_line()
        self.at += self.spaced
        return word

    def _skip(self) -> None:
        start = self.at
        while self.text.startswith(" ", self.at):
            self.at += 1
        if self.at > start and "ignoreblanks" not in self.flags:
            raise self.fault("extra blank")
        if "ignoreeoln" in self.flags and self.text.startswith("\n", self.at):
            self.at += 1
            self._skip()

    def field(self, width: int | None) -> str:
        """Return so many characters of the line, or all that are left."""
        self.begun = True
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        if width is not None and not 0 <= width <= end - self.at:
            raise self.fault(f"no field of {width} characters")
        start, self.at = self.at, end if width is None else self.at + width
        self.spaced = False
        return self.text[start : self.at]

    def end_line(self) -> None:
        """Go to the next line; nothing may be left of this one."""
        if not self.begun:
            return
        if self.at_end() and self.text[self.at - 1 : self.at] in ("", "\n"):
            raise self.fault("the input ends")
        self.at -= self.spaced
        rest = self.field(None)
        if rest.strip(" "):
            raise self.fault("more on the line than the pattern says")
        if rest and "ignoreblanks" not in self.flags:
            raise self.fault("extra blank at the end of the line")
        self.at += not self.at_end()
        self.begun = self.spaced = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was parsed: what it reads, and its parameters."""

    match: Match
    flags: frozenset[str]
    epsilons: dict[str, float]
    ends: tuple[bool, bool]  # whether the last line may end without a line break, and with one


def refusal(pattern: Pattern, text: str) -> str | None:
    """Return why an input is not as the pattern says, None where it is.

    Example: ``refusal(read_pattern("n (0<=n<=9);"), "12\\n")`` is ``"line 1: failed: 0<=n<=9"``
    """
    source, env = Input(text, pattern.flags), Env(epsilons=dict(pattern.epsilons))
    if not text.isascii():
        return "a character that is not ASCII"
    if "\r" in text:
        return "a carriage return"
    if text and not pattern.ends[0] and not text.endswith("\n"):
        return "no line break at the end"
    if not pattern.ends[1] and text.endswith("\n"):
        return "a line break at the end"
    try:
        pattern.match(source, env)
        if not source.at_end():
            raise source.fault("more lines than the pattern says")
    except VivaRefusalError as error:
        return str(error)
    return None


def read_pattern(text: str) -> Pattern:
    """Return a pattern; raises `VivaSyntaxError` where it is none, or has what is not read here."""
    parser = _Parser(Tokens.of(text))
    flags, epsilons, ends = parser.parameters()
    match = parser.lines()
    if parser.tokens.kind != "end":
        raise parser.tokens.fault(f"{parser.tokens.next!r} begins no pattern")
    return Pattern(match, flags, epsilons, ends)


@dataclass(slots=True)
class _Parser:
    tokens: Tokens
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    flags: set[str] = field(default_factory=set)

    def parameters(self) -> tuple[frozenset[str], dict[str, float], tuple[bool, bool]]:
        tokens, epsilons, ends = self.tokens, {"float": 1e-6, "double": 1e-6}, (False, True)
        if tokens.take("#"):
            while not tokens.take("#"):
                name = tokens.advance()
                tokens.expect("=")
                given = constant(tokens).value(Env())
                word = str(given).lower()
                if name in _FLAGS and word in _YES + _NO:
                    self.flags = self.flags | {name} if word in _YES else self.flags - {name}
                elif name in ("feps", "deps") and isinstance(given, int | float):
                    epsilons["float" if name == "feps" else "double"] = float(given)
                elif name == "eofstyle" and word in ("system", "linux", "windows", "both"):
                    ends = {"windows": (True, False), "both": (True, True)}.get(word, (False, True))
                elif not (name == "maxerrs" or (name == "eolnstyle" and word in ("system", "linux"))):
                    raise tokens.fault(f"the parameter {name}={given} is not read here")
        return frozenset(self.flags), epsilons, ends

    def lines(self) -> Match:
        """Return a pattern of one line or more."""
        parts = [self.one_line()]
        while self.tokens.kind == "name" or (self.tokens.kind == "sign" and self.tokens.next in ("{", "<", "@")):
            parts.append(self.one_line())
        return _sequence(parts)

    def one_line(self) -> Match:
        if self.tokens.take("{"):
            return self.repetition("}", self.lines, Input.at_end, Input.end_line)
        values = self.values()
        self.tokens.expect(";")

        def match(source: Input, env: Env) -> None:
            values(source, env)
            source.end_line()

        return match

    def values(self) -> Match:
        """Return a pattern of values within a line."""
        parts: list[Match] = []
        while True:
            if self.tokens.take("<"):
                parts.append(self.repetition(">", self.values, Input.at_end_of_line, lambda _: None))
            elif self.tokens.take("@"):
                parts.append(self.blanks())
            elif self.tokens.kind == "name":
                parts.append(self.value())
            elif parts:
                return _sequence(parts)
            else:
                raise self.tokens.fault(f"a value wanted, not {self.tokens.next!r}")

    def blanks(self) -> Match:
        width = None if self.tokens.next == "@" else self.expression().value
        self.tokens.expect("@")

        def match(source: Input, env: Env) -> None:
            if source.field(None if width is None else width(env)).strip(" "):
                raise source.fault("something where blanks should be")

        return match

    def expression(self) -> Expression:
        return parse_constraint(self.tokens, self.scopes)

    def constraints(self, end: str) -> Match:
        """Return a check of the conditions up to a sign."""
        conditions = [self.expression()]
        while self.tokens.take(","):
            conditions.append(self.expression())
        self.tokens.expect(end)
        if any(condition.type != "boolean" for condition in conditions):
            raise self.tokens.fault("a constraint that is no condition")

        def check(source: Input, env: Env) -> None:
            for condition in conditions:
                if not condition.value(env):
                    raise source.fault(f"failed: {condition.text}")

        return check

    def value(self) -> Match:
        name, kind = self.tokens.advance(), "integer"
        if self.tokens.take(":"):
            word = self.tokens.advance()
            if word not in _TYPES:
                raise self.tokens.fault(f"{word} is no type")
            kind = _TYPES[word]
        fixed, width = False, None
        if self.tokens.take("@"):
            self.tokens.expect("[")
            fixed = True
            width = None if self.tokens.next == "]" else self.expression().value
            self.tokens.expect("]")
        if name in self.scopes[-1]:
            raise self.tokens.fault(f"{name} is there already")
        self.scopes[-1][name] = kind
        check = self.constraints(")") if self.tokens.take("(") else None
        java = f"java{'int' if kind == 'integer' else kind}" in self.flags

        def match(source: Input, env: Env) -> None:
            text = source.field(None if width is None else width(env)) if fixed else source.token()
            level = env.levels[-1]
            level.values.setdefault(name, []).append(_parsed(source, text, kind, java=java))
            level.texts.setdefault(name, []).append(text)
            if check is not None:
                check(source, env)

        return match

    def repetition(
        self, end: str, inner: Callable[[], Match], done: Callable[[Input], bool], behind: Callable[[Input], None]
    ) -> Match:
        """Return a repetition: to ``done``, so many times, or up to what its sentinel reads and ``behind`` ends."""
        tokens = self.tokens
        count, sentinel = None, None
        if tokens.take("["):
            if tokens.take("*"):
                count = self.expression()
                if count.type != "integer":
                    raise tokens.fault("a count that is no integer")
            else:
                tokens.expect("=")
                self.scopes.append({})
                sentinel = self.values()
                self.scopes.pop()
            tokens.expect("]")
        self.scopes.append({})
        body = inner()
        check = self.constraints("]") if tokens.take("[") else None
        tokens.expect(end)
        self.scopes.pop()
        rounds = _rounds(None if count is None else count.value, sentinel, done, behind)

        def match(source: Input, env: Env) -> None:
            times = rounds(source, env)
            env.levels.append(Level())
            while times(source, env):
                env.levels[-1].rows += 1
                body(source, env)
            if check is not None:
                check(source, env)
            env.levels.pop()

        return match


def _sequence(parts: list[Match]) -> Match:
    def match(source: Input, env: Env) -> None:
        for part in parts:
            part(source, env)

    return match


More = Callable[[Input, Env], bool]


def _rounds(
    count: Callable[[Env], Any] | None,
    sentinel: Match | None,
    done: Callable[[Input], bool],
    behind: Callable[[Input], None],
) -> Callable[[Input, Env], More]:
    """Return what says, from where a repetition begins, whether there is another round."""

    def counted(_: Input, env: Env) -> More:
        most = count(env) if count is not None else 0
        return lambda _, env: env.levels[-1].rows < most

    def up_to_sentinel(source: Input, env: Env) -> bool:
        start, spaced = source.at, source.spaced
        depth = len(env.levels)
        env.levels.append(Level())
        try:
            if sentinel is not None:
                sentinel(source, env)
            found = True
        except VivaRefusalError:
            source.at, source.spaced, found = start, spaced, False
        del env.levels[depth:]
        if found:
            behind(source)
        return not found

    if count is not None:
        return counted
    if sentinel is not None:
        return lambda *_: up_to_sentinel
    return lambda *_: lambda source, _: not done(source)


def _parsed(source: Input, text: str, kind: str, *, java: bool) -> Any:
    """Return the value of a word; whole numbers have no leading zero and no plus sign, unless as ``java`` reads."""
    if kind == "string":
        return text
    word = text.strip()
    if kind in BITS:
        good = _WHOLE.fullmatch(word) is not None and (java or not (word[0] == "+" or (word[0] == "0" and word[1:])))
        if good and len(word.lstrip("+-0")) < 20 and (number := int(word)) == cast(kind, number):
            return number
    elif (_JAVA_REAL if java else _REAL).fullmatch(word):
        return cast(kind, float(word.rstrip("fFdD")))
    raise source.fault(f"{text!r} is no {kind}")


def main(pattern: str) -> None:
    """Check standard input: exit with 42 where it is as the pattern says, else with 43 and why."""
    sys.setrecursionlimit(20_000)
    why = refusal(read_pattern(pattern), sys.stdin.buffer.read().decode("latin-1"))
    if why is not None:
        sys.stderr.write(f"{why}\n")
    sys.exit(42 if why is None else 43)
