"""Debris out of statements and answers: what a scraper or a LaTeX source left around the text.

Invariants:
  - only marks that carry no mathematics are touched: environment tails, spacing commands, HTML tags and entities,
    text-mode symbol names, invisible characters; a formula keeps its meaning;
  - a text without debris comes back unchanged, byte for byte, so nothing is marked as rewritten in vain;
  - cleaning twice equals cleaning once.

It does not repair broken formulas, and does not judge: that is for the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

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
    "分)",
    "分）",
    "分 )",
]

# (pattern, replacement), applied in this order. Rust regular expressions.
STEPS: list[tuple[str, str]] = [
    (r"\r\n?", "\n"),
    ("[\u200b\ufeff\u00ad]", ""),
    ("[\u00a0\u2028]", " "),
    # HTML: line-making tags become line breaks, the others vanish; entities become their characters
    (r"(?i)<\s*(?:br|p|div|li|tr)\b[^<>\n]{0,80}/?>|</\s*(?:p|div|li|tr)\s*>", "\n"),
    (
        r"(?i)</?\s*(?:center|span|b|i|em|strong|u|font|ul|ol|td|th|table|tbody|h[1-6]|a|body|html|small)\b"
        r"(?:\s[^<>\n]{0,200})?/?>",
        " ",
    ),
    (r"&nbsp;", " "),
    (r"&lt;", "<"),
    (r"&gt;", ">"),
    (r"&quot;", '"'),
    (r"&#0?39;", "'"),
    (r"&amp;", "&"),
    # names of plain characters
    (r"\\textquotesingle\s?(?:\{\})?", "'"),
    (r"\\textless\s?(?:\{\})?", "<"),
    (r"\\textgreater\s?(?:\{\})?", ">"),
    (r"\\textbar\s?(?:\{\})?", "|"),
    (r"\\textbackslash\s?(?:\{\})?\\?%", r"\%"),
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
    (r"~{2,}", " "),
    (r"(?:~ )+~?", " "),
]

# Ends of the text, cleaned whenever any needle was found.
_ENDS: list[tuple[str, str]] = [
    # the number and the points of an exam question: 17. (12 分)
    (r"\A(?:\s*\d{1,3}\s*[.．、]\s*[（(]\s*(?:本小?题)?(?:满分|共)?\s*\$?\d+\$?\s*分\s*[)）]\s*)+", ""),
    (r"\A\s+", ""),
    (r"(?:\s|\\\\)+\z", ""),
]


def has_debris(column: str) -> pl.Expr:
    """Cheap test whether `clean` could change the column; literals only."""
    text = pl.col(column)
    return text.str.contains_any(NEEDLES) | text.str.ends_with("\\\\") | text.str.ends_with("\\\\\n")


def clean(column: str, needed: Sequence[tuple[str, str]] = STEPS) -> pl.Expr:
    """The column without debris; blank lines that the removal leaves are closed up."""
    text = pl.col(column)
    for pattern, replacement in needed:
        text = text.str.replace_all(pattern, replacement.replace("$", "$$"))
    text = text.str.replace_all(r"[ \t]+\n", "\n").str.replace_all(r"\n{3,}", "\n\n")
    for pattern, replacement in _ENDS:
        text = text.str.replace_all(pattern, replacement)
    return text
