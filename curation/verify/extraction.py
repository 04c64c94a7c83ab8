"""Reads the final answer of a response, in linear time.

`ANY` tries in order:

    boxed      the last box after ``</think>``, unless a "final answer" follows
    tag        the last ``<answer>…</answer>``, even after a box
    hashes     the last ``#### 18`` that is no heading (``#### Step 2: add``)
    cue        the last "The answer is …", "Final answer: …", "答案是 …"
    choice     the last ``Choice_C``
    bare       the whole response, if it is one short line
    conclusion the last sentence's value, if there is nothing else

`LOOSE` also guesses, never for rewards. A response cut off in its thoughts, last box or tag has no answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from curation.languages.vocabulary import every, languages, neighbours, one_of
from curation.response_formats import ANY, BOXED, CUE, HASHES, LOOSE, TAG
from curation.thinking import CLOSE, OPEN, split_response
from curation.verify.answers.words import parse_boolean
from curation.verify.boxes import boxed_answer, end_of_boxes, has_box, unfinished_box
from curation.verify.prose import (
    CHAFF_END,
    COPULA,
    MATH,
    SENTENCE_END,
    WORD,
    concluded_value,
    inside,
    is_conditioned,
    is_prose,
    leading_value,
    stated_value,
    value_in,
)

MAX_BARE_CHARS = 160
"""Max characters of a response that is only its answer."""

MAX_ANSWER_CHARS = 4000
"""Max characters to search for an answer in a fall-back."""

MAX_STATED_CHARS = 300
"""Max characters of a sentence whose "is" may state the answer."""

MAX_CUES = 20
"""Max cues to read, from a response's end."""

TAIL_CHARS = 20_000
"""Characters at a response's end that fall-backs search."""


@dataclass(frozen=True, slots=True)
class ExtractedAnswer:
    """A final answer and its form."""

    method: str
    answer: str


_ANSWER_TAG = "<answer>"
_HASHES = re.compile(r"(?<!#)####(?!#)[ \t]*([^\n]{0,400})")
_NUMBERED = re.compile(r"\d+[.):]\s+\D")
_VALUE_START = re.compile(r"[-−+]?\s*[\d$€£¥\\(\[{.√π]|\*\*|[A-Za-z]\b")
_CHOICE = re.compile(
    rf"(?<![A-Za-z])(?i:{one_of(lambda vocab: vocab.answers.choice_words)})[_ ]?\(?([A-J])\)?(?![A-Za-z_'’])"
)
_NAMED_CHOICE = re.compile(r"(?<![A-Za-z])[Cc]hoice_([A-J])(?![A-Za-z_])")
_NEIGHBOURS_CUES = "|".join(cue for vocab in neighbours() for cue in vocab.cues)
ANSWER_CUE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.cues)}|{_NEIGHBOURS_CUES})", re.IGNORECASE)
_WEAK_CUE = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.weak_cues)})\b", re.IGNORECASE)
_STRONG_CUE = re.compile(one_of(lambda vocab: vocab.answers.strong_cues), re.IGNORECASE)
_LINE_CUE = re.compile(r"A:", re.IGNORECASE)
_HEADING = re.compile(
    rf"^[ \t]*(?:\#{{1,6}}[ \t]*)?(?:\*\*|__)?(?:{one_of(lambda vocab: vocab.answers.headings)})"
    r"[ \t]*[:：]?[ \t]*(?:\*\*|__)?[ \t]*[:：]?[ \t]*\n\s*",
    re.IGNORECASE | re.MULTILINE,
)
_JUDGEMENT = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.judgements)})\s*(?:[,.;:!)]|$)", re.IGNORECASE)
_LETTER = re.compile(r"\W{0,3}([A-J])\W{0,3}")
_BOLD_LABEL = re.compile(r"(?:\*\*|__)[ \t]*([:：])")


@lru_cache(maxsize=8)  # a rollout's format is checked just before it is judged
def extract_answer(response: str, form: str = ANY, finish: str | None = None) -> ExtractedAnswer | None:
    """Return the final answer of a response.

    Args:
        form: as in `curation.response_formats`.
        finish: after ``length`` the last token may be cut.
    """
    parts = split_response(response)
    if parts.answer is None:
        return None
    text = parts.answer if parts.answer.strip() or form != LOOSE else parts.thoughts
    if form not in (ANY, LOOSE):
        return _in_format(text, form, finish)
    extracted = _marked(text, finish)
    if extracted is not None:
        return extracted
    if has_box(text) or (finish == "length" and form == ANY):  # cut off within a box, or before any marker
        unfinished = unfinished_box(text) if form == LOOSE else None
        return _answer("boxed (unfinished)", unfinished) if unfinished is not None else None
    bare = _bare(text)
    if form == ANY:
        return bare or _by_conclusion(text)
    if bare is not None and not is_prose(bare.answer):
        return bare
    tail = text[-TAIL_CHARS:]
    guess = _guess(tail)
    return _answer(*guess) if guess is not None else bare


