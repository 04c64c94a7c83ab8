"""An attempt: through form, verifier and reward, doubtful verdicts, tasks from data, and its text on disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from curation.policies.completions import TokenCompletion
from curation.policies.endpoint import Endpoint
from curation.prompts import PLAIN
from curation.publish.export import CURATED
from curation.questions.doubtful_verdicts import PROMPT
from curation.records import (
    ATTEMPT,
    TEST,
    VERDICT,
    Domain,
    Outcome,
    PromptRequest,
    SourceError,
    StoreError,
    VerifierError,
)
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict
from curation.verify.programs.problem import CodeProblem, CodeTest
from tests.curation.policies.test_endpoint import StandIn, settings
from tests.training.optimisation.test_trainer import recipe
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split
from training.optimisation.model import load_tokenizer
from training.recipe import AttemptStoring, CuratedData
from training.rewards import Reward
from training.rollouts.attempt_log import (
    AttemptLog,
    attempt_tables,
    count_attempts,
    read_attempts,
    rollout_origin,
    verdict_tables,
)
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


SUMMED = TrainingTask(PromptRequest("p1", "What is 17 + 25?", Domain.MATH, "en"), "42")


def rollout(text: str = "<think></think>\\boxed{42}", outcome: Outcome | None = Outcome.CORRECT) -> Rollout:
    completion = TokenCompletion((1,), (5, 6, 7), (-0.1, -0.2, -0.3), (3, 3, 4), text, "stop")
    answer = "42" if outcome is Outcome.CORRECT else None
    return Rollout("p1", completion, Reward(), outcome, "number" if outcome else "no boxed answer", answer)


def log(run: Path, kept_parts: Sequence[str] = (), storing: AttemptStoring = "texts") -> AttemptLog:
    verifiers = Verifiers([SUMMED], 1, RewardSettings())
    verifiers.__enter__()  # it starts no process before it judges
    made = recipe(attempt_store=storing, evaluation={"attempts": 2})
    return AttemptLog(run, made, WEIGHTS, verifiers, kept_parts)


def record(written: AttemptLog, group: int, count: int = 4, text: str | None = None) -> None:
    for index in range(count):
        made = rollout(text or f"group {group}, attempt {index}")
        written.record(SUMMED, made, index, rollout_origin("training", 2, 3, made, group))


def test_what_is_recorded_is_read_back_with_its_origin_and_its_verdict(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        first, broken = rollout(), rollout("I\ud800 think\x00", None)
        written.record(SUMMED, first, 1, rollout_origin("training", 2, 3, first, 57))
        written.record(SUMMED, broken, 0, rollout_origin("evaluation", 5, 5, broken, 2**40))
    row, held_out = read_attempts(tmp_path).to_dicts()
    policy = f"weights@{folder_revision(WEIGHTS)}+training:test"
    wanted = {"problem": "p1", "policy": policy, "prompt": "plain@1", "index": 57 * 4 + 1}
    wanted |= {"text": "<think></think>\\boxed{42}", "answer": None, "finish": "stop", "tokens": 3, "label": None}
    wanted |= {"token_ids": None, "logprobs": None, "purpose": "training", "step": 2, "version": 3}
    wanted |= {"newest_version": 4, "rollout_group": 57, "sampling": row["sampling"]}
    assert {name: row[name] for name in ATTEMPT} == wanted
    assert held_out["text"] == "I? think\x00"
    assert (held_out["index"], held_out["version"], held_out["rollout_group"]) == (5 * 2, 5, 2**40)
    assert held_out["sampling"] != row["sampling"]
    verdicts = pl.concat(verdict_tables(tmp_path))
    assert verdicts.schema == VERDICT
    shown = verdicts.sort("index").select("index", "reference", "outcome", "answer", "answer_class", "method")
    assert shown.rows() == [(10, "42", None, None, None, "no boxed answer"), (229, "42", "correct", "42", 0, "number")]
    assert count_attempts(tmp_path) == {"training": 1, "evaluation": 1}
    assert json.loads(next((tmp_path / "attempts").glob("*/key.json")).read_text())["kind"] == "training"


def test_a_resumed_run_keeps_what_its_checkpoint_names_and_no_more(tmp_path: Path) -> None:
    with log(tmp_path) as written:
        record(written, 0)
        early = written.checkpoint().result()
        record(written, 1)
        late = written.checkpoint().result()
        record(written, 2)  # in the journal when the run was killed
    assert read_attempts(tmp_path, ["rollout_group"])["rollout_group"].unique().sort().to_list() == [0, 1, 2]
    assert set(early) < set(late)
    with log(tmp_path, late) as resumed:
        record(resumed, 2, text="again")
        assert set(resumed.checkpoint().result()) > set(late)
    kept = read_attempts(tmp_path, ["rollout_group", "text"])
    assert kept.filter(rollout_group=2)["text"].to_list() == ["again"] * 4
    with log(tmp_path, early, storing="none") as resumed:  # from an older checkpoint; it keeps no more
        record(resumed, 1)
        assert resumed.checkpoint().result() == early
    assert read_attempts(tmp_path, ["index"])["index"].to_list() == [0, 1, 2, 3]
    assert sum(table.height for table in verdict_tables(tmp_path)) == 4
    with log(tmp_path):  # from the beginning
        pass
    assert count_attempts(tmp_path) == {}
    with pytest.raises(StoreError, match="keeps no attempts"):
        read_attempts(tmp_path)


def test_reading_goes_on_while_attempts_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.rollouts.attempt_log._TOGETHER", 1)
    with log(tmp_path) as written:
        record(written, 0)
        written.checkpoint().result()
        record(written, 1)
        tables = attempt_tables(tmp_path, ["problem", "index"])
        first = next(tables)  # a part; the journal was read before it
        written.checkpoint().result()
        record(written, 2)
        rest = list(tables)
    indices = [index for table in (first, *rest) for index in table["index"].to_list()]
    assert sorted(indices)[:8] == list(range(8))
    assert len(indices) == len(set(indices))


def test_a_disk_that_takes_nothing_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "attempts").write_text("a file in place of the folder")
    message = r"attempts cannot be written .*attempt_store = \"none\""
    with pytest.raises(StoreError, match=message), log(tmp_path) as written:
        record(written, 0)
