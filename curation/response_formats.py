"""The forms of a final answer, `FORMATS` or tags."""

from __future__ import annotations

import re

ANY, BOXED, HASHES, CUE, CHOICE, LOOSE = "any", "boxed", "hashes", "cue", "choice", "loose"
FORMATS = (ANY, BOXED, HASHES, CUE, CHOICE, LOOSE)
"""The named formats."""

TAG = re.compile(r"<([A-Za-z][\w-]{0,30})>")
"""A format that is a tag."""

MEANING = (
    "`boxed`, a tag as `<answer>`, `hashes` (#### 18), `cue` (The answer is 18), `choice` (Choice_C), `any` of these, "
    "or `loose`: else the last number"
)
"""The formats' meaning, for settings."""


def checked_format(name: str) -> str:
    """Return a format's name unchanged.

    Raises:
        ValueError: there is no such format.
    """
    if name not in FORMATS and TAG.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no response format; write one of {', '.join(FORMATS)}, or a tag as <answer>")
    return name
