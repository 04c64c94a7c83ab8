"""Rows spoilt: copies of good rows, each with one known defect.

Each row of the run carries one defect at most, so that no planted row is found as the copy of another; a copy that is
to be found as such comes with its original. Rows that carry nothing stay beside them, as in a run.

Pure: the same rows, benchmarks and seed give the same planted rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from curation.languages.vocabulary import languages
from curation.planting import phrases
from curation.planting.copies import changed, exchangeable
from curation.records import PROBLEM, DropReason, problem_id

Row = dict[str, Any]

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
UNSPACED = frozenset(lang.code for lang in languages() if not lang.spaced)
"""Languages that part no words by spaces."""

FIRST = 1_000_000_000
"""Planted rows are numbered from here on in their source."""

_FIRST_PAGE, _PAGE = 5_000, 50_000
"""Rows that are read at once: the first ones mostly carry all that is planted."""

PLANTED = pl.Schema({"source": pl.String(), "row": pl.Int64(), "kind": pl.String()})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of defect: its words, the reasons for which such a row should leave, and whether its original stays."""

    title: str
    reasons: frozenset[DropReason]
    with_original: bool = False
    of_benchmark: bool = False
    math_only: bool = True


_R = DropReason
KINDS: Mapping[str, Kind] = {
    "missing_figure": Kind("Figures that are missing", frozenset({_R.MISSING_FIGURE, _R.UNUSABLE})),
    "proof": Kind("Proofs", frozenset({_R.PROOF})),
    "multi_part": Kind("Two problems in one", frozenset({_R.MULTI_PART})),
    "refers_elsewhere": Kind("References to other problems", frozenset({_R.UNUSABLE})),
    "answer_in_statement": Kind("The answer in the statement", frozenset({_R.ANSWER_IN_STATEMENT})),
    "remark": Kind("A remark in place of the answer", frozenset({_R.TEXTUAL_ANSWER, _R.UNVERIFIABLE_ANSWER})),
    "missing_answer": Kind("No answer", frozenset({_R.MISSING_ANSWER})),
    "truncated": Kind("Statements cut off", frozenset({_R.UNUSABLE})),
    "duplicate": Kind(
        "Copies in another typography", frozenset({_R.DUPLICATE, _R.NEAR_DUPLICATE}), True, math_only=False
    ),
    "near_duplicate": Kind(
        "Copies with a word exchanged", frozenset({_R.DUPLICATE, _R.NEAR_DUPLICATE}), True, math_only=False
    ),
    "conflicting_answers": Kind("Copies with another answer", frozenset({_R.CONFLICTING_ANSWERS}), True),
    "contaminated": Kind("Rows of the benchmarks", frozenset({_R.CONTAMINATED}), of_benchmark=True, math_only=False),
    "contaminated_reworded": Kind(
        "The same with a word exchanged", frozenset({_R.CONTAMINATED}), of_benchmark=True, math_only=False
    ),
}
"""By name; in the order of the page."""


@dataclass(frozen=True, slots=True)
class PlantedRows:
    """Rows for the sources' stage (`PROBLEM`), which of them are planted (`PLANTED`), and whose copy each one is.

    ``copies``: the id of a planted row, and that of the row that it was made of; rows of benchmarks are absent.
    """

    rows: pl.DataFrame
    planted: pl.DataFrame
    copies: Mapping[str, str]


class OrderedRows(Protocol):
    """Rows that are read by their places in the order of their ids."""

    def __len__(self) -> int:
        """Return how many there are."""

    def at(self, places: Sequence[int]) -> pl.DataFrame:
        """Return `PROBLEM` rows in the order of their places."""


