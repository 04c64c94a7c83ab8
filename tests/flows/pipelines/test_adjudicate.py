"""`goldilocks adjudicate` with recorded debaters and judges: what is asked, shown, kept, and settled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.adjudication import VIEWS, Debate, Protocol, argued_by
from curation.policies.recorded import Recorded
from curation.publish.review import read_statements
from curation.records import Completion, PromptRequest, problem_id
from flows.pipelines.adjudicate import adjudicate
from tests.curation.adjudication.test_debates import HOSTILE
from tests.flows.conftest import TINY, Tiny, goldilocks, refusal, write_jsonl

CONFLICT = ("conflict 1", "conflicting_references", ("56", "54"))
WRONG_LABEL = ("wrong label", "suspected_wrong_label", ("91", "90"))
RIGHT = {"56", "90"}
TABLE = """
[adjudication]
protocol = "debate"
rounds = 2
debater = "speaker"
judge = "judge"
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
    protocols: Iterable[Protocol] = tuple(Protocol),
) -> None:
    """Write what debater and judge would say in every protocol, once a question."""
    speeches: dict[str, str | None] = {}
    votes: dict[str, str | None] = {}

    def speak(request: PromptRequest) -> str | None:
        return speeches.setdefault(request.statement, speaker(request))

    for protocol in protocols:
        for key, kind, answers in (CONFLICT, WRONG_LABEL):
            debate = Debate(problem_id(TINY[key][0]), kind, TINY[key][0], "en", answers, protocol)
            whole = argued_by(debate, 2, speak)
            if whole is not None:
                requests = [whole.view_request(view) for view in VIEWS]
                votes.update({request.statement: judge(request) for request in requests})
    inputs = run.recipe.parent
    for name, said in (("speeches", speeches), ("votes", votes)):
        rows = [{"asked": asked, "text": text} for asked, text in said.items() if text is not None]
        write_jsonl(inputs / f"{name}.jsonl", rows)


@pytest.fixture
def debated_run(tiny_copy: Tiny) -> Tiny:
    """A finished run of the tiny recipe with two disputes, and a table [adjudication]."""
    tiny_copy.recipe.write_text(tiny_copy.recipe.read_text() + TABLE)
    write_recorded(tiny_copy)
    before = {file: file.stat().st_mtime_ns for file in (tiny_copy.folder / "stages").rglob("*.parquet")}
    assert tiny_copy.run().status == 0
    assert before == {file: file.stat().st_mtime_ns for file in (tiny_copy.folder / "stages").rglob("*.parquet")}
    return tiny_copy


def rows_of(run: Tiny, protocol: str = "debate") -> dict[str, dict[str, Any]]:
    frame = pl.read_parquet(run.folder / "adjudication" / f"{protocol}.parquet")
    names = {problem_id(TINY[key][0]): key for key, _, _ in (CONFLICT, WRONG_LABEL)}
    return {names[row["id"]]: row for row in frame.iter_rows(named=True)}


@pytest.mark.parametrize("protocol", list(Protocol))
def test_disputes_are_judged_and_shown_and_nothing_is_decided(debated_run: Tiny, protocol: Protocol) -> None:
    said = goldilocks("adjudicate", debated_run.folder, "--set", f"adjudication.protocol={protocol.value}")
    assert said.status == 0, said.err
    assert "2 pairs of answers: 2 judged" in said.out
    rows = rows_of(debated_run, protocol.value)
    assert {key: (row["state"], row["score"], row["votes"]) for key, row in rows.items()} == {
        "conflict 1": ("judged", 1.0, 4),
        "wrong label": ("judged", 0.0, 4),
    }
    assert [len(row["transcript"]) for row in rows.values()] == [0 if protocol is Protocol.DIRECT else 4] * 2
    shown = goldilocks("review", debated_run.folder).out
    assert f"{protocol.value} on 91 against 90: the reference is right with probability 0.00" in shown
    assert "\x1b" not in shown
    if protocol is not Protocol.DIRECT:
        assert 'round 1, for the reference: It is 56. "What is" [stands in the problem]' in shown
        assert "round 2, for the rival: It is 54." in shown
    assert "2 disputed" in shown, "evidence settles nothing"
    assert not (debated_run.folder / "review.jsonl").exists()
    assert json.loads(goldilocks("adjudicate", debated_run.folder, "--json").out)["states"] == {"judged": 2}


