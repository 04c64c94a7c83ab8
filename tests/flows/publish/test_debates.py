"""`goldilocks review --debate` with recorded debaters and judges: what is asked, shown, kept, and settled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.policies.recorded import Recorded
from curation.publish.review import read_statements
from curation.questions.debates import ROUNDS, VIEWS, Debate
from curation.records import Completion, PromptRequest, problem_id
from flows.publish.debates import FILE, Debates, hold_debates
from tests.curation.questions.test_debates import HOSTILE, argued_by
from tests.flows.conftest import TINY, Tiny, goldilocks, refusal, write_jsonl

CONFLICT = ("conflict 1", ("56", "54"))
WRONG_LABEL = ("wrong label", ("91", "90"))
RIGHT = {"56", "90"}
MODELS = """
[models.speaker]
kind = "recorded"
name = "speaker@1"
path = "speeches.jsonl"
columns = { problem = "asked", text = "text" }
[models.judge]
kind = "recorded"
name = "judge@1"
path = "votes.jsonl"
columns = { problem = "asked", text = "text" }
"""
DEBATE = ("--debate", "judge", "--debater", "speaker")


def speaker(request: PromptRequest) -> str | None:
    mine = request.statement.split("Your answer:\n\n> ")[1].split("\n")[0]
    return f"<think>which?</think>It is {mine}. <quote>What is</quote>" + ("" if mine in RIGHT else f"\n{HOSTILE}")


def judge(request: PromptRequest) -> str | None:
    """Decides right, whatever is said."""
    is_a = any(f"Answer A:\n\n> {answer}\n" in request.statement for answer in RIGHT)
    return f"Its sums hold.\nVERDICT: {'A' if is_a else 'B'}"


def write_recorded(
    run: Tiny,
    judge: Callable[[PromptRequest], str | None] = judge,
    speaker: Callable[[PromptRequest], str | None] = speaker,
) -> None:
    """Write what debater and judge would say, once per question."""
    speeches: dict[str, str | None] = {}
    votes: dict[str, str | None] = {}

    def speak(request: PromptRequest) -> str | None:
        return speeches.setdefault(request.statement, speaker(request))

    for key, answers in (CONFLICT, WRONG_LABEL):
        whole = argued_by(Debate(problem_id(TINY[key][0]), TINY[key][0], "en", answers), ROUNDS, speak)
        if whole is not None:
            requests = [whole.view_request(view) for view in VIEWS]
            votes.update({request.statement: judge(request) for request in requests})
    inputs = run.recipe.parent
    for name, said in (("speeches", speeches), ("votes", votes)):
        rows = [{"asked": asked, "text": text} for asked, text in said.items() if text is not None]
        write_jsonl(inputs / f"{name}.jsonl", rows)


@pytest.fixture(scope="module")
def finished(tiny_run: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A finished run of the tiny recipe with two disputes, and models for debates; do not write into its folder."""
    run = tiny_run.copy(tmp_path_factory.mktemp("debates"))
    run.recipe.write_text(run.recipe.read_text() + MODELS)
    write_recorded(run)
    assert run.run().status == 0
    return run


def debated(run: Tiny, min_score: float | None = None) -> Debates:
    return hold_debates(run.folder, "judge", "speaker", min_score=min_score)


def rows_of(debates: Debates) -> dict[str, dict[str, Any]]:
    names = {problem_id(TINY[key][0]): key for key, _ in (CONFLICT, WRONG_LABEL)}
    return {names[row["id"]]: row for row in debates.rows.iter_rows(named=True)}


@pytest.mark.slow
def test_disputes_are_judged_and_shown_and_nothing_is_decided(finished: Tiny, tmp_path: Path) -> None:
    debated_run = finished.copy(tmp_path)
    said = goldilocks("review", debated_run.folder, *DEBATE)
    assert said.status == 0, said.err
    assert "2 pairs of answers: 2 judged, 0 without a score" in said.out
    rows = rows_of(debated(debated_run))
    assert {key: row["score"] for key, row in rows.items()} == {"conflict 1": 1.0, "wrong label": 0.0}
    assert [len(row["transcript"]) for row in rows.values()] == [2 * ROUNDS] * 2
    shown = goldilocks("review", debated_run.folder).out
    assert "debate on 91 against 90: the reference is right with probability 0.00" in shown
    assert "\x1b" not in shown
    assert "2 disputed" in shown, "evidence settles nothing"
    assert not (debated_run.folder / "review.jsonl").exists()


