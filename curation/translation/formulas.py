r"""Check that a translation keeps code, and formulas by their symbols.

Layout, words in ``\text{…}`` and the decimal sign may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from curation.languages.identification import EVIDENCE
from curation.languages.stripping import formula_segments

_ENVIRONMENT = re.compile(r"\\begin\s*\{(\w+\*?)\}(?:.*?)\\end\s*\{\1\}", re.DOTALL)
_MATH_NAMES = re.compile(r"matrix|align|array|cases|equation|gather|split|eqnarray|multline")
_WORDS = re.compile(r"\\(?:text\w*|mbox|hbox|mathrm|rm|operatorname\*?|mathit|mathbf|bm|boldsymbol)\s*\{([^{}]*)\}")
_SPACING = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|nolimits|quad|qquad|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|mathop|"
    r"thinspace|hspace\{[^}]*\}|label\{[^}]*\}|tag\{[^}]*\}|mathrm|operatorname|mathbf|mathit|rm|bf)(?![A-Za-z])"
    r"|\\[,;:! ]|~|&"
)
_SAME = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "le": "leq", "ge": "geq", "ne": "neq", "leqslant": "leq",
    "geqslant": "geq", "ldots": "dots", "cdots": "dots", "dotsc": "dots", "dotsb": "dots", "vdots": "dots",
    "ddots": "dots", "to": "rightarrow", "tg": "tan", "ctg": "cot", "arctg": "arctan", "arcctg": "arccot",
    "sen": "sin", "mid": "vert", "lvert": "vert", "rvert": "vert", "land": "wedge", "lor": "vee", "degree": "circ",
    "dbinom": "binom", "tbinom": "binom", "implies": "Rightarrow", "iff": "Leftrightarrow", "mathbf": "mathbb",
    "colon": ":", "lbrace": "{", "rbrace": "}", "lfloor": "lfloor", "lt": "<", "gt": ">", "ast": "*",
}  # fmt: skip
_WIDE = str.maketrans("，；：（）＝＋－×÷≤≥≠−–。、“”？", ',;:()=+-*/≤≥≠--.,""?')
_AS_LATIN = str.maketrans("АВСЕКМНОРТХ", "ABCEKMHOPTX")
_CYRILLIC_NAME = re.compile(r"(?<![^\W\d_])[АВСЕКМНОРТХ]{1,4}(?![^\W\d_])")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_FUNCTION = re.compile(r"\\((?:arc)?(?:sin|cos|tan|cot)h?|ln|log|lg|exp|max|min|gcd|lcm|det|sec|csc)(?![A-Za-z])")
_WORD = re.compile(r"\s*[a-zà-ÿ\u0400-\u04ff]{3,}\s*")
_TOKEN = re.compile(r"\\[A-Za-z]+|\d+|[^\s\d]")
_FENCE = re.compile(r"(```|~~~)[^\n]*\n?(.*?)\1", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_BLANK = re.compile(
    r"(?<![A-Za-z\\])_{2,}|\\_|\\underline\s*\{(?:\s|_|\\[a-z]*space\*?\s*\{[^}]*\}|\\q?quad|\\[,;: ])*\}"
    r"|(?:\$|\\\()\s*(?:\\q?quad\s*)+(?:\$|\\\))|\\fillin"
)
_EMPTY_SCRIPT = re.compile(r"[_^]\s*\{\s*\}")
_DOUBLED = re.compile(r"\\\\(?=[cvld]?dots)")
_NAME = re.compile(
    r"(?<![A-Za-z\u00c0-\u024f\u0400-\u04ff\\'’])[A-Za-z]+"
    r"(?![A-Za-z\u00c0-\u024f\u0400-\u04ff]|['’](?!s\b)[A-Za-z\u00c0-\u024f])"
)
"""A whole word of plain letters: not the n of ``según`` or the l of ``l'aire``, but the A of ``A's``."""
_WORD_LETTERS = ("a", "e", "i", "o", "u", "y", "I", "Y")
"""Letters that are words of some language, so no names without dollars."""
_SHOWN = 4
_OFTEN = 2
"""Mentions of a lone symbol from which one may be missing."""
_MEASURE = re.compile(r"\d+(?:\.\d+)?(?:[kcm]?m|kg|g|h|s|min|L|ml)(?:\^?[23])?")
"""A number with its unit; both are compared apart."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text's formulas, the text as one formula, and how often it has each short name."""

    formulas: list[str]
    plain: str
    names: Counter[str]


