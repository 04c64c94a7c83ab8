"""Marks deciding words and differences in texts."""

from __future__ import annotations

import difflib
import re

from markupsafe import Markup, escape

_QUOTED = re.compile(r"[\"“«„'`‘](.{2,200}?)[\"”»“'`’]")
_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")


def deciding_words(evidence: object, text: object) -> list[str]:
    """Return the text's words that an evidence quotes, or names after a colon.

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
    """Return both texts, with deletions and insertions marked."""
    old, new = _TOKENS.findall(before or ""), _TOKENS.findall(after or "")
    sides: tuple[list[Markup], list[Markup]] = [], []
    for kind, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, tokens, tag in ((sides[0], old[i:j], "del"), (sides[1], new[k:n], "ins")):
            text = escape("".join(tokens))
            side.append(text if kind == "equal" or not text else Markup(f"<{tag}>{{}}</{tag}>").format(text))
    return Markup("").join(sides[0]), Markup("").join(sides[1])
