"""Whether a statement is in the language that its row says: common words where they settle it, else identification.

A text that holds words of two kinds that only its tag's language has in common use is not looked at further: that is
read off literals, and settles most rows. The others are identified (`curation.languages`, thousands a second), and a
language is believed from `LEAST_LETTERS` letters and a confidence of `LEAST_SURE` on; both are not in the paper.

Not here: text in another script, which the rule ``wrong_script`` sees; rows whose tag is none of the paper's languages.
"""

from __future__ import annotations

import polars as pl

from curation.languages import identify_many

LEAST_LETTERS = 20
LEAST_SURE = 0.8

# Words of the language that the other four do not write, and further common ones; one of each settles it.
COMMON: dict[str, tuple[list[str], list[str]]] = {
    "en": (
        [" the ", "The ", " many ", "How ", "What ", "Find ", " what ", " if ", "If ", "Let "],
        [" of ", " is ", " are ", " and ", " to ", " much ", " does ", " did ", " that ", " such ", " be ", " for "],
    ),
    "fr": (
        [" les ", " est ", " dans ", " avec ", " sont ", "Combien ", " combien ", " chaque ", "Quel", " aux "],
        [" le ", " la ", " de ", " du ", " des ", " et ", " un ", " une ", " pour ", " que "],
    ),
    "es": (
        [" los ", " las ", "Cuánt", "cuánt", " el ", "¿"],
        [" de ", " que ", " la ", " en ", " se ", " un ", " una ", " con ", " por ", " para ", " es "],
    ),
    "it": (
        [" di ", " che ", " gli ", " della ", " sono ", " è ", "Quant", "quant", " ogni ", " nel ", " dei "],
        [" il ", " un ", " la ", " una ", " e ", " in ", " per ", " con ", " le ", " i ", " da "],
    ),
    "de": (
        [" der ", " und ", " ist ", " ein ", " eine ", " das ", " wie ", "Wie ", " wird ", " hat ", " für "],
        [" die ", " den ", " von ", " mit ", " in ", " auf ", " zu ", " im ", " sie ", " er ", " es ", " pro "],
    ),
}

_ODD = {
    "zh": pl.col("statement").str.contains(r"[\x{3040}-\x{30ff}\x{ac00}-\x{d7af}]"),
    "ru": pl.col("statement").str.contains(r"\p{Cyrillic}").not_() | pl.col("statement").str.contains("[іїєґўІЇЄҐЎ]"),
}

TAGS = (*COMMON, *_ODD)


def _in_doubt(tag: str) -> pl.Expr:
    """Whether a text's words and letters leave open that it is in the tag's language."""
    if tag in _ODD:
        return _ODD[tag]
    telling, further = COMMON[tag]
    text = pl.col("statement")
    return (text.str.contains_any(telling) & text.str.contains_any(further)).not_()


def another_language() -> pl.Expr:
    """Evidence, as in ``tag de, text fr (0.97)``, where the text is in another language than its tag; else null."""
    return pl.struct("statement", "lang").map_batches(_spoken, return_dtype=pl.String)


def _spoken(rows: pl.Series) -> pl.Series:
    frame = rows.struct.unnest().with_row_index("at")
    evidence: list[str | None] = [None] * frame.height
    for tag in frame["lang"].unique().drop_nulls().sort():
        if tag not in TAGS:
            continue
        doubted = frame.filter((pl.col("lang") == tag) & pl.col("statement").is_not_null()).filter(_in_doubt(tag))
        identified = identify_many(doubted["statement"].to_list())
        for at, found in zip(doubted["at"], identified, strict=True):
            sure = found.letters >= LEAST_LETTERS and found.confidence >= LEAST_SURE
            if sure and found.lang is not None and found.lang != tag:
                evidence[at] = f"tag {tag}, text {found.lang} ({found.confidence:.2f})"
    return pl.Series("evidence", evidence, pl.String)
