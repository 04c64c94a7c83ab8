"""The loop's verifiers: math by workers, code by the sandbox, one seed a group; tasks from data."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.publish.export import CURATED
from curation.records import TEST, Domain, Outcome, PromptRequest, SourceError, VerifierError
from curation.verify.math_judge import Verdict
from curation.verify.programs.problem import CodeProblem, CodeTest
from training.config import RewardSettings
from training.embedded_model.problems import Split
from training.recipe import CuratedData
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import Verifiers

SUM = TrainingTask(
    PromptRequest("sum", "Add the two numbers.", Domain.CODE, "en"),
    None,
    CodeProblem("sum", (CodeTest(b"1 2\n", b"3\n"), CodeTest(b"4 4\n", b"8\n"))),
)
FIVE = TrainingTask(PromptRequest("five", "What is 2 + 3?", Domain.MATH, "en"), "5")


def asked(judges: Verifiers, task: TrainingTask, *texts: str) -> list[Verdict]:
    async def run() -> list[Verdict]:
        return list(await asyncio.gather(*(judges.verify(task, text, seed=1) for text in texts)))

    return asyncio.run(run())


def program(body: str) -> str:
    return f"<think>…</think>\n```python\n{body}\n```"


@pytest.fixture
def code() -> Iterator[Verifiers]:
    try:
        with Verifiers([FIVE, SUM], 1, RewardSettings(code="proportional")) as opened:
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
    rows = [{"problem": "b", "index": 1, "input": "4 4\n", "output": "8\n"}]
    rows += [{"problem": "b", "index": 0, "input": "1 2\n", "output": "3\n"}]
    pl.DataFrame(rows, schema=TEST).write_parquet(tmp_path / "set/tests/0.parquet")
    tasks = load_tasks(data, Split.TRAIN, tmp_path)
    assert list(tasks) == ["a", "b"]
    assert tasks["a"].reference_answer == "5"
    assert tasks["b"].request.details == {"language": "cpp"}
    assert tasks["b"].code_problem is not None
    assert [case.output for case in tasks["b"].code_problem.tests] == [b"3\n", b"8\n"]


def test_what_cannot_be_judged_is_refused(tmp_path: Path) -> None:
    row = {"id": "a", "domain": "math", "statement": "2 + 3?", "lang": "en"}
    with pytest.raises(SourceError, match="no reference"):
        load_tasks(curated(tmp_path / "one", row), Split.TRAIN, tmp_path)
    with pytest.raises(SourceError, match="no tests"):
        load_tasks(curated(tmp_path / "two", {**row, "domain": "code"}), Split.TRAIN, tmp_path)
    twice = curated(tmp_path / "three", {**row, "answer": "5"}, {**row, "answer": "5"})
    with pytest.raises(SourceError, match="twice"):
        load_tasks(twice, Split.TRAIN, tmp_path)
    with pytest.raises(SourceError, match="no problem"):
        load_tasks(curated(tmp_path / "four"), Split.TRAIN, tmp_path)


def test_a_set_of_problems_with_prefixes_is_no_other_set_without_them(tmp_path: Path) -> None:
    row = {"id": "a", "domain": "math", "statement": "2 + 3?", "lang": "en", "answer": "5"}
    data = curated(tmp_path / "set", row, {**row, "id": "b"})
    file = tmp_path / "set" / "data" / "0.parquet"
    for prefixes in ([None, None], ["First, 2 + 3", None]):
        pl.read_parquet(file).with_columns(pl.Series("prefix", prefixes, pl.String)).write_parquet(file)
        assert list(load_tasks(data, Split.HELD_OUT, tmp_path)) == ["a", "b"]
        if any(prefixes):
            with pytest.raises(SourceError, match=r"their `prefix` \(1\), and no trainer.*publish the set anew"):
                load_tasks(data, Split.TRAIN, tmp_path)
        else:
            assert list(load_tasks(data, Split.TRAIN, tmp_path)) == ["a", "b"]
