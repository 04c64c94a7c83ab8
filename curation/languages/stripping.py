"""Reduce a text to its prose, without LaTeX, code, markup, numbers and units.

Invariant: no backslash, digit or line break remains.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_DRAWING = re.compile(r"\[(asy|code)\].*?(?:\[/\1\]|\Z)", re.DOTALL | re.IGNORECASE)
_DISPLAY = re.compile(r"\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)", re.DOTALL)
_MATH_ENVIRONMENT = re.compile(
    r"\\begin\s*\{(equation|align|aligned|alignat|gather|gathered|multline|eqnarray|cases|split|array|tabular|matrix|"
    r"[bpvBV]matrix|smallmatrix|math|displaymath|tikzpicture|asy|lstlisting|verbatim|figure)(\*?)\}.*?"
    r"\\end\s*\{\1\2\}",
    re.DOTALL,
)
_TAGS = re.compile(r"</?[A-Za-z!][^<>\n]{0,200}>|&[a-zA-Z]{2,8};|&#\w{1,6};")
_ADDRESS = re.compile(r"https?://\S+|www\.\S+|\S+@\S+\.\w+")
_LINK = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|(?<=\])\([^)\s]+\)")
_NAMED = re.compile(r"\\(?:begin|end|label|ref|eqref|cite|includegraphics|usepackage|documentclass)\s*(?:\[[^\]]*\])?"
                    r"\s*\{[^{}]*\}")  # fmt: skip
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}")
_WORDY = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|up|normal)?|emph|mbox|hbox|underline|section\*?|subsection\*?|paragraph|title)"
    r"\s*\{([^{}]*)\}"
)
_COMMAND_WITH_ARGUMENTS = re.compile(r"\\[A-Za-z]+\*?\s*(?:\[[^\]]*\])?(?:\s*[_^]?\s*\{[^{}]*\})+")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?|\\.|\\$")
_SCRIPTED = re.compile(r"[^\s\u2e80-\uffff]*[_^=<>≤≥≠≈∈∑∫√|{}][^\s\u2e80-\uffff]*")
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*(?:['’](?=\s|$))?[.!?,;:。，？！：；、]*|[.!?。？！]")
_ENDING = " .!?,;:。，？！：；、"
_STOPS = ".!?。？！"
_DIGITS = re.compile(r"(?<![^\W\d_])[A-Za-z]?\d(?:[\d.,/:]*\d)?(?:[A-Za-z]{1,3}\b)?|[\d_]")
_PROSE_WORD = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{3,}")
_FORMULA_SIGN = re.compile(r"[\\^_={}<>+≤≥≠∈]|\|.*\|")
_NAMES_OF_FUNCTIONS = frozenset(
    "sin cos tan tg ctg cot sec csc arcsin arccos arctan arctg sinh cosh tanh log ln lg lim exp max min mod gcd lcm "
    "det deg sup inf dx dy dz dt cm mm km kg mg ml cl dm kw kwh mph kmh ft lb lbs oz pdf http www html".split()
)
_SINGLE_WORDS = frozenset("aeiouyàèéóìùIAEOY")
"""One-letter words of the seven languages; other Latin letters are names."""


def strip(text: str, *, inside_formulas: bool = False) -> str:
    r"""Return a text's prose on one line.

    Args:
        inside_formulas: keep words of ``\text{…}`` in formulas and boxes.
    """
    if "\\" in text or "$" in text or "`" in text or "<" in text or "[" in text or "~~~" in text:
        text = without_formulas(text, inside_formulas)
    if "http" in text or "www." in text or "@" in text:
        text = _ADDRESS.sub(" ", text)
    text = _DIGITS.sub(" ", _SCRIPTED.sub(" ", text))
    tokens = (token if _is_prose(token) else token[-1] if token[-1] in _STOPS else "" for token in _TOKEN.findall(text))
    return " ".join(filter(None, tokens))


def _is_prose(token: str) -> bool:
    word = token.rstrip(_ENDING)
    if len(word) == 1 and word.isascii():
        return word in _SINGLE_WORDS
    return word.lower() not in _NAMES_OF_FUNCTIONS if len(word) < 7 else True


def letters(prose: str) -> int:
    """Count letters; Chinese, Japanese and Korean characters count double."""
    if prose.isascii():
        return sum(map(str.isalpha, prose))
    return sum(2 if sign >= "\u2e80" else 1 for sign in prose if sign.isalpha())


def without_formulas(text: str, inside: bool = False) -> str:
    r"""Return lines without code, formulas and commands; ``inside`` keeps words of ``\text{…}``."""
    text = _FENCE.sub(" ", text)
    text = _CODE.sub(" ", text)
    text = _DRAWING.sub(" ", text)
    text = _TAGS.sub(" ", text)
    text = _LINK.sub(" ", text)

    def replacement(formula: str) -> str:
        return " " + " ".join(match[1] for match in _WORDY.finditer(formula)) + " " if inside else " "

    for pattern in (_DISPLAY, _MATH_ENVIRONMENT, _BOXED):
        if "\\" in text or "$$" in text:
            text = pattern.sub(lambda match: replacement(match[0]), text)
    if "$" in text:
        text = "".join(
            replacement(segment) if is_formula else segment for segment, is_formula in formula_segments(text)
        )
    if "\\" in text:
        text = _NAMED.sub(" ", text)
        text = _WORDY.sub(r" \1 ", text)
        for _ in range(4):
            text, changed = _COMMAND_WITH_ARGUMENTS.subn(" ", text)
            if not changed:
                break
        text = _COMMAND.sub(" ", text)
    return text


def formula_segments(text: str) -> list[tuple[str, bool]]:
    """Cut a text at formulas' dollars; formulas are True, money stays text."""
    chunks = text.replace("\\$", "\x00").split("$")
    segments: list[tuple[str, bool]] = []
    prose, at = chunks[0], 1
    while at < len(chunks):
        inner = chunks[at]
        if at + 1 < len(chunks) and is_formula(inner):
            segments += [(prose.replace("\x00", "\\$"), False), (inner.replace("\x00", "\\$"), True)]
            prose, at = chunks[at + 1], at + 2
        else:
            prose, at = f"{prose}${inner}", at + 1
    segments.append((prose.replace("\x00", "\\$"), False))
    return segments


def is_formula(inner: str) -> bool:
    """Return whether text between dollars is a formula, not prices."""
    if not inner.strip() or len(inner) > 2000:
        return False
    bare = _WORDY.sub(" ", inner)
    words = _PROSE_WORD.findall(bare)
    signs = len(_FORMULA_SIGN.findall(bare))
    if inner[0].isspace() and inner[-1].isspace() and not signs and re.search(r"[^\W\d_]{2}|[.?!]\s", bare):
        return False  # "7 $ et 7 $"
    if not words:
        # "$5, $6": an amount and a comma; "$5$" and "$x, y$" are formulas
        return not re.fullmatch(r"\d[\d.,]*(?:[,;]\s+|[/–-]\s*|\s+(?:[^\W\d_]{1,2}|[/–-])\s+)", inner)
    return signs >= len(words) or (len(words) == 1 and inner[0].isalpha() and inner.strip() == inner)