def test_no_request_is_made_twice(finished: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debated_run = finished.copy(tmp_path)
    answer, asked = Recorded.answer, list[tuple[str, str]]()
    dies_at = 4 * ROUNDS + 3

    async def dying(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        if len(asked) == dies_at:
            raise KeyboardInterrupt
        asked.append((self.key.policy, problem.id))
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", dying)
    with pytest.raises(KeyboardInterrupt):
        debated(debated_run)
    assert [policy for policy, _ in asked] == ["speaker@1"] * 4 * ROUNDS + ["judge@1"] * 3
    assert not (debated_run.folder / FILE).exists()
    stopped, asked[:] = set(asked), []

    async def watched(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        asked.append((self.key.policy, problem.id))
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", watched)
    debated(debated_run)
    assert len(asked) == 5
    assert not stopped & set(asked)
    first = (debated_run.folder / FILE).read_bytes()
    asked.clear()
    debated(debated_run)
    assert asked == []
    assert (debated_run.folder / FILE).read_bytes() == first


def test_a_judge_or_a_debater_that_fails_decides_nothing(finished: Tiny, tmp_path: Path) -> None:
    debated_run = finished.copy(tmp_path)
    write_recorded(debated_run, judge=lambda request: judge(request) if "91" in request.statement else "Who knows?")
    result = debated(debated_run, min_score=0.6)
    assert rows_of(result)["conflict 1"]["score"] is None
    assert list(result.settled.values()) == ["90"]
    shown = goldilocks("review", debated_run.folder).out
    assert "the judge gave no readable verdict in 4 of 4 views, so nothing is decided" in shown

    def mute(request: PromptRequest) -> str | None:
        return None if "Your answer:\n\n> 90" in request.statement else speaker(request)

    silent = finished.copy(tmp_path / "silent")
    write_recorded(silent, speaker=mute)
    rows = rows_of(debated(silent))
    assert {key: row["why"] for key, row in rows.items()} == {
        "conflict 1": None,
        "wrong label": "a side gave no speech",
    }


def test_scores_settle_from_a_probability_on_and_people_count_more(finished: Tiny, tmp_path: Path) -> None:
    debated_run = finished.copy(tmp_path)
    name = problem_id(TINY["conflict 1"][0])
    assert goldilocks("review", debated_run.folder, "--accept", name, "--answer", "54").status == 0
    said = goldilocks("review", debated_run.folder, *DEBATE, "--decide-at", "0.9")
    assert "1 settled" in said.out, said.err
    spoken = read_statements(debated_run.folder)
    assert [one.answer for one in spoken[name]] == ["54"]
    (verdict,) = spoken[problem_id(TINY["wrong label"][0])]
    assert (verdict.answer, verdict.reviewer) == ("90", "debate")
    assert "probability 0.00" in (verdict.note or "")


def test_what_cannot_be_meant_is_refused(finished: Tiny, tmp_path: Path) -> None:
    debated_run = finished.copy(tmp_path)
    folder = debated_run.folder
    assert "no table [models.jugde]; defined: " in refusal("review", folder, "--debate", "jugde")
    assert "no run.json" in refusal("review", tmp_path, *DEBATE)
    assert "changes models.* only" in refusal("review", folder, *DEBATE, "--set", "seed=1")
    assert "need --debate MODEL" in refusal("review", folder, "--decide-at", "0.9")
    assert "each is a command of its own" in refusal("review", folder, *DEBATE, "--audit", "5")
    server = 'models.judge={ kind = "endpoint", model = "m", revision = "1", urls = ["http://127.0.0.1:9/v1"] }'
    assert "models.judge: " in refusal("review", folder, *DEBATE, "--set", server)
    (debated_run.recipe.parent / "votes.jsonl").unlink()
    assert "votes.jsonl" in refusal("review", folder, *DEBATE)
