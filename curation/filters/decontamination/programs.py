"""Reads a program's meaning from names, docstrings and comments."""

from __future__ import annotations

import re

import polars as pl

MIN_LETTERS = 20
"""With fewer, all comments are read."""

_FUNCTION = re.compile(
    r"\b(?:def|function)\s+([A-Za-z_]\w*)\s*\("
    r"|^\s*(?:const|let|var)\s+([A-Za-z_]\w*)\s*=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*=>)"
    r"|^[ \t]*(?:[A-Za-z_][\w<>:,]*[\s*&]+){1,4}([A-Za-z_]\w*)\s*\([^;{}]{0,400}\)\s*\{",
    re.MULTILINE,
)
_HELPERS = frozenset({"main", "compare", "cmp", "if", "for", "while", "switch", "return"})

_FENCE = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_BLOCK = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'|/\*(.*?)\*/', re.DOTALL)
_LINE = re.compile(r"(?://|#(?!\s*(?:include|define|if|endif|pragma)\b))([^\n]*)")
_EXAMPLE = re.compile(r"\s*(?:>>>.*|.*(?:=>|==>|->|➞).*|[\[\](){}\d.,'\"\s-]+|True|False|None)\s*")
_EXAMPLES = re.compile(r"\b(?:Examples?|For example|For instance)\b\s*:?", re.IGNORECASE)


def program_texts(statements: pl.Series) -> pl.Series:
    """Apply `program_text` to each statement; nulls stay."""
    texts = [None if text is None else program_text(text) for text in statements]
    return pl.Series(statements.name, texts, dtype=pl.String)


def program_text(statement: str) -> str:
    """Return a statement's meaning in words; prose, and code without words, is unchanged.

    >>> program_text("int hasClose(int *xs) { /* Are two numbers near each other? */")
    'has close. Are two numbers near each other?'
    """
    is_fenced = "```" in statement
    functions = [name for match in _FUNCTION.finditer(statement) for name in match.groups() if name]
    if not functions and not is_fenced:
        return statement
    lines = [line.strip(" \t*") for text in _groups(_BLOCK, statement) for line in text.splitlines()]
    body = " ".join(line for line in lines if line and not _EXAMPLE.fullmatch(line))
    body = _EXAMPLES.split(body)[0].strip() or body
    if len(body) < MIN_LETTERS:
        prose = _FENCE.sub(" ", statement) if is_fenced else ""
        body = " ".join(" ".join((body, *_groups(_LINE, statement), prose)).split())
    name = next((name for name in functions if name not in _HELPERS), "")
    meaning = ". ".join(text for text in (_in_words(name), body) if text)
    return meaning if len(meaning) >= MIN_LETTERS else statement


def _groups(pattern: re.Pattern[str], text: str) -> list[str]:
    return [group for match in pattern.finditer(text) for group in match.groups() if group]


def _in_words(name: str) -> str:
    words = re.split(r"[_\W]+", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name).lower())
    return " ".join(word for word in words if word)
