"""Debris out of statements and answers: what a scraper or a LaTeX source left around the text.

Invariants:
  - only marks that carry no mathematics are touched: environment tails, spacing commands, HTML tags and entities,
    text-mode symbol names, invisible characters; a formula keeps its meaning;
  - a text without debris comes back unchanged, byte for byte, so nothing is marked as rewritten in vain;
  - the number, the points and the contest that stand before or behind a problem go (clutter.py);
  - cleaning twice equals cleaning once.

It does not repair broken formulas, and does not judge: that is for the rules.
"""

from __future__ import annotations

import polars as pl

from curation.filters.statements.clutter import HEADS, TAILS, has_head, number_belongs
from curation.languages.vocabulary import every

# Literals of which one must be present for any of the patterns below to do something.
NEEDLES = [
    "\\end{problem}",
    "\\begin{problem}",
    "\\noindent",
    "\\par",
    "\\text",
    "\\uline",
    "\\underline{\\h",
    "\\hspace",
    "\\vspace",
    "\\bigskip",
    "\\medskip",
    "\\smallskip",
    "\\newpage",
    "\\label{",
    "section",
    "\\_\\_",
    "</",
    "/>",
    "<br",
    "<p",
    "<center",
    "&nbsp;",
    "&lt;",
    "&gt;",
    "&amp;",
    "&quot;",
    "&#",
    "~~",
    "~ ",
    "\u200b",
    "\ufeff",
    "\u00ad",
    "\u2028",
    "\u00a0",
    "\r",
    *every(lambda lang: lang.statements.points_needles),
    "★",
    "AMC",
    "AIME",
    "IMO",
    "USAMO",
    "Putnam",
    "HMMT",
    "Olympiad",
    "Contest",
    "Competition",
    "Cup",
]

ENTITIES: list[tuple[str, str]] = [
    (r"&nbsp;", " "),
    (r"&lt;", "<"),
    (r"&gt;", ">"),
    (r"&quot;", '"'),
    (r"&#0?39;", "'"),
    (r"&amp;", "&"),
]
"""HTML's writing of single characters, and the characters."""

NAMES: list[tuple[str, str]] = [
    (r"\\textquotesingle\s?(?:\{\})?", "'"),
    (r"\\textless\s?(?:\{\})?", "<"),
    (r"\\textgreater\s?(?:\{\})?", ">"),
    (r"\\textbar\s?(?:\{\})?", "|"),
    (r"\\textbackslash\s?(?:\{\})?\\?%", r"\%"),
]
"""LaTeX's names of single characters in text, and the characters; the last is a percent sign that was escaped twice."""

# (pattern, replacement), applied in this order. Rust regular expressions.
STEPS: list[tuple[str, str]] = [
    (r"\r\n?", "\n"),
    ("[\u200b\ufeff\u00ad]", ""),
    ("[\u00a0\u2028]", " "),
    # HTML: line-making tags become line breaks, the others vanish; entities become their characters
    (r"(?i)<\s*(?:br|p|div|li|tr)\b[^<>\n]{0,80}/?>|</\s*(?:p|div|li|tr)\s*>", "\n"),
    (
        r"(?i)</?\s*(?:center|span|b|i|em|strong|u|font|ul|ol|td|th|table|tbody|h[1-6]|body|html|small)\b"
        r"(?:\s[^<>\n]{0,200})?/?>",
        " ",
    ),
    *ENTITIES,
    # names of plain characters
    *NAMES,
    (r"\\textasciitilde\s?(?:\{\})?", "~"),
    # blanks to fill in, drawn in several ways, become one
    (r"~?\\uline\s?\{[~\s]*\}~?", "____"),
    (r"\$?\\underline\{\\(?:hspace|phantom)\*?\{[^{}]*\}\}\$?", "____"),
    (r"(?:\\_){2,}", "____"),
    # environments and layout of the document around the problem
    (r"\\(?:begin|end)\{problem\}", ""),
    (r"\\(?:noindent|bigskip|medskip|smallskip|newpage|par)\b", ""),
    (r"\\vspace\*?\{[^{}]*\}", ""),
    (r"\\label\{[^{}]*\}", ""),
    (r"\\(?:sub)*section\*?\s*\{\s*\z", ""),
    (r"~{2,}", " "),
    (r"(?:~ )+~?", " "),
]

# Ends of the text, cleaned whenever any needle was found.
_ENDS: list[tuple[str, str]] = [(r"\A\s+", ""), (r"(?:\s|\\\\)+\z", "")]


LEAST_LEFT = 4
"""Characters that must be left of a text for its number and points to be cut off; less may be all there is."""


def has_debris(column: str, labels: bool = True) -> pl.Expr:
    """Return a cheap test of whether `clean_text` could change the column."""
    text = pl.col(column)
    headed = has_head(text) if labels else pl.lit(False)
    return text.str.contains_any(NEEDLES) | headed | text.str.ends_with("\\\\") | text.str.ends_with("\\\\\n")


def decoded(texts: pl.Series) -> pl.Series:
    """Return the texts with entities and names of characters as these characters, and nothing else changed."""
    for pattern, replacement in (*ENTITIES, *NAMES):
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def clean_text(frame: pl.DataFrame, column: str, labels: bool = True) -> pl.DataFrame:
    """Remove debris from the column, and a problem's labels; close up blank lines that remain.

    The steps are separate, since polars evaluates an expression that is used twice two times.
    """
    text = pl.col(column)
    dirty = text
    for pattern, replacement in STEPS:
        dirty = dirty.str.replace_all(pattern, replacement.replace("$", "$$"))
    dirty = dirty.str.replace_all(r"[ \t]+\n", "\n").str.replace_all(r"\n{3,}", "\n\n")
    for pattern, replacement in _ENDS:
        dirty = dirty.str.replace_all(pattern, replacement)
    frame = frame.with_columns(dirty)
    if not labels:
        return frame
    frame = frame.with_columns(_bare=text.str.replace(HEADS, "").str.replace(TAILS, ""))
    labelled = text.ne_missing("_bare") & (pl.col("_bare").str.len_chars() >= LEAST_LEFT)
    few = frame.select(text, "_bare", _row=pl.int_range(pl.len())).filter(labelled)
    if few.is_empty():
        return frame.drop("_bare")
    few = few.filter(number_belongs(text).not_()).select("_row", pl.col("_bare").alias(column))
    return frame.drop("_bare").with_row_index("_row").update(few, on="_row").drop("_row")
