"""Whether a statement is whole: that it asks something, does not stop in the middle, and is a text at all.

The companion of `words`, with the same conventions: Rust syntax, all languages tried on every row.
"""

from __future__ import annotations

from curation.filters.statements import figures
from curation.filters.statements.words import cheap, either
from curation.languages.vocabulary import Language, every, one_of

# --- a task -----------------------------------------------------------------------------------------------------------

# What asks without a word: a question mark, a blank, an equals sign at the end.
TASK_SIGNS = cheap(
    r"[?？]|____|_{2,}|\\_|\\boxed|\\underline|\\square|□|（\s*）|\(\s*\)|[=＝:：]\s*(?:\$*|\\[)\]])\s*[.。．]?\s*$"
    r"|\\q?quad[\s$]*\\?[)）]|[(（][\s$]*[)）]|\[\s*\]|\\q?quad[\s$]*[.。．]?\s*$"
)
# The same, or a word that asks.
TASK = either(TASK_SIGNS, *every(lambda lang: lang.statements.task))

# A figure's place, behind which a question may end: "The area is <image1>".
FIGURES = rf"{figures.FIGURE}|<image\s?[0-9]*>"

# Literals that ask beyond doubt; only what has none of them is looked at more closely.
TASK_NEEDLES = ("?", "？", "____", *every(lambda lang: lang.statements.task_needles))

# --- cut off ---------------------------------------------------------------------------------------------------------


def _unfinished(lang: Language) -> tuple[str]:
    """Return the expression of what a whole text of a language does not end in; behind its code, where words stand
    apart.
    """
    words = "|".join(lang.statements.unfinished)
    if not lang.spaced:
        return (rf"(?:{words})\s*$",)
    return (rf"^{lang.code}\s[\s\S]*[\s,;«(¿¡](?:{words})\s*$",)


CUT_OFF = either(
    *every(_unfinished),
    r"[,，、]\s*$|\S\s*(?:\.\.\.|…+)\s*$",
    r"[0-9a-z)}\]]\s*(?:[+×÷·^]|\\(?:times|cdot|div|frac|sqrt|pm|left|leq?|geq?))\s*\$*\s*$",
)
"""Looked for in the language's code, a space, and the end of the statement."""
CUT_OFF_HARMLESS = either(
    r"(?:\b(?:is|are|equals?|be)|=)\s*\$*\s*(?:\.\.\.|…+)\s*$|(?:\\c?l?dots|[\d$}a-z)=]\s*,\s*(?:\.\.\.|…)\s*$)"
)
# Options behind a sentence that they end: "… then $BF$ is\n(A) 3.6 (B) 4"
TASK_WITH_OPTIONS = either(
    r"(?:\b(?:is|are|equals?|be|by|of|to)|[=:])[\s:$\x{E000}]*(?:\\[(\[]\s*)?(?:\\(?:text|mathrm|textbf|mathbf)\s*\{\s*)?[(（]\s*A\s*[)）]"
)
# A formula and nothing else: "280/4+360．", "4x-x-12=51"
BARE_FORMULA = r"^(?:\\[a-zA-Z]+|[a-z]|[^\p{L}])*\d(?:\\[a-zA-Z]+|[a-z]|[^\p{L}])*$"
# A sum that is short because it is one: "26-18=", "48*201．", "√(21)^2".
_SUM = r"(?:[^\p{L}\\]|\\(?:times|div|cdot|sqrt))*"
SHORT_SUM = rf"^{_SUM}\d[\s)\]}}]*(?:[+\-−×÷*/^]|\\(?:times|div|cdot))[\s(\[{{]*\d{_SUM}$"
OPERATOR = r"[+\-−×÷*/=^]|\\(?:times|cdot|div|frac|dfrac|sqrt|pm)"
# A formula that is never closed, at the end: a brace, \( … , a dollar before LaTeX.
OPEN_FORMULA = cheap(r"(?:^|[^\\])\{(?:[^{}$?？。]|\{[^{}]*\})*$|(?:^|[^\\])\\\((?:[^\\]|\\[^)])*$")
OPEN_DOLLAR = cheap(r"\$(?:[^$?？\\]|\\[^\[(])*(?:\\[a-zA-Z]{2,}|[_^]\{)(?:[^$?？\\]|\\[^\[(])*$")

# --- no problem ------------------------------------------------------------------------------------------------------

