"""Sampling on Ray: askers and verdicts on several nodes make the bytes of one process, also where a node dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from curation.policies.endpoint import Endpoint
from curation.policies.processes import AskingProcesses
from curation.records import PolicyError
from curation.verify.math_judge import JudgeTask, MathJudge, Verdict
from flows.run.runner import LocalRunner, current_runner
from tests.curation.policies.conftest import asked
from tests.curation.policies.test_endpoint import StandIn, settings
from tests.flows.conftest import Tiny, write_jsonl
from tests.flows.run.conftest import losing_a_node
from tests.flows.run.test_refusals import RECIPE
from tests.flows.run.test_samplers import contents

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
]

PROBLEMS = 96


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    """Answers every sum by an expression, so that no verdict is to be had at a glance; slowly."""
    sums = {f"What is {number} plus {number} times 3?": 4 * number for number in range(20, 20 + PROBLEMS)}
    home = tmp_path / "inputs"
    home.mkdir()
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": str(answer)} for text, answer in sums.items()])
    says = [[text, f"\\boxed{{\\sqrt{{{answer * answer}}}}}"] for text, answer in sums.items()]
    (tmp_path / "says.json").write_text(json.dumps(says))
    server = StandIn(tmp_path / "journal.jsonl", plan="slow " * 400, says=tmp_path / "says.json")
    (home / "poisoned.toml").write_text(
        RECIPE.replace("URL", server.url).replace("shard_rows = 2", "shard_rows = 32") + "per_server = 2\n"
    )
    yield server
    server.stop()


def test_askers_and_verdicts_on_two_nodes_make_the_same_bytes_and_one_may_die(
    cluster: Any, server: StandIn, tmp_path: Path
) -> None:
    recipe, journal = tmp_path / "inputs" / "poisoned.toml", tmp_path / "journal.jsonl"
    one, spread = Tiny(recipe, tmp_path / "one"), Tiny(recipe, tmp_path / "spread")
    with losing_a_node(cluster, lambda: journal.exists() and journal.read_text().count('"asked"') >= 10):
        said = spread.run("runner=ray", "stage1.sampling.samplers=2")
    assert said.status == 0, said.err
    asked_for = journal.read_text().count('"asked"')
    assert one.run().status == 0
    alone = journal.read_text().count('"asked"') - asked_for
    assert asked_for > alone  # what the lost node was asking was asked again
    assert contents(one) == contents(spread)
    assert contents(one)


def test_what_askers_are_told_and_tell_goes_by_the_same_way_as_a_process(
    cluster: Any, server: StandIn, tmp_path: Path
) -> None:
    from flows.run.runner_ray import ray_runner

    attempts = [(number, index) for number in range(6) for index in range(3)]

    async def drawn(policy: Any) -> list[Any]:
        async with policy:
            return await asyncio.gather(*(policy.answer(asked(number), index) for number, index in attempts))

    one = settings(server, per_server=8)
    with ray_runner() as runner:
        spread = AskingProcesses(one, Path(), None, 2, runner.open_channel)
        assert asyncio.run(drawn(spread)) == asyncio.run(drawn(Endpoint(one, Path())))
        nowhere = settings(server, urls=("http://127.0.0.1:9",), connect_s=0.1)
        with pytest.raises(PolicyError, match=r"127\.0\.0\.1:9"):
            asyncio.run(drawn(AskingProcesses(nowhere, Path(), None, 1, runner.open_channel)))


def test_slow_verdicts_are_those_of_this_process(cluster: Any) -> None:
    from flows.run.runner_ray import ray_runner

    task = JudgeTask("p", "4", "en", ())
    answers = ["4", "\\sqrt{16}", "\\sqrt{17}", None, "\\frac{8}{"]
    with MathJudge(1) as judge, ray_runner() as runner:
        spread = runner.spread_judge(judge)
        told: Future[tuple[Verdict, ...]] = spread.submit(task, answers)
        assert [verdict.outcome for verdict in told.result()] == [
            verdict.outcome for verdict in judge.submit(task, answers).result()
        ]
        assert spread.submit(task, ["4"]).done()  # at a glance, here
        assert spread.version == judge.version


def test_without_a_cluster_everything_stays_here(tmp_path: Path) -> None:
    with MathJudge(1) as judge:
        runner = current_runner(runs_anywhere=True)
        assert isinstance(runner, LocalRunner)
        assert runner.spread_judge(judge) is judge
