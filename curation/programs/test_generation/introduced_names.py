"""Names that a description of an input introduces: with a noun, with limits of their own, or in a list.

`stated_names` asks for a noun before each name; many statements introduce one by its limits alone (``the first line
contains $1 \\le N \\le 9$``), several behind one noun with words between (``the integers $n$, the height, and
$m$``), or name no value at all (``a line with $n$ integers``). Names that are only spoken of (``the length of the
sequence $G$``) are none. An unnamed column is `UNNAMED` and a number.

Invariants: pure; what is found is only taken where the columns are as many and the given inputs keep every formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from curation.programs.test_generation.demands import input_section
from curation.programs.test_generation.stated_rules import (
    DOTS,
    MATH,
    NAME,
    SIGN,
    base_name,
    plain_formula,
    without_unequal,
)

UNNAMED = "?"
"""What the names of columns begin with that a statement counts and does not name."""

_THINGS = r"(?:integers?|numbers?|values?|reals?|decimals?)"
_NOUN = re.compile(
    rf"\b(?:{_THINGS}|strings?|words?|names?|lengths?|sequences?|characters?)\s*[(,:]?\s*$", re.IGNORECASE
)
_SPOKEN_OF = re.compile(
    r"\b(?:of|in|from|to|within|between|for|than|by)\s+(?:the|this|that|each|its)\s+(?:\w+\s+){0,2}$", re.IGNORECASE
)
"""What stands before names that were, or will be, introduced elsewhere: ``the elements of the sequence $a$``."""
_NUMBER_OF = re.compile(r"\b(?:number|amount|count) of (?:[\w-]+\s+)?\w+s\s+$", re.IGNORECASE)
_LINK = re.compile(r"\s*(?:,?\s*(?:and|respectively|followed by)|,|&)?\s*", re.IGNORECASE)
_TOLD_BETWEEN = re.compile(r"\s*(?:,|--?|–|—)[^.;:]{2,90}\band\s*", re.IGNORECASE)
"""What may stand between two names behind one noun: ``$n$, the height of the tree, and $m$``."""
_UNNAMED_LIST = re.compile(
    rf"^\s+(?:(?!(?:and|or|of|the|with|lines?|rows?)\b)[A-Za-z]\S*\s+){{0,2}}?{_THINGS}\b(?!\s*(?:[(,:]|--?)?\s*\$)",
    re.IGNORECASE,
)
_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBER = re.compile(r"\d")


@dataclass(slots=True)
class _Reader:
    """A description of an input, read formula by formula."""

    part: str
    unnamed: bool
    names: list[str] = field(default_factory=list)
    end: int = -1
    """Where the name introduced last ends, -1 where a sentence ended behind it."""

    def read(self) -> list[str]:
        for match in MATH.finditer(self.part):
            formula = without_unequal(plain_formula(match[1] or match[2]))
            if "\\sum" in formula:
                continue
            found = dict.fromkeys(self._introduced(formula, match.start()))
            new = [name for name in found if name not in self.names and not self._is_index(name)]
            if new:
                self.names += new
                self.end = match.end()
            elif self.unnamed and self._counts_unnamed(formula, match.end()):
                self.names.append(f"{UNNAMED}{len(self.names)}")
        return self.names

    def _introduced(self, formula: str, start: int) -> Iterator[str]:
        """Yield the names that a formula introduces, new ones and others."""
        before = self.part[max(0, start - 60) : start]
        if DOTS.search(formula):
            first = (NAME.findall(DOTS.sub(" ", formula).split(",")[0]) or [""])[0]
            if first:
                yield first.partition("_")[0]
            return
        if SIGN.search(formula):
            if _NUMBER.search(formula):
                middle = [
                    piece for piece in re.split(r"<=|>=|!=|=|<|>|,", formula) if NAME.fullmatch(piece.strip("| "))
                ]
                yield from (base_name(piece.strip("| ")) for piece in middle)
            return
        pieces = [piece.strip() for piece in formula.split(",")]
        if not all(map(NAME.fullmatch, pieces)) or _SPOKEN_OF.search(_NOUN.sub("", before)):
            return
        if _NOUN.search(before) or _NUMBER_OF.search(before) or self._follows(start):
            yield from map(base_name, pieces)

    def _follows(self, start: int) -> bool:
        """Return whether a formula stands behind the name introduced last, in its list."""
        if self.end < 0:
            return False
        between = _PARENTHESES.sub(" ", self.part[self.end : start])
        return "$" not in between and bool(_LINK.fullmatch(between) or _TOLD_BETWEEN.fullmatch(between))

    def _is_index(self, name: str) -> bool:
        """Return whether a name runs over the others: ``i`` of ``a_i``."""
        return name in ("i", "j", "k") and bool(
            re.search(rf"_\{{?(?:\w,)?{name}\b|\${name}\$\s*-?th\b|\({name}\\?\)?-?th\b", self.part)
        )

    def _counts_unnamed(self, formula: str, end: int) -> bool:
        """Return whether a formula says how many values stand there that have no name: ``$n - 1$ integers giving``."""
        known = [] if SIGN.search(formula) or DOTS.search(formula) else NAME.findall(formula)
        listed = _UNNAMED_LIST.match(self.part[end : end + 80])
        return bool(known) and set(map(base_name, known)) <= set(self.names) and listed is not None


def introduced_names(statement: str) -> list[list[str]]:
    """Return the names of what is read, in the order in which they are introduced: without columns that have no name,
    and with them where there are such.

    Example: of ``the integers $1 \\le N \\le 9$, the size of $A$, and $1 \\le L \\le 5$`` they are N and L.
    """
    part = input_section(statement)
    named, all_of_them = _Reader(part, unnamed=False).read(), _Reader(part, unnamed=True).read()
    return [named, all_of_them] if len(all_of_them) > len(named) else [named]