def read_answer(text: str, form: str = ANY) -> str | None:
    """Return the final answer in an answer or a response.

    Args:
        form: `LOOSE`, else a recorded answer.
    """
    whole = clean_recorded_answer(text)
    if whole is None:
        return (text.strip() or None) if form == LOOSE else None
    if OPEN in text or CLOSE in text:
        extracted = extract_answer(text, LOOSE if form == LOOSE else ANY)
        return extracted.answer if extracted is not None else None
    extracted = _marked(whole, None)
    if extracted is not None:
        money = _only_money(extracted.answer) if form == LOOSE and is_prose(extracted.answer) else None
        return money or extracted.answer
    if form == LOOSE:
        return _read_loosely(whole)
    return (value_in(whole) or whole) if is_prose(whole) else whole


def _read_loosely(text: str) -> str:
    if (not is_prose(text) and not has_box(text)) or parse_boolean(text) is not None:
        return text
    is_sentence = len(text) <= MAX_STATED_CHARS and "$" not in text and "\n" not in text
    value = value_in(text) or (stated_value(text) if is_sentence else text)
    if value != text:
        return value
    extracted = extract_answer(text, LOOSE)
    return extracted.answer if extracted is not None else text


def _marked(text: str, finish: str | None) -> ExtractedAnswer | None:
    """Return the answer after the strongest marker."""
    tagged = _by_tag(text, _ANSWER_TAG)
    if has_box(text):
        tag_end = text.lower().rfind("</answer>")
        if tagged is None or tag_end < end_of_boxes(text):
            box, after = _by_box(text), text[end_of_boxes(text) :]
            return _by_later_cue(after) or (_with_later_letter(box, after) if box is not None else None)
    if tagged is not None:
        return tagged
    tail = _whole_tokens(text[-TAIL_CHARS:], finish)
    return _by_hashes(tail) or _by_cue(tail, finish == "length") or _by_choice(tail, _NAMED_CHOICE)


def _by_later_cue(text: str) -> ExtractedAnswer | None:
    cue = next(iter([*_STRONG_CUE.finditer(text)][::-1]), None)
    extracted = _by_cue(text[cue.start() :]) if cue is not None and not has_box(text[cue.start() :]) else None
    is_value = extracted is not None and _is_short(extracted.answer) and not is_prose(extracted.answer)
    return extracted if is_value else None


def _with_later_letter(box: ExtractedAnswer, after: str) -> ExtractedAnswer:
    cue = _by_cue(after) if not has_box(after) else None
    letter = _LETTER.fullmatch(cue.answer) if cue is not None and not _LETTER.fullmatch(box.answer) else None
    return ExtractedAnswer("cue", f"{letter[1]}. {box.answer}") if letter is not None else box


def _in_format(text: str, form: str, finish: str | None) -> ExtractedAnswer | None:
    if form == BOXED:
        return _by_box(text)
    if TAG.fullmatch(form):
        return _by_tag(text, form)
    tail, is_cut = _whole_tokens(text[-TAIL_CHARS:], finish), finish == "length"
    if form == CUE:
        return _by_cue(tail, is_cut)
    return _by_hashes(tail) if form == HASHES else _by_stated_choice(tail)


def _whole_tokens(text: str, finish: str | None) -> str:
    """Remove a cut-off token."""
    if finish != "length" or not text or text[-1].isspace():
        return text
    return text[: len(text) - len(text.split()[-1])]


def _by_box(text: str) -> ExtractedAnswer | None:
    content = boxed_answer(text)
    return _answer("boxed", content) if content is not None else None


def _by_tag(text: str, tag: str) -> ExtractedAnswer | None:
    small = text.lower()
    end = small.rfind(tag.lower().replace("<", "</"))
    start = small.rfind(tag.lower(), 0, max(end, 0))
    if start < 0 or len(small) != len(text):
        return None
    content = text[start + len(tag) : end].strip()
    inner = _by_box(content) or _by_hashes(content) or _by_cue(content) or _by_choice(content, _NAMED_CHOICE)
    return ExtractedAnswer("tag", inner.answer) if inner is not None else _answer("tag", _value_or_all(content))


