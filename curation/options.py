"""Splits a statement into question and options, if labels are found, and reads answers that name an option.

Invariants: labels are consecutive from the first and of one style; no option is empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from curation.languages.vocabulary import one_of

UPPER = "ABCDEFGHIJ"
_ALPHABETS = {"upper": UPPER, "lower": UPPER.lower(), "circled": "①②③④⑤⑥⑦⑧", "digit": "12345678"}
_SECOND = {
    "upper": re.compile(r"B\s*[)）.．、:：\]]"),
    "lower": re.compile(r"b\s*[).]"),
    "circled": re.compile("②"),
    "digit": re.compile(r"2\s*[)）.．、]"),
}
"""The second label, without which a kind need not be tried."""
_FULL = str.maketrans("ＡＢＣＤＥＦＧＨＩＪ（）．：１２３４５６７８", "ABCDEFGHIJ().:12345678")

_SPACE = r"&|\\\\|\\qquad|\\quad|\\hspace\{[^{}]*\}|\\[ ,;:!]|~|\s"
"""LaTeX's white space and separators, as alternatives."""

_TABLES = r"align\*?|aligned|array|tabular|enumerate|itemize|multicols|choices"
"""Environments that lay options out, as alternatives."""


@dataclass(frozen=True, slots=True)
class OptionSplit:
    """Question and options; ``kind`` is upper, lower, digit or circled."""

    question: str
    options: tuple[str, ...]
    kind: str


# A LaTeX font command around a label, with or without the option inside: \textbf{(A)}, \text{A)}, \mathrm{(E) none}
_WRAPPED = re.compile(
    r"\\(?:textbf|textrm|textit|text|mathbf|mathrm|mathit|bf|rm|textsf"
    r"|mbox)\s*\{\s*(\(?\s*[A-Ja-h1-8]\s*[).:]\)?)\s*(?:\\ |~)*([^{}]*)\}"
)
# The same with the bracket outside: (\textbf{A}), (\mathrm{A}), $\mathbf{A}$.
_WRAPPED_LETTER = re.compile(
    r"\$?\(?\s*\\(?:textbf|textrm|text|mathbf|mathrm|bf|rm)\s*\{\s*([A-J])\s*\}\s*\$?\s*([).:])\s*\$?"
)
_BOLD = re.compile(r"\*\*\s*(\(?[A-Ja-h][).:])\s*\*\*")
# \item[(A)], \item[B.]
_ITEM_LABEL = re.compile(r"\\item\s*\[\s*\(?\s*([A-J])\s*[).]?\s*\]")
# The exam class's \begin{choices}, tasks, and lists that are numbered by capital letters.
LETTERED_LIST = (
    r"\\begin\s*\{(?:oneparchoices|choices|tasks)\}|\\begin\s*\{enumerate\}\s*\[[^\]]*(?:\\Alph|\(?A[).])[^\]]*\]"
)
_LISTED = re.compile(
    rf"(?:{LETTERED_LIST})(?:\s*[(\[]\d[)\]])?([\s\S]*?)\\end\s*\{{(?:oneparchoices|choices|tasks|enumerate)\}}"
)
_ITEM = re.compile(r"\\(?:CorrectChoice|correctchoice|choice|item|task)\b\*?")

