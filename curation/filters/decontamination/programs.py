r"""What a program says in words: the name of its first function, and the text of its docstring and comments.

A rewritten or ported program shares neither its code nor its names with the original, but still says the same. So
programs are compared by that text: a statement that is prose is left as it is, and of one with code stay

  the name    of the first function, in words: ``has_close_elements`` and ``hasCloseElements`` are "has close elements";
  the text    of docstrings and block comments up to their examples; where there is next to none, line comments, and
              what stands around fenced code.

Examples are left out: their values change freely. But where they stayed, they say more than words: `program_evidence`
gives runs of three values and the functions' names, which few other programs have.

Not here: whether two such texts say the same (`overlap`).
"""

from __future__ import annotations

import re
from itertools import pairwise

import polars as pl

from curation.filters.decontamination.examples import FUNCTION, HELPERS
from curation.filters.dedup.minhash import text_hash

EXAMPLE, NAME = "example", "name"
RUN = 3
"""Values in a run."""

LEAST = 20
"""Letters of docstrings below which other comments are read too."""

_FENCE = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_BLOCK = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'|/\*(.*?)\*/', re.DOTALL)
_LINE = re.compile(r"(?://|#(?!\s*(?:include|define|if|endif|pragma)\b))([^\n]*)")
_EXAMPLE = re.compile(r"\s*(?:>>>.*|.*(?:=>|==>|->|➞).*|[\[\](){}\d.,'\"\s-]+|True|False|None)\s*")
_EXAMPLES = re.compile(r"\b(?:Examples?|For example|For instance)\b\s*:?", re.IGNORECASE)
_VALUE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'")


def program_texts(statements: pl.Series) -> pl.Series:
    """Return what each statement says in words; nulls stay."""
    said = [None if text is None else program_text(text) for text in statements]
    return pl.Series(statements.name, said, dtype=pl.String)


def program_text(statement: str) -> str:
    """Return what one statement says in words; prose, and code that says nothing, as it stands.

    >>> program_text("int hasClose(int *xs) { /* Are two numbers near each other? */")
    'has close. Are two numbers near each other?'
    """
    is_fenced = "```" in statement
    functions = [name for match in FUNCTION.finditer(statement) for name in match.groups() if name]
    if not functions and not is_fenced:
        return statement
    lines = [line.strip(" \t*") for text in _groups(_BLOCK, statement) for line in text.splitlines()]
    body = " ".join(line for line in lines if line and not _EXAMPLE.fullmatch(line))
    body = _EXAMPLES.split(body)[0].strip() or body
    if len(body) < LEAST:
        around = _FENCE.sub(" ", statement) if is_fenced else ""
        body = " ".join(" ".join((body, *_groups(_LINE, statement), around)).split())
    name = next((name for name in functions if name not in HELPERS), "")
    said = ". ".join(part for part in (_in_words(name), body) if part)
    return said if len(said) >= LEAST else statement


def program_evidence(statements: pl.Series) -> pl.DataFrame:
    """Return what a port of each program may have kept: ``row``, ``text``, ``kind``, ``key``; each once a row.

    ``text`` and ``key`` are hashes, of the whole statement and of what was kept.

    ``example``: three values (numbers, strings) in a row that are neither nearly all the same nor counted up.
    ``name``: a function's name of two words or more.
    """
    kept = [
        (row, text_hash(text or ""), kind, text_hash(key))
        for row, text in enumerate(statements)
        for kind, key in sorted(_evidence(text or ""))
    ]
    schema = pl.Schema({"row": pl.Int64(), "text": pl.UInt64(), "kind": pl.String(), "key": pl.UInt64()})
    return pl.DataFrame(kept, schema, orient="row")


def _evidence(text: str) -> set[tuple[str, str]]:
    values = [value.strip("'\"") for value in _VALUE.findall(text)]
    runs = [values[at : at + RUN] for at in range(len(values) - RUN + 1)]
    names = [_in_words(name) for name in _groups(FUNCTION, text) if name not in HELPERS]
    examples = {(EXAMPLE, "\n".join(run)) for run in runs if not _is_dull(run)}
    return examples | {(NAME, name) for name in names if " " in name}


def _is_dull(run: list[str]) -> bool:
    """Return whether a run says nothing: two values or fewer, or numbers at equal steps."""
    if len(set(run)) < RUN:
        return True
    numbers = [int(value) for value in run if re.fullmatch(r"-?\d{1,18}", value)]
    return len(numbers) == RUN and len({after - before for before, after in pairwise(numbers)}) == 1


def _groups(pattern: re.Pattern[str], text: str) -> list[str]:
    return [group for match in pattern.finditer(text) for group in match.groups() if group]


def _in_words(name: str) -> str:
    parts = re.split(r"[_\W]+", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name).lower())
    return " ".join(part for part in parts if part)
