"""Response formats: in which form a response of math gives its final answer, as recipes and commands name it.

A format is one of `FORMATS` or a tag of one's own, ``<answer>``. What each means to the reader of answers stands in
`curation.verify.extraction`.
"""

from __future__ import annotations

import re

ANY, BOXED, HASHES, CUE, CHOICE, LOOSE = "any", "boxed", "hashes", "cue", "choice", "loose"
FORMATS = (ANY, BOXED, HASHES, CUE, CHOICE, LOOSE)
"""The formats that have a name."""

TAG = re.compile(r"<([A-Za-z][\w-]{0,30})>")
"""A format that is a tag."""

MEANING = (
    "`boxed`, a tag as `<answer>`, `hashes` (#### 18), `cue` (The answer is 18), `choice` (Choice_C), `any` of these, "
    "or `loose`: else the last number"
)
"""What the formats mean, for settings."""


def checked_format(name: str) -> str:
    """Return a format's name as it is.

    Raises:
        ValueError: it is none.
    """
    if name not in FORMATS and TAG.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no response format; write one of {', '.join(FORMATS)}, or a tag as <answer>")
    return name
