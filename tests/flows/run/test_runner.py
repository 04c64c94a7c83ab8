"""Shards and verdicts on Ray: the same bytes as in this process, also if a node dies; errors come back as they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError, SourceError
from curation.storage.stages import Shard, read_table
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest
from flows.pipelines.by_recipe import CURATE_CODE, CURATE_MATH
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import new_run
from flows.run.runner import runner_of
from flows.stages.references import REFERENCES
from flows.stages.sources import SOURCES
from flows.stages.statements import PROGRAMS, STATEMENTS
from flows.stages.tests import EXECUTION_MATRIX
from tests.curation.policies.test_endpoint import StandIn
from tests.flows.code_rows import sound_row
from tests.flows.conftest import recipe_with, write_jsonl
from tests.flows.run.conftest import losing_a_node
from tests.flows.run.folders import contents, run
from tests.flows.run.test_servers import RECIPE as POISONED

RECIPE = recipe_with(
    'name="spread"',
    "shard_rows=50",
    'sources.0={name="sums", kind="jsonl", path="sums.jsonl", columns={statement="q", answer="a"}}',
    'models.student={kind="recorded", name="a@1", path="none.jsonl", columns={text="t"}}',
)


CODE_RECIPE = Path(__file__).with_name("lists.toml").read_text(encoding="utf-8")


def filtered(inputs: Path, out: Path, runner: str) -> dict[str, object]:
    """The files of the format filter and the reference check."""
    (inputs / "spread.toml").write_text(RECIPE)
    rows = [{"q": f"What is {n} times {n % 7} plus 1?", "a": f"{n * (n % 7) + 1}"} for n in range(1000)]
    write_jsonl(inputs / "sums.jsonl", rows)
    run = new_run(inputs / "spread.toml", [f"runner={runner}"], out)
    with runner_of(run.recipe):
        run_pipeline(run, (SOURCES, STATEMENTS, REFERENCES))
    return {**contents(out / "stages")}


def ran(inputs: Path, out: Path, runner: str) -> dict[str, object]:
    """The files of the program filter and of the matrix; of its runs all but the seconds that they took."""
    (inputs / "code.toml").write_text(CODE_RECIPE)
    write_jsonl(inputs / "lists.jsonl", [sound_row(number, tests=2, right=2, wrong=1) for number in range(4)])
    run = new_run(inputs / "code.toml", [f"runner={runner}"], out)
    with runner_of(run.recipe):
        matrix = run_pipeline(run, (SOURCES, PROGRAMS, EXECUTION_MATRIX))[EXECUTION_MATRIX]
    files = {name: content for name, content in contents(out, "*.parquet").items() if "/runs/" not in name}
    runs = read_table(matrix.folder, "runs").drop("cpu_s").rows()
    assert len(runs) == 4 * 3 * 2
    return {**files, "runs": runs}


def known(name: str) -> CodeProblem:
    """A problem that wants the next number."""
    return CodeProblem(name, (CodeTest(b"1\n", b"2\n"),), lang=CodeLang.PYTHON)


def judged(judge: ProgramJudge) -> Shard:
    """Verdicts on a right program and a wrong one, as a shard's notes."""
    said = (Response(f"```python\nprint({code})\n```", None) for code in ("int(input()) + 1", "7"))
    (result,) = judge.judge([JudgeTask("p", None, "en", tuple(said))])
    return Shard(0, {}, notes={f"{n} {verdict.outcome.value}": 1 for n, verdict in enumerate(result.verdicts)})


def refuses() -> Shard:
    raise SourceError("the work refuses")


def test_only_shards_that_depend_on_no_other_are_spread() -> None:
    spread = {stage.name for pipeline in (CURATE_MATH, CURATE_CODE) for stage in pipeline.stages if stage.runs_anywhere}
    assert spread == {"programs", "statements", "references", "execution_matrix"}