def _by_hashes(text: str) -> ExtractedAnswer | None:
    last: ExtractedAnswer | None = None
    for match in [*_HASHES.finditer(text)][::-1]:
        content = _strip_markup(match[1])
        if not content or _NUMBERED.match(content) or ANSWER_CUE.search(content):
            continue
        begins_line = text[: match.start()].rstrip(" \t")[-1:] in ("", "\n")
        if not begins_line or _VALUE_START.match(content):
            return _answer("hashes", _value_or_all(content))
        if not text[match.end() :].strip():
            last = _answer("hashes", _value_or_all(content))
    return last


def _by_cue(text: str, is_cut: bool = False) -> ExtractedAnswer | None:
    """Return the text of the last cue, preferably a strong one; if ``is_cut``, an unfinished sentence's first value."""
    text = _BOLD_LABEL.sub(r"\1", text)
    weak: ExtractedAnswer | None = None
    judged: ExtractedAnswer | None = None
    cues = [*ANSWER_CUE.finditer(text), *_HEADING.finditer(text)]
    for match in sorted(cues, key=lambda match: match.end())[: -MAX_CUES - 1 : -1]:
        before = text[max(0, match.start() - 20) : match.start()].rstrip(" \t*")[-1:]
        if _LINE_CUE.fullmatch(match.group()) and before not in ("", "\n"):
            continue
        answer, is_whole = _text_after(text, match.end())
        if is_cut and not is_whole:
            answer = leading_value(answer.rstrip(" ,;:")) or ""
        if not answer:
            continue
        if _JUDGEMENT.match(answer):
            judged = judged or ExtractedAnswer("cue", answer)
        elif _WEAK_CUE.match(match.group()) is None:
            return ExtractedAnswer("cue", _value_or_all(answer))
        elif weak is None and _is_short(answer) and "\n" not in text[match.end() :].strip():
            weak = ExtractedAnswer("cue", answer)
    return weak or judged


def _value_or_all(text: str) -> str:
    text = _CONTRAST.sub(r"\1", text)
    is_sum = "=" in text and WORD.search(text) is not None
    return (value_in(text) or text) if is_sum or is_prose(text) else text


_CONTRAST = re.compile(r"(.*[\d)}$])\s*[,;]\s*(?:and |but )?not\s+[^,;\s]{1,20}", re.IGNORECASE | re.DOTALL)
"""A value followed by a denied one; matches the whole text."""

_FACTORIAL = re.compile(r"[\w)}]!")
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+")
_ADDRESSED = re.compile(r"\b(?:let me know|i hope|feel free)\b|\?\W*$", re.IGNORECASE)
MAX_WORDS_AFTER = 8
"""Max words of the value of an unfinished sentence."""


def _by_conclusion(text: str) -> ExtractedAnswer | None:
    line = CHAFF_END.sub("", text[-TAIL_CHARS:]).strip().rsplit("\n", 1)[-1]
    ends = [match.end() for match in SENTENCE_END.finditer(line) if line[match.end() :].strip(" *_$")]
    sentence = _strip_markup(_ITEM.sub("", line[ends[-1] if ends else 0 :], count=1))
    value = concluded_value(sentence) if not _ADDRESSED.search(sentence) else None
    is_whole = value is not None and (line.rstrip("* ")[-1:] in (".", "!") or len(value.split()) <= MAX_WORDS_AFTER)
    return _answer("conclusion", value) if value is not None and is_whole else None


def _text_after(text: str, start: int) -> tuple[str, bool]:
    """Return a cue's text, and whether its sentence is complete."""
    rest = text[start : start + MAX_ANSWER_CHARS].lstrip(" \t:：=*_")
    if rest[:1] == "\n":
        rest = rest.lstrip()
    rest = CHAFF_END.sub("", rest)
    display = MATH.match(rest)
    if display:
        begins_line = rest[display.end() :].lstrip(" .*")[:1] in ("", "\n")
        if begins_line or rest.startswith(("\\[", "$$")):
            return _strip_markup(inside(display.group())), True
    end = SENTENCE_END.search(rest)
    stated = _strip_markup(rest[: end.start()] if end else rest)
    if stated.endswith("!") and stated[:-1].replace(",", "").isdigit() and not _FACTORIAL.search(text[:start]):
        stated = stated[:-1]  # an exclamation mark: the text has no factorial
    return stated, end is not None


def _is_short(text: str) -> bool:
    return len(text) <= 40 and any(char.isdigit() for char in text)


def _by_choice(text: str, pattern: re.Pattern[str] = _CHOICE) -> ExtractedAnswer | None:
    letters = pattern.findall(text)
    return ExtractedAnswer("choice", letters[-1]) if letters else None


