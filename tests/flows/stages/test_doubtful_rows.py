"""A model's votes on rows that the format filter is uncertain of: recorded ones decide, and are asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.questions.doubtful_rows import usability_request
from curation.storage.stages import read_table
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import new_run
from flows.run.stage import Results
from flows.stages.sources import SOURCES
from flows.stages.statements import DOUBTFUL_ROWS, STATEMENTS
from tests.flows.conftest import write_jsonl
from tests.flows.run.test_runner import RECIPE
from tests.flows.stages.conftest import asks_judge

SHADED = ("As shown in the figure, what is the area of the shaded region?", "12")
DRAWN = ("In the diagram, two circles of radius 3 touch. How far apart are their centres?", "6")
MUTE = ("As shown in the picture, how long is the side of the square?", "5")
PLAIN = ("A box holds 17 bags of 13 marbles. How many marbles is that?", "221")
WORDS = {
    SHADED: ("INCOMPLETE", "INCOMPLETE", "USABLE"),
    DRAWN: ("USABLE", "USABLE", "USABLE"),
    MUTE: ("PERHAPS", "PERHAPS", "USABLE"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.toml").write_text(RECIPE + asks_judge("doubtful_rows"))
    write_jsonl(tmp_path / "sums.jsonl", [{"q": text, "a": answer} for text, answer in (SHADED, DRAWN, MUTE, PLAIN)])
    votes = [
        {"question": usability_request(*row, "en").statement, "text": f"Let me see.\nVERDICT: {word}"}
        for row, words in WORDS.items()
        for word in words
    ]
    write_jsonl(tmp_path / "votes.jsonl", votes)
    return tmp_path


def stages(folder: Path, *settings: str) -> Results:
    run = new_run(folder / "r.toml", list(settings), folder / "run")
    return run_pipeline(run, (SOURCES, STATEMENTS, DOUBTFUL_ROWS))


def dropped(results: Results) -> dict[str, str]:
    table = read_table(results[DOUBTFUL_ROWS].folder, "dropped")
    return dict(table.select("statement", "evidence").iter_rows()) if table.width else {}


def test_votes_decide_on_rows_with_a_sign_of_trouble(folder: Path, judged: list[str]) -> None:
    first = stages(folder)
    votes = read_table(first[DOUBTFUL_ROWS].folder, "votes").sort("at")
    assert votes["at"].to_list() == [0, 1, 2]  # not the sum
    assert votes.select("usable", "incomplete", "unreadable").rows() == [(1, 2, 0), (3, 0, 0), (1, 0, 2)]
    assert first[DOUBTFUL_ROWS].manifest.reasons == {"unusable": 1}
    assert first[DOUBTFUL_ROWS].manifest.notes["uncertain"] == 1
    evidence = "2 of 3 votes name a fault, most often: incomplete, points at something"
    assert dropped(first) == {SHADED[0]: evidence}
    assert len(judged) == 9

    again = stages(folder, "questions.doubtful_rows.threshold=0.9")
    assert again[STATEMENTS].reused
    assert dropped(again) == {}
    assert len(judged) == 9
    (folder / "r.toml").write_text(RECIPE)
    without = stages(folder)
    assert without.get(DOUBTFUL_ROWS) is None
    assert read_table(without[STATEMENTS].folder, "kept").height == 4
