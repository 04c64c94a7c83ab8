"""What is computed aside may fail: the page goes on without it, and says why, as does the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.pipelines.find_problem import filters_of
from flows.pipelines.run_tables import verifier_of
from flows.publish.versions import newest_run
from flows.stages.decisions import decisions_of
from tests.flows.conftest import forge
from tests.flows.page.conftest import PLANTED, Visitor
from tests.waiting import wait_until


def test_where_ranking_fails_the_queue_keeps_its_order_and_says_why(
    planted_copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = newest_run(planted_copy)
    last = filters_of(run)[-1].folder_in(run)
    (last / "DONE.json").unlink()  # as while a run with other filters is under way
    visitor = Visitor(planted_copy)

    def shown() -> str:
        return str(visitor.client.get("/r/run/review/next", params={"reviewer": "Ada"}).text)

    wait_until(lambda: "In the published order" in shown())
    assert f"{last} is not finished" in shown()
    assert f"of {PLANTED} settled" in shown()
    name = visitor.next("Ada")
    message = {"problem": name, "verdict": "reject", "answer": None, "reviewer": "Ada"}
    assert visitor.post("/r/run/review/verdict", message).status_code == 200
    assert visitor.next("Ada") != name
    assert capfd.readouterr().err.count("is not finished") == 1


def test_where_the_model_cannot_be_fitted_the_tab_is_shown_and_says_why(
    planted_copy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = newest_run(planted_copy)
    folder = decisions_of(run.parts[0]).folder_in(run, verifier_of(run))
    file = min((folder / "decisions").glob("*.parquet"))
    damaged = pl.read_parquet(file).with_columns(correct=pl.col("judged") + 1)
    forge(file, damaged)
    visitor = Visitor(planted_copy)

    def shown() -> Any:
        return visitor.get("/r/run/difficulty")

    wait_until(lambda: "being fitted" not in shown().text)
    assert shown().status_code == 200
    assert "It could not be fitted: " in shown().text
    assert "are correct</p>" in visitor.get("/r/run/calibration").text
    assert "Stage 1" in shown().text
    assert "are correct" in capfd.readouterr().err
