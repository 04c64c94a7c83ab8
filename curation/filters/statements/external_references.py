"""What a statement points at outside itself: figures and tables that are not there, other problems; or its own answer.

The companion of `words`, with the same conventions: Rust syntax, all languages tried on every row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from curation.filters.statements import figures
from curation.filters.statements.words import cheap, either
from curation.languages.vocabulary import Language, every, one_of
from curation.verify.rewriting import reads_the_same

# --- figures ---------------------------------------------------------------------------------------------------------

FIGURE_NEEDLES = (
    *("![", "[asy]", "<img", "includegraphics", "tikz"),
    *every(lambda lang: lang.statements.figure_needles),
)


def _figures(lang: Language) -> tuple[str, ...]:
    """Return a language's expressions that point at figures, with its kinds of figures in them."""
    kinds = "(?:" + "|".join(lang.statements.figure_kinds) + ")"
    return tuple(pattern.replace("<figure>", kinds) for pattern in lang.statements.figure)


# A picture where its file was, or code of one that is not whole.
PICTURE = either(
    r"!\[[^\]]*\]\([^)]*\)|!\[\]|\[asy\]|<img\b|\\includegraphics|\\begin\{tikzpicture\}|\[(?:image|figure"
    r"|diagram)\s*\d*\]|<(?:image|figure)[^>]{0,20}>"
)
FIGURE = either(*every(_figures))
# What only a figure says: the graph of a function that is not given, the letter of one of several graphs.
UNDRAWN = either(*every(lambda lang: lang.statements.undrawn))
# A function that is given all the same.
FUNCTION_GIVEN = r"[a-z]\s*\([a-z]\)\s*=[^$=]*[0-9]"

# "the picture of", graphs as objects, figures as numbers, three-dimensional figures, plots that are described in words
FIGURE_HARMLESS = either(*every(lambda lang: lang.statements.figure_harmless))

# Rows drawn with signs: an array's, a stem plot's, a list's, a triangle of numbers.
DRAWN = cheap(
    r"\\begin\{array\}[\s\S]*&[\s\S]*\\\\|(?:\n\s*\$?[0-9]+\s*\|[^\n]*\s*){2}|(?:\n\s*(?:\$?\\bullet|\*|-)\s?[^\n]+\s*){2}"
    r"|(?:\n[\s0-9]*[0-9][\s0-9]*){3}"
)
SHOWN_BY_ROWS = either(*every(lambda lang: lang.statements.shown_by_rows))

TABLE_NEEDLES = every(lambda lang: lang.statements.table_needles)
TABLE = either(*every(lambda lang: lang.statements.table))
# The table itself: cells, whatever draws them; or one that everybody has.
TABLE_HERE = cheap(
    rf"{figures.FIGURE}|"
    + r"\\begin\{(?:tabular|array|matrix|[bpv]matrix)|&[^&\n]*&|\|[^|\n]*\|[^|\n]*\||<t[dr]\b|\t|\\hline"
    r"|(?:\n[^\n]*[0-9][^\n]*){3}|[:：]\s*\n\s*\S"
    r"|(?:[:：][^:：;；\n]{0,20}[0-9][\s\S]{0,120}?){3}"  # cells between colons: "1 to 50: 13 a ticket; 51 to 100: 11"
    r"|(?i:\b(?:periodic|multiplication|times)\s+tables?\b)"
)

# --- references to elsewhere -----------------------------------------------------------------------------------------

ELSEWHERE_NEEDLES = every(lambda lang: lang.statements.elsewhere_needles)

_NUMBER = r"(?:№|#|no\.?|nr\.?|n[°º])?\s*\(?\d+(?:[.-]\d+)*\)?"
ELSEWHERE = either(*(pattern.replace("<number>", _NUMBER) for pattern in every(lambda lang: lang.statements.elsewhere)))

# What somebody in the story did in another problem.
ELSEWHERE_HARMLESS = cheap(r"(?i)\bsolved\s+(?:earlier\s+)?in\s+the\s+(?:previous|preceding)\s+problem\b")

# --- the answer itself -----------------------------------------------------------------------------------------------