NOT_A_PROBLEM = either(
    *every(lambda lang: lang.statements.not_a_problem),
    rf"^\s*(?:\**\s*)?(?:{one_of(lambda lang: lang.statements.headings)})\s*(?:\d+(?:\.\d+)*)?\s*[:.：]",
)
# An address where nothing is asked; beside a task it is a source's note.
ADDRESS = cheap(r"\bhttps?://\S+|\bwww\.[a-z0-9-]+\.\w+")
NOT_A_PROBLEM_NEEDLES = ("404", "http", "www.", *every(lambda lang: lang.statements.not_a_problem_needles))

# The next number of a series, where no law is stated: any continuation is defensible.
SERIES_GUESS = either(*every(lambda lang: lang.statements.series_guess))
SERIES_NEEDLES = every(lambda lang: lang.statements.series_needles)


def _laws(lang: Language) -> tuple[str, ...]:
    """Return expressions of a text's rest, from the law of a series on."""
    boundary = "" if not lang.spaced else r"\b"
    return tuple(rf"{boundary}{law}{boundary}[\s\S]*" for law in lang.statements.series_laws)


SERIES_HARMLESS = either(*every(_laws))

# --- debris ----------------------------------------------------------------------------------------------------------

# UTF-8 read as Latin-1 or Windows-1252, in Cyrillic, Latin and Chinese; control characters.
_LATE = "\u0080-\u00bf‚ƒ„…†‡ˆ‰Š‹Œ“”•–—˜™š›œžŸŽ’‘€"
DEBRIS = cheap(
    r".{0,20}(?:[\x00-\x08\x0B\x0E-\x1F\x7F]|锟斤拷|烫烫烫|ï¿½|Ã["
    + _LATE
    + r"]|â€|Â[°·±×²³]|(?:[ÐÑ]["
    + _LATE
    + r"]\s?){3}"
    r"|(?:[ä-é][" + _LATE + r"]{2}){2}"
    r"|&nbsp|</(?:div|span|script|nav|form|iframe|style|button)>|<a\s+(?:href|class)|<!DOCTYPE|<\?xml"
    r"|<(?:div|span|script|nav|form|iframe|style|input|button)\s+[a-z-]+\s*=|<(?:script|style|iframe)>|<img\s[^<>]{0,200}\sonerror\s*="
    r"|^%PDF-|\bendobj\b|\bendstream\b|/FlateDecode|\bundefined\s+undefined\b|\[object\s+Object\]).{0,20}"
)
DEBRIS_NEEDLES = [
    "锟斤拷", "烫烫烫", "ï¿½", "Ã", "â€", "Â", "Ð", "Ñ", "ä", "å", "æ", "ç", "è", "é", "&nbsp", "div", "span",
    "<script", "</", "<nav", "<form", "<iframe", "<style", "<input", "<button", "<a ", "<!doctype", "<?xml", "%PDF",
    "onerror", "endobj", "endstream", "FlateDecode", "undefined undefined", "[object ",
    *map(chr, (*range(9), 11, *range(14, 32), 127)),
]  # fmt: skip
# A character that was lost; what it was can often be told.
LOST = r".{0,20}\x{FFFD}.{0,20}"
# Program text where nothing is asked about it.
CODE = cheap(
    r"\bfunction\s+\w+\s*\([^)]*\)\s*\{|\bdocument\.\w+|\bconsole\.log\(|\bpublic\s+(?:static\s+)?(?:void|class)\b|#include\s*<"
    r"|\bimport\s+[\w.]+;|\bdef\s+\w+\([^)]*\):|\bprintf?\s*\(|\$\(document\)|\bvar\s+\w+\s*=|\bSELECT\s+.{1,40}\bFROM\b"
)
CODE_NEEDLES = [
    "function", "document", "console.", "public ", "#include", "import ", "def ", "print", "var ", "select ",
]  # fmt: skip
# What may be left blank, and what carries meaning: a text of hardly any letters or digits is a drawn line.
BLANKS = r"[\s_□()（）＿?？]+"
SIGNS = cheap(r"[^0-9\p{L}]+")
LEAST_MEANT = 0.2
"""Letters and digits among all signs of a text; below it is debris."""
LEAST_SIGNS = 12

# Scripts, for a tag that cannot be right.
LATIN_PROSE = r"(?:\b[a-zà-ÿ']{2,}\s+){7,}[a-zà-ÿ']{2,}"
