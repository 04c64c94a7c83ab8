"""Names in a question that its text never introduces: "What is the area of triangle CDJ?" where there is no J.

They stand on a figure that is not there. A name is a run of capitals in a formula, behind ∠ or △ or under a bar, or
behind the word triangle or angle; an unknown is a small letter whose value is asked for, where a figure is spoken of.

Invariants: what stands anywhere outside the asking clause, or behind a condition in it ("if", "where", "such that"), is
introduced; so is what the clause itself puts in place ("tangent at P", "points Y", "the median AM", the origin O).
English words stand here as in `features`; formulas are those of every language.
"""

from __future__ import annotations

import re

import polars as pl

GATE = (
    r"\\overline\s*\{\s*[A-Z]{2}\s*\}|\\(?:tri)?angle\s*[A-Z]|(?i:angle)s?\s+\$?[A-Z]{3}"
    r"|\$\s*[A-Z]{2,8}\s*[$,?.]|[\[]\s*[A-Z]{3,6}\]"
)
"""Rust syntax; only statements in which it is found are looked at."""
UNKNOWN_GATE = r"(?i)\b(?:value|measure)\s+of\s+(?:angle\s+)?\$\s*(?-i:[a-z])\s*\$"

_ASKS = re.compile(
    r"\b(?:what(?:'s|\s+is|\s+are|\s+must)?|find|determine|compute|calculate|evaluate|how\s+(?:many|long|far|much))\b",
    re.IGNORECASE,
)
_END = re.compile(r"[?.？。．](?:\s|$)|[？。．]")
_CONDITION = re.compile(r"\b(?:if|where|with|given|when|such\s+that|so\s+that|for\s+which|tangent)\b", re.IGNORECASE)
_FORMULA = re.compile(
    r"\$\$?([^$]*)\$\$?|\\\(([\s\S]*?)\\\)|\\\[([\s\S]*?)\\\]|\\begin\{(?:align|equation)\*?\}([\s\S]*?)\\end"
)
_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox|mathbf)\s*\{[^{}]*\}|\\[a-zA-Z]+")
_NAME = re.compile(
    r"\\overline\s*\{\s*([A-Z]{2})\s*\}|\\(?:tri)?angle\s*([A-Z]{3})\b|\$\s*([A-Z]{2,6})\s*(?:\$|,\$)"
    r"|\b(?:[Tt]ri)?[Aa]ngles?\s+\$?([A-Z]{3})\b|\[([A-Z]{3,6})\]|\$\s*m?\s*\\angle\s*\{?([A-Z])\b"
)
_UNKNOWN = re.compile(r"\b(?:value|measure)\s+of\s+(?:angle\s+)?\$\s*((?-i:[a-z]))\s*\$", re.IGNORECASE)
_WORD = re.compile(r"(?<![0-9])(?<![0-9]\s)\\?[A-Za-z]{3,}|[A-Za-z]{4,}")
_PUT_IN_PLACE = re.compile(
    r"\b(?:at|points?|vert(?:ex|ices)|through|medians?|altitudes?|(?:bi|tri)sectors?|represented\s+by|diameters?"
    r"|segments?\s+of\s+length|chords?|heights?|squares|rectangles|cubes|the\s+same)\b[^$]{0,24}\$[^$]*\$"
    r"(?:,?\s+and\s+\$[^$]*\$)?",
    re.IGNORECASE,
)


def undefined_name_expression(column: pl.Expr) -> pl.Expr:
    """Return `undefined_name` of each text."""
    return column.map_elements(undefined_name, return_dtype=pl.String)


def undefined_name(statement: str) -> str | None:
    """Return the first asked name of which a letter is never introduced, or null.

    >>> undefined_name("Point $G$ is the midpoint of side $CD$. What is the area of triangle $CGJ$?")
    'CGJ'
    >>> undefined_name("In triangle $ABC$, $AB=3$. Find the length of the median $AM$.")
    """
    for asks in _ASKS.finditer(statement):
        end = _END.search(statement, asks.end())
        clause = statement[asks.start() : end.start() if end else len(statement)]
        for unknown in _UNKNOWN.finditer(statement, asks.start(), asks.start() + len(clause)):
            if not re.search(rf"(?<![A-Za-z\\]){unknown[1]}(?![A-Za-z])", _without(statement, unknown)):
                return unknown[1]
        names = [next(name for name in match.groups() if name) for match in _NAME.finditer(clause)]
        if not names:
            continue
        condition = _CONDITION.search(clause)
        rest = statement[: asks.start()] + " " + (statement[end.start() :] if end else "")
        seen = _letters(rest) | _letters(clause[condition.start() :] if condition else "") | {"O"}
        for placed in _PUT_IN_PLACE.finditer(clause):
            seen |= set(placed[0])
        for name in names:
            if not set(name) <= seen:
                return name
    return None


def _without(statement: str, match: re.Match[str]) -> str:
    """Return the rest of a statement, commands and words aside, so that letters beside one another are apart; three
    letters behind a number are factors, as in 3kxy.
    """
    rest = f"{statement[: match.start()]} {statement[match.end() :]}"
    return re.sub(r"(?<=[A-Za-z])(?=[A-Za-z])", " ", _WORD.sub(" ", rest))


def _letters(text: str) -> set[str]:
    """Return the letters that stand in formulas, and in capitals outside them."""
    found: set[str] = set()
    for formula in _FORMULA.finditer(text):
        inside = next(group for group in formula.groups() if group is not None)
        found |= set(_COMMAND.sub(" ", inside))
    for capitals in re.findall(r"(?<![A-Za-z\\])[A-Z]{1,8}(?:'s?)?(?![A-Za-z])", text):
        found |= set(capitals)
    return found
