r"""The final answer of a response.

A prompt asks for ``\boxed{}`` after the reasoning, so that is what counts: the last top-level box after the last
``</think>`` (boxes that follow one another joined by "and" or commas are one answer). Attempts from elsewhere often
answer another prompt; for them, and only where there is no box at all, these fall-backs are tried in order, each
named in `ExtractedAnswer.method`:

    hashes     the last ``#### 18``
    cue        the last "The answer is …", "Final answer: …", "A: 26", "答案是 …", "Réponse : …" …
    bare       the whole response is one short line
    sentence   (lenient only) the last formula or number of the last sentence with one
    display    (lenient only) the last formula of the text, ``$…$``, ``\[…\]``, ``\(…\)``
    emphasis   (lenient only) the last ``**…**``
    number     (lenient only) the last number

A response that was cut off has no final answer: an open ``<think>`` or an unfinished last box gives None unless
``lenient``. Lenient reading is for pairs of texts that people wrote (`goldilocks verify answers`), never for rewards.

Every pass is linear in the length of the response. Nothing here understands the answer; `answers` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from curation.languages.vocabulary import every, neighbours, one_of
from curation.thinking import split_response

MAX_BARE_CHARS = 160
"""Characters of a response that is taken as nothing but its answer."""

MAX_ANSWER_CHARS = 4000
"""Characters of an answer that is looked for by a fall-back."""

MAX_CUES = 20
"""Cues at the end of a response that are looked at."""

MAX_BOXES = 40
"""Boxes that are joined into one answer."""

TAIL_CHARS = 20_000
"""Characters at the end of a response that fall-backs search."""


@dataclass(frozen=True, slots=True)
class ExtractedAnswer:
    """A final answer and the rule that extracted it.

    Example: ``ExtractedAnswer("boxed", "\\frac{1}{2}")``
    """

    method: str
    answer: str


_BOX = re.compile(r"\\+(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BOX_OR_BRACE = re.compile(r"\\+(?:boxed|fbox|framebox)\s*\{|\\[\\{}]|[{}]")
_BARE_BOX = re.compile(r"\\+(?:boxed|fbox)\s*(?:(\\?[A-Za-z0-9][\w.]*)|\$([^$]{1,80})\$)")
_SPACED_JOINERS = one_of(lambda vocab: vocab.answers.box_joiners, spaced=True)
_HAN_JOINERS = one_of(lambda vocab: vocab.answers.box_joiners, spaced=False)
_JOINER = re.compile(
    r"(?:\s|\\\\|[,;.&$~]|\\(?:quad|qquad|text|textbf|mbox|mathrm|land|lor|cup|[(),;:!\[\] ])|[{}]"
    rf"|\b(?:{_SPACED_JOINERS})\b|{_HAN_JOINERS}|、|，|；|\*\*"
    rf"|\b(?:{one_of(lambda vocab: vocab.answers.box_fillers)})\b|\([a-z]\)|[a-zA-Z](?:_\{{?\w\}}?)?\s*=)*"
)
_CONNECTIVE = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.connectives_at_start)})\b")
_SECOND_THOUGHT = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.second_thoughts)})\b", re.IGNORECASE)
_HASHES = re.compile(r"####[ \t]*([^\n]{1,400})")
_NEIGHBOURS_CUES = "|".join(cue for vocab in neighbours() for cue in vocab.cues)
ANSWER_CUE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.cues)}|{_NEIGHBOURS_CUES})", re.IGNORECASE)
_WEAK_CUE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.weak_cues)})\b", re.IGNORECASE)
_LINE_CUE = re.compile(r"A:", re.IGNORECASE)
_DISPLAY = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\]|\\\(([^\n]{1,2000}?)\\\)|\$((?:\\.|[^$\\\n]){1,2000})\$", re.DOTALL
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(
    r"\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}"
    r"|(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:[.,]\d+)?(?:/\d+)?%?(?![.,]?\d)|(?<![\w])\.\d+"
)
_COINS = ("$", "€", "£", "¥")
_MONEY = re.compile(r"\s?[$€£¥]")
_CHAFF_END = re.compile(
    rf"(?:\.?\s*(?:{one_of(lambda vocab: vocab.answers.farewells)}|<\|[a-z_]+\|>(?:user|assistant)?"
    r"|</s>|<eos>)\.?)+\s*$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<=[^\W\d_][^\W\d_])[.!?](?=\s|$)|(?<=[\d)}\]$*%])\.(?=\s+[A-ZÀ-ÞА-Я\u4e00-\u9fff(]|\s*$)|。|\n|<\||\.\$\$?(?=\s+[A-Z])"
)


def extract_answer(response: str, *, lenient: bool = False) -> ExtractedAnswer | None:
    """Return the final answer of ``response``, or None where it gives none."""
    parts = split_response(response)
    if parts.answer is not None and (parts.answer.strip() or not lenient):
        text = parts.answer
    elif lenient:
        text = response if parts.answer is None else parts.thoughts
    else:
        return None
    if "\\" in text and _BOX.search(text):
        return _boxed(text, lenient)
    tail = text[-TAIL_CHARS:]
    extracted = _by_hashes(tail) or _by_cue(tail)
    if extracted is not None:
        return extracted
    if lenient:
        return _by_last_sentence(tail) or _by_display(tail) or _by_emphasis(tail) or _by_number(tail)
    return _bare(text)


def strip_boxes(text: str) -> str:
    """Return ``text`` without its box commands, but with their contents."""
    if "boxed" not in text and "fbox" not in text:
        return text
    whole = text.strip()
    spans, cut = _top_level_boxes(whole)
    if cut is None and len(spans) == 1 and spans[0][0] == 0 and spans[0][2] == len(whole):
        return strip_boxes(whole[spans[0][1] : -1]) if len(whole) < MAX_ANSWER_CHARS else _BOX.sub(" ", text)
    return _BOX.sub(" ", text)


def _boxed(text: str, lenient: bool) -> ExtractedAnswer | None:
    spans, cut = _top_level_boxes(text)
    if cut is not None and (not spans or cut > spans[-1][2]):
        return _answer("boxed (unfinished)", text[cut:].split("\n", 1)[0]) if lenient else None
    bare = [match for match in _BARE_BOX.finditer(text) if not spans or match.start() > spans[-1][2]]
    if bare:
        return _answer("boxed", bare[-1].group(1) or bare[-1].group(2))
    if not spans:
        return None
    parts = [spans[-1]]
    for span in spans[-2 : -MAX_BOXES - 1 : -1]:
        if parts[-1][0] - span[2] > 60 or not _joins(text[span[2] : parts[-1][0]]):
            break
        parts.append(span)
    parts.reverse()
    return _answer("boxed", ", ".join(strip_boxes(text[inner:end]).strip() for _, inner, end in _without_braces(parts)))


def _without_braces(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    return [(start, inner, end - 1) for start, inner, end in spans]


def _joins(gap: str) -> bool:
    if gap.count("\n\n") > 1 or re.search(r"[.。]\s+[A-Z]", gap) or _SECOND_THOUGHT.search(gap):
        return False
    if len(_CONNECTIVE.findall(gap)) > 1:
        return False
    match = _JOINER.match(gap)
    return match is not None and match.end() == len(gap)


def _top_level_boxes(text: str) -> tuple[list[tuple[int, int, int]], int | None]:
    """Return (start, start of content, end after the brace) of each outermost box.

    The second value is where the content of an unfinished box starts; None where there is none.
    """
    spans: list[tuple[int, int, int]] = []
    stack: list[tuple[int, int] | None] = []
    boxes = 0
    for match in _BOX_OR_BRACE.finditer(text):
        token = match.group()
        if len(token) > 2:
            stack.append((match.start(), match.end()))
            boxes += 1
        elif token == "{":
            stack.append(None)
        elif token == "}" and stack:
            opened = stack.pop()
            if opened is not None:
                boxes -= 1
                while spans and spans[-1][0] > opened[0]:
                    spans.pop()  # each box is taken away at most once: linear
                spans.append((opened[0], opened[1], match.end()))
    unfinished = [opened for opened in stack if opened is not None]
    return spans, unfinished[-1][1] if unfinished else None


def _by_hashes(text: str) -> ExtractedAnswer | None:
    matches = _HASHES.findall(text)
    return _answer("hashes", matches[-1]) if matches else None


def _by_cue(text: str) -> ExtractedAnswer | None:
    """Return what follows the last cue, up to the end of its sentence.

    A mere "so" or "hence" counts where there is no better cue.
    """
    weak: ExtractedAnswer | None = None
    for match in list(ANSWER_CUE.finditer(text))[: -MAX_CUES - 1 : -1]:
        before = text[max(0, match.start() - 20) : match.start()].rstrip(" \t*")[-1:]
        if _LINE_CUE.fullmatch(match.group()) and before not in ("", "\n"):
            continue
        answer = _text_after(text, match.end())
        if answer and _WEAK_CUE.match(match.group()) is None:
            return ExtractedAnswer("cue", answer)
        if answer and weak is None and _is_short(answer):
            weak = ExtractedAnswer("cue", answer)
    return weak


def _text_after(text: str, start: int) -> str:
    rest = text[start : start + MAX_ANSWER_CHARS].lstrip(" \t:：=*_")
    if rest[:1] == "\n":
        rest = rest.lstrip()
    rest = _CHAFF_END.sub("", rest)
    display = _DISPLAY.match(rest)
    if display:
        begins_line = rest[display.end() :].lstrip(" .*")[:1] in ("", "\n")
        if begins_line or rest.startswith(("\\[", "$$")):
            return _strip_markup(next(group for group in display.groups() if group is not None))
    end = _SENTENCE_END.search(rest)
    return _strip_markup(rest[: end.start()] if end else rest)


def _is_short(text: str) -> bool:
    return len(text) <= 40 and any(char.isdigit() for char in text)


def _bare(text: str) -> ExtractedAnswer | None:
    stripped = text.strip()
    if not stripped or len(stripped) > MAX_BARE_CHARS or "\n" in stripped:
        return None
    words = re.findall(r"(?<![\\A-Za-z])[^\W\d_]{2,}", re.sub(r"\\[a-zA-Z]+", " ", stripped))
    return _answer("bare", stripped) if len(words) <= 4 else None


def _by_last_sentence(text: str) -> ExtractedAnswer | None:
    start = max(0, len(text) - 2000)
    cuts = [match.end() for match in _SENTENCE_END.finditer(text, start)]
    edges = [start, *cuts, len(text)]
    for low, high in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        sentence = _CHAFF_END.sub("", text[low:high])
        if sentence.count("$") % 2:
            return None
        if any(char.isdigit() for char in sentence):
            extracted = _by_display(sentence) or _by_number(sentence)
            return ExtractedAnswer("sentence", extracted.answer) if extracted is not None else None
    return None


def _by_display(text: str) -> ExtractedAnswer | None:
    last = next(iter([*_DISPLAY.finditer(text)][::-1]), None)
    return _answer("display", next(group for group in last.groups() if group is not None)) if last else None


def _by_emphasis(text: str) -> ExtractedAnswer | None:
    matches = [match for match in _BOLD.findall(text) if any(char.isdigit() for char in match)]
    return _answer("emphasis", matches[-1]) if matches else None


def _by_number(text: str) -> ExtractedAnswer | None:
    matches = list(_NUMBER.finditer(text))
    money = [
        match
        for match in matches
        if _MONEY.match(text, match.end()) or text[match.start() - 1 : match.start()] in _COINS
    ]
    last = (money or matches)[-1:]
    return _answer("number", last[0].group()) if last else None


def _answer(method: str, text: str) -> ExtractedAnswer | None:
    tidy = _strip_markup(text)
    return ExtractedAnswer(method, tidy) if tidy else None


def _strip_markup(text: str) -> str:
    text = text.strip()
    while text.startswith("**") or text.endswith("**"):
        text = text.removeprefix("**").removesuffix("**").strip()
    return text.rstrip("。").removesuffix(".").strip() if text != "." else ""


_EMPTY = frozenset(
    {
        *("", "null", "none", "nan", "n/a", "undefined", "{", "}", "{}", "[", "]", "[]", '"'),
        *every(lambda vocab: vocab.answers.nothing_recorded),
    }
)
_KEYED = re.compile(r'^\{?\s*"?(?:final[_ ])?answer"?\s*:\s*', re.IGNORECASE)


def clean_recorded_answer(answer: str | None) -> str | None:
    """Return a recorded final answer without the debris of the JSON it was cut from; None where it is empty.

    Example: ``'"answer": "40"\\n}'`` → ``"40"``, ``'2025",'`` → ``"2025"``, ``"No answer provided."`` → None
    """
    if answer is None:
        return None
    text = answer.strip()
    keyed = _KEYED.match(text)
    if keyed:
        text = text[keyed.end() :].strip()
        if text.endswith("}") and text.count("{") < text.count("}"):
            text = text[:-1].rstrip()
    text = text.removesuffix(",").rstrip()
    if len(text) >= 2 and text[0] == '"' and text[-1] == '"':
        text = text[1:-1].strip()
    elif text.count('"') == 1:
        text = text.strip('"').strip()
    text = text.removesuffix(",").rstrip()
    return None if text.casefold().rstrip(".") in _EMPTY else text
