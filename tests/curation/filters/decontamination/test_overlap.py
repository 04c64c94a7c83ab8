"""Overlap with benchmarks: what is found, what is not, and that each hit has its place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest
from numpy.typing import NDArray

from curation.filters.decontamination import overlap
from curation.filters.decontamination.files import contamination_file
from curation.filters.decontamination.overlap import HIT, OVERLAP, TEMPLATE, BenchmarkIndex, OverlapSettings
from curation.records import SourceError

SPRINTS = (
    "James decides to run 3 sprints 3 times a week. He runs 60 meters each sprint. "
    "How many total meters does he run a week?"
)
PRIMES = "Compute the sum of the first 10 primes."
GLASSES = (
    "Kylar went to the store to buy glasses for his new apartment. "
    "One glass costs $5, but every second glass costs only 60% of the price."
)
BENCHMARKS = pl.DataFrame(
    {
        "benchmark": ["words", "words", "sums", "sums"],
        "row": [0, 1, 0, 1],
        "statement": [SPRINTS, None, PRIMES, "Compute."],
    }
)


def find_contamination(
    problems: pl.DataFrame, benchmarks: pl.DataFrame, settings: OverlapSettings | None = None
) -> pl.DataFrame:
    index = BenchmarkIndex(benchmarks, settings or OverlapSettings())
    index.count(problems["statement"])
    return index.hits(problems["statement"])


def hits(text: str | None, overlap: OverlapSettings | None = None) -> list[tuple[str, str, int, float]]:
    found = find_contamination(
        pl.DataFrame({"statement": [text]}, schema={"statement": pl.String}), BENCHMARKS, overlap
    )
    assert found.schema == HIT
    return found.select("method", "benchmark", "benchmark_row", "score").rows()


def test_a_copy_is_found_by_runs_and_by_shingles() -> None:
    for text in (SPRINTS.upper(), SPRINTS.replace("3", "three").replace(".", " .\n")):
        assert hits(text) == [("ngram", "words", 0, 1.0), ("words", "words", 0, 1.0)]


def test_a_short_benchmark_row_is_found_whole_inside_a_longer_text() -> None:
    assert ("ngram", "sums", 0, 1.0) in hits("As everybody knows, " + PRIMES.replace("10", "ten") + " Show your work.")
    assert hits("He runs 60 meters each sprint") == []  # a fragment of one is no problem
    assert hits("Compute.", OverlapSettings(("ngram",))) == []


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        (r"Think first. Compute $\binom{8}{4}$. Answer with a number.", True),
        (r"Example 5 Compute ${8 \choose 4}$ (10 points)", True),
        (r"Compute $\binom{8}{4} + 3$.", False),
        (r"Compute $\binom{8}{5}$.", False),
    ],
)
def test_a_short_formula_is_whole_if_no_formula_goes_on_after_it(text: str, is_whole: bool) -> None:
    benchmarks = pl.DataFrame({"benchmark": ["m"], "row": [0], "statement": [r"Compute $\binom{8}{4}$."]})
    found = find_contamination(pl.DataFrame({"statement": [text]}), benchmarks, OverlapSettings(("ngram",)))
    assert (found.height == 1) is is_whole


def test_what_is_not_there_is_not_found() -> None:
    for text in (None, "", "$$", GLASSES, "Compute the area of a square with side 10."):
        assert hits(text) == []


def test_other_numbers_are_a_template() -> None:
    changed = SPRINTS.replace("60", "80").replace("3 sprints 3 times", "4 sprints 4 times")
    found = find_contamination(pl.DataFrame({"statement": [changed]}), BENCHMARKS)
    assert found.select("method", "kind").rows() == [("words", TEMPLATE)]
    assert found["agreement"].to_list() == [0.0]
    assert found["wording"].to_list() == [1.0]


def test_a_number_in_words_is_the_same_number_and_a_missing_one_is_forgiven_in_running_text() -> None:
    (hit,) = (
        find_contamination(
            pl.DataFrame({"statement": [SPRINTS.replace("3 times a week", "thrice a week")]}), BENCHMARKS
        )
        .filter(pl.col("method") == "words")
        .iter_rows(named=True)
    )
    assert (hit["kind"], hit["formal"]) == (OVERLAP, False)
    assert hit["agreement"] == pytest.approx(5 / 6)  # two figures of three, five quarters of that part


def test_formulas_must_agree_on_both_sides() -> None:
    asked = r"Compute $\arcsin \left( -\frac{1}{2} \right).$  Express your answer in radians."
    benchmarks = pl.DataFrame({"benchmark": ["m"], "row": [0], "statement": [asked]})
    other = pl.DataFrame({"statement": [r"Compute $\arcsin 1.$  Express your answer in radians.", asked.upper()]})
    found = find_contamination(other, benchmarks)
    assert found.filter(pl.col("kind") == OVERLAP)["row"].unique().to_list() == [1]


def test_order_does_not_count() -> None:
    texts = [GLASSES, SPRINTS + GLASSES, PRIMES, "", SPRINTS]
    whole = find_contamination(pl.DataFrame({"statement": texts}), BENCHMARKS[[2, 0, 3, 1]])
    index = BenchmarkIndex(BENCHMARKS, OverlapSettings())
    for text in texts:
        index.count(pl.Series([text]))
    for place, text in enumerate(texts):
        alone = index.hits(pl.Series([text]))
        assert alone.equals(whole.filter(pl.col("row") == place).with_columns(row=pl.lit(0, pl.Int64)))


def test_rows_are_compared_few_at_a_time_each_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pl.Series([GLASSES, SPRINTS, "", PRIMES, SPRINTS])
    index = BenchmarkIndex(BENCHMARKS, OverlapSettings(("words", "embedding")), Known())
    whole = index.scores(texts)
    monkeypatch.setattr(overlap, "ROWS_AT_ONCE", 2)
    assert index.scores(texts).equals(whole)
    assert whole["row"].unique().sort().to_list() == [1, 3, 4]
    assert index.scores(texts.clear()).equals(whole.clear())


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_gets_one_line_a_row(tmp_path: Path) -> None:
    bench = write(tmp_path / "words.test.jsonl", [{"question": GLASSES}, {"question": SPRINTS}])
    task = write(tmp_path / "in.jsonl", [{"id": 7, "problem": SPRINTS}, {"problem": PRIMES}, {"problem": None}])
    counted = contamination_file(task, [bench], tmp_path / "out.jsonl")
    lines = [orjson.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [(line["row"], len(line["hits"])) for line in lines] == [(0, 2), (1, 0), (2, 0)]
    assert lines[0]["id"] == "7"
    assert lines[0]["hits"][0] == {
        **{"benchmark": "words", "row": 1, "method": "ngram", "score": 1.0},
        **{"agreement": 1.0, "kind": "overlap"},
    }
    assert counted == (3, 1, 0, {"ngram": 1, "words": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "words.test.jsonl"]


def test_a_file_that_cannot_be_meant_is_one_error(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", [{"problem": SPRINTS}])
    for rows, said in ([], "no rows"), ([{"a": 1}], "no column is named"), ([{"problem": 3}], "no row has a text"):
        bad = write(tmp_path / "bad.jsonl", rows)
        with pytest.raises(SourceError, match=said):
            contamination_file(bad, [good], tmp_path / "out.jsonl")
        with pytest.raises(SourceError, match=said):
            contamination_file(good, [bad], tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


class Known:
    """An embedder whose vectors are made up: texts with a word in common are near."""

    name = "known"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.array([[1.0, 0.0] if "near" in text else [0.0, 1.0] for text in texts], dtype=np.float32)


def test_programs_are_all_embedded_by_what_they_say() -> None:
    benchmark = 'def near_numbers(xs):\n    """Are two numbers of the list near each other?"""\n    return 1'
    port = "```c\nbool close(int *a) {\n  /* Tells whether numbers of a list are near. */\n  return 1;\n}\n```"
    other = "```c\nint sum(int *a) {\n  /* Adds the numbers of a list. */\n  return 1;\n}\n```"
    embedder = Known()
    index = BenchmarkIndex(
        pl.DataFrame({"benchmark": ["b"], "row": [0], "statement": [benchmark]}),
        OverlapSettings(("embedding",), programs=True),
        embedder,
    )
    hits = index.hits(pl.Series([other, port, None, " "]))
    assert hits.select("row", "method", "kind").rows() == [(1, "embedding", "overlap")]
    assert embedder.texts == [
        "near numbers. Are two numbers of the list near each other?",
        "sum. Adds the numbers of a list.",
        "close. Tells whether numbers of a list are near.",
    ]
