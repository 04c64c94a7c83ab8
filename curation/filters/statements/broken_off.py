"""Texts that break off: nothing in them asks, and no mark ends them, or one does.

Two rules, neither of which drops a row alone: what they find is weighed by the classifier. A text that was cut off
behind a whole sentence shows by what it lacks alone; one whose question stands first, or was cut in the middle and can
still be read as asked, does not at all.

Languages without words of their own here (`Language.statements`) are looked at only where they use marks elsewhere.
"""

from __future__ import annotations

import polars as pl

from curation.filters.statements import completeness, language_tags
from curation.filters.statements.expressions import STATEMENT, StatementRule, contains_any, either_text, tail
from curation.filters.statements.words import cheap, either
from curation.languages.vocabulary import every
from curation.records import DropReason

_NEIGHBOURS = (
    r"구하|계산|찾으|얼마|몇|أوجد|احسب|جد |كم |ما هو|ما هي|求め|いくつ|何"
    r"|\b(?:encontr[ea]|determin[ea]|calcul[ea]|ache|qual|quais|quant[oa]s?)\b"
)
"""Words that ask in the languages that have none of their own here: Korean, Arabic, Japanese, Portuguese."""
REQUEST = either(_NEIGHBOURS, *every(lambda lang: lang.statements.requests))
_CLOSES = r"""(?:["'”’»)）\]}】」』$~*\s]|\\[)\]])*$"""
# What a whole text ends in: a mark, a place for the answer, a formula on a line of its own, a remark in brackets.
WHOLE = cheap(
    rf"[.?!…。．？！:：=＝_。।۔؟|>]{_CLOSES}|[(（](?:\s|\\q?quad|\$)*[)）][\s$]*$|\\end\{{[a-z*]+\}}[\s$]*(?:\\\])?\s*$"
    r"|(?:\\q?quad|\\ |□|\\square|\\underline\{[^}]*\}|\\boxed\{[^}]*\})[\s$.]*[)）]?\s*$|(?:\$\$|\\\])\s*$|[)）]\s*$"
    r"|^[^\p{L}]*$"
)
# All up to the last mark: a point behind a digit and before one ends nothing.
BEFORE = r"""(?s)^.*(?:[.?!…:;]["'”’)$]*\s|[。？！．：；।۔؟])"""
_FORMULAS = r"\$[^$]*\$?|\\\([\s\S]*?(?:\\\)|$)|\\[a-zA-Z]+"
_WORD = r"\p{L}{2,}|\p{Han}"

_BARE = STATEMENT.str.replace_all(completeness.FIGURES, " ")
_LAST = _BARE.str.replace(BEFORE, "").str.replace_all(_FORMULAS, " ").str.count_matches(_WORD)
_ASKS = _BARE.str.contains(REQUEST) | _BARE.str.contains(completeness.TASK_SIGNS)
_KNOWN = pl.col("lang").fill_null("en").is_in(language_tags.TAGS)
_MARKED = _BARE.str.contains(BEFORE) & pl.col("lang").is_in(["th", "lo", "km", "my"]).not_()
"""Whether marks end sentences; Thai and its neighbours have none."""

BROKEN_OFF = StatementRule(
    "broken_off",
    DropReason.TRUNCATED,
    STATEMENT.str.contains(r"[?？]").not_()
    & tail(STATEMENT, 120).str.replace_all(completeness.FIGURES, " ").str.contains(WHOLE).not_(),
    either_text((_KNOWN | _MARKED) & (_LAST >= 1) & _ASKS.not_(), tail(STATEMENT)),
)
NO_REQUEST = StatementRule(
    "no_request",
    DropReason.NOT_A_PROBLEM,
    contains_any(STATEMENT, completeness.TASK_NEEDLES).not_() & pl.col("lang").is_in(language_tags.TAGS),
    either_text(
        _ASKS.not_()
        & STATEMENT.str.contains(completeness.TASK_WITH_OPTIONS).not_()
        & (STATEMENT.str.contains(completeness.BARE_FORMULA) & STATEMENT.str.contains(completeness.OPERATOR)).not_(),
        tail(STATEMENT),
    ),
)
RULES = (BROKEN_OFF, NO_REQUEST)
"""Neither looks at rows whose options were taken away: such a question ends where they stood."""
