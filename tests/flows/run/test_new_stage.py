"""A new stage is one `Stage` and one line in a pipeline's list: everything else derives from that.

The stage of this test drops products. Nothing of it is anywhere but here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.records import DropReason, problem_id
from curation.storage.stages import read_manifest
from flows.pipelines.by_recipe import CURATE_MATH, PIPELINES
from flows.run import pipeline
from flows.run.pipeline import Pipeline, as_task
from flows.run.run_folder import Run, open_run
from flows.run.stage import Stage, StageResult, StageRun, split_rows
from flows.stages.dedup import EXACT_DEDUP, NEAR_DEDUP
from tests.flows.conftest import TINY, Tiny, goldilocks, published


def drop_products(job: StageRun) -> StageResult:
    """A filter as any other: problems that multiply leave."""

    def split(frame: pl.DataFrame, _index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        times = ["times" in text for text in frame["statement"]]
        reasons = [DropReason.UNUSABLE if found else None for found in times]
        evidence = ["it multiplies" if found else "" for found in times]
        return split_rows(frame, job.stage.name, reasons, evidence)

    return job.filter(job.open("products@1", "", job.problems), split)


def reads_aloud(_run: Run) -> Iterator[str]:
    yield "products: none"


def says_why(_run: Run, _folder: Path, problem: str) -> Iterator[str]:
    yield f"looked at for products: {problem}"


PRODUCTS = Stage(
    name="products",
    title="Products left out",
    folder="stages/05b-products",
    work=drop_products,
    describe=reads_aloud,
    explain=says_why,
)


@pytest.fixture
def longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The math pipeline with one line more in its list."""
    at = CURATE_MATH.items.index(EXACT_DEDUP) + 1
    items = (*CURATE_MATH.items[:at], PRODUCTS, *CURATE_MATH.items[at:])
    monkeypatch.setitem(PIPELINES, CURATE_MATH.name, replace(CURATE_MATH, items=items))


@pytest.mark.slow
def test_a_stage_in_the_list_is_everywhere(
    tiny_recipe: Path, tmp_path: Path, under_prefect: str, longer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[tuple[str, str]] = []

    def noted(item: Any, work: Callable[[], StageResult | None]) -> Any:
        task: Any = as_task(item, work)
        tasks.append((task.name, str(task.task_run_name)))
        return task

    monkeypatch.setattr(pipeline, "as_task", noted)
    run = Tiny(tiny_recipe, tmp_path / "run")
    dry = goldilocks("run", tiny_recipe, "--dry", "--out", run.folder)
    assert "\n  products: none\n" in dry.out
    said = run.run()
    assert said.status == 0, said.err

    manifest = read_manifest(run.folder / "stages" / "05b-products")
    assert manifest is not None
    assert (manifest.stage, list(manifest.inputs), manifest.dropped) == ("products", [EXACT_DEDUP.name], 3)
    behind = read_manifest(NEAR_DEDUP.folder_in(open_run(run.folder)))
    assert behind is not None
    assert (list(behind.inputs), behind.rows_in) == (["products"], manifest.kept)
    titles = [line[:24].rstrip() for line in said.err.splitlines()]
    assert titles[titles.index("Products left out") - 1] == EXACT_DEDUP.title
    assert tasks[titles.index("Products left out")] == ("Products left out", "Products left out")
    assert ("Stage 1: attempts", "Stage 1: attempts") in tasks
    funnel = [line.split()[:6] for line in goldilocks("status", run.folder).out.splitlines() if "Products" in line]
    assert funnel == [["Products", "left", "out", str(manifest.rows_in), str(manifest.kept), "3"]]
    assert "| Products left out |" in (run.folder / "curated" / "README.md").read_text()
    assert set(published(run.folder, "dropped").filter(stage="products")["reason"]) == {"unusable"}
    name = problem_id(TINY["wrong label"][0])
    told = goldilocks("explain", run.folder, name).out
    assert "Products left out: dropped row 3 of school, unusable: it multiplies" in told
    assert f"  looked at for products: {name}\n" in told
    finished = goldilocks("run", tiny_recipe, "--dry", "--out", run.folder).out.splitlines()[-1]
    assert "exact_dedup, products, near_dedup" in finished


def test_a_list_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(ValueError, match="exact_dedup, stages/05-exact-dedup is in it twice"):
        Pipeline("p", (EXACT_DEDUP, EXACT_DEDUP))
