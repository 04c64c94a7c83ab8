"""The last tier of the verifier: what is asked, and what can change."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.sampling import Sampler, SamplingRequest
from curation.questions.doubtful_verdicts import DOUBTFUL_VERDICTS, doubtful_pairs
from curation.records import VERDICT, Completion, Outcome, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.curation.drawn import KEY, Drawn, problems
from tests.curation.questions.test_votes import attempts
from tests.curation.tables import frame

PROBLEMS = pl.DataFrame({"id": ["p", "q"], "statement": ["What is 1/3?", "What is 1/7?"], "lang": ["en", "en"]})
DOUBT = "number (doubtful)"


def verdicts(*rows: tuple[str, str, Outcome, str]) -> pl.DataFrame:
    named = (
        {"problem": problem, "index": index, "answer": answer, "outcome": outcome.value, "method": method}
        | {"answer_class": int(outcome is Outcome.WRONG)}
        for index, (problem, answer, outcome, method) in enumerate(rows)
    )
    return frame(VERDICT, *named, reference="r")


def decided(before: pl.DataFrame, said: str) -> pl.DataFrame:
    """Return the verdicts after the same votes on every pair."""

    def ask(requests: Sequence[PromptRequest], wanted: int) -> pl.DataFrame:
        return attempts({request.id: said.split()[:wanted] for request in requests})

    vote = DOUBTFUL_VERDICTS
    votes = vote.answers(*doubtful_pairs(PROBLEMS, before, before), ask)
    return vote.apply(vote, PROBLEMS, votes, before, before)["verdicts"]


ASKED = verdicts(
    ("q", "0.14", Outcome.WRONG, DOUBT),
    ("p", "0.33", Outcome.WRONG, DOUBT),
    ("p", "0.33", Outcome.WRONG, DOUBT),
    ("p", "9", Outcome.WRONG, "number"),
    ("p", "1/3", Outcome.CORRECT, "number"),
    ("p", "0.3", Outcome.TIMEOUT, DOUBT),
)


def test_only_doubtful_refusals_are_asked_about_the_most_frequent_first() -> None:
    rows, requests = doubtful_pairs(PROBLEMS, ASKED, ASKED)
    assert rows.select("problem", "answer", "attempts").rows() == [("p", "0.33", 2), ("q", "0.14", 1)]
    assert "What is 1/3?" in requests[0].statement
    assert requests[0].id != requests[1].id


DRAWN = [st.sampled_from(values) for values in ("pq", "abc", list(Outcome), ["number", DOUBT])]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(*DRAWN)), st.sampled_from(["SAME SAME", "DIFFERENT DIFFERENT", "SAME DIFFERENT"]))
def test_only_doubtful_refusals_ever_change(rows: list[tuple[str, str, Outcome, str]], said: str) -> None:
    before = verdicts(*rows)
    after = decided(before, said)
    assert after.schema == before.schema
    for old, new in zip(before.iter_rows(named=True), after.iter_rows(named=True), strict=True):
        is_doubtful = old["outcome"] == Outcome.WRONG and old["method"] == DOUBT
        if not is_doubtful or said == "SAME DIFFERENT":
            assert old == new
        elif said == "SAME SAME":
            assert (new["outcome"], new["answer_class"]) == (Outcome.CORRECT, 0)
        else:
            assert (new["outcome"], new["answer_class"]) == (Outcome.WRONG, old["answer_class"])
            assert not new["method"].endswith("(doubtful)")


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
