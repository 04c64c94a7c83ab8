"""A model's votes on rows that the format filter is uncertain of: recorded ones decide, and are asked for once."""

from __future__ import annotations

from pathlib import Path

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

SHADED = "As shown in the figure, what is the area of the shaded region?"
ROWS = {
    (SHADED, "12"): ("INCOMPLETE", "INCOMPLETE", "USABLE"),
    ("In the diagram, two circles of radius 3 touch. How far apart are their centres?", "6"): ("USABLE",) * 3,
    ("As shown in the picture, how long is the side of the square?", "5"): ("PERHAPS", "PERHAPS", "USABLE"),
    ("A box holds 17 bags of 13 marbles. How many marbles is that?", "221"): (),
}


def test_votes_decide_on_rows_with_a_sign_of_trouble(tmp_path: Path, judged: list[str]) -> None:
    (tmp_path / "r.toml").write_text(RECIPE + asks_judge("doubtful_rows"))
    write_jsonl(tmp_path / "sums.jsonl", [{"q": text, "a": answer} for text, answer in ROWS])
    votes = [
        {"question": usability_request(*row, "en").statement, "text": f"Let me see.\nVERDICT: {word}"}
        for row, words in ROWS.items()
        for word in words
    ]
    write_jsonl(tmp_path / "votes.jsonl", votes)

    def stages(*settings: str) -> Results:
        run = new_run(tmp_path / "r.toml", settings, tmp_path / "run")
        return run_pipeline(run, (SOURCES, STATEMENTS, DOUBTFUL_ROWS))

    first = stages()[DOUBTFUL_ROWS]
    asked = read_table(first.folder, "votes").sort("at").select("at", "usable", "incomplete", "unreadable").rows()
    assert asked == [(0, 1, 2, 0), (1, 3, 0, 0), (2, 1, 0, 2)], "not the marbles"
    assert first.manifest.reasons == {"unusable": 1}
    assert first.manifest.notes["uncertain"] == 1
    evidence = "2 of 3 votes name a fault, most often: incomplete, points at something"
    assert read_table(first.folder, "dropped").select("statement", "evidence").rows() == [(SHADED, evidence)]

    again = stages("questions.doubtful_rows.threshold=0.9")
    assert again[STATEMENTS].reused
    assert again[DOUBTFUL_ROWS].manifest.reasons == {}
    assert len(judged) == 9, "those of the first run"
    (tmp_path / "r.toml").write_text(RECIPE)
    without = stages()
    assert without.get(DOUBTFUL_ROWS) is None
    assert read_table(without[STATEMENTS].folder, "kept").height == 4
