"""The format filter on labelled real data, where that lies beside the checkout; skipped where it does not."""

from __future__ import annotations

import json
from functools import cache

import polars as pl
import pytest

from curation.filters.statements import classify
from curation.records import DropReason
from tests.benchmarks.labelled_rows import LABELS
from tests.places import SHARED_DATA

DATA = SHARED_DATA / "math"
CHOICE_REASONS = [DropReason.MULTIPLE_CHOICE]


@cache
def classified(name: str) -> pl.DataFrame:
    """The verdicts on one set, with the labeller's ``kind`` and the row as it came."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no labelled data at {path}; set GOLDILOCKS_DATA to the folder that holds math/")
    with path.open(encoding="utf-8") as lines:
        raw = [json.loads(line) for line in lines]
    rows = pl.DataFrame(
        {
            "id": [row["id"] for row in raw],
            "statement": [row["problem"] for row in raw],
            "answer": [None if row["answer"] is None else str(row["answer"]) for row in raw],
            "choices": [row["choices"] for row in raw],
            "lang": [row["lang"] for row in raw],
            "source": [row["source"] for row in raw],
            "meta": [json.dumps(row.get("meta")) for row in raw],
        },
        schema_overrides={"choices": pl.List(pl.String), "answer": pl.String, "meta": pl.String},
    )
    return classify(rows).with_columns(kind=pl.Series([row["kind"] for row in raw]), asked=rows["answer"])


def test_proofs_are_dropped_as_proofs() -> None:
    lines = pl.concat([classified("imo_proofbench"), classified("minif2f_informal")])
    assert lines["reason"].is_in([DropReason.PROOF, DropReason.MISSING_ANSWER]).mean() >= 0.97
    assert (lines["reason"] == DropReason.PROOF).mean() >= 0.9


@pytest.mark.parametrize("name", ["aqua_rat", "tal_scq5k"])
def test_multiple_choice_is_recognised(name: str) -> None:
    lines = classified(name)
    rewritten = pl.col("keep") & (pl.col("answer") != pl.col("asked"))
    assert lines.select((rewritten | pl.col("reason").is_in(CHOICE_REASONS)).mean()).item() >= 0.99
    assert lines["keep"].mean() >= 0.5  # type: ignore[operator]


@pytest.mark.parametrize("name", ["gsm8k", "svamp", "mgsm", "imo_answerbench", "olymmath", "polymath"])
def test_open_problems_stay(name: str) -> None:
    assert classified(name)["keep"].mean() >= 0.985  # type: ignore[operator]


@pytest.mark.parametrize("name", ["umwp", "mip_missing_premise"])
def test_rows_without_an_answer_miss_it_and_the_others_stay(name: str) -> None:
    lines = classified(name)
    missing = lines.filter(pl.col("asked").is_null())
    assert (missing["reason"] == DropReason.MISSING_ANSWER).mean() >= 0.99
    assert lines.filter(pl.col("asked").is_not_null())["keep"].mean() >= 0.985  # type: ignore[operator]


def test_latex_debris_is_gone_from_what_is_kept() -> None:
    kept = classified("odyssey_math").filter("keep")
    for column in ("statement", "answer"):
        assert not kept[column].str.contains(r"\\end\{problem\}|\\noindent|\\\\\s*$").any()
    assert not kept["answer"].str.contains(r"^\W*[A-E]\W*$").any()


def test_labels_are_of_one_row_each_and_say_how() -> None:
    labels = pl.read_csv(LABELS, separator="\t", schema_overrides={"weight": pl.Float64})
    assert labels.columns == ["id", "hash", "label", "how", "weight"]
    assert labels["id"].n_unique() == labels.height
    assert set(labels["how"]) == {"after", "read", "set"}
    assert (labels["how"] == "read").sum() >= 3000
    assert labels.filter(pl.col("weight").is_not_null())["how"].unique().to_list() == ["read"]
