"""Removes debris of scrapers and LaTeX from statements and answers.

Invariants: mathematics never changes; text without debris is unchanged; cleaning is idempotent.
"""

from __future__ import annotations

import polars as pl

from curation.filters.multiple_choice import tidy_answer
from curation.filters.statements.clutter import HEADS, TAILS, has_head, number_belongs
from curation.languages.vocabulary import every
from curation.options import tidy_option
from curation.verify.rewriting import keep_reference

# Literals of which one must be present for any of the patterns below to do something.
NEEDLES = [
    "\\end{problem}", "\\begin{problem}", "\\noindent", "\\par", "\\text", "\\uline", "\\underline{\\h", "\\hspace",
    "\\vspace", "\\bigskip", "\\medskip", "\\smallskip", "\\newpage", "\\label{", "section", "\\_\\_", "</", "/>",
    "<br", "<p", "<center", "&nbsp;", "&lt;", "&gt;", "&amp;", "&quot;", "&#", "~~", "~ ", "\u200b", "\ufeff",
    "\u00ad", "\u2028", "\u00a0", "\r", *every(lambda lang: lang.statements.points_needles), "★", "AMC", "AIME", "IMO",
    "USAMO", "Putnam", "HMMT", "Olympiad", "Contest", "Competition", "Cup",
]  # fmt: skip

ENTITIES: list[tuple[str, str]] = [
    (r"&nbsp;", " "),
    (r"&lt;", "<"),
    (r"&gt;", ">"),
    (r"&quot;", '"'),
    (r"&#0?39;", "'"),
    (r"&amp;", "&"),
]
"""HTML entities and their characters."""

NAMES: list[tuple[str, str]] = [
    (r"\\textquotesingle\s?(?:\{\})?", "'"),
    (r"\\textless\s?(?:\{\})?", "<"),
    (r"\\textgreater\s?(?:\{\})?", ">"),
    (r"\\textbar\s?(?:\{\})?", "|"),
    (r"\\textbackslash\s?(?:\{\})?\\?%", r"\%"),
]
"""LaTeX's names of characters; the last is a percent sign escaped twice."""

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
"""Characters that must be left without number and points."""


def has_debris(column: str, labels: bool = True) -> pl.Expr:
    """Return cheaply whether `clean_text` may change the column."""
    text = pl.col(column)
    headed = has_head(text) if labels else pl.lit(False)
    return text.str.contains_any(NEEDLES) | headed | text.str.ends_with("\\\\") | text.str.ends_with("\\\\\n")


def decoded(texts: pl.Series) -> pl.Series:
    """Decode entities and character names."""
    for pattern, replacement in (*ENTITIES, *NAMES):
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def clean_text(frame: pl.DataFrame, column: str, labels: bool = True) -> pl.DataFrame:
    """Remove debris, a problem's labels and extra blank lines.

    Steps are separate, since polars evaluates repeated expressions twice.
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


def replaced(work: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Apply ``changes`` to ``work`` by ``_at``, including nulls."""
    if changes.is_empty():
        return work
    names = [name for name in changes.columns if name != "_at"]
    joined = work.join(
        changes.with_columns(_changed=pl.lit(True)), on="_at", how="left", suffix="_new", maintain_order="left"
    )
    return joined.with_columns(
        pl.when(pl.col("_changed")).then(f"{name}_new").otherwise(name).alias(name) for name in names
    ).select(work.columns)


def cleaned(work: pl.DataFrame) -> pl.DataFrame:
    """Clean statement, answer and choices."""
    for name in ("statement", "answer"):
        labels = name == "statement"
        dirty = work.select("_at", name).filter(has_debris(name, labels))
        if dirty.height:
            tidy = clean_text(dirty, name, labels)
            work = replaced(work, tidy if labels else _checked(dirty, tidy, name))
    options = work.select("_at", "choices").filter(pl.col("choices").list.len() > 0).explode("choices")
    if options.is_empty():
        return work
    options = options.with_columns(dirty=has_debris("choices", False).any().over("_at")).filter("dirty")
    if options.is_empty():
        return work
    tidy = _checked(options, clean_text(options, "choices", False), "choices")
    return replaced(work, tidy.group_by("_at", maintain_order=True).agg("choices"))


def _checked(frame: pl.DataFrame, tidy: pl.DataFrame, column: str) -> pl.DataFrame:
    """Keep clean answers that the verifier reads as before; decode others."""
    texts = zip(decoded(frame[column]), tidy[column], strict=True)
    kept = [None if old is None or new is None else keep_reference(old, new) for old, new in texts]
    return tidy.with_columns(pl.Series(column, kept, pl.String))


def without_layout(answers: pl.Series) -> pl.Series:
    """Remove answers' debris and layout, without the verifier's check."""
    frame = pl.DataFrame({"answer": answers.cast(pl.String)})
    texts = clean_text(frame, "answer", False)["answer"]
    return pl.Series([None if text is None else tidy_answer(tidy_option(text)) for text in texts], dtype=pl.String)
