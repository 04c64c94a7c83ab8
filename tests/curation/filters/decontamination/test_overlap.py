"""Overlap with benchmarks: what is found, what is not, what a run does with hits, and what programs say in words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from curation.config import DecontaminationSettings, Source
from curation.filters.decontamination import overlap
from curation.filters.decontamination.files import contamination_file
from curation.filters.decontamination.overlap import (
    HIT,
    OVERLAP,
    TEMPLATE,
    BenchmarkIndex,
    OverlapSettings,
    count_templates,
    drop_contaminated,
)
from curation.filters.decontamination.programs import program_text, program_texts
from curation.records import DROPPED, PROBLEM, DropReason, SourceError
from tests.curation.tables import frame, write_lines

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
    *texts: str | None, benchmarks: pl.DataFrame = BENCHMARKS, methods: tuple[str, ...] = ("ngram", "words")
) -> pl.DataFrame:
    index, statements = BenchmarkIndex(benchmarks, OverlapSettings(methods)), pl.Series(texts, dtype=pl.String)
    index.count(statements)
    return index.hits(statements)


def benchmark(text: str) -> pl.DataFrame:
    return pl.DataFrame({"benchmark": ["m"], "row": [0], "statement": [text]})


def hits(text: str | None) -> list[tuple[str, str, int, float]]:
    found = find_contamination(text)
    assert found.schema == HIT
    return found.select("method", "benchmark", "benchmark_row", "score").rows()


def test_a_copy_is_found_by_runs_and_by_shingles() -> None:
    for text in (SPRINTS.upper(), SPRINTS.replace("3", "three").replace(".", " .\n")):
        assert hits(text) == [("ngram", "words", 0, 1.0), ("words", "words", 0, 1.0)]


def test_a_short_benchmark_row_is_found_whole_inside_a_longer_text() -> None:
    assert ("ngram", "sums", 0, 1.0) in hits("As everybody knows, " + PRIMES.replace("10", "ten") + " Show your work.")
    assert hits("He runs 60 meters each sprint") == []  # a fragment of one is no problem
    assert find_contamination("Compute.", methods=("ngram",)).is_empty()


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
    found = find_contamination(text, benchmarks=benchmark(r"Compute $\binom{8}{4}$."), methods=("ngram",))
    assert (found.height == 1) is is_whole


def test_what_is_not_there_is_not_found() -> None:
    for text in (None, "", "$$", GLASSES, "Compute the area of a square with side 10."):
        assert hits(text) == []


def test_other_numbers_are_a_template() -> None:
    changed = SPRINTS.replace("60", "80").replace("3 sprints 3 times", "4 sprints 4 times")
    found = find_contamination(changed).select("method", "kind", "agreement", "wording")
    assert found.rows() == [("words", TEMPLATE, 0.0, 1.0)]


def test_a_number_in_words_is_the_same_number_and_a_missing_one_is_forgiven_in_running_text() -> None:
    found = find_contamination(SPRINTS.replace("3 times a week", "thrice a week"))
    (hit,) = found.filter(method="words").iter_rows(named=True)
    assert (hit["kind"], hit["formal"]) == (OVERLAP, False)
    assert hit["agreement"] == pytest.approx(5 / 6)  # two figures of three, five quarters of that part


def test_formulas_must_agree_on_both_sides() -> None:
    asked = r"Compute $\arcsin \left( -\frac{1}{2} \right).$  Express your answer in radians."
    other = r"Compute $\arcsin 1.$  Express your answer in radians."
    found = find_contamination(other, asked.upper(), benchmarks=benchmark(asked))
    assert found.filter(kind=OVERLAP)["row"].unique().to_list() == [1]


def test_order_does_not_count() -> None:
    texts = [GLASSES, SPRINTS + GLASSES, PRIMES, "", SPRINTS]
    whole = find_contamination(*texts, benchmarks=BENCHMARKS[[2, 0, 3, 1]])
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


def test_a_file_gets_one_line_a_row(tmp_path: Path) -> None:
    bench = write_lines(tmp_path / "words.test.jsonl", [{"question": GLASSES}, {"question": SPRINTS}])
    task = write_lines(tmp_path / "in.jsonl", [{"id": 7, "problem": SPRINTS}, {"problem": PRIMES}, {"problem": None}])
    counted = contamination_file(task, [bench], tmp_path / "out.jsonl")
    lines = [orjson.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [(line["row"], len(line["hits"])) for line in lines] == [(0, 2), (1, 0), (2, 0)]
    hit = {"benchmark": "words", "row": 1, "method": "ngram", "score": 1.0, "agreement": 1.0, "kind": "overlap"}
    assert (lines[0]["id"], lines[0]["hits"][0]) == ("7", hit)
    assert counted == (3, 1, 0, {"ngram": 1, "words": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl", "words.test.jsonl"]


def test_a_file_that_cannot_be_meant_is_one_error(tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.jsonl", [{"problem": SPRINTS}])
    for rows, said in ([], "no rows"), ([{"a": 1}], "no column is named"), ([{"problem": 3}], "no row has a text"):
        bad = write_lines(tmp_path / "bad.jsonl", rows)
        for problems, benchmarks in ((bad, good), (good, bad)):
            with pytest.raises(SourceError, match=said):
                contamination_file(problems, [benchmarks], tmp_path / "out.jsonl")
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
    task = 'def near_numbers(xs):\n    """Are two numbers of the list near each other?"""\n    return 1'
    port = "```c\nbool close(int *a) {\n  /* Tells whether numbers of a list are near. */\n  return 1;\n}\n```"
    other = "```c\nint sum(int *a) {\n  /* Adds the numbers of a list. */\n  return 1;\n}\n```"
    embedder = Known()
    index = BenchmarkIndex(benchmark(task), OverlapSettings(("embedding",), programs=True), embedder)
    found = index.hits(pl.Series([other, port, None, " "]))
    assert found.select("row", "method", "kind").rows() == [(1, "embedding", "overlap")]
    assert embedder.texts == [
        "near numbers. Are two numbers of the list near each other?",
        "sum. Adds the numbers of a list.",
        "close. Tells whether numbers of a list are near.",
    ]


def found_hits(*lines: tuple[int, str, float, str, int], kind: str = OVERLAP) -> pl.DataFrame:
    names = ("row", "method", "score", "benchmark", "benchmark_row")
    rows = (dict(zip(names, line, strict=True)) for line in lines)
    return frame(HIT, *rows, agreement=float(kind == OVERLAP), formal=False, wording=1.0, kind=kind)


def problems(count: int) -> pl.DataFrame:
    return frame(PROBLEM, *({"id": f"p{n}", "row": 10 + n} for n in range(count)), source="s")


def test_rows_with_hits_leave_and_the_others_stay_in_order() -> None:
    found = found_hits((0, "ngram", 1.0, "exam", 4), (0, "words", 0.8123, "exam", 4), (0, "words", 0.6, "quiz", 1))
    kept, dropped = drop_contaminated(problems(4), found)
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept["id"].to_list() == ["p1", "p2", "p3"]
    evidence = "ngram 1.0 with row 4 of exam; words 0.812 with row 4 of exam"
    assert dropped.select("id", "reason", "evidence").rows() == [("p0", DropReason.CONTAMINATED, evidence)]


def test_templates_stay_unless_they_are_to_leave() -> None:
    rows, template = problems(2), found_hits((0, "words", 0.9, "exam", 4), kind=TEMPLATE)
    found = pl.concat([template, found_hits((1, "words", 0.8, "exam", 5))])
    assert count_templates(found) == 1
    assert count_templates(pl.concat([found, found_hits((0, "words", 0.8, "exam", 6))])) == 0  # it overlaps too
    assert drop_contaminated(rows, found)[1]["id"].to_list() == ["p1"]
    dropped = drop_contaminated(rows, found, with_templates=True)[1]
    assert dropped["evidence"].to_list() == ["template, words 0.9 with row 4 of exam", "words 0.8 with row 5 of exam"]


def test_two_benchmarks_of_one_name_are_refused() -> None:
    one = Source(name="exam", kind="jsonl", path="a.jsonl")
    with pytest.raises(ValidationError, match="two benchmarks are named exam"):
        DecontaminationSettings(against=(one, one))


PYTHON = '''from typing import List

def has_close_elements(numbers: List[float], threshold: float) -> bool:
    """ Check if in given list of numbers, are any two numbers closer to each other than
    given threshold.
    >>> has_close_elements([1.0, 2.0, 3.0], 0.5)
    False
    """
    for number in numbers:  # compares all
        pass
'''
JAVASCRIPT = """Here's how it can be translated to JavaScript:

```javascript
function nearElements(list) {
    /*
     * Tells whether two numbers of a list are nearer than a limit.
     * Examples:
     * nearElements([1, 2]) -> false
     */
    return false;
}
```
It loops over the list.
"""


def test_docstrings_without_their_examples() -> None:
    said = "has close elements. Check if in given list of numbers, are any two numbers closer to each other than given"
    assert program_text(PYTHON) == f"{said} threshold."


def test_block_comments_of_other_languages() -> None:
    assert program_text(JAVASCRIPT) == "near elements. Tells whether two numbers of a list are nearer than a limit."


def test_prose_and_code_that_says_nothing_stay_and_so_do_nulls() -> None:
    prose = "Write a function to find the shared elements of two lists.\nassert f((3, 4)) == 3"
    for text in (prose, "", "def f(x):\n    return x"):
        assert program_text(text) == text
    assert program_texts(pl.Series("s", [None, PYTHON, "a"])).to_list() == [None, program_text(PYTHON), "a"]
