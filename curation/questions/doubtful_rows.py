"""Votes on whether rows with signs of trouble are usable."""

from __future__ import annotations

import polars as pl

from curation.languages.vocabulary import every
from curation.prompts.base import stored_prompt
from curation.questions.votes import Selected, Vote, text_request
from curation.records import DropReason, PromptRequest

_STATEMENT, _ANSWER = pl.col("statement"), pl.col("answer")
_POINTS = every(lambda lang: lang.statements.points_at)
_WITHOUT_FORMULAS = _ANSWER.str.replace_all(r"\$[^$]*\$|\\[a-zA-Z]+", " ")
SIGNS: dict[str, pl.Expr] = {
    "points at something": _STATEMENT.str.contains_any(list(_POINTS), ascii_case_insensitive=True),
    "several parts": _ANSWER.str.replace_all(r"\d,\d{3}", "0").str.contains(r"[,;，；、]\s*\S|\s(?:and|or)\s"),
    "words in the answer": _WITHOUT_FORMULAS.str.contains(r"\p{L}{3,}\P{L}+\p{L}{2,}|^\P{L}*\p{L}{4,}|\p{Han}{3,}"),
    "a long answer": _ANSWER.str.len_chars() > 48,
    "an equation for an answer": _ANSWER.str.contains(r"=.*=|\\approx|≈|~"),
    "damaged characters": _STATEMENT.str.contains("\ufffd", literal=True),
    "no end": _STATEMENT.str.strip_chars().str.contains(r"[.?!:。？！．：=_|$)）\]}>\x{0964}؟]$").not_(),
    "a short statement": _STATEMENT.str.len_chars() < 40,
}
"""Signs by their name for people; one is enough to ask."""

PROMPT = stored_prompt("doubtful_rows")


def usability_request(statement: str, answer: str, lang: str) -> PromptRequest:
    """Return the request to judge a problem and its reference."""
    return text_request(f"The problem:\n\n{statement}\n\nThe reference answer:\n\n{answer}", lang)


def uncertain_rows(kept: pl.DataFrame) -> Selected:
    """Return rows with signs of trouble, named by ``about``."""
    signs = pl.concat_str(
        [pl.when(sign).then(pl.lit(name)) for name, sign in SIGNS.items()], separator=", ", ignore_nulls=True
    )
    rows = kept.select("id", "statement", "answer", "lang").with_row_index("at").drop_nulls(["statement", "answer"])
    rows = rows.with_columns(about=signs).filter(pl.col("about") != "")
    texts = rows.select("statement", "answer", "lang").iter_rows()
    return rows.select("at", "id", "about"), [usability_request(*row) for row in texts]


DOUBTFUL_ROWS = Vote(
    name="doubtful_rows",
    title="Uncertain rows by votes",
    prompt=PROMPT,
    words=("usable", "incomplete", "nothing", "several", "proof", "given", "reference"),
    reasons={
        "incomplete": DropReason.UNUSABLE,
        "nothing": DropReason.UNUSABLE,
        "several": DropReason.MULTI_PART,
        "proof": DropReason.PROOF,
        "given": DropReason.ANSWER_IN_STATEMENT,
        "reference": DropReason.UNUSABLE,
    },
    select=uncertain_rows,
)
