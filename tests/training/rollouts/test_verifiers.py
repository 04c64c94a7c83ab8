"""An attempt's way through form, verifier and reward; doubtful verdicts put to a model; tasks from data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.policies.completions import TokenCompletion
from curation.policies.endpoint import Endpoint
from curation.prompts import PLAIN
from curation.publish.export import CURATED
from curation.questions.doubtful_verdicts import PROMPT
from curation.records import TEST, Domain, Outcome, PromptRequest, SourceError, VerifierError
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict
from curation.verify.programs.problem import CodeProblem, CodeTest
from tests.curation.policies.test_endpoint import StandIn, settings
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.optimisation.model import load_tokenizer
from training.recipe import CuratedData
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import FILE, DoubtfulVerdicts, Verifiers

TESTS = CodeProblem("sum", (CodeTest(b"1 2\n", b"3\n"), CodeTest(b"4 4\n", b"8\n")))
SUM = TrainingTask(PromptRequest("sum", "Add the two numbers.", Domain.CODE, "en"), None, TESTS)


def asked(judges: Verifiers, task: TrainingTask, *texts: str) -> list[Verdict]:
    async def run() -> list[Verdict]:
        return list(await asyncio.gather(*(judges.verify(task, text, seed=1) for text in texts)))

    return asyncio.run(run())


def program(body: str) -> str:
    return f"<think>…</think>\n```python\n{body}\n```"


@pytest.fixture
def code() -> Iterator[Verifiers]:
    try:
        with Verifiers([TASK, SUM], 1, RewardSettings(code="proportional")) as opened:
            yield opened
    except VerifierError as error:
        pytest.skip(f"no sandbox here: {error}")


def test_math_is_judged_by_what_the_statement_asks_for() -> None:
    rope = TrainingTask(PromptRequest("rope", "How long is the rope in metres?", Domain.MATH, "en"), "31")
    with Verifiers([rope], 1, RewardSettings()) as judges:
        said = [f"<think>…</think>\\boxed{{{answer}}}" for answer in ("31", "3100 cm", "31\\text{ km}")]
        outcomes = [verdict.outcome for verdict in asked(judges, rope, *said)]
    assert outcomes == [Outcome.CORRECT, Outcome.CORRECT, Outcome.WRONG]


def test_code_with_the_share_of_tests_passed(code: Verifiers) -> None:
    right = "print(sum(map(int, input().split())))"
    found = asked(code, SUM, program(right), program("input()\nprint(3)"), "<think>…</think>no program")
    assert [verdict.outcome for verdict in found] == [Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER]
    assert [verdict.passed for verdict in found] == [1.0, 0.5, 0.0]
    text = program(right).removesuffix("\n```")  # the end of a finished program closes its block
    ends = [asyncio.run(code.verify(SUM, text, 1, finish)).outcome for finish in ("stop", "length")]
    assert ends == [Outcome.CORRECT, Outcome.NO_ANSWER]


def curated(folder: Path, *rows: dict[str, object]) -> CuratedData:
    (folder / "data").mkdir(parents=True)
    pl.DataFrame(list(rows), schema=CURATED).write_parquet(folder / "data" / "0.parquet")
    return CuratedData(kind="curated", folders=(folder.name,))


def test_tasks_of_a_curated_set(tmp_path: Path) -> None:
    data = curated(
        tmp_path / "set",
        {"id": "a", "domain": "math", "statement": "2 + 3?", "answer": "5", "lang": "en"},
        {"id": "b", "domain": "code", "statement": "Add.", "lang": "en", "meta": '{"language": "cpp"}'},
    )
    (tmp_path / "set/tests").mkdir()
    rows = [("b", 1, "4 4\n", "8\n"), ("b", 0, "1 2\n", "3\n")]
    tests = pl.DataFrame(rows, schema=["problem", "index", "input", "output"], orient="row").to_dicts()
    pl.DataFrame(tests, schema=TEST).write_parquet(tmp_path / "set/tests/0.parquet")
    tasks = load_tasks(data, Split.TRAIN, tmp_path)
    assert list(tasks) == ["a", "b"]
    assert tasks["a"].reference_answer == "5"
    assert tasks["b"].request.details == {"language": "cpp"}
    assert [case.output for case in tasks["b"].code_problem.tests] == [b"3\n", b"8\n"]


def test_what_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    row = {"id": "a", "domain": "math", "statement": "2 + 3?", "lang": "en"}
    solved = {**row, "answer": "5"}
    for message, rows in {
        "no reference": [row],
        "no tests": [{**row, "domain": "code"}],
        "twice": [solved, solved],
        "no problem": [],
    }.items():
        with pytest.raises(SourceError, match=message):
            load_tasks(curated(tmp_path / message, *rows), Split.TRAIN, tmp_path)


TASK = TrainingTask(PromptRequest("p1", "What is 2 + 2?", Domain.MATH, "en"), "4")
REWARDS = RewardSettings(max_length=100, language=0.0)


@pytest.fixture(scope="module")
def judges() -> Iterator[Verifiers]:
    with Verifiers([TASK], 1, REWARDS) as opened:
        yield opened


def judged(judges: Verifiers, text: str) -> Rollout:
    completion = TokenCompletion((1, 2), (5, 6, 2), (-0.1, -0.2, -0.3), (0, 0, 1), text, "stop")
    rollouts = RolloutRunner(load_tokenizer(WEIGHTS), PLAIN, judges, REWARDS, seed=1)
    return asyncio.run(rollouts.verify(TASK, completion, group=0))


def test_right_wrong_and_a_broken_form_that_never_reaches_the_verifier(judges: Verifiers) -> None:
    for text, outcome, total in (
        ("<think>2 + 2 = 4</think>The answer is \\boxed{4}.", Outcome.CORRECT, 1.0),
        ("<think>?</think>The answer is \\boxed{5}.", Outcome.WRONG, 0.1),
        ("The answer is \\boxed{4}.", None, 0),
    ):
        found = judged(judges, text)
        assert (found.outcome, found.reward.total) == (outcome, pytest.approx(total))
        assert ("<think>" in found.method) is (outcome is None)


CUPCAKES = TrainingTask(PromptRequest("p", "How many cupcakes are left?", Domain.MATH, "en"), "15")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    says = tmp_path / "says.json"
    says.write_text(json.dumps([["15 more cupcakes", "VERDICT: SAME"], ["refused", 400], ["", "VERDICT: DIFFERENT"]]))
    running = StandIn(tmp_path / "journal.jsonl", says=says)
    yield running
    running.stop()


def doubtful(answer: str, method: str = f"text{DOUBTFUL}") -> Verdict:
    return Verdict(Outcome.WRONG, answer, 1, method)


def decided(server: StandIn, run: Path, most: int, *verdicts: Verdict) -> tuple[list[Verdict], dict[str, float]]:
    async def work() -> tuple[list[Verdict], dict[str, float]]:
        async with Endpoint(settings(server), Path(), PROMPT) as policy:
            questions = DoubtfulVerdicts(policy, most, run)
            found = list(await asyncio.gather(*(questions.decide(CUPCAKES, verdict) for verdict in verdicts)))
            return found, questions.numbers()

    return asyncio.run(work())


def test_one_question_a_pair_decides_all_its_verdicts_and_is_kept(server: StandIn, tmp_path: Path) -> None:
    same, sure, other = doubtful("15 more cupcakes"), doubtful("15 more cupcakes", "number"), doubtful("14 or so")
    (first, second, third, fourth), numbers = decided(server, tmp_path, 9, same, same, sure, other)
    assert first == second
    assert (first.outcome, first.answer_class, first.method) == (Outcome.CORRECT, 0, "text (by 3 votes: same)")
    assert (third, fourth) == (sure, other)  # a proof is not overruled, and what differs stays doubtful
    counts = {"doubtful": 3.0, "accepted": 2.0, "failed": 0.0, "unasked": 0.0, "questions": 2.0}
    assert numbers == {f"verify/{name}": count for name, count in counts.items()}
    asked = len(server.seeds("asked"))
    assert asked == 6  # three votes on each of two pairs
    with (tmp_path / FILE).open("a") as file:
        file.write('{"problem": "p", "ans')  # a kill cut the last line
    (again,), _ = decided(server, tmp_path, 9, same)
    assert again == first
    assert len(server.seeds("asked")) == asked


def test_a_limit_and_a_refusal_leave_verdicts_as_they_are_and_are_counted(server: StandIn, tmp_path: Path) -> None:
    refused, (one, two) = doubtful("refused"), (doubtful("14 or so"), doubtful("13 or so"))
    found, numbers = decided(server, tmp_path, 2, one, refused, two)
    assert found == [one, refused, two]
    assert (numbers["verify/failed"], numbers["verify/unasked"], numbers["verify/questions"]) == (1.0, 1.0, 1.0)