# Styles, most telling first: (kind, expression with the label as group 1).
_STYLES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("upper", re.compile(r"[(（]\s*([A-J])\s*[)）]\s*[.:．、]?")),
    ("upper", re.compile(r"(?:(?<=[\s&$;,，；。.．?？)）:：])|^|(?<=[\u4e00-\u9fff]))([A-J])\s*[)）]")),
    (
        "upper",
        re.compile(r"(?:(?<=[\s&$;,，；。?？)）:：~}])|^|(?<=[\u4e00-\u9fff]))([A-J])\s*[.．、:：](?!\w*\.[A-J]\.)"),
    ),
    ("upper", re.compile(r"(?<![A-Za-z\\])([A-J])\s*[．、]")),
    ("upper", re.compile(r"\[\s*([A-J])\s*\]")),
    ("lower", re.compile(r"\(\s*([a-h])\s*\)")),
    ("lower", re.compile(r"(?:(?<=[\s&$;])|^)([a-h])\s*\)")),
    ("lower", re.compile(r"(?:(?<=\n)|^)\s*([a-h])\s*\.\s")),
    ("circled", re.compile(r"([①②③④⑤⑥⑦⑧])")),
    ("digit", re.compile(r"[(（]\s*([1-8])\s*[)）]")),
    ("digit", re.compile(r"(?:(?<=[\s?？:：;])|^)([1-8])\s*[)）]")),
    ("digit", re.compile(r"(?:(?<=\n)|^)\s*([1-8])\s*[.．、](?!\d)")),
)

_HEADER = re.compile(
    rf"(?i)(?:\n|^|(?<=[.?!:。？：\s]))\s*\**(?:{one_of(lambda lang: lang.choices.headers)})\**\s*[:：.]?\s*$"
)
_INSTRUCTS = re.compile(rf"(?i)\W*(?:{one_of(lambda lang: lang.choices.leads_after_options)})\b")
_LAYOUT_AFTER = re.compile(rf"(?:\\begin\{{(?:{_TABLES})\}}(?:\{{[^{{}}]*\}})*|\\item|{_SPACE})+$")


def normalise_layout(statement: str) -> str:
    """Make labels plain, also in lists."""
    text = statement
    if "\\" in text:
        text = _ITEM_LABEL.sub(r"(\1) ", _LISTED.sub(_lettered, text))
        text = _WRAPPED.sub(
            lambda match: f"{match[1]} \\text{{{inside}}}" if (inside := match[2].strip()) else f"{match[1]} ", text
        )
        text = _WRAPPED_LETTER.sub(r"(\1) ", text)
    if "**" in text:
        text = _BOLD.sub(r"\1 ", text)
    return re.sub(r"[Ａ-Ｊ]|（(?=\s*[A-JＡ-Ｊ1-8１-８a-h]\s*[)）])", lambda match: match.group().translate(_FULL), text)


def _lettered(match: re.Match[str]) -> str:
    head, *items = _ITEM.split(match[1])
    if not 0 < len(items) <= len(UPPER):
        return match[0]
    return "\n".join(
        [head.strip(), *(f"({letter}) {item.strip()}" for letter, item in zip(UPPER, items, strict=False))]
    )


def split_options(statement: str) -> OptionSplit | None:
    """Return question and options, or None without labels."""
    text = normalise_layout(statement)
    best: OptionSplit | None = None
    present = {kind: second.search(text) is not None for kind, second in _SECOND.items()}
    for kind, style in _STYLES:
        if not present[kind]:
            continue
        split = _run(text, kind, style)
        if split and (best is None or len(split.options) > len(best.options)):
            best = split
        if best and best.kind == "upper" and kind != "upper":
            break
    return best


# An option that is more than layout.
_SOMETHING = re.compile(r"[^\s&$\\~.,;，。．；]")


def _run(text: str, kind: str, style: re.Pattern[str]) -> OptionSplit | None:
    """Split at the longest run of labels of a style."""
    alphabet = _ALPHABETS[kind]
    marks = [(match.group(1), match.start(), match.end()) for match in style.finditer(text)]
    following: list[int | None] = []  # the next label's mark, from the last mark to the first
    latest: dict[str, int] = {}
    for at in reversed(range(len(marks))):
        label = marks[at][0]
        following.append(latest.get(alphabet[alphabet.index(label) + 1 :][:1]))
        latest[label] = at
    following.reverse()
    best: list[tuple[str, int, int]] = []
    for first, (label, _, _) in enumerate(marks):
        chain = list[tuple[str, int, int]]()
        link = first if label == alphabet[0] else None
        while link is not None:
            chain.append(marks[link])
            link = following[link]
        if len(chain) >= max(2, len(best)):
            best = chain
    if len(best) < 2:
        return None
    stops = [start for _, start, _ in best[1:]] + [len(text)]
    texts = [text[end:stop] for (_, _, end), stop in zip(best, stops, strict=True)]
    texts[-1], after = _last_option(texts)
    options = tuple(option.strip() for option in texts)
    if not all(_SOMETHING.search(option) for option in options):
        return None
    question = tidy_question(text[: best[0][1]])
    if after:
        question = f"{question}\n{after}"
    return OptionSplit(question, options, kind)


