"""Votes on a problem's premises: read, counted, weighed; and a recorded judge asked through the house's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
import pytest

from curation.filters.premises import TALLY, PremiseVote, decide_premises, read_vote, tally_votes
from curation.prompts.premises import PREMISES
from curation.records import ATTEMPT, AttemptKey, Completion, Domain, Policy, PromptRequest
from curation.storage.attempts import AttemptStore


@pytest.mark.parametrize(
    ("text", "vote"),
    [
        ("All is given.\n\nVERDICT: SOUND", PremiseVote.SOUND),
        ("The rate is unknown.\nVERDICT: MISSING", PremiseVote.MISSING),
        ("**VERDICT: CONTRADICTORY**", PremiseVote.CONTRADICTORY),
        ("verdict - undetermined.", PremiseVote.UNDETERMINED),
        ("<think>VERDICT: MISSING? No.</think>\nVERDICT: SOUND", PremiseVote.SOUND),
        ("VERDICT: MISSING\nOn reflection:\nVERDICT: SOUND", PremiseVote.SOUND),
        ("<think>It goes on and on. VERDICT: SOUND", PremiseVote.UNREADABLE),
        ("VERDICT: MISSING? No.</think>VERDICT: SOUND", PremiseVote.SOUND),
        ("VERDICT: SOUND or MISSING", PremiseVote.UNREADABLE),
        ("VERDICT:", PremiseVote.UNREADABLE),
        ("The problem is sound.", PremiseVote.UNREADABLE),
        ("", PremiseVote.UNREADABLE),
        (None, PremiseVote.UNREADABLE),
    ],
)
def test_the_last_verdict_behind_the_thoughts_is_the_vote(text: str | None, vote: PremiseVote) -> None:
    assert read_vote(text) == vote


def attempts(votes: Mapping[str, list[str]]) -> pl.DataFrame:
    rows = [
        dict.fromkeys(ATTEMPT) | {"problem": name, "index": index, "text": f"VERDICT: {word}"}
        for name, words in votes.items()
        for index, word in enumerate(words)
    ]
    return pl.DataFrame(rows, schema=ATTEMPT)


VOTES = {
    "good": ["SOUND", "SOUND", "MISSING"],
    "bad": ["MISSING", "CONTRADICTORY", "CONTRADICTORY"],
    "mute": ["?", "?", "MISSING"],
}
NAMES = pl.Series(["good", "bad", "mute", "new"])


def test_votes_are_counted_problem_by_problem() -> None:
    counted = tally_votes(NAMES, attempts(VOTES))
    assert counted.schema == TALLY
    assert counted["problem"].to_list() == NAMES.to_list()
    assert counted["readable"].to_list() == [3, 3, 1, 0]
    assert counted["share"].to_list() == [pytest.approx(1 / 3), 1.0, 1.0, None]
    assert counted["fault"].to_list() == ["missing", "contradictory", "missing", None]
    assert counted["unreadable"].to_list() == [0, 0, 2, 0]


@pytest.mark.parametrize(
    ("threshold", "least", "kept"),
    [
        (0.5, 2, ["good", "mute", "new"]),
        (1 / 3, 2, ["mute", "new"]),
        (1.0, 1, ["good", "new"]),
        (0.5, 4, NAMES.to_list()),
    ],
)
def test_a_threshold_decides_and_asks_nobody(threshold: float, least: int, kept: list[str]) -> None:
    decided = decide_premises(tally_votes(NAMES, attempts(VOTES)), threshold, least)
    assert decided.filter("keep")["problem"].to_list() == kept
    assert decided["evidence"].null_count() == 0


class RecordedJudge:
    """A judge that answers from a table of votes; a problem that is not in it has no vote."""

    key = AttemptKey("judge@recorded", PREMISES.version, "none")
    in_flight = 4

    @property
    def about(self) -> Mapping[str, Any]:
        return {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        assert PREMISES.messages(problem)[-1]["content"].endswith(problem.statement)
        votes = VOTES.get(problem.id, [])
        return Completion(f"VERDICT: {votes[index]}", "stop", 3) if index < len(votes) else None


def test_votes_are_measurements_in_the_store_under_the_prompts_version(tmp_path: Path) -> None:
    judge: Policy = RecordedJudge()
    store = AttemptStore(tmp_path, judge.key, judge.about)

    async def ask(name: str, index: int) -> dict[str, Any] | None:
        said = await judge.answer(PromptRequest(name, f"What is {name}?", Domain.MATH, "en"), index)
        key = {"policy": judge.key.policy, "prompt": judge.key.prompt, "sampling": judge.key.sampling}
        return said and dict.fromkeys(ATTEMPT) | key | {"problem": name, "index": index, "text": said.text}

    async def all_votes() -> list[dict[str, Any] | None]:
        lacking = store.missing_indices(NAMES, 3)
        return await asyncio.gather(*(ask(name, index) for name, indices in lacking.items() for index in indices))

    store.append(pl.DataFrame([row for row in asyncio.run(all_votes()) if row], schema=ATTEMPT))
    assert store.height == 9
    held = store.read(NAMES.to_list())
    assert held["prompt"].unique().to_list() == ["premises@1"]
    assert tally_votes(NAMES, held).equals(tally_votes(NAMES, attempts(VOTES)))
    assert store.missing_indices(["good", "bad", "mute"], 3) == {}