# "Answer: 42", "the answer is 42", "答案：42", "#### 42": what stands behind the last label
_SPACED_COPULAS = one_of(lambda lang: lang.statements.copulas, spaced=True)
_HAN_COPULAS = one_of(lambda lang: lang.statements.copulas, spaced=False)
GIVEN = cheap(
    rf"(?i)^[\s\S]*(?:(?:{one_of(lambda lang: lang.statements.answer_labels)})\W{{0,3}}?"
    rf"(?:[:：=】\]]|\.\s|\s(?:{_SPACED_COPULAS})\s|{_HAN_COPULAS})|####|\\boxed\s*\{{)([^?？]*)$"
)
# A worked solution behind the question.
WORKED_OUT = cheap(
    rf"(?i)(?:^|[\n.?!。？！)）*\[【(]\s*)(?:{one_of(lambda lang: lang.statements.worked_labels)})"
    r"\s?\**\s*[:：】\]]([\s\S]*)$"
)
# "What is …? Show that it is 19/4.": the result that is to be shown, to the end of the text
SHOWN = cheap(rf"(?i)^[\s\S]*(?:{one_of(lambda lang: lang.statements.shown)})([^?？]*)$")
SHOWN_NEEDLES = every(lambda lang: lang.statements.shown_needles)
GIVEN_NEEDLES = (*every(lambda lang: lang.statements.given_needles), "####", "\\boxed")
_CLAIM_ENDS = re.compile(r"\.(?:\s|$)|[;。；]|,?\s+(?:for|where|if|when|as|with)\b", re.IGNORECASE)
_NAMED = re.compile(r"^[\s$]*[A-Za-z]\s*=")
"""What the answer is called, in front of it."""
LONE = r"^[\s$]*(?:-?\d+(?:\.\d+)?|[A-Za-z])[\s$.]*$"
"""An answer that is one number or letter."""
_OUTER = re.compile(r"^[\s${(\[\"'“]+|(?:\.0+)?[\s$.,;:!})\]\"'”%°]+$")
"""What may stand around a number or letter that is a value."""
_FORMULA = re.compile(r"\$+([^$]*)\$+|\\\((.*?)\\\)|^([^\s$]*[=+*/^()\\][^$]*)\$")
"""A formula; also one that began before the claim."""
_LONGEST_SHOWN = 80
"""Characters; a longer text is no answer alone."""


def is_shown(shown: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """Return whether the verifier reads what is to be shown as the answer, in whatever way it is written."""
    return pl.struct(shown=shown, answer=answer).map_elements(_is_shown, return_dtype=pl.Boolean)


def stands_alone(shown: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """Return whether an answer that is one number or letter stands by itself in what is to be shown."""
    return pl.struct(shown=shown, answer=answer).map_elements(_stands_alone, return_dtype=pl.Boolean)


def _stands_alone(row: Mapping[str, str | None]) -> bool:
    """Return whether the lone answer is a word or a formula of its own.

    In 1-1, n-th, 2-colourable, 2x+3 and f(2) it is a part of a property or of what is given.
    """
    shown, answer = row["shown"], row["answer"]
    if not shown or not answer:
        return False
    lone = _OUTER.sub("", answer)
    formulas = [match[1] or match[2] or match[3] or "" for match in _FORMULA.finditer(shown)]
    words = _FORMULA.sub(" ", shown).split()
    values = (_OUTER.sub("", value) for value in (*(formula.rpartition("=")[2] for formula in formulas), *words))
    return any(value.lower() == lone.lower() for value in values)


def _is_shown(row: Mapping[str, str | None]) -> bool:
    shown, answer = row["shown"], row["answer"]
    if not shown or not answer or len(answer) > _LONGEST_SHOWN:
        return False
    claims = (shown.strip(), claim := _CLAIM_ENDS.split(shown, maxsplit=1)[0].strip(), _NAMED.sub("", claim))
    return any(
        reads_the_same(claim.rstrip(" ."), answer)
        for claim in dict.fromkeys(claims)
        if len(claim) <= _LONGEST_SHOWN and claim.strip(" .$")
    )
