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
"""Changed when equal rows may give other planted ones."""

Forms = Mapping[str, list[str]]

_TABLES: Mapping[str, Forms] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

FIGURES, PROOFS, ELSEWHERE = _TABLES["figures"], _TABLES["proofs"], _TABLES["elsewhere"]
ANSWERS, REMARKS = _TABLES["answers"], _TABLES["remarks"]

_DIGITS = re.compile(r"\d+")
_LEAST_LETTERS = 6


def changed(text: str, recipe: str, draw: random.Random, words: Sequence[str]) -> str:
    """Change a text by a recipe.

    Args:
        recipe: ``typography``, ``word`` (one in thirty) or ``number`` (another problem).
    """
    if recipe == "typography":
        return text.upper().replace(" ", "  ").replace(".", " .") if "\\" not in text else text.replace(" ", " \\, ")
    if recipe == "number":
        numbers = list(_DIGITS.finditer(text))
        if not numbers:
            return text + " 17"
        number = draw.choice(numbers)
        return text[: number.start()] + str(int(number[0]) + 1) + text[number.end() :]
    parts = text.split(" ")
    plain = exchangeable(parts)
    for place in draw.sample(plain, min(max(1, len(parts) // 30), len(plain))):
        parts[place] = draw.choice(words)
    return " ".join(parts)


def exchangeable(parts: Sequence[str]) -> list[int]:
    """Return the positions of long words."""
    return [place for place, part in enumerate(parts) if part.isalpha() and len(part) >= _LEAST_LETTERS]


Row = dict[str, Any]
Spoiler = Callable[[Row, int, random.Random, Sequence[str]], Row]

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
UNSPACED = frozenset(lang.code for lang in languages() if not lang.spaced)
"""Languages without spaces between words."""

FIRST = 1_000_000_000
"""First row number of planted rows."""

PLANTED = pl.Schema({"source": pl.String(), "row": pl.Int64(), "kind": pl.String()})


@dataclass(frozen=True, slots=True)
class PlantedRows:
    """`PROBLEM` rows, the `PLANTED` ones, and originals by copy."""

    rows: pl.DataFrame
    planted: pl.DataFrame
    copies: Mapping[str, str]


def plant_rows(
    rows: pl.DataFrame, benchmarks: Sequence[str], seed: int, *, most: int, beside: int, math: bool = True
) -> PlantedRows:
    """Plant each kind of defect in its share of the rows.

    Args:
        rows: after the filters.
        benchmarks: their statements.
        most: max rows per kind.
        beside: max rows without a defect.
        math: False: programs, with fewer kinds.
    """
    kinds = {name: kind for name, kind in KINDS.items() if math or not kind.math_only}
    own, of_benchmark = (
        {name: kind for name, kind in kinds.items() if kind.of_benchmark is of} for of in (False, True)
    )
    draw = random.Random(f"planting {seed}")
    free = rows.sort("id").to_dicts()
    draw.shuffle(free)
    model, words = free[:1], _words_of(free[:2000])
    each = max(1, min(most, len(free) // len(own)))
    made: list[tuple[str, Row, Row | None]] = []
    kept = list[Row]()
    for name, kind in own.items():
        taken = list(islice(filter(kind.fits, free), each))
        names = {row["id"] for row in taken}
        free = [row for row in free if row["id"] not in names]
        for number, row in enumerate(taken):
            made.append((name, kind.spoil(row, number, draw, words.get(row["lang"]) or ["another"]), row))
        kept += taken if kind.with_original else []
    every = sorted({word for of_language in words.values() for word in of_language}) or ["another"]
    theirs = draw.sample(list(benchmarks), len(benchmarks)) if model else []
    for number, (name, kind) in enumerate(of_benchmark.items()):
        for text in theirs[number :: len(of_benchmark)][:most]:
            row = {**model[0], "statement": text, "answer": str(draw.randrange(2, 500)), "choices": None, "meta": None}
            made.append((name, kind.spoil(row, 0, draw, every), None))
    table, planted, copies = [*kept, *free[:beside]], [], {}
    for number, (name, spoilt, original) in enumerate(made):
        new = problem_id(spoilt["statement"] or "", spoilt["choices"], spoilt["domain"])
        table.append({**spoilt, "id": new, "group": new, "row": FIRST + number, "raw_statement": None})
        table[-1]["raw_answer"] = None
        planted.append((spoilt["source"], FIRST + number, name))
        if original is not None:
            copies[new] = original["id"]
    return PlantedRows(pl.DataFrame(table, PROBLEM), pl.DataFrame(planted, PLANTED, orient="row"), copies)


def _words_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    words: dict[str, set[str]] = {}
    for row in rows:
        parts = row["statement"].split(" ")
        words.setdefault(row["lang"], set()).update(parts[place] for place in exchangeable(parts))
    return {lang: sorted(found) for lang, found in words.items()}


def _is_worded(row: Row) -> bool:
    return row["lang"] in PROOFS


def _has_number(row: Row) -> bool:
    return _is_worded(row) and bool(_NUMBER.search(row["statement"]))


def _is_long(row: Row) -> bool:
    return len(row["statement"].split()) >= 8 or (row["lang"] in UNSPACED and len(row["statement"]) >= 16)


def _can_exchange(row: Row) -> bool:
    parts = row["statement"].split(" ")
    return len(parts) >= 20 and bool(exchangeable(parts))


def _has_integer(row: Row) -> bool:
    return str(row["answer"]).lstrip("-").isdigit()


def _worded(table: Forms, column: str = "statement") -> Spoiler:
    def spoil(row: Row, number: int, _draw: random.Random, _words: Sequence[str]) -> Row:
        forms = table[row["lang"]]
        form = forms[number % len(forms)].replace("{answer}", str(row["answer"]))
        return {**row, column: form.replace("{}", row["statement"])}

    return spoil


def _figure(row: Row, number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    forms, text = FIGURES[row["lang"]], row["statement"]
    place = draw.choice(list(_NUMBER.finditer(text)))
    return {**row, "statement": text[: place.start()] + forms[number % len(forms)] + text[place.end() :]}


def _cut(row: Row, _number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    text, share = row["statement"], draw.uniform(0.4, 0.7)
    parts = text.split(" ")
    cut = " ".join(parts[: int(share * len(parts))]) if len(parts) >= 8 else text[: int(share * len(text))]
    return {**row, "statement": cut}


def _parts(row: Row, number: int, draw: random.Random, words: Sequence[str]) -> Row:
    other = changed(row["statement"], "number", draw, words)
    form = ("(a) {} (b) {}", "1. {}\n2. {}")[number % 2]
    return {**row, "statement": form.replace("{}", row["statement"], 1).replace("{}", other, 1)}


def _other_answer(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
    spaced = changed(row["statement"], "typography", draw, words) if "\\" in row["statement"] else row["statement"]
    return {**row, "statement": spaced, "answer": str(int(row["answer"]) + draw.choice((1, -1, 10)))}


def _copy(recipe: str) -> Spoiler:
    def spoil(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
        text = row["statement"]
        copies = (changed(text, recipe, draw, words) for _ in range(20))  # a word may be put in its own place
        return {**row, "statement": next((copy for copy in copies if copy != text), f"{text} .")}

    return spoil


@dataclass(frozen=True, slots=True)
class Kind:
    """A defect, caught if dropped for one of ``reasons``."""

    title: str
    spoil: Spoiler
    reasons: tuple[DropReason, ...]
    fits: Callable[[Row], bool] = _is_worded
    with_original: bool = False
    of_benchmark: bool = False
    math_only: bool = True


_R = DropReason
_COPIES = (_R.DUPLICATE, _R.NEAR_DUPLICATE)
_OF_PROGRAMS: dict[str, Any] = {"reasons": _COPIES, "with_original": True, "math_only": False}
_OF_BENCH: dict[str, Any] = {"reasons": (_R.CONTAMINATED,), "of_benchmark": True, "math_only": False}

KINDS: Mapping[str, Kind] = {
    "missing_figure": Kind("Figures that are missing", _figure, (_R.MISSING_FIGURE, _R.UNUSABLE), _has_number),
    "proof": Kind("Proofs", _worded(PROOFS), (_R.PROOF,)),
    "multi_part": Kind("Two problems in one", _parts, (_R.MULTI_PART,)),
    "refers_elsewhere": Kind("References to other problems", _worded(ELSEWHERE), (_R.UNUSABLE,)),
    "answer_in_statement": Kind("The answer in the statement", _worded(ANSWERS), (_R.ANSWER_IN_STATEMENT,)),
    "remark": Kind(
        "A remark in place of the answer", _worded(REMARKS, "answer"), (_R.TEXTUAL_ANSWER, _R.UNVERIFIABLE_ANSWER)
    ),
    "missing_answer": Kind("No answer", lambda row, *_: {**row, "answer": None}, (_R.MISSING_ANSWER,), lambda _: True),
    "truncated": Kind("Statements cut off", _cut, (_R.UNUSABLE,), _is_long),
    "duplicate": Kind("Copies in another typography", _copy("typography"), fits=lambda _: True, **_OF_PROGRAMS),
    "near_duplicate": Kind("Copies with a word exchanged", _copy("word"), fits=_can_exchange, **_OF_PROGRAMS),
    "conflicting_answers": Kind(
        "Copies with another answer", _other_answer, (_R.CONFLICTING_ANSWERS,), _has_integer, with_original=True
    ),
    "contaminated": Kind("Rows of the benchmarks", lambda row, *_: row, **_OF_BENCH),
    "contaminated_reworded": Kind("The same with a word exchanged", _copy("word"), **_OF_BENCH),
}
"""By name, in the order of the page."""
