"""The last tier's rules: what is asked, what votes come to, and what can change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.llm_judge import (
    agreement_with_people,
    apply_opinions,
    decide_opinions,
    doubtful_comparisons,
    read_vote,
)
from curation.difficulty.open_problems import SamplingRequest
from curation.difficulty.sampling import Sampler
from curation.records import ATTEMPT, VERDICT, Completion, Outcome, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.curation.drawn import KEY, Drawn, problems

PROBLEMS = pl.DataFrame({"id": ["p", "q"], "statement": ["What is 1/3?", "What is 1/7?"], "lang": ["en", "en"]})
DOUBT = "number (doubtful)"


def verdicts(*rows: tuple[str, str, Outcome, str]) -> pl.DataFrame:
    named = [
        {"problem": problem, "index": index, "reference": "r", "answer": answer, "outcome": outcome.value}
        | {"method": method, "answer_class": 1 if outcome is Outcome.WRONG else 0}
        for index, (problem, answer, outcome, method) in enumerate(rows)
    ]
    return pl.DataFrame(named, schema=VERDICT)


def votes(comparisons: pl.DataFrame, *words: str) -> pl.DataFrame:
    rows = [
        {"problem": question, "index": index, "text": f"VERDICT: {word}"}
        for question, said in zip(comparisons["question"], words, strict=False)
        for index, word in enumerate(said.split())
    ]
    return pl.DataFrame(rows, schema=ATTEMPT)


ASKED = verdicts(
    ("q", "0.14", Outcome.WRONG, DOUBT),
    ("p", "0.33", Outcome.WRONG, DOUBT),
    ("p", "0.33", Outcome.WRONG, DOUBT),
    ("p", "9", Outcome.WRONG, "number"),
    ("p", "1/3", Outcome.CORRECT, "number"),
    ("p", "0.3", Outcome.TIMEOUT, DOUBT),
)


def test_only_refusals_in_doubt_are_asked_about_the_most_frequent_first() -> None:
    found = doubtful_comparisons(PROBLEMS, ASKED)
    assert found.select("problem", "answer", "attempts").rows() == [("p", "0.33", 2), ("q", "0.14", 1)]
    assert "What is 1/3?" in found["text"][0]
    assert found["question"].n_unique() == 2


@pytest.mark.parametrize(
    ("said", "agreement", "decision"),
    [
        ("SAME SAME SAME", 1.0, "same"),
        ("SAME SAME DIFFERENT", 1.0, "open"),
        ("SAME SAME DIFFERENT", 0.6, "same"),
        ("DIFFERENT DIFFERENT PERHAPS", 1.0, "different"),
        ("SAME PERHAPS PERHAPS", 1.0, "open"),
        ("UNSURE UNSURE UNSURE", 0.6, "open"),
        ("", 0.6, "open"),
    ],
)
def test_what_votes_come_to(said: str, agreement: float, decision: str) -> None:
    asked = doubtful_comparisons(PROBLEMS, ASKED)
    opinions = decide_opinions(asked, votes(asked, said), 1, agreement=agreement, min_votes=2)
    assert opinions["decision"].to_list() == [decision, "not_asked"]


def test_a_vote_is_the_last_line_of_what_is_not_thought() -> None:
    assert read_vote("VERDICT: SAME\nNo.\nVERDICT: DIFFERENT") == "different"
    assert read_vote("<think>VERDICT: SAME") == "unreadable"
    assert read_vote("VERDICT: SAME or DIFFERENT") == "unreadable"
    assert read_vote(None) == "unreadable"


@given(
    st.lists(
        st.tuples(
            st.sampled_from("pq"), st.sampled_from("abc"), st.sampled_from(Outcome), st.sampled_from(["number", DOUBT])
        )
    ),
    st.sampled_from(["SAME SAME", "DIFFERENT DIFFERENT", "SAME DIFFERENT"]),
)
def test_no_verdict_but_a_refusal_in_doubt_ever_changes(rows: list[tuple[str, str, Outcome, str]], said: str) -> None:
    before = verdicts(*rows)
    asked = doubtful_comparisons(PROBLEMS, before)
    opinions = decide_opinions(asked, votes(asked, *[said] * asked.height), asked.height, agreement=1.0, min_votes=2)
    after = apply_opinions(before, opinions)
    assert after.schema == before.schema
    for old, new in zip(before.iter_rows(named=True), after.iter_rows(named=True), strict=True):
        in_doubt = old["outcome"] == Outcome.WRONG and old["method"] == DOUBT
        if not in_doubt or said == "SAME DIFFERENT":
            assert old == new
        elif said == "SAME SAME":
            assert (new["outcome"], new["answer_class"]) == (Outcome.CORRECT, 0)
        else:
            assert (new["outcome"], new["answer_class"]) == (Outcome.WRONG, old["answer_class"])
            assert not new["method"].endswith("(doubtful)")


def test_agreement_with_people() -> None:
    decisions = pl.DataFrame({"question": ["1", "2", "3", "4"], "decision": ["same", "same", "different", "open"]})
    said = pl.DataFrame({"question": ["1", "2", "3", "4", "5"], "same": [True, False, False, True, True]})
    assert agreement_with_people(decisions, said) == (3, 2)


class Rounded(Drawn):
    """Rounds too far, always."""

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        self.asked.append((problem.id, index))
        return Completion(r"\boxed{0.33}", "stop", 3)


@pytest.mark.parametrize(("is_open", "made"), [(False, 3), (True, 4)])
def test_sampling_does_not_stop_by_verdicts_that_may_yet_be_decided(is_open: bool, made: int, tmp_path: Path) -> None:
    """Three of four wrong answers alike are a suspected wrong label, unless a model may call them right."""
    policy, rule = Rounded(in_flight=1), StoppingRule(Band(attempts=4))
    store = AttemptStore(tmp_path, KEY)
    with MathJudge(1) as judge:
        sampler = Sampler(policy, store, judge, rule, doubtful_is_open=is_open)

        async def run() -> list[str]:
            asked = (SamplingRequest(one, "1/3") for one in problems(1))
            return [verdict.method async for one in sampler.run(asked) for verdict in one.verdicts.values()]

        methods = asyncio.run(run())
    store.close()
    assert methods == [DOUBT] * made