class _Carriers:
    """Rows in the order of a draw, of which a page is in memory at a time, and those taken from them."""

    def __init__(self, rows: OrderedRows, draw: random.Random) -> None:
        self._rows, self._order = rows, list(range(len(rows)))
        draw.shuffle(self._order)
        self._taken, self._exhausted = set[int](), set[Callable[[Row], bool]]()
        self._page: tuple[int, list[Row]] = (0, [])

    def __len__(self) -> int:
        return len(self._order)

    def first(self, count: int) -> list[Row]:
        """Return the first rows that nobody has taken."""
        found: list[Row] = []
        for place, row in self._all():
            if len(found) == count:
                break
            if place not in self._taken:
                found.append(row)
        return found

    def take(self, can: Callable[[Row], bool], count: int) -> list[Row]:
        """Return the first rows of which this holds and that nobody has taken, and take them."""
        found: list[Row] = []
        for place, row in self._all() if can not in self._exhausted else ():
            if len(found) == count:
                return found
            if place not in self._taken and can(row):
                self._taken.add(place)
                found.append(row)
        self._exhausted.add(can)
        return found

    def _all(self) -> Iterator[tuple[int, Row]]:
        """Yield all rows with their places in the draw, the first page again and again from memory."""
        begin, size = 0, _FIRST_PAGE
        while begin < len(self._order):
            if self._page[0] != begin or not self._page[1]:
                self._page = begin, self._rows.at(self._order[begin : begin + size]).to_dicts()
            yield from enumerate(self._page[1], begin)
            begin, size = begin + size, _PAGE


