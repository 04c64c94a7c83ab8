"""Votes: read, counted, decided, and rows dropped by them."""

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from curation.questions.doubtful_verdicts import DOUBTFUL_VERDICTS
from curation.questions.overlaps import OVERLAPS
from curation.questions.premises import PREMISES
from curation.questions.votes import every_row
from curation.records import ATTEMPT, DROPPED, PROBLEM, PromptRequest
from tests.curation.tables import check_table, frame


def test_the_last_verdict_after_the_thoughts_is_the_vote() -> None:
    check_table("votes read", PREMISES.read)


def attempts(votes: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    rows = (
        {"problem": name, "index": index, "text": f"VERDICT: {word}"}
        for name, words in votes.items()
        for index, word in enumerate(words)
    )
    return frame(ATTEMPT, *rows)


VOTES = {
    "good": ["SOUND", "SOUND", "MISSING"],
    "bad": ["MISSING", "CONTRADICTORY", "CONTRADICTORY"],
    "mute": ["?", "?", "MISSING"],
}
NAMES = pl.Series(["good", "bad", "mute", "new"])


@pytest.mark.parametrize(
    ("threshold", "min_readable", "decisions"),
    [
        (0.5, 2, ["sound", "contradictory", None, None]),
        (1 / 3, 2, ["missing", "contradictory", None, None]),
        (1.0, 1, ["sound", "contradictory", "missing", None]),
        (0.5, 4, [None] * 4),
    ],
)
def test_faults_count_together_against_the_threshold(
    threshold: float, min_readable: int, decisions: list[str | None]
) -> None:
    decided = PREMISES.decide(NAMES, attempts(VOTES), threshold, min_readable)
    assert decided["decision"].to_list() == decisions
    assert decided["evidence"].null_count() == 0
    if min_readable == 2:
        assert decided["evidence"][1:3].to_list() == [
            "3 of 3 votes name a fault, most often: contradictory",
            "only 1 readable votes",
        ]


def test_one_word_alone_must_reach_the_threshold() -> None:
    def decision(words: str, threshold: float) -> str | None:
        votes = attempts({"q": words.split()})
        found: str | None = DOUBTFUL_VERDICTS.decide(pl.Series(["q"]), votes, threshold, 2)["decision"].item()
        return found

    check_table("votes decided", decision)


def problems(*names: str) -> pl.DataFrame:
    rows = ({"id": name, "statement": f"What is {name}?"} for name in names)
    return frame(PROBLEM, *rows, domain="math", lang="en")


def ask(requests: Sequence[PromptRequest], wanted: int) -> pl.DataFrame:
    return attempts({one.id: VOTES.get(one.id, [])[:wanted] for one in requests})


def test_rows_leave_by_a_decision_and_what_is_uncertain_or_not_asked_stays() -> None:
    asked_about = problems("bad", "good", "mute", "bad", "new")
    rows, requests = every_row(asked_about)
    requests[3] = "not today"
    votes = PREMISES.answers(rows, requests, ask)
    made = PREMISES.apply(PREMISES, asked_about, votes)
    assert made["kept"].schema == PROBLEM
    assert made["kept"]["id"].to_list() == ["good", "mute", "bad", "new"]
    assert made["dropped"].schema == DROPPED
    (gone,) = made["dropped"].to_dicts()
    assert (gone["id"], gone["stage"], gone["reason"]) == ("bad", "premises", "faulty_premises")
    assert votes["why"].to_list() == [None, None, None, "not today", None]
    assert PREMISES.notes(votes) == {
        "decided sound": 1, "decided missing": 0, "decided contradictory": 1, "decided undetermined": 0, "uncertain": 2
    }  # fmt: skip


def test_a_row_that_is_asked_about_twice_leaves_by_its_first_fault() -> None:
    about = ["row 1 of exam", "row 2 of exam", "row 3 of exam"]
    rows = pl.DataFrame({"at": [0, 0, 0], "id": ["p"] * 3, "about": about}, schema_overrides={"at": pl.UInt32})
    words = {"a": ["DIFFERENT"] * 3, "b": ["SAME", "SAME", "DIFFERENT"], "c": ["SAME"] * 3}
    decided = OVERLAPS.decide(pl.Series(list(words)), attempts(words), 0.6, 2)
    votes = pl.concat([rows, decided], how="horizontal")
    made = OVERLAPS.apply(OVERLAPS, problems("p"), votes)
    assert made["kept"].is_empty()
    evidence = [("contaminated", "2 of 3 votes: same, row 2 of exam")]
    assert made["dropped"].select("reason", "evidence").rows() == evidence
