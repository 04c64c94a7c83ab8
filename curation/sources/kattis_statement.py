"""TeX or Markdown statements of packages as plain text with unchanged formulas.

Macros with arguments are not expanded.
"""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = {"'": "\u0301", "`": "\u0300", '"': "\u0308", "^": "\u0302", "~": "\u0303", "c": "\u0327", "v": "\u030c"}
_ACCENT = re.compile(
    r"(?<!\\)\\(?:([\'`\"^~])\s?(?:\{(\\?[A-Za-z])\}|(\\[ij](?![a-zA-Z])|[A-Za-z]))|([cv])\{([A-Za-z])\})"
)
_LETTERS = {"o": "ø", "O": "Ø", "aa": "å", "AA": "Å", "ae": "æ", "AE": "Æ", "oe": "œ", "ss": "ß", "l": "ł", "L": "Ł"}
_LETTER = re.compile(r"(?<!\\)\\(aa|AA|ae|AE|oe|ss|o|O|l|L)(?![a-zA-Z])(?:\{\}| )?")
_PICTURE = re.compile(r"\\includegraphics|\\begin\{tikzpicture\}|!\[[^\]]*\]\(|<img\b", re.IGNORECASE)
_ENVIRONMENTS = re.compile(
    r"\\begin\{(figure|wrapfigure|tikzpicture|minipage|comment)\*?\}.*?\\end\{\1\*?\}", re.DOTALL
)
_ARGUMENT = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE | re.DOTALL), replacement)
    for pattern, replacement in (
        (rf"\\illustration\s*{_ARGUMENT}\s*{_ARGUMENT}\s*{_ARGUMENT}", ""),
        (
            r"\\(?:problemname|label|vspace|hspace|includegraphics|caption|centerline)\*?(?:\[[^\]]*\])?"
            rf"{_ARGUMENT}(?:\s*\{{[^{{}}]*\}})*",
            "",
        ),
        (rf"\\(?:section|subsection|subsubsection|paragraph)\*?{_ARGUMENT}", r"\n\n\1\n\n"),
        (r"\\begin\{(Input|Output|Interaction|Interactive)\}", r"\n\n\1\n\n"),
        (
            r"\\(?:begin|end)\{(?:itemize|enumerate|description|center|quote|flushleft|Input|Output|Interaction)\}"
            r"(?:\[[^\]]*\])?",
            "\n",
        ),
        (r"^[ \t]*\\item(?:\[([^\]]*)\])?\s*", r"- \1"),
        (rf"\\(?:emph|textbf|textit|texttt|textsf|textsc|text|underline|url|mbox|verb)(?![a-z]){_ARGUMENT}", r"\1"),
        (rf"\\(?:footnote){_ARGUMENT}", r" (\1)"),
        (rf"\\href{_ARGUMENT}{_ARGUMENT}", r"\2"),
        (rf"\\(?:SI|qty){_ARGUMENT}\{{\\?([^{{}}]*)\}}", r"\1 \2"),
        (rf"\\num{_ARGUMENT}", r"\1"),
        (r"\\verb([^a-zA-Z\s*{])(.*?)\1", r"\2"),
        (r"``|''", '"'),
        (r"`(?=\w)", "'"),
        (r"---", " - "),
        (r"(?<=\d)--(?=\d)", "-"),
        (r"\\(?:noindent|bigskip|medskip|smallskip|newpage|clearpage|centering|quad|qquad|small|par)(?![a-zA-Z])", " "),
        (r"\\\\(?:\[[^\]]*\])?", "\n"),
        (r"(?<!\\)~", " "),
        (r"\\([%&#_$])", r"\1"),
        (r"\\(?:dots|ldots)(?![a-zA-Z])(?:\{\})?", "…"),
    )
)


def needs_image(raw: str) -> bool:
    """Return whether the statement shows a picture, comments excluded."""
    return _PICTURE.search(_without_comments(raw)) is not None


def statement_text(raw: str, *, markdown: bool = False) -> str:
    """Return the statement as text, formulas within dollars."""
    if markdown:
        text = re.sub(r"<!--.*?-->", "", raw, flags=re.DOTALL)
        text = re.sub(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>", "", text)
        return _tidy(re.sub(r"^#+\s*", "", text, flags=re.MULTILINE))
    text = _ENVIRONMENTS.sub("", _expanded(_without_comments(raw)))
    segments = re.split(r"(\$\$.*?(?<!\\)\$\$|(?<!\\)\$.*?(?<!\\)\$|\\\[.*?\\\])", text, flags=re.DOTALL)
    formulas = {str(number): formula for number, formula in enumerate(segments[1::2])}
    marked = "".join(f"\x00{at // 2}\x00" if at % 2 else segment for at, segment in enumerate(segments))
    return _tidy(re.sub(r"\x00(\d+)\x00", lambda match: formulas.get(match[1], match[0]), _plain(marked)))


def _without_comments(raw: str) -> str:
    return re.sub(r"(?<!\\)%.*?(?:\n[ \t]*|$)", "\n", raw) if "%" in raw else raw


def _expanded(text: str) -> str:
    r"""Expand the author's macros of constants, as ``\newcommand{\maxn}{100}``."""
    own = dict(re.findall(rf"\\(?:newcommand|renewcommand|def)\*?\{{?\\([a-zA-Z]+)\}}?{_ARGUMENT}", text))
    text = re.sub(rf"\\(?:newcommand|renewcommand|def)\*?\{{?\\[a-zA-Z]+\}}?(?:\[\d\])?{_ARGUMENT}", "", text)
    for name, body in own.items():
        text = re.sub(rf"\\{name}(?![a-zA-Z])(?:\{{\}})?", body.replace("\\", "\\\\"), text)
    return text


def _accented(match: re.Match[str]) -> str:
    letter = (match[2] or match[3] or match[5]).removeprefix("\\")
    return unicodedata.normalize("NFC", letter + _ACCENTS[match[1] or match[4]])


def _plain(text: str) -> str:
    text = _LETTER.sub(lambda match: _LETTERS[match[1]], _ACCENT.sub(_accented, text))
    for _ in range(2):  # emphasis within emphasis
        for pattern, replacement in _STEPS:
            text = pattern.sub(replacement, text)
    return text.replace("{}", "")


def _tidy(text: str) -> str:
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
