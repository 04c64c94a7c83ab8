"""What the rules look for: the regular expressions, put together from the words of all languages.

Rust syntax (no look-around). Where a phrase fires only out of certain company, the company is named in a
``…_HARMLESS`` expression, which is blanked out before the phrase is looked for.
The words are `curation.languages.vocabulary`'s; all are tried on every row, since a row's tag may be wrong.
"""

from __future__ import annotations

import re

from curation.languages.vocabulary import every

LETTERS = "A-Za-zÀ-ɏЀ-ӿ"
"""The letters of six of the seven languages, as the inside of a class."""


def either(*patterns: str) -> str:
    """Join several expressions into one, case-insensitive and made cheap.

    Word boundaries become ASCII ones, since the Unicode ones cost a factor of ten on texts that are not plain ASCII;
    so none may stand beside an accented letter, and in expressions with Cyrillic letters they are left out.
    Classes lose their rare members, since an expression is compiled anew for every small frame.
    """
    return "(?i)(?:" + "|".join(cheap(pattern) for pattern in patterns) + ")"


_WITH_BOUNDARY = re.compile("[\u0400-\u04ff]")
_TOKEN = re.compile(r"\(\?-u:\\b\)|\[\\s\\S\]|\\(?:[xp]\{\w+\}|.)|\[\^?(?:\\p\{\w+\}|\\.|[^\]\\])+\]|.", re.DOTALL)
_SHORT = {"\\w": f"0-9_{LETTERS}", "\\d": "0-9"}


def cheap(pattern: str) -> str:
    """Return the same expression with classes that compile fast: few ranges, and no case folding of what has no case.

    ``\\w`` and ``\\d`` mean the letters and digits of the seven languages' own alphabets, hanzi aside.
    """
    boundary = "" if _WITH_BOUNDARY.search(pattern) else r"(?-u:\b)"

    def plain(match: re.Match[str]) -> str:
        token = match.group()
        if token in ("\\b", r"(?-u:\b)"):
            return boundary
        if token == r"[\s\S]":
            return "(?s-i:.)"
        if token in _SHORT:
            return f"[{_SHORT[token]}]"
        if token in (r"\W", r"\D"):
            return f"(?-i:[^{_SHORT[token.lower()]}])"
        if token in (r"\S", "."):
            return f"(?-i:{token})"
        if token.startswith("[") and len(token) > 1:
            inside = re.sub(r"\\[wd]", lambda short: _SHORT[short.group()], token)
            caseless = token.startswith("[^") and not re.search("[A-Za-z]", re.sub(r"\\p\{\w+\}|\\.", "", token))
            return f"(?-i:{inside})" if caseless else inside
        return token

    return _TOKEN.sub(plain, pattern)


# --- proof -----------------------------------------------------------------------------------------------------------

PROOF_NEEDLES = every(lambda lang: lang.statements.proof_needles)
PROOF_HARMLESS = either(*every(lambda lang: lang.statements.proof_harmless))
PROOF = either(*every(lambda lang: lang.statements.proof))

# A value asked for beside a proof: with a short answer at hand, that part can be verified.
ASKS_A_VALUE = either(*every(lambda lang: lang.statements.asks_a_value))

# Tasks whose whole content is the argument when no reference answer comes with them.
OPEN_ENDED = either(*every(lambda lang: lang.statements.open_ended))

# The same for a task stated in formulas: an olympiad's "Determine the smallest n such that …" that came without a
# result is worth its argument only. Word problems without an answer stay under missing_answer.
FORMULA = r"\$[^$]*(?:\\[a-zA-Z]|\^|_|[a-z]\s*[=<>+])[^$]*\$|\\\(|\\\["
FORMAL_TASK = either(*every(lambda lang: lang.statements.formal_task))

# Columns of the source that hold a marking scheme or a formal theorem in place of an answer.
MARKING = (
    r"(?i)\"(?:grading[ _]?(?:guidelines|scheme)|rubrics?|marking[ _]scheme|formal(?:_statement|_theorem)?"
    r"|lean4?(?:_code|_statement)?|informal_proof)\\?\""
)