def _by_stated_choice(text: str) -> ExtractedAnswer | None:
    named, cue = _by_choice(text), _by_cue(text)
    letter = _LETTER.fullmatch((cue.answer if cue is not None else text).strip())
    return ExtractedAnswer("choice", letter[1]) if letter is not None else named


def _bare(text: str) -> ExtractedAnswer | None:
    stripped = text.strip()
    if MATH.fullmatch(stripped):
        return _answer("bare", stripped)
    if not stripped or len(stripped) > MAX_BARE_CHARS or "\n" in stripped or "<answer>" in stripped:
        return None
    words = re.findall(r"(?<![\\A-Za-z])[^\W\d_]{2,}", re.sub(r"\\[a-zA-Z]+", " ", stripped))
    return _answer("bare", _value_or_all(_strip_markup(stripped))) if len(words) <= 4 else None


def _answer(method: str, text: str) -> ExtractedAnswer | None:
    tidy = _strip_markup(text)
    return ExtractedAnswer(method, tidy) if tidy else None


_BOLD = re.compile(r"(?<![\w)}*])\*\*(?!\s)([^*\n]+?)\*\*(?![\w({*])")


def _strip_markup(text: str) -> str:
    text = _BOLD.sub(r"\1", text.strip())
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
    r"""Return a recorded final answer without remains of JSON.

    Example: ``'"answer": "40"\n}'`` → ``"40"``, ``"No answer provided."`` → None
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


# guesses, for `LOOSE` alone

_EMPHASIS = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_NUMBER = re.compile(
    r"\\[dt]?frac\{[^{}]{1,40}\}\{[^{}]{1,40}\}"
    r"|(?<![A-Za-z0-9_.])[-−]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:[.,]\d+)?(?:/\d+)?%?(?![.,]?\d)|(?<![\w])\.\d+"
)
MAX_CONDITION_CHARS = 120
"""Max characters of a bare answer; longer texts are responses."""

_KINDS = [
    word
    for vocab in languages()
    for kind, words in vocab.answers.declarations.items()
    if kind != "any"
    for word in words
]
_DECLARES = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, _KINDS))})[\s.$]*$", re.IGNORECASE)
"""A definition at the end of a text: "where t is any integer"."""

_COINS = ("$", "€", "£", "¥")
_MONEY = re.compile(r"\s?[$€£¥]")


def _guess(text: str) -> tuple[str, str] | None:
    """Return the last sentence's or text's last formula or number, unless a short text has several."""
    if len(text) <= MAX_CONDITION_CHARS and _has_condition(text):
        return None
    return _by_last_sentence(text) or _by_display(text) or _by_emphasis(text) or _by_number(text)


def _has_condition(text: str) -> bool:
    if _DECLARES.search(text):
        return True
    formulas = len(MATH.findall(text))
    if formulas > 1 or (text.count("$") % 2 and "\\" in text) or is_conditioned(text):
        return True
    several = formulas + len(_NUMBER.findall(MATH.sub(" ", text))) > 1
    return several and "=" not in text and not COPULA.search(text)


def _by_last_sentence(text: str) -> tuple[str, str] | None:
    start = max(0, len(text) - 2000)
    cuts = [match.end() for match in SENTENCE_END.finditer(text, start)]
    edges = [start, *cuts, len(text)]
    for low, high in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        sentence = CHAFF_END.sub("", text[low:high])
        if sentence.count("$") % 2:
            return None
        if any(char.isdigit() for char in sentence):
            extracted = _by_display(sentence) or _by_number(sentence)
            return ("sentence", extracted[1]) if extracted is not None else None
    return None


def _by_display(text: str) -> tuple[str, str] | None:
    last = next(iter([*MATH.finditer(text)][::-1]), None)
    return ("display", inside(last.group())) if last else None


def _by_emphasis(text: str) -> tuple[str, str] | None:
    matches = [match for match in _EMPHASIS.findall(text) if any(char.isdigit() for char in match)]
    return ("emphasis", matches[-1]) if matches else None


def _only_money(text: str) -> str | None:
    money = _money_in(text)
    return money[0].group() if len(money) == 1 else None


def _by_number(text: str) -> tuple[str, str] | None:
    last = (_money_in(text) or list(_NUMBER.finditer(text)))[-1:]
    return ("number", last[0].group()) if last else None


def _money_in(text: str) -> list[re.Match[str]]:
    return [
        match
        for match in _NUMBER.finditer(text)
        if _MONEY.match(text, match.end()) or text[match.start() - 1 : match.start()] in _COINS
    ]