def plant_rows(
    rows: OrderedRows, benchmarks: Sequence[str], seed: int, *, most: int, beside: int, math: bool = True
) -> PlantedRows:
    """Plant each kind of defect in its share of the rows.

    Args:
        rows: those that passed the filters.
        benchmarks: their statements.
        most: rows that carry one kind, at most.
        beside: rows that carry nothing and stay, at most.
        math: whether the rows are math; of programs only copies and contamination are planted.
    """
    kinds = {name: kind for name, kind in KINDS.items() if math or not kind.math_only}
    own = [name for name, kind in kinds.items() if not kind.of_benchmark]
    draw = random.Random(f"planting {seed}")
    carriers = _Carriers(rows, draw)
    model, words = carriers.first(1), _words_of(carriers.first(2000))
    each = max(1, min(most, len(carriers) // len(own)))
    made: list[tuple[str, Row, Row | None]] = []
    kept = list[Row]()
    for name in own:
        taken = carriers.take(_CAN_CARRY.get(name, _is_worded), each)
        for number, row in enumerate(taken):
            spoilt = _SPOILERS[name](row, number, draw, words.get(row["lang"]) or ["another"])
            made.append((name, spoilt, row))
            kept += [row] if kinds[name].with_original else []
    every = sorted({word for own_words in words.values() for word in own_words}) or ["another"]
    theirs = draw.sample(list(benchmarks), len(benchmarks)) if model else []
    of_benchmark = [name for name, kind in kinds.items() if kind.of_benchmark]
    for number, name in enumerate(of_benchmark):
        chosen = theirs[number :: len(of_benchmark)][:most]
        made += [(name, _of_benchmark(name, text, model[0], draw, every), None) for text in chosen]
    return _together([*kept, *carriers.first(beside)], made)


def _together(kept: Sequence[Row], made: Sequence[tuple[str, Row, Row | None]]) -> PlantedRows:
    table, planted, copies = list(kept), [], {}
    for number, (kind, spoilt, original) in enumerate(made):
        name = problem_id(spoilt["statement"] or "", spoilt["choices"], spoilt["domain"])
        row = {**spoilt, "id": name, "group": name, "row": FIRST + number, "raw_statement": None, "raw_answer": None}
        table.append(row)
        planted.append((row["source"], row["row"], kind))
        if original is not None:
            copies[name] = original["id"]
    return PlantedRows(pl.DataFrame(table, PROBLEM), pl.DataFrame(planted, PLANTED, orient="row"), copies)


def _any(_row: Row) -> bool:
    return True


def _is_worded(row: Row) -> bool:
    return row["lang"] in phrases.PROOFS


def _is_long(row: Row) -> bool:
    return len(row["statement"].split()) >= 8 or (row["lang"] in UNSPACED and len(row["statement"]) >= 16)


def _exchangeable_words(text: str) -> list[str]:
    parts = text.split(" ")
    return [parts[place] for place in exchangeable(parts)]


def _words_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return long words of each language, in order."""
    words: dict[str, set[str]] = {}
    for row in rows:
        words.setdefault(row["lang"], set()).update(_exchangeable_words(row["statement"]))
    return {lang: sorted(own) for lang, own in words.items()}


def _can_exchange(row: Row) -> bool:
    """Return whether one word in at least twenty can be exchanged: in a shorter text that is another problem."""
    return len(row["statement"].split(" ")) >= 20 and bool(_exchangeable_words(row["statement"]))


_CAN_CARRY: Mapping[str, Callable[[Row], bool]] = {
    "missing_figure": lambda row: _is_worded(row) and bool(_NUMBER.search(row["statement"])),
    "truncated": _is_long,
    "duplicate": _any,
    "missing_answer": _any,
    "near_duplicate": _can_exchange,
    "conflicting_answers": lambda row: str(row["answer"]).lstrip("-").isdigit(),
}

Spoiler = Callable[[Row, int, random.Random, Sequence[str]], Row]


def _figure(row: Row, number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    """Put a figure that nobody sees in the place of a number."""
    forms, place = phrases.FIGURES[row["lang"]], draw.choice(list(_NUMBER.finditer(row["statement"])))
    text = row["statement"]
    return {**row, "statement": text[: place.start()] + forms[number % len(forms)] + text[place.end() :]}


def _worded(table: Mapping[str, tuple[str, ...]]) -> Spoiler:
    def spoil(row: Row, number: int, _draw: random.Random, _words: Sequence[str]) -> Row:
        forms = table[row["lang"]]
        form = forms[number % len(forms)]
        text = form.replace("{answer}", str(row["answer"])).replace("{}", row["statement"])
        return {**row, "statement": text}

    return spoil


def _remark(row: Row, number: int, _draw: random.Random, _words: Sequence[str]) -> Row:
    forms = phrases.REMARKS[row["lang"]]
    return {**row, "answer": forms[number % len(forms)]}


def _parts(row: Row, number: int, draw: random.Random, words: Sequence[str]) -> Row:
    other = changed(row["statement"], "number", draw, words)
    forms = ("(a) {} (b) {}", "1. {}\n2. {}")
    return {**row, "statement": forms[number % 2].replace("{}", row["statement"], 1).replace("{}", other, 1)}


def cut_off(text: str, draw: random.Random) -> str:
    """Return the first half of a text, more or less: whole words, where it has eight between spaces."""
    share, parts = draw.uniform(0.4, 0.7), text.split(" ")
    return " ".join(parts[: int(share * len(parts))]) if len(parts) >= 8 else text[: int(share * len(text))]


def _truncated(row: Row, _number: int, draw: random.Random, _words: Sequence[str]) -> Row:
    return {**row, "statement": cut_off(row["statement"], draw)}


def _other_answer(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
    spaced = changed(row["statement"], "typography", draw, words) if "\\" in row["statement"] else row["statement"]
    return {**row, "statement": spaced, "answer": str(int(row["answer"]) + draw.choice((1, -1, 10)))}


def _copy(recipe: str) -> Spoiler:
    def spoil(row: Row, _number: int, draw: random.Random, words: Sequence[str]) -> Row:
        return {**row, "statement": _changed(row["statement"], recipe, draw, words)}

    return spoil


_SPOILERS: Mapping[str, Spoiler] = {
    "missing_figure": _figure,
    "proof": _worded(phrases.PROOFS),
    "multi_part": _parts,
    "refers_elsewhere": _worded(phrases.ELSEWHERE),
    "answer_in_statement": _worded(phrases.TOLD),
    "remark": _remark,
    "missing_answer": lambda row, _number, _draw, _words: {**row, "answer": None},
    "truncated": _truncated,
    "duplicate": _copy("typography"),
    "near_duplicate": _copy("word"),
    "conflicting_answers": _other_answer,
}


def _changed(text: str, recipe: str, draw: random.Random, words: Sequence[str]) -> str:
    """Return a copy that differs: a word may have been put in its own place."""
    copies = (changed(text, recipe, draw, words) for _ in range(20))
    return next((copy for copy in copies if copy != text), f"{text} .")


def _of_benchmark(name: str, text: str, model: Row, draw: random.Random, words: Sequence[str]) -> Row:
    """Return a benchmark's problem as a row of one of the run's sources, with an answer of a number."""
    statement = text if name == "contaminated" else _changed(text, "word", draw, words)
    return {**model, "statement": statement, "answer": str(draw.randrange(2, 500)), "choices": None, "meta": None}
