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
from flows.stages.statements import SCORES_TABLE, STATEMENTS, USABILITY
from tests.flows.conftest import write_jsonl
from tests.flows.run.test_runner import RECIPE

ROWS = [
    *({"q": f"What is {n} times {n % 7} plus 1?", "a": f"{n * (n % 7) + 1}"} for n in range(150)),
    {"q": "As shown in the figure, what is the area of the shaded region?", "a": "12"},
    {"q": "Prove that 2 is prime.", "a": None},
]


def stages(folder: Path, *settings: str) -> Results:
    run = new_run(folder / "r.toml", list(settings), folder / "run")
    return run_pipeline(run, (SOURCES, STATEMENTS, USABILITY))


def test_another_threshold_scores_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    write_jsonl(tmp_path / "sums.jsonl", ROWS)
    calls = []
    score = statements.score_statements
    monkeypatch.setattr(statements, "score_statements", lambda *given: calls.append(1) or score(*given))
    first = stages(tmp_path)
    assert len(calls) == 1  # the shards of 50 rows together
    assert first[STATEMENTS].manifest.kept == 151
    assert first[USABILITY].manifest.reasons == {"missing_figure": 1}
    scores = read_table(first[STATEMENTS].folder, SCORES_TABLE)
    assert scores["row"].to_list() == list(range(151))
    kept = first[USABILITY].manifest
    for threshold, dropped in (("1", 0), ("0.0001", 151)):
        again = stages(tmp_path, f"statements.unusable_from={threshold}", f"statements.suspected_from={threshold}")
        assert again[STATEMENTS].reused
        assert again[USABILITY].manifest.dropped == dropped
    assert stages(tmp_path)[USABILITY].manifest == kept
    assert len(calls) == 1
    lost = read_table(stages(tmp_path)[USABILITY].folder, "dropped")
    assert lost["evidence"].str.contains(r"^missing_figure: .*figure, score 0\.\d+$").all()
    assert isinstance(lost, pl.DataFrame)