def changed_formulas(original: str, translated: str) -> str | None:
    """Return what is wrong with a translation's formulas, or None."""
    if _BLANK.search(original) and not _BLANK.search(translated):
        return "the blank to be filled in is gone"
    formulas, translated_formulas = formulas_of(original), formulas_of(translated)
    only_before, only_after = _only(formulas, translated_formulas), _only(translated_formulas, formulas)
    if not only_before and not only_after:
        return None
    if _symbols(only_before) == _symbols(only_after) and not _run_together(only_before, only_after):
        return None
    before = _Text(formulas, _normal(_unmarked(original)), _names(original))
    after = _Text(translated_formulas, _normal(_unmarked(translated)), _names(translated))
    differences = [
        ("missing from the translation", _missing_formulas(before, after)),
        ("not in the original", _missing_formulas(after, before)),
    ]
    return "; ".join(f"{what}: {'; '.join(missing[:_SHOWN])}" for what, missing in differences if missing) or None


def _only(formulas: list[str], removed: list[str]) -> list[str]:
    return list((Counter(formulas) - Counter(removed)).elements())


def _missing_formulas(text: _Text, other: _Text) -> list[str]:
    """Return the formulas of one text that the other does not have in any form."""
    new = _only(other.formulas, text.formulas)
    return [
        formula
        for formula in _only(text.formulas, other.formulas)
        if not (
            (len(formula) > 1 and other.plain.count(formula) >= text.plain.count(formula))  # marked or not
            or 0 < text.names[formula] <= other.names[formula]
            or (len(formula) > 2 and any(formula in candidate for candidate in new))
            or _lost_a_mention(formula, text.formulas, other.formulas)
        )
    ]


def _lost_a_mention(formula: str, before_formulas: list[str], after_formulas: list[str]) -> bool:
    """Return whether a lone symbol lost one mention, but neither the first nor the last."""
    mentions = before_formulas.count(formula)
    if len(formula) != 1 or mentions < _OFTEN or after_formulas.count(formula) != mentions - 1:
        return False
    return all(
        set(after[: after.index(formula)]) <= set(before[: before.index(formula)])
        for before, after in ((before_formulas, after_formulas), (before_formulas[::-1], after_formulas[::-1]))
    )


def _run_together(only_before: list[str], only_after: list[str]) -> bool:
    """Return whether separate names became one word: m and n are not mn."""
    single = {formula for formula in only_before if len(formula) == 1 and formula.isalpha()}
    return any(len(formula) > 1 and formula.isalpha() and set(formula) <= single for formula in only_after)


def formulas_of(text: str) -> list[str]:
    """Return comparable formulas of a text, without mere numbers."""
    text = displayed_as_formulas(text)
    segments = [
        segment for segment, is_formula in formula_segments(text) if is_formula and not _WORD.fullmatch(segment)
    ]
    members = (member for segment in segments for member in _listed(_normal(segment)))
    return [member for member in members if re.search(r"[^\d.,%\-]", member) and not _MEASURE.fullmatch(member)]


def displayed_as_formulas(text: str) -> str:
    """Mark every formula by dollars; remove code blocks."""
    text = _FENCE.sub(" ", text)
    text = re.sub(r"\\[\[\](]|\\\)", "$", text.replace("\\\\[", "\\\\ [").replace("\\\\(", "\\\\ ("))
    while "$$" in text:
        text = text.replace("$$", "$")
    return _ENVIRONMENT.sub(lambda match: _as_formula(match, text), text)


