"""Shards on Ray: the same bytes as in this process, also where a node dies; errors come back as they are."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError, SourceError
from curation.storage.stages import Shard, read_table
from curation.verify.math_judge import JudgeTask, Response
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
from tests.flows.code_rows import sound_row
from tests.flows.conftest import recipe_with, write_jsonl
from tests.flows.run.conftest import losing_a_node

RECIPE = recipe_with(
    'name="spread"',
    "shard_rows=50",
    'sources.0={name="sums", kind="jsonl", path="sums.jsonl", columns={statement="q", answer="a"}}',
    'models.student={kind="recorded", name="a@1", path="none.jsonl", columns={text="t"}}',
)


def filtered(inputs: Path, out: Path, runner: str) -> dict[str, bytes]:
    """The files of the format filter and the reference check."""
    recipe = inputs / "spread.toml"
    if not recipe.exists():
        recipe.write_text(RECIPE)
        rows = [{"q": f"What is {n} times {n % 7} plus 1?", "a": f"{n * (n % 7) + 1}"} for n in range(1000)]
        write_jsonl(inputs / "sums.jsonl", rows)
    run = new_run(recipe, [f"runner={runner}"], out)
    with runner_of(run.recipe):
        run_pipeline(run, (SOURCES, STATEMENTS, REFERENCES))
    stages = out / "stages"
    return {str(file.relative_to(stages)): file.read_bytes() for file in stages.rglob("*") if file.is_file()}


CODE_RECIPE = """
name = "spread-code"
flow = "curate-code"
shard_rows = 2
workers = 1
[[sources]]
name = "lists"
kind = "jsonl"
path = "lists.jsonl"
columns = { statement = "text" }
[sources.code]
time_limit = "seconds"
tests = [{ path = "tests" }]
solutions = [
  { path = "programs", code = "code", language = "language", verdict = "verdict", languages = { py = "python" } },
]
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "a@1"
path = "none.jsonl"
columns = { text = "t" }
"""


def ran(inputs: Path, out: Path, runner: str) -> dict[str, object]:
    """The files of the program filter and of the matrix; of its runs all but the seconds that they took."""
    recipe = inputs / "code.toml"
    if not recipe.exists():
        recipe.write_text(CODE_RECIPE)
        write_jsonl(inputs / "lists.jsonl", [sound_row(number, tests=2, right=2, wrong=1) for number in range(4)])
    run = new_run(recipe, [f"runner={runner}"], out)
    with runner_of(run.recipe):
        matrix = run_pipeline(run, (SOURCES, PROGRAMS, EXECUTION_MATRIX))[EXECUTION_MATRIX]
    files = {file for file in out.rglob("*.parquet") if not file.is_relative_to(matrix.folder / "runs")}
    told: dict[str, object] = {str(file.relative_to(out)): file.read_bytes() for file in files}
    return told | {"runs": read_table(matrix.folder, "runs").drop("cpu_s").rows()}


def known(name: str) -> CodeProblem:
    """A problem that wants the next number."""
    return CodeProblem(name, (CodeTest(b"1\n", b"2\n"),), lang=CodeLang.PYTHON)


def judged(judge: ProgramJudge) -> Shard:
    """Verdicts on a right program and a wrong one, as a shard's notes."""
    said = (Response(f"```python\nprint({code})\n```", None) for code in ("int(input()) + 1", "7"))
    (result,) = judge.judge([JudgeTask("p", None, "en", tuple(said))])
    return Shard(0, {}, notes={f"{n} {verdict.outcome.value}": 1 for n, verdict in enumerate(result.verdicts)})


def refuses() -> Shard:
    raise SourceError("the work says no")


def shards(out: Path, stage: str) -> int:
    """How many shards a stage has written."""
    return len(list(out.glob(f"stages/*-{stage}/shards/*")))


def test_only_shards_that_depend_on_no_other_are_spread() -> None:
    spread = {stage.name for pipeline in (CURATE_MATH, CURATE_CODE) for stage in pipeline.stages if stage.runs_anywhere}
    assert spread == {"programs", "statements", "references", "execution_matrix"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_cluster_makes_the_same_bytes_and_loses_nothing_with_a_node(cluster: Any, tmp_path: Path) -> None:
    local = filtered(tmp_path, tmp_path / "local", "local")
    with losing_a_node(cluster, lambda: shards(tmp_path / "killed", "statements") >= 2):
        assert filtered(tmp_path, tmp_path / "killed", "ray") == local


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_programs_run_on_a_cluster_as_they_do_here(cluster: Any, tmp_path: Path) -> None:
    from flows.run.runner import ray_runner

    local = ran(tmp_path, tmp_path / "local", "local")
    assert len(local["runs"]) == 4 * 3 * 2  # type: ignore[arg-type]
    with losing_a_node(cluster, lambda: shards(tmp_path / "killed", "execution_matrix") >= 1):
        assert ran(tmp_path, tmp_path / "killed", "ray") == local
    with ProgramJudge(known, 1, 1) as judge, ray_runner() as runner:
        made = [shard.notes for _, shard in runner.map((n, partial(judged, judge)) for n in range(2))]
    assert made == [{"0 correct": 1, "1 wrong": 1}] * 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_an_error_of_the_work_is_the_users_to_mend(cluster: Any) -> None:
    from flows.run.runner import ray_runner

    with ray_runner() as runner, pytest.raises(SourceError, match="the work says no"):
        list(runner.map([(0, refuses)]))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match="extra `ray`"):
        filtered(tmp_path, tmp_path / "run", "ray")
