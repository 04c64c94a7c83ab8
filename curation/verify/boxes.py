r"""Finds the answer in boxes (``\boxed{…}``, ``\fbox{…}``), in linear time."""

from __future__ import annotations

import re

from curation.languages.vocabulary import one_of

MAX_BOXES = 40
"""Max boxes joined into one answer."""

MAX_GAP_CHARS = 60
"""Max characters between joined boxes."""

MAX_NESTED_CHARS = 4000
"""Max characters of a box to search for inner boxes."""

# `re` quickly finds alternatives that begin with one fixed character: these scan whole responses
_BOX = re.compile(r"\\\\*(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BOX_OR_BRACE = re.compile(r"\\(?:\\*(?:boxed|fbox|framebox)\s*\{|[\\{}])|\{|\}")
_BARE_BOX = re.compile(r"\\\\*(?:boxed|fbox)\s*(?:(\\?[A-Za-z0-9][\w.]*)|\$([^$]{1,80})\$)")
_SPACED_JOINERS = one_of(lambda vocab: vocab.answers.box_joiners, spaced=True)
_HAN_JOINERS = one_of(lambda vocab: vocab.answers.box_joiners, spaced=False)
_JOINER = re.compile(
    r"(?:\s|\\\\|[,;.&$~]|\\(?:quad|qquad|text|textbf|mbox|mathrm|land|lor|cup|[(),;:!\[\] ])|[{}]"
    rf"|\b(?:{_SPACED_JOINERS})\b|{_HAN_JOINERS}|、|，|；|\*\*"
    rf"|\b(?:{one_of(lambda vocab: vocab.answers.box_fillers)})\b|\([a-z]\)|[a-zA-Z](?:_\{{?\w\}}?)?\s*=)*"
)
_CONNECTIVE = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.connectives_at_start)})\b")
_SECOND_THOUGHT = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.second_thoughts)})\b", re.IGNORECASE)
_LISTS = re.compile(rf"[,;&、，；=]|\\(?:land|lor|cup)|\b(?:{_SPACED_JOINERS})\b|{_HAN_JOINERS}|\([a-z]\)")

Span = tuple[int, int, int]
"""Start of a box, start of its content, end after its brace."""


def has_box(text: str) -> bool:
    """Return whether a text has a box command."""
    return "\\" in text and _BOX.search(text) is not None


def boxed_answer(text: str) -> str | None:
    r"""Return the last box's content with boxes joined to it; None if unfinished.

    Example: ``boxed_answer(r"so $x = \boxed{1}$ or $x = \boxed{2}$") == "1, 2"``
    """
    spans, cut = _top_level_boxes(text)
    if cut is not None and (not spans or cut > spans[-1][2]):
        return None
    bare = [match for match in _BARE_BOX.finditer(text) if not spans or match.start() > spans[-1][2]]
    if bare:
        return bare[-1].group(1) or bare[-1].group(2)
    if not spans:
        return None
    joined = [spans[-1]]
    for span in spans[-2 : -MAX_BOXES - 1 : -1]:
        gap = text[span[2] : joined[-1][0]]
        if len(gap) > MAX_GAP_CHARS or not _joins(gap):
            break
        if _LISTS.search(gap) is not None or _content(text, span) != _content(text, joined[-1]):
            joined.append(span)
        else:
            joined[-1] = span
    return ", ".join(_content(text, span) for span in reversed(joined))


def unfinished_box(text: str) -> str | None:
    """Return the first line of an unclosed last box."""
    spans, cut = _top_level_boxes(text)
    if cut is None or (spans and cut <= spans[-1][2]):
        return None
    return text[cut:].split("\n", 1)[0]


def end_of_boxes(text: str) -> int:
    """Return the last closed box's end, or -1."""
    spans, _ = _top_level_boxes(text)
    return spans[-1][2] if spans else -1


def strip_boxes(text: str) -> str:
    """Replace boxes by their contents."""
    if "boxed" not in text and "fbox" not in text:
        return text
    whole = text.strip()
    spans, cut = _top_level_boxes(whole)
    if cut is None and len(spans) == 1 and spans[0][0] == 0 and spans[0][2] == len(whole):
        return strip_boxes(whole[spans[0][1] : -1]) if len(whole) < MAX_NESTED_CHARS else _BOX.sub(" ", text)
    return _BOX.sub(" ", text)


def _content(text: str, span: Span) -> str:
    return strip_boxes(text[span[1] : span[2] - 1]).strip()


def _joins(gap: str) -> bool:
    if gap.count("\n\n") > 1 or re.search(r"[.。]\s+[A-Z]", gap) or _SECOND_THOUGHT.search(gap):
        return False
    if len(_CONNECTIVE.findall(gap)) > 1:
        return False
    return _JOINER.fullmatch(gap) is not None


def _top_level_boxes(text: str) -> tuple[list[Span], int | None]:
    """Return outermost boxes, and an unfinished one's start."""
    first = _BOX.search(text)
    if first is None:
        return [], None
    spans: list[Span] = []
    stack: list[tuple[int, int] | None] = []
    # braces opened before the first box neither contain nor end one
    for match in _BOX_OR_BRACE.finditer(text, first.start()):
        token = match.group()
        if len(token) > 2:
            stack.append((match.start(), match.end()))
        elif token == "{":
            stack.append(None)
        elif token == "}" and stack:
            opened = stack.pop()
            if opened is not None:
                while spans and spans[-1][0] > opened[0]:
                    spans.pop()  # each box is popped at most once: linear
                spans.append((opened[0], opened[1], match.end()))
    unfinished = [opened for opened in stack if opened is not None]
    return spans, unfinished[-1][1] if unfinished else None