_AFTER_LAYOUT = re.compile(r"\\end\{[^{}]*\}|\\\\|\$|&|\s|\\\]|[.。]")


def _last_option(texts: list[str]) -> tuple[str, str]:
    """Return the last option, on one line if the others are, and the text after it."""
    last = texts[-1].strip()
    head, newline, rest = last.partition("\n")
    rest = rest.strip()
    if not newline or not rest or not _SOMETHING.search(head) or not _AFTER_LAYOUT.sub("", rest):
        return last, ""
    longest = max(len(text) for text in texts[:-1])
    if any("\n" in text.strip() for text in texts[:-1]) and len(last) <= 2 * longest:
        return last, ""
    if _INSTRUCTS.match(rest) or len(rest) < 4:
        return head, ""
    return head, rest


def tidy_question(question: str) -> str:
    """Remove trailing layout and headings."""
    text = question.rstrip()
    for _ in range(4):
        before = text
        text = _LAYOUT_AFTER.sub("", text)
        if text.endswith("$") and text.replace("\\$", "").replace("$$", "").count("$") % 2:
            text = text[:-1]
        elif (text.endswith("$$") and text.count("$$") % 2) or text.endswith(("\\[", "\\(")):
            text = text[:-2]
        elif text.endswith("\\") and not text.endswith("\\\\"):
            text = text[:-1]
        text = _HEADER.sub("", text).rstrip()
        if text == before:
            break
    return text


_EDGE = re.compile(rf"^(?:{_SPACE}|\$\$?\s*(?=$))+|(?:{_SPACE}|\\$|[;；])+$")
_ENVIRONMENT = re.compile(
    rf"\\(?:begin|end)\{{(?:{_TABLES}|gather\*?|equation\*?)\}}(?:\{{[^{{}}]*\}})*|\\item\b|\\\]\s*$"
)
_ALL_TEXT = re.compile(r"\\(?:text|textbf|mathrm|textrm|mbox)\s*\{([^{}]*)\}")
_FINAL_SIGN = re.compile(r"(?<=[\w})$%°])\s*[.。．,，、]$")
_BARE_FORMULA = re.compile(r"\\[a-zA-Z]|\^|_\{|_\d")
_MONEY = re.compile(r"^-?\$\s?\d[^$]*$")
_LABEL_AGAIN = re.compile(r"^\s*[(（]?\s*([A-J])\s*[)）.．:、]\s*(?=\S)")


_CONTENT = re.compile(r"\\(begin|end)\{(array|tabular)\}")


_LAYOUT = re.compile(r"[\\&~$;；{}^_]")
"""Found in every text with layout or a formula."""


def tidy_option(option: str) -> str:
    """Remove an option's layout; a bare formula gets dollars."""
    if not _LAYOUT.search(option):
        return _FINAL_SIGN.sub("", option.strip())
    text = without_edges(_ENVIRONMENT.sub(" ", option) if not _holds_a_matrix(option) else option)
    if text.count("$$") % 2:
        text = text.removeprefix("$$").removesuffix("$$")
    elif text.replace("$$", "").replace("\\$", "").count("$") % 2 and not _MONEY.match(text):
        text = text.removesuffix("$") if text.endswith("$") else text.removeprefix("$")
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("{", "}")):
        if text.count(opening) < text.count(closing) and text.endswith(closing):
            text = text.removesuffix(closing)
        elif text.count(opening) > text.count(closing) and text.startswith(opening) and opening != "{":
            text = text.removeprefix(opening)
    text = _EDGE.sub("", text).strip()
    text = _FINAL_SIGN.sub("", text)
    words = _ALL_TEXT.fullmatch(text)
    if words:
        return words.group(1).strip()
    if "$" not in text.replace("\\$", "") and "\\(" not in text and _BARE_FORMULA.search(text):
        return f"${text}$"
    return text


