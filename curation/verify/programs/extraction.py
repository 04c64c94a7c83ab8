"""Extraction of the program in a response: the first fenced block after the thoughts, with its language.

By the recipe's rule the answer section is what follows ``</think>`` (the whole text where nobody thinks aloud), and
the program is its first Markdown block of three backticks or more followed by a language name. A response without
such a block, or whose first block names no language or one that is not judged, breaks the format: it has no answer,
which is not the same as a wrong one.

Invariants: the code is cut out byte for byte; a block that is never closed runs to the end of the text only where the
response was cut short, and is not taken: what is not finished is not an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class CodeLang(StrEnum):
    """Languages that are judged."""

    PYTHON = "python"
    CPP = "cpp"


LANGUAGES = {
    **dict.fromkeys(("python", "py", "python3", "py3"), CodeLang.PYTHON),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx", "cplusplus", "c++20", "cpp20", "c++17", "cpp17"), CodeLang.CPP),
}
"""Names of a language as blocks carry them, in small letters."""

_THOUGHT = "</think>"
_TICKS = re.compile(r"`{3,}")
_OPENING = re.compile(r"^ {0,3}(?P<fence>`{3,})[ \t]*(?P<name>[^\s`]*)[^`\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundCode:
    """A program found in a response, or why there is none.

    Example: ``FoundCode(CodeLang.PYTHON, "print(1)\\n", "")`` or ``FoundCode(None, None, "no code block")``
    """

    lang: CodeLang | None
    code: str | None
    why: str


def extract_code(text: str) -> FoundCode:
    """Return the first code block of the answer section, or why the response holds no program."""
    _, thought, after = text.partition(_THOUGHT)
    answer = after if thought else text
    if not thought and "<think>" in text:
        return FoundCode(None, None, "the thoughts never end")
    answer = answer.replace("\r\n", "\n")
    opening = _OPENING.search(answer)
    if opening is None:
        return FoundCode(None, None, "no code block")
    name = opening["name"].strip("{}.").lower()
    if not name:
        return FoundCode(None, None, "the first code block names no language")
    lang = LANGUAGES.get(name)
    if lang is None:
        return FoundCode(None, None, f"the first code block is {name[:40]!r}, which is not judged")
    start = opening.end() + 1
    closing = re.compile(rf"^ {{0,3}}`{{{len(opening['fence'])},}}[ \t]*$", re.MULTILINE).search(answer, start)
    if closing is None:
        return FoundCode(None, None, "the code block is not closed")
    code = answer[start : closing.start()]
    if not code.strip():
        return FoundCode(None, None, "the code block is empty")
    return FoundCode(lang, code, "")


def fenced(lang: CodeLang, code: str) -> str:
    """Return a program as a final answer: one block that names its language, with a fence longer than any in the
    code.
    """
    longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{lang.value}\n{code if code.endswith(chr(10)) else code + chr(10)}{fence}"