def test_nobody_is_asked_twice(debated_run: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, asked = Recorded.answer, list[tuple[str, str]]()

    async def dying(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        if len(asked) == 11:
            raise KeyboardInterrupt
        asked.append((self.key.policy, problem.id))
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", dying)
    with pytest.raises(KeyboardInterrupt):
        adjudicate(debated_run.folder)
    assert [policy for policy, _ in asked] == ["speaker@1"] * 8 + ["judge@1"] * 3
    assert not (debated_run.folder / "adjudication").exists()
    stopped, asked[:] = set(asked), []

    async def watched(self: Recorded, problem: PromptRequest, index: int) -> Completion | None:
        asked.append((self.key.policy, problem.id))
        return await answer(self, problem, index)

    monkeypatch.setattr(Recorded, "answer", watched)
    adjudicate(debated_run.folder)
    assert len(asked) == 5
    assert not stopped & set(asked)
    first = (debated_run.folder / "adjudication" / "debate.jsonl").read_bytes()
    asked.clear()
    adjudicate(debated_run.folder)
    assert asked == []
    assert (debated_run.folder / "adjudication" / "debate.jsonl").read_bytes() == first


def test_a_judge_that_fails_decides_nothing(debated_run: Tiny) -> None:
    write_recorded(debated_run, judge=lambda request: judge(request) if "91" in request.statement else "Who knows?")
    result = adjudicate(debated_run.folder, ["adjudication.decide_at=0.6"])
    assert result.states == {"judged": 1, "no_verdict": 1}
    row = rows_of(debated_run)["conflict 1"]
    assert (row["score"], row["unreadable"]) == (None, 4)
    assert list(result.settled.values()) == ["90"]
    shown = goldilocks("review", debated_run.folder).out
    assert "the judge gave no readable verdict in every view, so nothing is decided" in shown


def test_a_side_that_says_nothing_is_accounted_for(debated_run: Tiny) -> None:
    def mute(request: PromptRequest) -> str | None:
        return None if "Your answer:\n\n> 90" in request.statement else speaker(request)

    write_recorded(debated_run, speaker=mute)
    result = adjudicate(debated_run.folder)
    assert result.states == {"judged": 1, "no_speech": 1}
    assert rows_of(debated_run)["wrong label"]["score"] is None


def test_scores_settle_where_the_recipe_says_so_and_people_count_more(debated_run: Tiny) -> None:
    name = problem_id(TINY["conflict 1"][0])
    assert goldilocks("review", debated_run.folder, "--accept", name, "--answer", "54").status == 0
    said = goldilocks("adjudicate", debated_run.folder, "--set", "adjudication.decide_at=0.9")
    assert "1 settled" in said.out, said.err
    spoken = read_statements(debated_run.folder)
    assert [one.answer for one in spoken[name]] == ["54"]
    (verdict,) = spoken[problem_id(TINY["wrong label"][0])]
    assert (verdict.answer, verdict.reviewer) == ("90", "goldilocks adjudicate (debate)")
    assert "probability 0.00" in (verdict.note or "")
    assert debated_run.run().status == 0
    mended = debated_run.table("data").filter(id=problem_id(TINY["wrong label"][0]))
    assert mended["answer"].to_list() == ["90"]


def test_what_cannot_be_meant_is_refused(debated_run: Tiny, tiny_run: Tiny, tmp_path: Path) -> None:
    assert "its recipe names no adjudication.judge" in refusal("adjudicate", tiny_run.folder)
    assert "no run.json" in refusal("adjudicate", tmp_path)
    assert "adjudicate changes adjudication.* and models.* only" in refusal(
        "adjudicate", debated_run.folder, "--set", "seed=1"
    )
    (debated_run.recipe.parent / "votes.jsonl").unlink()
    assert "votes.jsonl" in refusal("adjudicate", debated_run.folder)


def test_the_page_shows_what_was_said_as_text(debated_run: Tiny) -> None:
    from tests.flows.page.conftest import Visitor

    attack = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    write_recorded(debated_run, speaker=lambda request: f"{speaker(request)} {attack}", protocols=[Protocol.DEBATE])
    adjudicate(debated_run.folder)
    visitor = Visitor(debated_run.folder.parent)
    problem = problem_id(TINY["wrong label"][0])
    assert visitor.next("Ada", problem) == problem
    text = visitor.client.get("/r/run/review/next", params={"reviewer": "Ada", "problem": problem}).text
    assert "argued before a judge" in text
    assert "the reference is right with probability 0.00" in text
    assert "&lt;script&gt;window.hacked" in text
    assert "<script>window" not in text
    assert "<img src=x" not in text