def _as_formula(environment: re.Match[str], text: str) -> str:
    outside = text.count("$", 0, environment.start()) % 2 == 0
    return (
        f"${environment[0]}$"
        if outside and _MATH_NAMES.search(environment[1]) and "$" not in environment[0]
        else environment[0]
    )


def _normal(formula: str) -> str:
    formula = _EMPTY_SCRIPT.sub("", _DOUBLED.sub(r"\\", formula))
    formula = _WORDS.sub(lambda match: "" if _is_prose(match[1]) else match[1], formula)
    formula = re.sub(r"\\\\\s+", " ", formula)  # the end of a row, before its second half is read as a space
    formula = re.sub(r"\\(?:text\w*|mbox)(?![A-Za-z])", "", formula)
    formula = _SPACING.sub(" ", formula.translate(_WIDE))
    formula = _COMMAND.sub(lambda match: "\\" + _SAME.get(match[1], match[1]), formula)
    formula = re.sub(r"\.\s?\.\s?\.|…", r"\\dots", formula)
    formula = re.sub(r"(?<=\d)\{?[,.]\}?(?=\d)", ".", formula.replace("\\\\", " "))
    formula = re.sub(r"(?<=\d)(?:\u00a0|\u202f)(?=\d{3})", "", formula)
    formula = re.sub(r"(?<![A-Za-z\\])(?:sen|tg|ctg)(?![A-Za-z])", lambda match: _SAME[match[0]], formula)
    formula = _FUNCTION.sub(r"\1", formula)
    formula = re.sub(r"[\s{}]|\\(?=[{}])", "", formula)
    formula = re.sub(r"(?<=\d)\^?(?:st|nd|rd|th)\Z", "", formula)
    return formula.strip(".,;:?!'\"").replace("\\vert", "|")


def _is_prose(words: str) -> bool:
    r"""Return whether words in ``\text{…}`` are translated, unlike ``\mathrm{rank}``."""
    return not words.isascii() or " " in words or words.lower() in EVIDENCE


def _listed(formula: str) -> list[str]:
    r"""Return members of a list like ``a_1,a_2,\dots``."""
    members, depth, start = [], 0, 0
    for at, sign in enumerate(formula):
        depth += (sign in "([") - (sign in ")]")
        if sign in ",;" and depth == 0:
            members.append(formula[start:at])
            start = at + 1
    return [member.strip(".") for member in [*members, formula[start:]] if member.strip(".")]


def _unmarked(text: str) -> str:
    """Return the text without dollars, points' names in Latin letters."""
    return _CYRILLIC_NAME.sub(lambda match: match[0].translate(_AS_LATIN), text.replace("$", " "))


def _names(text: str) -> Counter[str]:
    """Count words of up to four Latin letters, alone or in dollars; some letters are words without dollars."""
    prose = (word for word in _NAME.findall(_unmarked(_prose(text))) if len(word) <= 4)
    names = [*prose, *(formula for formula in formulas_of(text) if re.fullmatch("[A-Za-z]{1,4}", formula))]
    return Counter(name for name in names if name not in _WORD_LETTERS)


def _symbols(formulas: list[str]) -> Counter[str]:
    return Counter(token for formula in formulas for token in _TOKEN.findall(formula) if token not in ",;.:")


def _prose(text: str) -> str:
    text = "".join(
        " " if is_formula else segment for segment, is_formula in formula_segments(displayed_as_formulas(text))
    )
    return _INLINE.sub(" ", text)


def changed_code(original: str, translated: str) -> str | None:
    """Return what changed in code, if anything."""
    before, after = Counter(code_of(original)), Counter(code_of(translated))
    missing, extra = list((before - after).elements()), list((after - before).elements())
    if missing:
        return f"missing or changed: {missing[0][:80]!r}"
    return f"not in the original: {extra[0][:80]!r}" if extra else None


def code_of(text: str) -> list[str]:
    """Return the fenced blocks, then the inline code."""
    blocks = ["\n".join(line.rstrip() for line in fence[2].strip("\n").split("\n")) for fence in _FENCE.finditer(text)]
    return blocks + _INLINE.findall(_FENCE.sub(" ", text))
