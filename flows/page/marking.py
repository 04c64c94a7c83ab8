"""What is marked in a text: the words that decided, what a rewriting changed, quantities that two languages share."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from curation.translation.alignment import align
from curation.translation.numerals import in_digits, plain_digits

_QUOTED = re.compile(r"[\"“«„'`‘](.{2,200}?)[\"”»“'`’]")
_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
COLOURS = 5


def deciding_words(evidence: object, text: object) -> list[str]:
    """Return the words that an evidence names and that stand in the text: what it quotes, and what follows its colon.

    Example: ``deciding_words("proof: Prove that", "Prove that 2 > 1.") == ["Prove that"]``
    """
    if not evidence or not text:
        return []
    told = str(evidence)
    named = [match[1] for match in _QUOTED.finditer(told)]
    named += [part.strip(" .…") for part in re.split(r":\s|;\s|…", told)[1:]]
    inside = str(text).casefold()
    return [word for word in dict.fromkeys(named) if len(word) > 1 and word.casefold() in inside]


def differences(before: str | None, after: str | None) -> tuple[Markup, Markup]:
    """Return both texts with what only one of them has marked, as deleted and as inserted."""
    old, new = _TOKENS.findall(before or ""), _TOKENS.findall(after or "")
    sides: tuple[list[Markup], list[Markup]] = [], []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, tokens, tag in ((sides[0], old[i:j], "del"), (sides[1], new[k:n], "ins")):
            text = escape("".join(tokens))
            side.append(text if kind == "equal" or not text else Markup(f"<{tag}>{{}}</{tag}>").format(text))
    return Markup("").join(sides[0]), Markup("").join(sides[1])


@dataclass(frozen=True, slots=True)
class AlignedSentence:
    """Sentences that say the same, with their quantities marked; a quantity without a partner is marked as such."""

    before: Markup
    after: Markup


def aligned_sentences(original: str, translated: str, source: str, target: str) -> Iterator[AlignedSentence]:
    """Yield both texts sentence by sentence, equal quantities in one colour."""
    for segment in align(original, translated, source, target):
        before, after = _quantities(segment.before, source), _quantities(segment.after, target)
        partners: dict[int, int] = {}
        for number, (_, values) in enumerate(before):
            match = next(
                (at for at, (_, others) in enumerate(after) if at not in partners.values() and values & others), None
            )
            if match is not None:
                partners[number] = match
        colours = {number: place % COLOURS for place, number in enumerate(partners)}
        others = {match: colours[number] for number, match in partners.items()}
        yield AlignedSentence(
            _coloured(segment.before, [text for text, _ in before], colours),
            _coloured(segment.after, [text for text, _ in after], others),
        )


def _quantities(text: str, lang: str) -> list[tuple[str, frozenset[object]]]:
    return [(token.text, frozenset(token.values)) for token in in_digits(plain_digits(text), lang)]


def _coloured(text: str, quantities: list[str], colours: dict[int, int]) -> Markup:
    """Return a text with its quantities marked: one with a partner in its colour, one without as lonely."""
    out, end = [], 0
    for number, quantity in enumerate(quantities):
        start = text.find(quantity, end)
        if start < 0:
            continue
        kind = f"q{colours[number]}" if number in colours else "lonely"
        title = "in both" if number in colours else "in one alone"
        out += [
            escape(text[end:start]),
            Markup('<mark class="{}" title="{}">{}</mark>').format(kind, title, quantity),
        ]
        end = start + len(quantity)
    return Markup("").join([*out, escape(text[end:])])
