"""Another threshold of the format filter's classifier: the scores that were stored are read, no text again."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.filters import statements
from curation.storage.stages import read_table
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import new_run
from flows.run.stage import Results
from flows.stages.sources import SOURCES
from flows.stages.statements import SCORES_TABLE, STATEMENTS, USABILITY, VERDICTS
from tests.flows.conftest import write_jsonl
from tests.flows.run.test_runner import RECIPE

ROWS = [
    *({"q": f"What is {n} times {n % 7} plus 1?", "a": f"{n * (n % 7) + 1}"} for n in range(150)),
    {"q": "As shown in the figure, what is the area of the shaded region?", "a": "12"},
    {"q": "Prove that 2 is prime.", "a": None},
]


def stages(folder: Path, *settings: str) -> Results:
    run = new_run(folder / "r.toml", list(settings), folder / "run")
    return run_pipeline(run, (SOURCES, VERDICTS, STATEMENTS, USABILITY))


def test_another_threshold_scores_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    write_jsonl(tmp_path / "sums.jsonl", ROWS)
    calls = []
    measure = statements.measure
    monkeypatch.setattr(statements, "measure", lambda *given: calls.append(1) or measure(*given))
    first = stages(tmp_path)
    assert len(calls) == 1  # the shards of 50 rows together
    assert first[STATEMENTS].manifest.kept == 151
    assert first[USABILITY].manifest.reasons == {"missing_figure": 1}
    scores = read_table(first[STATEMENTS].folder, SCORES_TABLE)
    assert scores["row"].to_list() == list(range(151))
    kept = first[USABILITY].manifest
    for threshold, dropped in (("1", 0), ("0.0001", 151)):
        again = stages(tmp_path, f"statements.unusable_from={threshold}", f"statements.suspected_from={threshold}")
        assert again[VERDICTS].reused
        assert again[STATEMENTS].reused
        assert again[USABILITY].manifest.dropped == dropped
    assert stages(tmp_path)[USABILITY].manifest == kept
    assert len(calls) == 1
    lost = read_table(stages(tmp_path)[USABILITY].folder, "dropped")
    assert lost["evidence"].str.contains(r"^missing_figure: .*figure, score 0\.\d+$").all()
    assert isinstance(lost, pl.DataFrame)


def test_a_rule_below_the_threshold_gives_its_rows_back_and_no_text_is_read_again(tmp_path: Path) -> None:
    rows = [
        {"q": "What is $x$? What is $y$, where $x+y=7$ and $x-y=1$? How many are there?", "a": "4"},
        {"q": "How many apples are there? How many pears are there?", "a": "7"},
        {"q": "What is 3 times 4?", "a": "12"},
        {"q": "Prove that 2 is prime.", "a": None},
    ]
    (tmp_path / "r.toml").write_text(RECIPE)
    write_jsonl(tmp_path / "sums.jsonl", rows)
    first = stages(tmp_path)
    assert first[STATEMENTS].manifest.reasons == {"multi_part": 2, "proof": 1}
    shards = {path: path.read_bytes() for path in sorted(first[VERDICTS].folder.rglob("*.parquet"))}
    lost = read_table(first[STATEMENTS].folder, "dropped")
    assert lost["evidence"].str.contains(r"^(also_asked|proof|missing_answer): .*, score (0\.\d+|1\.0)$").all()
    strict = stages(tmp_path, "statements.drop_from=0.99")
    assert strict[VERDICTS].reused
    assert {path: path.read_bytes() for path in sorted(strict[VERDICTS].folder.rglob("*.parquet"))} == shards
    assert strict[STATEMENTS].manifest.reasons == {"proof": 1}
    back = read_table(strict[STATEMENTS].folder, SCORES_TABLE).filter(pl.col("rule").is_not_null())
    assert back["rule"].to_list() == ["also_asked", "also_asked"]  # a suspicion now, weighed by the classifier's score
    assert strict[USABILITY].manifest.dropped == (back["score"] >= 0.5).sum()
    assert stages(tmp_path, "statements.drop_from=1")[STATEMENTS].manifest.reasons == {"missing_answer": 1}
    assert stages(tmp_path)[STATEMENTS].manifest == first[STATEMENTS].manifest
