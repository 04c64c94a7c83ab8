"""A new stage is one `Stage` and one line in a pipeline's list; this test's own, which drops products, is only here."""

from __future__ import annotations

from collections.abc import Callable
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
from flows.run.run_folder import open_run
from flows.run.stage import Stage, StageResult, StageRun, split_rows
from flows.stages.dedup import EXACT_DEDUP, NEAR_DEDUP
from tests.flows.conftest import TINY, goldilocks, published
from tests.flows.run.folders import card, run


def drop_products(job: StageRun) -> StageResult:
    """A filter as any other: problems that multiply leave."""

    def split(frame: pl.DataFrame, _index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        times = ["times" in text for text in frame["statement"]]
        reasons = [DropReason.UNUSABLE if found else None for found in times]
        evidence = ["it multiplies" if found else "" for found in times]
        return split_rows(frame, job.stage.name, reasons, evidence)

    return job.filter(job.open("products@1", "", job.problems), split)


PRODUCTS = Stage(
    name="products",
    title="Products left out",
    folder="stages/05b-products",
    work=drop_products,
    describe=lambda _run: iter(["products: none"]),
    explain=lambda _run, _folder, problem: iter([f"looked at for products: {problem}"]),
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
    tasks: list[str] = []

    def noted(item: Any, work: Callable[[], StageResult | None]) -> Any:
        task: Any = as_task(item, work)
        assert task.task_run_name == task.name
        tasks.append(task.name)
        return task

    monkeypatch.setattr(pipeline, "as_task", noted)
    folder, title = tmp_path / "run", PRODUCTS.title
    assert "\n  products: none\n" in goldilocks("run", tiny_recipe, "--dry", "--out", folder).out
    printed = run(tiny_recipe, folder)

    own, later = (read_manifest(stage.folder_in(open_run(folder))) for stage in (PRODUCTS, NEAR_DEDUP))
    assert own is not None
    assert later is not None
    assert (own.stage, list(own.inputs), own.dropped) == ("products", [EXACT_DEDUP.name], 3)
    assert (list(later.inputs), later.rows_in) == (["products"], own.kept)
    titles = [line[:24].rstrip() for line in printed.err.splitlines()]
    assert titles[titles.index(title) - 1] == EXACT_DEDUP.title
    assert tasks[titles.index(title)] == title
    assert "Stage 1: attempts" in tasks
    funnel = [line.split()[:6] for line in goldilocks("status", folder).out.splitlines() if title in line]
    assert funnel == [[*title.split(), str(own.rows_in), str(own.kept), "3"]]
    assert f"| {title} |" in card(folder)
    assert set(published(folder, "dropped").filter(stage="products")["reason"]) == {"unusable"}
    name = problem_id(TINY["wrong label"][0])
    explained = goldilocks("explain", folder, name).out
    assert f"{title}: dropped row 3 of school, unusable: it multiplies" in explained
    assert f"  looked at for products: {name}\n" in explained
    finished = goldilocks("run", tiny_recipe, "--dry", "--out", folder).out.splitlines()[-1]
    assert "exact_dedup, products, near_dedup" in finished


def test_a_list_that_cannot_be_meant_is_refused() -> None:
    with pytest.raises(ValueError, match="exact_dedup, stages/05-exact-dedup is in it twice"):
        Pipeline("p", (EXACT_DEDUP, EXACT_DEDUP))
