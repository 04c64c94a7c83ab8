"""Make foreign text safe for the terminal."""

from __future__ import annotations

import unicodedata

EXCERPT_CHARACTERS = 240
"""Longer responses are shown by beginning and end."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, reverse text, or cannot be encoded."""


def excerpt(text: str | None, characters: int = EXCERPT_CHARACTERS) -> str:
    """Return a `shortened` response in quotes."""
    return "(no text)" if text is None else f'"{shortened(text, characters)}"'


def shortened(text: str, characters: int) -> str:
    """Return a text on one line, its middle and control characters removed."""
    half = max(characters // 2, 1)
    is_cut = len(text) > 8 * characters
    if is_cut:  # what cannot be shown is not read
        text = f"{text[: 4 * characters]} {text[-4 * characters :]}"
    visible = "".join(" " if unicodedata.category(char) in _INVISIBLE else char for char in text)
    line = " ".join(visible.split())
    if is_cut or len(line) > characters:
        line = f"{line[:half].rstrip()} … {line[-half:].lstrip()}"
    return line