def slow_on_ray(test: Callable[..., None]) -> Callable[..., None]:
    for name in ("ResourceWarning", "FutureWarning", "DeprecationWarning"):
        test = pytest.mark.filterwarnings(f"ignore::{name}")(test)
    return pytest.mark.slow(test)


@slow_on_ray
@pytest.mark.parametrize(
    ("work", "stage", "first"), [(filtered, "statements", 2), (ran, "execution_matrix", 1)], ids=["math", "code"]
)
def test_a_cluster_makes_the_same_bytes_and_loses_nothing_with_a_node(
    work: Callable[[Path, Path, str], dict[str, object]], stage: str, first: int, cluster: Any, tmp_path: Path
) -> None:
    local = work(tmp_path, tmp_path / "local", "local")
    assert len(local) > first
    shards = f"stages/*-{stage}/shards/*"
    with losing_a_node(cluster, lambda: len(list((tmp_path / "killed").glob(shards))) >= first):
        assert work(tmp_path, tmp_path / "killed", "ray") == local


@slow_on_ray
def test_programs_are_judged_on_a_cluster_and_an_error_of_the_work_is_the_users_to_mend(cluster: Any) -> None:
    from flows.run.runner import ray_runner

    with ProgramJudge(known, 1, 1) as judge, ray_runner() as runner:
        made = [shard.notes for _, shard in runner.map((n, partial(judged, judge)) for n in range(2))]
        assert made == [{"0 correct": 1, "1 wrong": 1}] * 2
        with pytest.raises(SourceError, match="the work refuses"):
            list(runner.map([(0, refuses)]))


def test_without_ray_the_message_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="extra `ray`"):
        filtered(tmp_path, tmp_path / "run", "ray")


# --- sampling --------------------------------------------------------------------------------------------------------

SUMS = {f"What is {number} plus {number} times 3?": 4 * number for number in range(20, 116)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    """Answers every sum by an expression, so that no verdict is to be had at a glance; slowly."""
    home = tmp_path / "inputs"
    home.mkdir()
    write_jsonl(home / "problems.jsonl", [{"question": text, "final": str(answer)} for text, answer in SUMS.items()])
    answers = [[text, f"\\boxed{{\\sqrt{{{answer * answer}}}}}"] for text, answer in SUMS.items()]
    (tmp_path / "says.json").write_text(json.dumps(answers))
    server = StandIn(tmp_path / "journal.jsonl", plan="slow " * 400, says=tmp_path / "says.json")
    recipe = POISONED.replace("URL", server.url).replace("shard_rows = 2", "shard_rows = 32")
    (home / "recipe.toml").write_text(recipe + "in_flight = 2\n")
    yield server
    server.stop()


@slow_on_ray
def test_verdicts_on_two_nodes_make_the_same_bytes_and_one_node_may_die(
    cluster: Any, server: StandIn, tmp_path: Path
) -> None:
    recipe, journal = tmp_path / "inputs" / "recipe.toml", tmp_path / "journal.jsonl"
    with losing_a_node(cluster, lambda: journal.exists() and journal.read_text().count('"asked"') >= 10):
        run(recipe, tmp_path / "spread", "runner=ray")
    run(recipe, tmp_path / "one")
    for folder, files in (("curated/data", "*"), ("attempts", "part-*")):
        whole = contents(tmp_path / "one" / folder, files)
        assert whole
        assert contents(tmp_path / "spread" / folder, files) == whole


@slow_on_ray
def test_slow_verdicts_are_those_of_this_process(cluster: Any) -> None:
    from flows.run.runner import ray_runner

    task = JudgeTask("p", "4", "en", ())
    answers = ["4", "\\sqrt{16}", "\\sqrt{17}", None, "\\frac{8}{"]
    with MathJudge(1) as judge, ray_runner() as runner:
        spread = runner.spread_judge(judge)
        here, there = (one.submit(task, answers).result() for one in (judge, spread))
        assert [verdict.outcome for verdict in there] == [verdict.outcome for verdict in here]
        assert spread.submit(task, ["4"]).done()  # at a glance, here
        assert spread.version == judge.version
