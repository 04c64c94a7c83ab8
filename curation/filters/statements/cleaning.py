"""Removes debris of scrapers and LaTeX, and a problem's number, points and contest.

Invariants: mathematics, possible decimals and lists ("1. … 2. …") never change; text without debris is unchanged;
cleaning is idempotent.
"""

from __future__ import annotations

import polars as pl

from curation.filters.multiple_choice import tidy_answer
from curation.filters.statements.expressions import cheap
from curation.languages.vocabulary import every, one_of
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

MIN_LEFT = 4
"""Characters that must be left without number and points."""


def _number_belongs(text: pl.Expr) -> pl.Expr:
    """Return whether the first number is a decimal's or a list's."""
    following = (text.str.extract(_FIRST_NUMBER).cast(pl.Int32, strict=False) + 1).cast(pl.String)
    marks = text.str.extract_all(_MARKS).list.eval(pl.element().str.extract("([0-9]+)"))
    decimal = text.str.contains(r"\A\s*[0-9]+[．、][0-9]")
    return decimal | marks.list.contains(following).fill_null(False)


def has_debris(column: str, labels: bool = True) -> pl.Expr:
    """Return cheaply whether `clean_text` may change the column."""
    text = pl.col(column)
    headed = text.str.contains(_HAS_HEAD) if labels else pl.lit(False)
    return text.str.contains_any(NEEDLES) | headed | text.str.ends_with("\\\\") | text.str.ends_with("\\\\\n")


def decoded(texts: pl.Series) -> pl.Series:
    """Decode entities and character names."""
    for pattern, replacement in (*ENTITIES, *NAMES):
        texts = texts.str.replace_all(pattern, replacement)
    return texts


def clean_text(frame: pl.DataFrame, column: str, labels: bool = True) -> pl.DataFrame:
    """Remove debris, a problem's labels and extra blank lines.

    Separate steps, since polars evaluates repeated expressions twice.
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
    labelled = text.ne_missing("_bare") & (pl.col("_bare").str.len_chars() >= MIN_LEFT)
    few = frame.select(text, "_bare", _row=pl.int_range(pl.len())).filter(labelled)
    if few.is_empty():
        return frame.drop("_bare")
    few = few.filter(_number_belongs(text).not_()).select("_row", pl.col("_bare").alias(column))
    return frame.drop("_bare").with_row_index("_row").update(few, on="_row").drop("_row")


def cleaned(work: pl.DataFrame) -> pl.DataFrame:
    """Clean statement, answer and choices."""
    for name in ("statement", "answer"):
        labels = name == "statement"
        dirty = work.select("_at", name).filter(has_debris(name, labels))
        if dirty.height:
            tidy = clean_text(dirty, name, labels)
            changes = tidy if labels else _checked(dirty, tidy, name)
            work = work.update(changes, on="_at", include_nulls=True)
    options = work.select("_at", "choices").filter(pl.col("choices").list.len() > 0).explode("choices")
    if options.is_empty():
        return work
    options = options.with_columns(dirty=has_debris("choices", False).any().over("_at")).filter("dirty")
    if options.is_empty():
        return work
    tidy = _checked(options, clean_text(options, "choices", False), "choices")
    return work.update(tidy.group_by("_at").agg("choices"), on="_at", include_nulls=True)


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
