"""Extraction of the program in a response: the first fenced block after the thoughts, with its language.

By the recipe's rule the answer section is what follows the thoughts (the whole text where nobody thinks aloud), and
the program is its first Markdown block of three backticks or more followed by a language name. A response without
such a block, or whose first block names no language or one that is not judged, has no answer, which is not the same as
a wrong one.

As in Markdown, a block may stand in a list: its lines then lose the indentation of its fence, as far as all have it. A
block that is never closed runs to the end of the text. It is taken only where the response is known to have ended by
itself: what was cut short is not an answer.

Invariant: the code of a block that is not indented is cut out byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from curation.thinking import split_response


class CodeLang(StrEnum):
    """Languages that are judged."""

    PYTHON = "python"
    CPP = "cpp"


LANGUAGES = {
    **dict.fromkeys(("python", "py", "python3", "py3"), CodeLang.PYTHON),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx", "cplusplus", "c++20", "cpp20", "c++17", "cpp17"), CodeLang.CPP),
}
"""Names of a language as blocks carry them, in small letters."""

_TAB = 4
_TICKS = re.compile(r"`{3,}")
_OPENING = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9})(?P<fence>`{3,})[ \t]*(?P<name>[^\s`]*)[^`\n]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class FoundCode:
    """A program found in a response, or why there is none.

    Example: ``FoundCode(CodeLang.PYTHON, "print(1)\\n", "")`` or ``FoundCode(None, None, "no code block")``
    """

    lang: CodeLang | None
    code: str | None
    why: str


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: the name behind its fence, in small letters, empty where there is none; and what stands in it.

    Example: ``CodeBlock("python", "print(1)\\n")``
    """

    name: str
    code: str
    is_closed: bool = True


def extract_code(text: str, *, finished: bool = False) -> FoundCode:
    """Return the first code block of the answer section, or why the response holds no program.

    Args:
        finished: whether the response ended by itself, so that its end closes an open block.
    """
    answer = split_response(text).answer
    if answer is None:
        return FoundCode(None, None, "the thoughts never end")
    return extract_program(answer, finished=finished)


def extract_program(answer: str, *, finished: bool = False) -> FoundCode:
    """Return the first code block of a text without thoughts, as `extract_code` does: a final answer may hold tags."""
    block = next(_blocks(answer), None)
    if block is None:
        return FoundCode(None, None, "no code block")
    if not block.name:
        return FoundCode(None, None, "the first code block names no language")
    lang = LANGUAGES.get(block.name)
    if lang is None:
        return FoundCode(None, None, f"the first code block is {block.name[:40]!r}, which is not judged")
    if not (block.is_closed or finished):
        return FoundCode(None, None, "the code block is not closed")
    if not block.code.strip():
        return FoundCode(None, None, "the code block is empty")
    return FoundCode(lang, block.code, "")


def code_blocks(text: str, *, finished: bool = False) -> list[CodeBlock]:
    """Return the code blocks of the answer section, in order, without those that are empty or not finished.

    Args:
        finished: as of `extract_code`.
    """
    blocks = _blocks(split_response(text).answer or "")
    return [block for block in blocks if block.code.strip() and (block.is_closed or finished)]


def _blocks(answer: str) -> Iterator[CodeBlock]:
    """Yield the fenced blocks of a text; only the last may be open."""
    text, at = answer.replace("\r\n", "\n"), 0
    while (opening := _OPENING.search(text, at)) is not None:
        width = len(opening["indent"].expandtabs(_TAB))
        start = min(opening.end() + 1, len(text))
        end = at = len(text)
        is_closed = False
        for closing in re.compile(rf"^[ \t]*`{{{len(opening['fence'])},}}[ \t]*$", re.MULTILINE).finditer(text, start):
            if _indent(closing[0]) < width + _TAB:
                end, at, is_closed = closing.start(), closing.end(), True
                break
        name = opening["name"].strip("{}.").lower()
        yield CodeBlock(name, _without_indent(text[start:end], width), is_closed)


def _without_indent(code: str, width: int) -> str:
    """Return code without the indentation that its lines share, of ``width`` columns at most: some models indent the
    fences alone.
    """
    if not width:
        return code
    lines = code.split("\n")
    width = min([width, *(_indent(line) for line in lines if line.strip())])
    return "\n".join(_cut_indent(line, width) for line in lines)


def _indent(line: str) -> int:
    """Return the columns of white space at a line's beginning."""
    line = line.expandtabs(_TAB)
    return len(line) - len(line.lstrip(" "))


def _cut_indent(line: str, width: int) -> str:
    column = 0
    for place, char in enumerate(line):
        if column >= width or char not in " \t":
            return line[place:]
        column += _TAB - column % _TAB if char == "\t" else 1
    return ""


def fenced(lang: CodeLang, code: str) -> str:
    """Return a program as a final answer: one block that names its language, with a fence longer than any in the
    code.
    """
    longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{lang.value}\n{code if code.endswith(chr(10)) else code + chr(10)}{fence}"
