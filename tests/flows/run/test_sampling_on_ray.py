"""Sampling on Ray: verdicts on several nodes make the bytes of one process, also when a node dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from curation.verify.math_judge import JudgeTask, MathJudge, Verdict
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.conftest import Tiny, write_jsonl
from tests.flows.run.conftest import losing_a_node
from tests.flows.run.test_refusals import RECIPE

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
        RECIPE.replace("URL", server.url).replace("shard_rows = 2", "shard_rows = 32") + "in_flight = 2\n"
    )
    yield server
    server.stop()


def contents(run: Tiny) -> dict[str, bytes]:
    """What was published, and the parts of the store, byte for byte."""
    paths = [*(run.folder / "curated" / "data").glob("*"), *(run.folder / "attempts").glob("*/part-*")]
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in paths}


def test_verdicts_on_two_nodes_make_the_same_bytes_and_one_node_may_die(
    cluster: Any, server: StandIn, tmp_path: Path
) -> None:
    recipe, journal = tmp_path / "inputs" / "poisoned.toml", tmp_path / "journal.jsonl"
    one, spread = Tiny(recipe, tmp_path / "one"), Tiny(recipe, tmp_path / "spread")
    with losing_a_node(cluster, lambda: journal.exists() and journal.read_text().count('"asked"') >= 10):
        said = spread.run("runner=ray")
    assert said.status == 0, said.err
    assert one.run().status == 0
    assert contents(one) == contents(spread)
    assert contents(one)


def test_slow_verdicts_are_those_of_this_process(cluster: Any) -> None:
    from flows.run.runner import ray_runner

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
