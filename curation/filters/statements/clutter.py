"""Removes a problem's number, heading, points and contest.

Invariants: possible decimals and lists ("1. … 2. …") stay; cutting is idempotent.
"""

from __future__ import annotations

import polars as pl

from curation.filters.statements.expressions import cheap
from curation.languages.vocabulary import one_of

_WORD = f"(?:{one_of(lambda lang: lang.statements.label_words)})"
_NUMBER = r"(?:no\.?|nr\.?|n[°º]|№|#)?\s*[0-9]{1,4}(?:[.-][0-9]{1,3})*[a-z]?"
# [5 points], (3 marks), （本小题满分 12 分）, (5 Punkte)
_POINTS = (
    rf"[(\[（【]\s*(?:{one_of(lambda lang: lang.statements.before_points)})?\s*\$?[0-9]{{1,3}}(?:\.[0-9])?\$?\s*"
    rf"(?:{one_of(lambda lang: lang.statements.points)})\s*[)\]）】]"
)
# (2014 AMC 10A, Problem 3), （2019·全国卷）: a year and a name between brackets, and no formula
_INSIDE = r"[^()\[\]（）【】$=+*^\\<>?？!\n]"
_YEAR = r"(?:19|20)[0-9]{2}"
_CONTEST = rf"[(\[（【]\s*(?:{_YEAR}[^0-9]{_INSIDE}*|[A-Z\p{{Han}}]{_INSIDE}*{_YEAR}{_INSIDE}*)[)\]）】]"
_HEADING = (
    rf"#{{1,6}}\s*{_WORD}(?:\s+(?:statement|text))?(?:\s*{_NUMBER})?\s*[:.：]?\s*\n"
    rf"|\\(?:textbf|section\*?|subsection\*?|paragraph)\s*\{{\s*{_WORD}\s*(?:{_NUMBER})?\s*[:.：]?\s*\}}\s*[:.：]?"
)
_LABEL = (
    rf"\**{_WORD}\s*{_NUMBER}\s*(?:[:.)：．、]\**\s|[–—-]\s|\**\s*\n|\*\*\s)"
    rf"|\**{_WORD}\s*{_NUMBER}\s*(?:{_POINTS})\s*[:.：]?"
    rf"|\**(?:{one_of(lambda lang: lang.statements.label_words_alone)})\s*[:：]\**\s"
    rf"|{one_of(lambda lang: lang.statements.label_patterns)}|\\item\s"
)
_BARE_NUMBER = r"[0-9]{1,3}\s*(?:[.)]\s+|[．、]\s*)"

HEADS = cheap(
    rf"(?i)\A(?:\s*(?:{_HEADING}|{_LABEL}|{_POINTS}\s|{_POINTS}|(?:{_CONTEST})\s*|[★☆]+\s*|{_BARE_NUMBER}))+\s*"
)
TAILS = cheap(
    rf"(?i)(?:\s*(?:{_POINTS}|[(\[（]{_INSIDE}*\b(?:AMC|AIME|IMO|USAMO|Putnam|HMMT|Olympiad|Contest|Competition|Cup)\b"
    rf"{_INSIDE}*(?:19|20)[0-9]{{2}}{_INSIDE}*[)\]）]))+\s*\z"
)
_HAS_HEAD = cheap(
    rf"(?i)\A\s*(?:[0-9]{{1,3}}\s*[.)．、]|#{{1,6}}\s|\\(?:textbf|section|subsection|paragraph|item)\b|\**{_WORD}[\s:*№#]"
    rf"|【|{one_of(lambda lang: lang.statements.label_starts)}|[(\[（]{_INSIDE}*(?:19|20)[0-9]{{2}}"
    r"|[(\[（]\s*[0-9]{1,3}\s*[a-z]|★)"
)
_FIRST_NUMBER = r"\A\s*(?:[^0-9\s]{0,12}\s*)?([0-9]{1,3})\s*[.)．、]"
_MARKS = r"[\s。；;?？][0-9]{1,3}[.)．、]"


def has_head(text: pl.Expr) -> pl.Expr:
    """Return cheaply whether a text may begin with a label."""
    return text.str.contains(_HAS_HEAD)


def number_belongs(text: pl.Expr) -> pl.Expr:
    """Return whether the first number is a decimal's or a list's."""
    following = (text.str.extract(_FIRST_NUMBER).cast(pl.Int32, strict=False) + 1).cast(pl.String)
    marks = text.str.extract_all(_MARKS).list.eval(pl.element().str.extract("([0-9]+)"))
    decimal = text.str.contains(r"\A\s*[0-9]+[．、][0-9]")
    return decimal | marks.list.contains(following).fill_null(False)
