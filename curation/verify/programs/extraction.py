"""Extracts the program of a response.

It is the first block after the thoughts that names a judged language (the paper's rule), else the last in the requested
language, or unnamed but like a program. Open blocks count only in finished responses.

Invariant: foreign text is never parsed as a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from curation.thinking import split_response
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission, Unready

LANGUAGES = {
    **dict.fromkeys(("python", "py", "python3", "py3", "pypy", "pypy3"), CodeLang.PYTHON),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx", "cplusplus"), CodeLang.CPP),
    **{f"{name}{year}": CodeLang.CPP for name in ("cpp", "c++") for year in (11, 14, 17, 20, 23)},
}
"""Languages by their lower-case names in blocks."""

_TAB = 4
_TICKS = re.compile(r"`{3,}")
_OPENING = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9})(?P<fence>`{3,})[ \t]*(?P<name>[^\s`]*)[^`\n]*$",
    re.MULTILINE,
)


_UNNAMED = frozenset(("", "code"))
"""Names of blocks that name no language."""
_LOOKS = {
    CodeLang.CPP: re.compile(r"^[ \t]*#[ \t]*include\b|\bint\s+main\s*\(|\busing\s+namespace\b|\bstd::", re.MULTILINE),
    CodeLang.PYTHON: re.compile(
        r"^[ \t]*(?:import \w|from [\w.]+ import\b|def \w+\s*\(|class \w+\s*[:(]|(?:for|while|if)\b.*:[ \t]*$)"
        r"|\b(?:print|input)\s*\(|\bsys\.std(?:in|out)\b",
        re.MULTILINE,
    ),
}
"""Marks of programs, C++ before Python."""
_BEGINS = re.compile(r"#|//|import |from |def |class |using |int |[\w, ]+=|print\(")
"""Beginnings of a program's first line, rare in prose."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block; its name is lower-case and may be empty."""

    name: str
    code: str
    is_closed: bool = True


def extract_code(text: str, lang: CodeLang | None = None, *, finished: bool = False) -> Submission | Unready:
    """Return a response's program, or why there is none.

    Args:
        finished: the response ended by itself; closes an open block.
    """
    return _chosen(find_programs(text, finished=finished), lang)


def extract_program(answer: str, lang: CodeLang | None = None) -> Submission | Unready:
    """Return the program in a final answer."""
    return _chosen(_last_programs(answer, finished=False), lang)


def find_programs(text: str, *, finished: bool = False) -> list[Submission | Unready]:
    """Return a response's program per language, or why there is none."""
    answer = split_response(text).answer
    if answer is None:
        return [Unready(CodeVerdict.NA, "the thoughts never end")]
    first = next(_blocks(answer), None)
    if first is None or answer == text or first.name not in LANGUAGES:
        return _last_programs(answer, finished=finished)
    if not (first.is_closed or finished):
        return [Unready(CodeVerdict.NA, "the code block is not closed")]
    if not first.code.strip():
        return [Unready(CodeVerdict.NA, "the code block is empty")]
    return [Submission(LANGUAGES[first.name], first.code)]


def _chosen(programs: list[Submission | Unready], lang: CodeLang | None) -> Submission | Unready:
    return next(
        (program for program in programs if isinstance(program, Submission) and program.lang is lang), programs[-1]
    )


def _last_programs(answer: str, *, finished: bool) -> list[Submission | Unready]:
    blocks = list(_blocks(answer, stray=True))
    if not blocks:
        return [Unready(CodeVerdict.NA, "no code block")]
    named: dict[CodeLang, Submission] = {}
    unnamed: dict[CodeLang, Submission] = {}
    for block in blocks:
        lang = LANGUAGES.get(block.name)
        if lang is None and block.name in _UNNAMED:
            lang = next((lang for lang, looks in _LOOKS.items() if looks.search(block.code)), None)
        if lang is not None and block.code.strip() and (block.is_closed or finished):
            programs = named if block.name in LANGUAGES else unnamed
            programs.pop(lang, None)
            programs[lang] = Submission(lang, block.code)
    found: list[Submission | Unready] = [program for lang, program in unnamed.items() if lang not in named]
    found += named.values()
    return found or [_before_single_fence(answer, blocks) or _no_program(blocks[-1], finished)]


def _before_single_fence(answer: str, blocks: list[CodeBlock]) -> Submission | None:
    text = answer.replace("\r\n", "\n")
    if len(blocks) > 1 or blocks[0].is_closed or blocks[0].name or not _BEGINS.match(text.lstrip()):
        return None
    code = text[: re.search(r"^[ \t]*`{3}", text, re.MULTILINE).start()]  # type: ignore[union-attr]  # a block is there
    return next((Submission(lang, code) for lang, looks in _LOOKS.items() if looks.search(code)), None)


def _no_program(last: CodeBlock, finished: bool) -> Unready:
    if not (last.is_closed or finished):
        why = "the code block is not closed"
    elif not last.code.strip():
        why = "the code block is empty"
    elif last.name in _UNNAMED:
        why = "the last code block names no language and looks like no program"
    else:
        why = f"the last code block is {last.name[:40]!r}, which is not judged"
    return Unready(CodeVerdict.NA, why)


def code_blocks(text: str, *, finished: bool = False) -> list[CodeBlock]:
    """Return the answer's nonempty, finished blocks."""
    blocks = _blocks(split_response(text).answer or "")
    return [block for block in blocks if block.code.strip() and (block.is_closed or finished)]


def _blocks(answer: str, *, stray: bool = False) -> Iterator[CodeBlock]:
    """Yield fenced blocks; only the last may be open.

    ``stray`` skips an unnamed fence if the next equal one names a judged language.
    """
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
        if stray and not name and (inner := _named_within(text, start, end, len(opening["fence"]))) is not None:
            at = inner
            continue
        yield CodeBlock(name, _without_indent(text[start:end], width), is_closed)


def _named_within(text: str, start: int, end: int, fence: int) -> int | None:
    """Return the start of a judged language's block with an equal ``fence``."""
    for opening in _OPENING.finditer(text, start, end):
        if len(opening["fence"]) == fence and opening["name"].strip("{}.").lower() in LANGUAGES:
            return opening.start()
    return None


def _without_indent(code: str, width: int) -> str:
    if not width:
        return code
    lines = code.split("\n")
    width = min([width, *(_indent(line) for line in lines if line.strip())])
    return "\n".join(_cut_indent(line, width) for line in lines)


def _indent(line: str) -> int:
    line = line.expandtabs(_TAB)
    return len(line) - len(line.lstrip(" "))


def _cut_indent(line: str, width: int) -> str:
    column = 0
    for position, char in enumerate(line):
        if column >= width or char not in " \t":
            return line[position:]
        column += _TAB - column % _TAB if char == "\t" else 1
    return ""


def fenced(lang: CodeLang, code: str) -> str:
    """Return a program in a named block, with a longer fence than any inside."""
    longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{lang.value}\n{code if code.endswith(chr(10)) else code + chr(10)}{fence}"
