"""Plants known defects in copies of good rows, to measure filters.

Invariants: at most one defect per row; equal inputs and seed give equal rows.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.languages.vocabulary import languages
from curation.records import PROBLEM, DropReason, problem_id

VERSION = "planting@3"

Forms = Mapping[str, list[str]]

_TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ANSWERS: Forms = _TABLES["answers"]

UNSPACED = frozenset(lang.code for lang in languages() if not lang.spaced)
"""Languages without spaces between words."""

FIRST = 1_000_000_000
"""First row number of planted rows."""

PLANTED = pl.Schema({"source": pl.String(), "row": pl.Int64(), "kind": pl.String()})

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_MIN_LETTERS = 6

Row = dict[str, Any]
Spoiler = Callable[[Row, int, random.Random, Sequence[str]], Row]
"""Maps a row, its number within its kind, a draw and words of its language to its changed columns."""


@dataclass(frozen=True, slots=True)
class PlantedRows:
    """`PROBLEM` rows, the `PLANTED` ones, and originals by copy."""

    rows: pl.DataFrame
    planted: pl.DataFrame
    copies: Mapping[str, str]


def plant_rows(
    rows: pl.DataFrame, benchmarks: Sequence[str], seed: int, *, most: int, sound: int, math: bool = True
) -> PlantedRows:
    """Plant each kind of defect in its share of the rows.

    Args:
        rows: after the filters.
        benchmarks: their statements.
        most: max rows per kind.
        sound: max rows without a defect.
        math: False: programs, with fewer kinds.
    """
    kinds = {name: kind for name, kind in KINDS.items() if math or not kind.math_only}
    own = {name: kind for name, kind in kinds.items() if not kind.of_benchmark}
    draw = random.Random(f"planting {seed}")
    free = rows.sort("id").to_dicts()
    draw.shuffle(free)
    model, words = free[:1], _words_of(free[:2000])
    per_kind = max(1, min(most, len(free) // len(own)))
    made: list[tuple[str, Row, str | None]] = []
    kept = list[Row]()
    for name, kind in own.items():
        taken = list(islice(filter(kind.fits, free), per_kind))
        names = {row["id"] for row in taken}
        free = [row for row in free if row["id"] not in names]
        for number, row in enumerate(taken):
            spoilt = kind.spoil(row, number, draw, words.get(row["lang"]) or ["another"])
            made.append((name, {**row, **spoilt}, row["id"]))
        kept += taken if kind.with_original else []
    every = sorted(set[str]().union(*words.values())) or ["another"]
    statements = draw.sample(list(benchmarks), len(benchmarks)) if model else []
    of_benchmark = [name for name in kinds if name not in own]
    for number, name in enumerate(of_benchmark):
        for text in statements[number :: len(of_benchmark)][:most]:
            row = {**model[0], "statement": text, "answer": str(draw.randrange(2, 500)), "choices": None, "meta": None}
            made.append((name, {**row, **kinds[name].spoil(row, 0, draw, every)}, None))
    table, planted, copies = [*kept, *free[:sound]], [], {}
    for at, (name, row, original) in enumerate(made, FIRST):
        new = problem_id(row["statement"] or "", row["choices"], row["domain"])
        table.append({**row, "id": new, "group": new, "row": at, "raw_statement": None, "raw_answer": None})
        planted.append((row["source"], at, name))
        if original is not None:
            copies[new] = original
    return PlantedRows(pl.DataFrame(table, PROBLEM), pl.DataFrame(planted, PLANTED, orient="row"), copies)


def changed(text: str, recipe: str, draw: random.Random, words: Sequence[str]) -> str:
    """Change a text by a recipe.

    Args:
        recipe: ``typography``, ``word`` (one in thirty) or ``number`` (another problem).
    """
    if recipe == "typography":
        return text.upper().replace(" ", "  ").replace(".", " .") if "\\" not in text else text.replace(" ", " \\, ")
    if recipe == "number":
        numbers = list(re.finditer(r"\d+", text))
        if not numbers:
            return text + " 17"
        number = draw.choice(numbers)
        return _replaced(text, number, str(int(number[0]) + 1))
    tokens = text.split(" ")
    plain = exchangeable(tokens)
    for index in draw.sample(plain, min(max(1, len(tokens) // 30), len(plain))):
        tokens[index] = draw.choice(words)
    return " ".join(tokens)


def exchangeable(tokens: Sequence[str]) -> list[int]:
    """Return the positions of long words."""
    return [index for index, token in enumerate(tokens) if token.isalpha() and len(token) >= _MIN_LETTERS]


def _replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _words_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    words: dict[str, set[str]] = {}
    for row in rows:
        tokens = row["statement"].split(" ")
        words.setdefault(row["lang"], set()).update(tokens[index] for index in exchangeable(tokens))
    return {lang: sorted(own) for lang, own in words.items()}


def _is_worded(row: Row) -> bool:
    return row["lang"] in _TABLES["proofs"]


def _is_long(row: Row) -> bool:
    return len(row["statement"].split()) >= 8 or (row["lang"] in UNSPACED and len(row["statement"]) >= 16)


def _can_exchange(row: Row) -> bool:
    tokens = row["statement"].split(" ")
    return len(tokens) >= 20 and bool(exchangeable(tokens))


def _worded(table: str, column: str = "statement") -> Spoiler:
    def spoil(row: Row, number: int, _draw: random.Random, _words: Sequence[str]) -> Row:
        forms: list[str] = _TABLES[table][row["lang"]]
        form = forms[number % len(forms)].replace("{answer}", str(row["answer"]))
        return {column: form.replace("{}", row["statement"])}

    return spoil


def _figure(row: Row, number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    forms, text = _TABLES["figures"][row["lang"]], row["statement"]
    return {"statement": _replaced(text, draw.choice(list(_NUMBER.finditer(text))), forms[number % len(forms)])}


def _cut(row: Row, _number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    text, share = row["statement"], draw.uniform(0.4, 0.7)
    tokens = text.split(" ")
    cut = " ".join(tokens[: int(share * len(tokens))]) if len(tokens) >= 8 else text[: int(share * len(text))]
    return {"statement": cut}


def _two_problems(row: Row, number: int, draw: random.Random, words: Sequence[str]) -> Row:
    second = changed(row["statement"], "number", draw, words)
    form = ("(a) {} (b) {}", "1. {}\n2. {}")[number % 2]
    return {"statement": form.replace("{}", row["statement"], 1).replace("{}", second, 1)}


def _other_answer(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
    spaced = changed(row["statement"], "typography", draw, words) if "\\" in row["statement"] else row["statement"]
    return {"statement": spaced, "answer": str(int(row["answer"]) + draw.choice((1, -1, 10)))}


def _copy(recipe: str) -> Spoiler:
    def spoil(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
        text = row["statement"]
        copies = (changed(text, recipe, draw, words) for _ in range(20))  # a word may replace itself
        return {"statement": next((copy for copy in copies if copy != text), f"{text} .")}

    return spoil


@dataclass(frozen=True, slots=True)
class Kind:
    """A defect, caught if dropped for one of ``reasons``; `math_only` ones cannot be in programs."""

    title: str
    reasons: tuple[DropReason, ...]
    spoil: Spoiler
    fits: Callable[[Row], bool] = _is_worded
    math_only: bool = True
    with_original: bool = False
    of_benchmark: bool = False


_PLANTED_BY: Mapping[str, tuple[Spoiler, Callable[[Row], bool]]] = {
    "missing_figure": (_figure, lambda row: _is_worded(row) and bool(_NUMBER.search(row["statement"]))),
    "proof": (_worded("proofs"), _is_worded),
    "multi_part": (_two_problems, _is_worded),
    "refers_elsewhere": (_worded("elsewhere"), _is_worded),
    "answer_in_statement": (_worded("answers"), _is_worded),
    "remark": (_worded("remarks", "answer"), _is_worded),
    "missing_answer": (lambda *_: {"answer": None}, lambda _: True),
    "truncated": (_cut, _is_long),
    "duplicate": (_copy("typography"), lambda _: True),
    "near_duplicate": (_copy("word"), _can_exchange),
    "conflicting_answers": (_other_answer, lambda row: str(row["answer"]).lstrip("-").isdigit()),
    "contaminated": (lambda *_: {}, _is_worded),
    "contaminated_reworded": (_copy("word"), _is_worded),
}
KINDS: Mapping[str, Kind] = {
    name: Kind(table["title"], tuple(map(DropReason, table["reasons"])), *_PLANTED_BY[name], **table.get("of", {}))
    for name, table in _TABLES["kinds"].items()
}
"""By name, in the order of the page."""