def without_frame(option: str) -> str:
    """Remove outer layout and unbalanced environments."""
    begun, ended = (option.count(f"\\{mark}{{") for mark in ("begin", "end"))
    return without_edges(_ENVIRONMENT.sub(" ", option) if begun != ended else option)


@lru_cache(maxsize=64)
def without_edges(text: str) -> str:
    """Remove an option's outer layout."""
    if not _LAYOUT.search(text):
        return text.strip()
    for _ in range(4):
        before = text
        text = _EDGE.sub("", text).strip()
        if text == before:
            break
    return text


def _holds_a_matrix(option: str) -> bool:
    marks = _CONTENT.findall(option) if "\\begin" in option else []
    return bool(marks) and marks[0][0] == "begin" and 2 * sum(mark == "begin" for mark, _ in marks) == len(marks)


def strip_label(option: str, index: int) -> str:
    """Remove an option's own label: "A)6" with index 0, "B. 7" with 1."""
    text = option.translate(_FULL) if option[:1] in "ＡＢＣＤＥＦＧＨＩＪ（" else option
    if text[:1] not in "ABCDEFGHIJ( [":
        return text
    for _ in range(2):
        label = _LABEL_AGAIN.match(text) if UPPER[index : index + 1] in text else None
        if not label or label.group(1) != UPPER[index : index + 1]:
            break
        text = text[label.end() :]
    return text.strip()


# --- answers that name an option by letter ---

_LEAD = re.compile(
    rf"(?i)^\W*(?:the\s+)?(?:(?:{one_of(lambda lang: lang.choices.answer_adjectives)})\s+)?"
    rf"(?:{one_of(lambda lang: lang.choices.answer_leads)})\s*"
    rf"(?:{one_of(lambda lang: lang.choices.copulas)})?\s*[:：]?\s*"
)
_LETTER = re.compile(r"^[(（\[]?([A-Ja-j])(?:[)）\].．:：、,，;]|$)")
_ONLY_LETTER = re.compile(r"^[(（\[]?([A-Ja-j])[)）\].．:：、]*$")


def without_lead(answer: str) -> str:
    """Remove words such as "The answer is"."""
    return _LEAD.sub("", answer.strip())


@lru_cache(maxsize=4096)
def named_letter(answer: str) -> str | None:
    r"""Return the capital letter of an answer such as "B", "B. 12", "\\text{B}"."""
    plain = _plain_letter(answer)
    match = _ONLY_LETTER.match(plain) or _LETTER.match(plain)
    return match.group(1).upper() if match else None


@lru_cache(maxsize=4096)
def is_only_letter(answer: str) -> bool:
    """Return whether the answer is only a label."""
    return _ONLY_LETTER.match(_plain_letter(answer)) is not None


def _plain_letter(answer: str) -> str:
    plain = re.sub(r"\\(?:text|textbf|textrm|mathrm|mathbf|boxed|bf|rm)\s*\{([^{}]*)\}", r"\1", without_lead(answer))
    return plain.strip("$* \n\\")


def option_letter(raw_answer: str | None, answer: str) -> str | None:
    """Return the letter that a rewritten answer had, if responses may name it."""
    if raw_answer is None:
        return None
    letter = named_letter(raw_answer.partition("\\\\")[0])  # up to a LaTeX line break; what follows is debris
    return letter if letter != answer else None
